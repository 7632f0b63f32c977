"""Checks the rows that a first build would load before anything is written, so that a first run cannot lose them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from warehouse.errors import EmptyFirstRunError, UnreadableFilesError
from warehouse.ingest.batch_source import BatchSource
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

    def parts(self, stream_input: StreamInput) -> Iterator[StreamInput]:
        """Yield all waiting files of a stream, in parts; ``stream_input`` is the first part."""
        return all_parts(
            self.catalog, stream_input, self.last, self.excluded.setdefault(stream_input.stream.name, {}), self.clock
        )

    def at(self, stream_input: StreamInput, slot: int) -> FirstBuildPreview:
        """Look at one stream's files as a first build at ``slot``; unreadable files are added to ``excluded``."""
        return self.read(stream_input, slot, preview_first_build)

    def read(self, stream_input: StreamInput, slot: int, look: Callable[[BatchSource], _Found], k0: int | None = None) -> _Found:
        """Return the result of ``look`` for one stream's files at ``slot``, for a table that was at ``k0`` or does not exist."""
        stream = stream_input.stream
        waiting = estimated_rows(stream.format, [file for group in stream_input.groups for file in group.files])
        evaluated = INTERPRETED if waiting < CODE_GENERATION_ROWS else {}
        keys = key_settings(key_types(stream.search_key, stream.columns))  # the session of its update, which reuses the plan
        session = table_session(self.session, {**session_settings(stream), **keys, **evaluated})
        if not needs_no_check(stream_input.stream):
            check_expressions(session, stream_input.stream)
        move = WindowMove(
            k0=slot - stream_input.layout.periods if k0 is None else k0,
            k=slot,
            first=k0 is None,
            anchor=self.catalog.anchor,
            interval=self.catalog.update_interval,
            clock=self.clock,
        )
        failed = self.excluded.setdefault(stream_input.stream.name, {})
        while True:
            groups = [
                (group.header, [file for file in group.files if file.path not in failed]) for group in stream_input.groups
            ]
            try:
                return look(BatchSource(session, stream_input.stream, stream_input.layout, move, groups))
            except UnreadableFilesError as error:
                files = {file.path: file for group in stream_input.groups for file in group.files}
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
    streams = [stream_input for stream_input in inputs if stream_input.stream.changes is None and _has_files(stream_input)]
    arrivals = [look.at(part, slot).earliest for stream_input in streams for part in look.parts(stream_input)]
    return min((instant for instant in arrivals if instant is not None), default=None)


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
    for stream_input in filter(_has_files, created):
        dead = deferred = 0
        for part in look.parts(stream_input):
            preview = look.at(part, slot)
            counts = preview.counts
            if part is stream_input and preview.rows is not None:
                classified[stream_input.stream.name] = preview.rows
            dead, deferred = dead + counts.dead, deferred + counts.deferred
            if counts.live or (replays and deferred):
                break
        else:
            if dead + deferred:
                refused[stream_input.stream.name] = f"{dead} dead by then, {deferred} not yet arrived"
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
    result = []
    for stream_input in inputs:
        excluded: Excluded = {}
        look = _FirstBuild(session, catalog, clock, excluded, last)
        stored = last is not None and last.table(stream_input.stream.name) is not None
        k0 = last.slot if last is not None and stored else None
        rows = look.read(stream_input, slot, partial(sample_rows, most=most), k0) if _has_files(stream_input) else ()
        left_out = (*stream_input.left_out, *excluded.get(stream_input.stream.name, {}).values())
        result.append(Sample(stream_input.stream.name, rows, left_out))
    return tuple(result)


def _has_files(stream_input: StreamInput) -> bool:
    return any(group.files for group in stream_input.groups)
