"""Compares views with their queries at an epoch: by Spark, without the lock, over the files that the epoch names.

Each view is compared alone, over its inputs as they are stored, including other views. So a fault is reported for the right view.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from warehouse.epochs.journal import epoch_numbers, newest_epoch, nothing_loaded, read_epoch
from warehouse.epochs.view_findings import ViewFinding, forget_finding, record_finding
from warehouse.errors import EpochVacuumedError
from warehouse.ingest.unreadable_files import SPARK_FAILURES
from warehouse.storage.failures import passing_failure
from warehouse.storage.scan import SlotBounds, TableFiles
from warehouse.storage.session import INTERPRETED, table_session
from warehouse.views.verification.judgement import Doubt, judged, misses_only
from warehouse.views.verification.verifying_query import Unverifiable, verifying_query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.epochs.records import Epoch, TableState

__all__ = ["ViewVerdict", "checked_views", "kept_verdicts", "verdicts_of"]

_ATTEMPTS = 3
_SMALL = 100_000
"""Rows from which on Spark's code is worth its making."""


@dataclass(frozen=True)
class ViewVerdict:
    """The verdict on a view: whether it equals its query, or why this is unknown; ``rows`` are the first that differ."""

    view: str
    epoch: int
    outcome: Literal["same", "differs", "not verifiable", "not comparable", "stands still"]
    reason: str = ""
    rows: tuple[str, ...] = ()


def checked_views(
    root: Path, spark: Callable[[int], SparkSession], *, epoch: int | None, now: int
) -> tuple[ViewVerdict, ...]:
    """Return the verdict of each view at an epoch (None: the newest), and record the verdicts of the newest epoch.

    It does not take the lock: an epoch's files stay as long as it is readable. If the epoch is retired during the comparison, the
    newest epoch is compared instead.

    Raises
    ------
    NoEpochError, EpochVacuumedError
        When there is no such epoch, or it is no longer readable.

    """
    for _ in range(_ATTEMPTS):
        pinned = _pinned(root, epoch)
        stored_bytes = sum(part.bytes for state in pinned.tables for part in state.partitions)
        try:
            verdicts = tuple(verdicts_of(root, pinned, spark(stored_bytes)))
        except Exception:
            if pinned.number in epoch_numbers(root):
                raise
            continue  # its files were deleted too
        if pinned.number in epoch_numbers(root):
            newest = newest_epoch(root)
            if newest is not None and newest.number == pinned.number:
                kept_verdicts(root, verdicts, now)
            return verdicts
    raise EpochVacuumedError("epochs are retired faster than views can be compared; raise `retain`, or check between updates")


def _pinned(root: Path, number: int | None) -> Epoch:
    newest = newest_epoch(root)
    if newest is None:
        raise nothing_loaded(root)
    if number is None:
        return newest
    if number not in epoch_numbers(root):
        raise EpochVacuumedError(f"epoch {number} cannot be read (any more); `stream-wh history` lists the epochs that can")
    return read_epoch(root, number)


def verdicts_of(root: Path, epoch: Epoch, spark: SparkSession) -> Iterator[ViewVerdict]:
    """Yield the verdict of each view of an epoch, in the order of their names."""
    stored_rows = sum(part.rows for state in epoch.tables for part in state.partitions)
    session = table_session(spark, INTERPRETED if stored_rows < _SMALL else {})
    tables = _Tables(root, epoch, session)
    for state in sorted(epoch.tables, key=lambda table: table.name):
        if state.kind == "view" and state.declared:
            yield _verdict(state, tables)


def kept_verdicts(root: Path, verdicts: Sequence[ViewVerdict], now: int) -> None:
    """Record the views that differ, and remove the findings of views that equal their queries again."""
    for verdict in verdicts:
        if verdict.outcome == "differs":
            record_finding(root, ViewFinding(verdict.view, verdict.epoch, now, verdict.reason))
        elif verdict.outcome == "same":
            forget_finding(root, verdict.view)


@dataclass(frozen=True)
class _Tables:
    root: Path
    epoch: Epoch
    session: SparkSession

    def live(self, name: str) -> DataFrame:
        """Return the live rows of a table, with the columns that views read."""
        state = self.epoch.table(name)
        if state is None:
            raise KeyError(name)
        added = state.declaration.added
        columns = [column for column in state.declaration.columns if column.name not in added]
        slot, time = self.epoch.slot, self.epoch.window_time
        files = TableFiles(self.root)
        rows = files.read(self.session, state.path, state.version, columns, SlotBounds.expiring_after(slot))
        return rows.where(f"_exp_slot > {slot}L AND unix_micros(_exp) > {time}L")


def _verdict(state: TableState, tables: _Tables) -> ViewVerdict:
    view, epoch = state.view, tables.epoch
    if view is None:
        raise TypeError(f"{state.name} is no view's")
    if view.failed is not None:
        return ViewVerdict(state.name, epoch.number, "stands still", view.failed)
    nodes = [table.view.node for table in epoch.tables if table.view is not None and table.view.view == state.name]
    try:
        query = verifying_query(view.sql, [node.operator for node in nodes])
    except Exception as error:  # noqa: BLE001 - a view that cannot be read must not stop the others
        reason = f"its query cannot be read by this version: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
        return ViewVerdict(state.name, epoch.number, "not comparable", reason)
    if isinstance(query, Unverifiable):
        return ViewVerdict(state.name, epoch.number, "not verifiable", query.reason)
    names = {table.name.lower(): table.name for table in epoch.tables}
    try:
        result = judged(tables.session, query, nodes, tables.live, epoch.window_time, names)
    except SPARK_FAILURES as error:
        passing = passing_failure(error)
        if passing is not None:
            raise passing from error
        return ViewVerdict(state.name, epoch.number, "not comparable", f"its query fails: {str(error).splitlines()[0]}")
    if result is None or misses_only(result, view.ledger):
        return ViewVerdict(state.name, epoch.number, "same", "" if result is None else "as far as it is made; the rest is owed")
    if isinstance(result, Doubt):
        return ViewVerdict(state.name, epoch.number, "not comparable", result.reason)
    return ViewVerdict(state.name, epoch.number, "differs", result.summary, tuple(result.messages()))
