"""Checks the rows that a first build would load before anything is written, so that a first run cannot lose them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from warehouse.errors import EmptyFirstRunError, UnreadableFilesError
from warehouse.ingest.batch import BatchSource
from warehouse.ingest.classify import WindowMove
from warehouse.ingest.dialect import session_settings
from warehouse.ingest.expression_checks import check_expressions, needs_no_check
from warehouse.ingest.files import LeftOut
from warehouse.ingest.load_preview import preview_first_build, sample_rows
from warehouse.ingest.size_estimates import CODE_GENERATION_ROWS, estimated_rows
from warehouse.planning.inputs import all_parts
from warehouse.storage.session import INTERPRETED, table_session
from warehouse.storage.tables import key_types
from warehouse.storage.writer import key_settings
from warehouse.time import at_slot, format_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch
    from warehouse.ingest.load_preview import ClassifiedRows, FirstBuildPreview, SampledRow
    from warehouse.planning.inputs import Excluded
    from warehouse.planning.plan import StreamInput

__all__ = ["Sample", "earliest_arrival", "refuse_empty", "samples"]

_Found = TypeVar("_Found")


@dataclass(frozen=True)
class _FirstBuild:
    """The session, the declarations and the clock instant with which a first build is checked."""

    session: SparkSession
    catalog: Catalog
    clock: int
    excluded: Excluded
    last: Epoch | None = None

    def parts(self, given: StreamInput) -> Iterator[StreamInput]:
        """Yield all waiting files of a stream, in parts; ``given`` is the first part."""
        return all_parts(self.catalog, given, self.last, self.excluded.setdefault(given.stream.name, {}), self.clock)

    def at(self, given: StreamInput, slot: int) -> FirstBuildPreview:
        """Look at one stream's files as a first build at ``slot``; unreadable ones are noted in ``excluded``."""
        return self.read(given, slot, preview_first_build)

    def read(self, given: StreamInput, slot: int, look: Callable[[BatchSource], _Found], k0: int | None = None) -> _Found:
        """Return the result of ``look`` for one stream's files at ``slot``, for a table that was at ``k0`` or does not exist."""
        stream = given.stream
        waiting = estimated_rows(stream.format, [file for group in given.groups for file in group.files])
        evaluated = INTERPRETED if waiting < CODE_GENERATION_ROWS else {}
        keys = key_settings(key_types(stream.search_key, stream.columns))  # the session of its update, which finds the plan kept
        session = table_session(self.session, {**session_settings(stream), **keys, **evaluated})
        if not needs_no_check(given.stream):
            check_expressions(session, given.stream)
        move = WindowMove(
            k0=slot - given.layout.periods if k0 is None else k0,
            k=slot,
            first=k0 is None,
            anchor=self.catalog.anchor,
            interval=self.catalog.update_interval,
            clock=self.clock,
        )
        failed = self.excluded.setdefault(given.stream.name, {})
        while True:
            groups = [
                (group.header, [file for file in group.files if file.path not in failed]) for group in given.groups
            ]
            try:
                return look(BatchSource(session, given.stream, given.layout, move, groups))
            except UnreadableFilesError as error:
                files = {file.path: file for group in given.groups for file in group.files}
                failed.update(
                    {
                        problem.path: LeftOut(files[problem.path], problem.reason, problem.message)
                        for problem in error.files
                    },
                )


def earliest_arrival(
    session: SparkSession, catalog: Catalog, inputs: Iterable[StreamInput], *, slot: int, clock: int, excluded: Excluded
) -> int | None:
    """Return the earliest ``ts`` (microseconds) of a valid waiting row of a stream; None if no row waits.

    Changes of relations do not count: their rows may be years old and are not a history to replay.
    """
    look = _FirstBuild(session, catalog, clock, excluded)
    streams = [given for given in inputs if given.stream.changes is None and _has_files(given)]
    found = [look.at(part, slot).earliest for given in streams for part in look.parts(given)]
    return min((instant for instant in found if instant is not None), default=None)


def refuse_empty(
    session: SparkSession,
    catalog: Catalog,
    created: Iterable[StreamInput],
    *,
    slot: int,
    clock: int,
    excluded: Excluded,
    replays: bool,
    last: Epoch | None,
) -> dict[str, ClassifiedRows]:
    """Refuse a first build if rows wait and none of them would be live. Return the rows of streams with few rows.

    If a history is replayed slot by slot, later builds load the rows that have not arrived yet; then a build is only refused if
    its rows are all dead.

    Raises
    ------
    EmptyFirstRunError
        The error names the streams; nothing has been written.

    """
    look = _FirstBuild(session, catalog, clock, excluded, last)
    refused, classified = {}, {}
    for given in filter(_has_files, created):
        dead = deferred = 0
        for part in look.parts(given):
            found = look.at(part, slot)
            counts = found.counts
            if part is given and found.rows is not None:
                classified[given.stream.name] = found.rows
            dead, deferred = dead + counts.dead, deferred + counts.deferred
            if counts.live or (replays and deferred):
                break
        else:
            if dead + deferred:
                refused[given.stream.name] = f"{dead} dead by then, {deferred} not yet arrived"
    if refused:
        moment = format_instant(at_slot(slot, catalog.anchor, catalog.update_interval))
        raise EmptyFirstRunError(refused, moment, replay=last is None)
    return classified


@dataclass(frozen=True)
class Sample:
    """Rows of a stream's waiting files as an update would classify them, and files that it would leave out."""

    stream: str
    rows: tuple[SampledRow, ...]
    left_out: tuple[LeftOut, ...]


def samples(
    session: SparkSession,
    catalog: Catalog,
    inputs: Iterable[StreamInput],
    *,
    slot: int,
    clock: int,
    last: Epoch | None,
    most: int,
) -> tuple[Sample, ...]:
    """Return up to ``most`` waiting rows of each stream, as an update to ``slot`` would load them; nothing is written."""
    found = []
    for given in inputs:
        excluded: Excluded = {}
        look = _FirstBuild(session, catalog, clock, excluded, last)
        stored = last is not None and last.table(given.stream.name) is not None
        k0 = last.slot if last is not None and stored else None
        rows = look.read(given, slot, partial(sample_rows, most=most), k0) if _has_files(given) else ()
        left_out = (*given.left_out, *excluded.get(given.stream.name, {}).values())
        found.append(Sample(given.stream.name, rows, left_out))
    return tuple(found)


def _has_files(given: StreamInput) -> bool:
    return any(group.files for group in given.groups)
