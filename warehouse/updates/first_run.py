"""A first run cannot hurt: what a first build would load is looked at before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.errors import EmptyFirstRunError, UnreadableFilesError
from warehouse.ingest.batch import first_look
from warehouse.ingest.classify import WindowMove
from warehouse.ingest.files import LeftOut
from warehouse.storage.session import table_session
from warehouse.time import at_slot, format_instant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog
    from warehouse.ingest.batch import FirstLook
    from warehouse.updates.inputs import Excluded
    from warehouse.updates.plan import StreamInput

__all__ = ["earliest_arrival", "refuse_empty"]


@dataclass(frozen=True)
class _Look:
    """How a first build is looked at: with which session and declarations, at which clock instant."""

    session: SparkSession
    catalog: Catalog
    clock: int
    excluded: Excluded

    def at(self, given: StreamInput, slot: int) -> FirstLook:
        """Look at one stream's files as a first build at ``slot``; unreadable ones are noted in ``excluded``."""
        session = table_session(self.session, {"spark.sql.session.timeZone": given.stream.timezone})
        move = WindowMove(
            k0=slot - given.layout.periods,
            k=slot,
            first=True,
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
                return first_look(session, given.stream, given.layout, move, groups)
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
    """Return the earliest ``ts`` (microseconds) of a valid waiting row; none when no row waits."""
    look = _Look(session, catalog, clock, excluded)
    found = [look.at(given, slot).earliest for given in inputs if _has_files(given)]
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
    first_epoch: bool,
) -> None:
    """Refuse a first build in which rows wait and none would be live.

    When a history is replayed slot by slot, rows that have not arrived yet are no loss; then only a build whose rows
    are all dead is refused.

    Raises
    ------
    EmptyFirstRunError
        Naming the streams; nothing has been written.

    """
    look = _Look(session, catalog, clock, excluded)
    refused = {}
    for given in filter(_has_files, created):
        counts = look.at(given, slot).counts
        empty = counts.live == 0 and (counts.dead if replays else counts.dead + counts.deferred) > 0
        if empty and not (replays and counts.deferred):
            refused[given.stream.name] = f"{counts.dead} dead by then, {counts.deferred} not yet arrived"
    if refused:
        moment = format_instant(at_slot(slot, catalog.anchor, catalog.update_interval))
        raise EmptyFirstRunError(refused, moment, replay=first_epoch)


def _has_files(given: StreamInput) -> bool:
    return any(group.files for group in given.groups)
