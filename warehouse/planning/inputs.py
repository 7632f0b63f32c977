"""Finds the waiting files for the next plan: compares the landing directories with the files that earlier epochs know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.catalog.declaration import reading_digest, with_added
from warehouse.catalog.declared_paths import recorded_path
from warehouse.catalog.drift import effective_layout
from warehouse.catalog.folder_values import folder_problem
from warehouse.epochs.known import known_files, known_of
from warehouse.errors import LandingError
from warehouse.ingest.columns import header_problem, ignoring_case
from warehouse.ingest.dialect import has_one_header
from warehouse.ingest.files import InputFiles, LeftOut
from warehouse.ingest.headers import headers
from warehouse.ingest.landing import (
    LandingStatus,
    landing_status,
    list_landing,
    listed_files,
    name_problem,
    partial_landing_status,
)
from warehouse.ingest.loaded_files import order, ranges_of
from warehouse.ingest.object_copies import copy_objects, objects_at
from warehouse.ingest.unknown_columns import with_unknown_columns
from warehouse.limits import limits
from warehouse.planning.plan import StreamInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from warehouse.catalog.model import Catalog, Stream
    from warehouse.epochs.records import Epoch
    from warehouse.ingest.files import LandingFile
    from warehouse.ingest.landing import KnownFiles

__all__ = ["Excluded", "LandingFacts", "all_parts", "grouped", "landed_before", "landing_facts", "present", "stream_inputs"]

Excluded = dict[str, dict[str, LeftOut]]
"""Files that could not be read while this update was being prepared, by stream and path."""


@dataclass(frozen=True)
class LandingFacts:
    """Files of one stream that need attention (changed after they were loaded, or unreadable), and files that wait or settle.

    ``vanished`` counts the former files if the directory is empty now and no declaration explains it. ``ignoring_case`` are
    sources as declared, with names of waiting CSV files that differ from them in case only.
    """

    stream: str
    changed: tuple[LandingFile, ...]
    unreadable: tuple[LeftOut, ...]
    waiting: int
    settling: int
    vanished: int = 0
    ignoring_case: tuple[tuple[str, str], ...] = ()


def landing_facts(catalog: Catalog, last: Epoch | None, clock: int) -> tuple[LandingFacts, ...]:
    """Return the waiting files in the landing directories, and the files that need attention; ``clock`` is in microseconds."""
    known = known_files(catalog.root, last)
    return tuple(
        _facts(stream, _arrived(stream, known_of(known, stream.name), last, catalog.root, clock)) for stream in catalog.sources
    )


def present(catalog: Catalog) -> dict[str, frozenset[str]]:
    """Return the paths in each landing directory; no path if the directory cannot be listed."""
    paths = {}
    for stream in catalog.sources:
        try:
            paths[stream.name] = frozenset(file.path for file in list_landing(stream.landing_path, stream.files))
        except LandingError:
            paths[stream.name] = frozenset()
    return paths


def landed_before(catalog: Catalog, last: Epoch | None, names: Sequence[str]) -> dict[str, tuple[InputFiles, ...]]:
    """Return the files of streams that were loaded before and are still as they were then, by their CSV header.

    A stream is left out if its files are more than one plan takes, are in an object store, or bring further columns.
    """
    known = known_files(catalog.root, last) if names else {}
    landed = {}
    for name in names:
        stream, loaded = catalog.stream(name), known_of(known, name).loaded
        if stream is None or stream.unknown_columns == "add" or stream.store is not None:
            continue
        files = [file for file in list_landing(stream.landing, stream.files) if loaded.get(file.path) == file]
        if len(files) <= limits().files_per_plan:
            landed[name] = grouped(stream, stream.landing, files)[1]
    return landed


def stream_inputs(
    catalog: Catalog, last: Epoch | None, excluded: Mapping[str, Mapping[str, LeftOut]], clock: int
) -> tuple[list[StreamInput], tuple[LandingFacts, ...]]:
    """Return the input of each declared stream for the next plan.

    Raises
    ------
    LandingError
        When a landing directory cannot be listed.

    """
    known = known_files(catalog.root, last)
    inputs, facts = [], []
    for stream in catalog.sources:
        status = _arrived(stream, known_of(known, stream.name), last, catalog.root, clock)
        inputs.append(_input(stream, last, catalog.update_interval, status, excluded.get(stream.name, {})))
        loose = (pair for group in inputs[-1].groups for pair in ignoring_case(stream, group.header))
        facts.append(replace(_facts(stream, status), ignoring_case=tuple(dict.fromkeys(loose))))
    return inputs, tuple(facts)


def all_parts(
    catalog: Catalog, given: StreamInput, last: Epoch | None, excluded: Mapping[str, LeftOut], clock: int
) -> Iterator[StreamInput]:
    """Yield all that waits for a stream, in inputs of bounded size; ``given`` is the first."""
    if not given.more:
        yield given
        return
    known = known_of(known_files(catalog.root, last), given.stream.name)
    status = _arrived(given.stream, known, last, catalog.root, clock)
    most = limits().files_per_plan
    for begin in range(0, len(status.new), most):
        part = replace(status, new=status.new[begin : begin + most])
        yield _input(given.stream, last, catalog.update_interval, part, excluded)


def _arrived(stream: Stream, known: KnownFiles, last: Epoch | None, root: Path, clock: int) -> LandingStatus:
    reading = reading_digest(stream)
    behind = _listed_up_to(stream, known, last, root)
    if stream.store is None or behind is None:
        files = listed_files(stream.landing_path, stream.files)
        status = landing_status(files, known, settle=stream.landing_settle, clock=clock, reading=reading)
    else:
        retried = objects_at(stream.store, {*known.left_out, *known.reload})
        later = list_landing(stream.store, stream.files, after=behind)
        status = partial_landing_status(
            {file.path: file for file in (*retried, *later)}.values(), known, clock=clock, reading=reading
        )
    if stream.listing == "after_last":  # in the order of names, so that the files that a plan leaves are the last ones
        status = replace(status, new=tuple(sorted(status.new, key=lambda file: file.path.encode())))
    return status


def _listed_up_to(stream: Stream, known: KnownFiles, last: Epoch | None, root: Path) -> str | None:
    """Return a loaded name that sorts before all names that may be new; None if any name may be new."""
    state = last.table(stream.name) if last else None
    recorded = state.declaration if state else None
    if stream.listing == "all" or recorded is None:
        return None
    if (recorded.landing, recorded.files) != (recorded_path(stream.landing_path, root), stream.files):
        return None  # names that were passed over may be wanted now
    runs = (run.files() for run in reversed(ranges_of(known.loaded)))
    return next((max(files, key=order) for files in runs if files), None)


def _facts(stream: Stream, status: LandingStatus) -> LandingFacts:
    emptied = status.empty and stream.after_load == "keep" and stream.store is None  # a rule of a bucket may empty it
    vanished = len(status.gone) if emptied else 0
    return LandingFacts(stream.name, status.changed, status.unreadable, len(status.new), status.settling, vanished)


def _input(
    stream: Stream, last: Epoch | None, interval: int, status: LandingStatus, excluded: Mapping[str, LeftOut]
) -> StreamInput:
    state = last.table(stream.name) if last else None
    stream = with_added(stream, state.declaration if state else None)
    remaining = next((entry for entry in (last.files if last else ()) if entry.stream == stream.name and entry.more), None)
    stopped = state.stopped if state else None
    new = [file for file in status.new if file.path not in excluded]
    chosen = new[: limits().files_per_plan]
    stream, groups, problems = grouped(stream, stream.landing, chosen)
    return StreamInput(
        stream=stream,
        layout=effective_layout(stream, state.layout if state else None, interval),
        groups=groups,
        left_out=(*problems, *(excluded[file.path] for file in status.new if file.path in excluded)),
        gone=status.gone,
        more=len(new) - len(chosen),
        continues=(stopped.slot, stopped.first) if stopped else (remaining.k0, remaining.first) if remaining else None,
    )


def grouped(
    stream: Stream, landing: Path, files: list[LandingFile]
) -> tuple[Stream, tuple[InputFiles, ...], list[LeftOut]]:
    """Return files by their CSV header, and files whose name or header cannot be read or matched with the declaration.

    The stream that comes with them has the columns that they add (``unknown_columns = "add"``).
    """
    missing = {problem.path: problem for problem in copy_objects(stream, files)}
    groups, problems = _by_header(stream, landing, [file for file in files if file.path not in missing])
    problems += [LeftOut(file, missing[file.path].reason, missing[file.path].message) for file in files if file.path in missing]
    if stream.unknown_columns != "add":
        return stream, groups, problems
    extended, refused = with_unknown_columns(stream, landing, [(group.header, group.files) for group in groups])
    reasons = {problem.path: problem for problem in refused}
    problems += [
        LeftOut(file, reasons[file.path].reason, reasons[file.path].message)
        for group in groups for file in group.files if file.path in reasons
    ]  # fmt: skip
    matched = ((group.header, tuple(file for file in group.files if file.path not in reasons)) for group in groups)
    return extended, tuple(InputFiles(header, members) for header, members in matched if members), problems


def _by_header(
    stream: Stream, landing: Path, files: list[LandingFile]
) -> tuple[tuple[InputFiles, ...], list[LeftOut]]:
    unnamed = [LeftOut(file, *problem) for file in files if (problem := _path_problem(stream, file.path))]
    refused = {entry.file.path for entry in unnamed}
    named = [file for file in files if file.path not in refused]
    if not has_one_header(stream):
        return ((InputFiles((), tuple(named)),) if named else ()), unnamed
    by_header, problems = headers(landing, named, dict(stream.options), stream.format)
    problems += unnamed
    groups = []
    for header, members in by_header.items():
        problem = header_problem(stream, header) if header else None
        if problem is None:
            groups.append(InputFiles(header, tuple(members)))
        else:
            problems.extend(LeftOut(file, *problem) for file in members)
    return tuple(groups), problems


def _path_problem(stream: Stream, path: str) -> tuple[str, str] | None:
    return name_problem(path) or folder_problem(path, stream.partitions)
