"""The rows that the steps of a view's node write: rows that enter its table, or replacements of changed rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
from msgspec import to_builtins
from pyspark.sql import DataFrame

from warehouse.ingest.batch import empty_batch, placed_batch
from warehouse.storage.arrow_types import frame_of, framed
from warehouse.storage.deltalog import commits_after
from warehouse.time import at_slot
from warehouse.views.algebra import AntiJoin, Distinct, scanned
from warehouse.views.maintenance.appended import appended
from warehouse.views.maintenance.budgeted import BudgetedResults, made_within
from warehouse.views.maintenance.distinct import moved_values, spared
from warehouse.views.maintenance.input_facts import DeadRows, Move
from warehouse.views.maintenance.inputs import NodeTable
from warehouse.views.maintenance.keyed import Replacement
from warehouse.views.maintenance.pipelines import window_lengths
from warehouse.views.maintenance.placement import placed
from warehouse.views.maintenance.replaced import replaced
from warehouse.views.maintenance.set_aside import set_aside_replacement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.ingest.batch import Batch
    from warehouse.ingest.files import LeftOut
    from warehouse.layout import Layout
    from warehouse.planning.plan_record import NodePlan, Plan, StreamPlan
    from warehouse.storage.scan import TableFiles
    from warehouse.views.maintenance.inputs import NodeInputs

__all__ = ["OWED", "NodeSource", "move_of", "node_tables"]

OWED = "owed"
"""The key of the ledger of a view under a budget in a commit's metadata."""


def move_of(plan: Plan, planned: NodePlan | StreamPlan) -> Move:
    """Return the slots and instants between which a table's step moves it."""
    return Move(
        k0=planned.k0,
        k=plan.slot,
        before=at_slot(planned.k0, plan.anchor, plan.update_interval),
        now=plan.window_time,
        anchor=plan.anchor,
        interval=plan.update_interval,
        first=planned.first,
    )


def node_tables(
    names: Iterable[str],
    plan: Plan,
    root: Path,
    last: Epoch | None,
    move: Move,
    opened: Callable[[], SparkSession],
    files: TableFiles,
    dead: Mapping[str, DeadRows],
) -> dict[str, NodeTable]:
    """Return tables as a node reads them: at the version of the last epoch, and at the version that the plan has committed."""
    tables = {}
    for name in names:
        state, stream = last.table(name) if last else None, _stream(plan, name)
        columns, keyed = _declared(plan, state, name)
        base = state.version if state else None
        commits = commits_after(root / "tables" / name, base or 0)
        moved = [commit.version for commit in commits if commit.metadata.get("epoch") == plan.epoch]
        tables[name] = NodeTable(
            name,
            columns,
            opened,
            files,
            move,
            base=base,
            version=max(moved, default=base or 0),
            loaded_until=move.k0 if stream is None else stream.k0,
            keyed=keyed,
            size=sum(part.rows for part in state.partitions) if state else 0,
            dead=dead.get(name),
            search_key=state.declaration.search_key if state is not None else (),
        )
    return tables


def _stream(plan: Plan, name: str) -> StreamPlan | None:
    return next((stream for stream in plan.streams if stream.name == name), None)


def _declared(plan: Plan, state: TableState | None, name: str) -> tuple[Sequence[ColumnRecord], bool]:
    """The columns that views read of a table, and whether rows may leave it before their own end."""
    node, stream = plan.node(name), _stream(plan, name)
    if node is not None:
        return (*node.columns, *node.state), node.node.label == "STR"
    declaration = stream.declaration if stream is not None else state.declaration if state is not None else None
    if declaration is None:
        raise KeyError(name)
    own = [column for column in declaration.columns if column.name not in declaration.added]
    if stream is not None or state is None:
        return own, declaration.op is not None or (stream is not None and stream.coalesced is not None)
    return (*own, *(state.view.state if state.view is not None else ())), state.keyed


@dataclass(frozen=True, eq=False)
class NodeSource:
    """The rows of one node's steps, each relation computed once, when a step first needs it.

    ``spare_of`` is the source of the DISTINCT whose spare rows the table holds.
    """

    planned: NodePlan
    inputs: NodeInputs
    spare_of: NodeSource | None = None

    @property
    def session(self) -> SparkSession:
        """The session of the node's table."""
        return self.inputs.session

    @property
    def layout(self) -> Layout:
        """The layout of the node's table."""
        return self.planned.layout

    @property
    def columns(self) -> tuple[ColumnRecord, ...]:
        """The stored columns before the system columns: the user's, then the columns of aggregates' state."""
        return (*self.planned.columns, *self.planned.state)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """No file, since a view reads no landing file."""
        return ()

    @property
    def key(self) -> list[tuple[str, str]]:
        """The search key with its types."""
        types = {column.name.lower(): column.type for column in self.planned.columns}
        return [(name, types[name.lower()]) for name in self.planned.node.search_key]

    @cached_property
    def batch(self) -> Batch:
        """The rows that an append node gains."""
        if self.planned.budget is not None:
            rows = None if self.made is None else self.made.rows
            entered = None if rows is None else placed(rows, self.planned.node.columns, self.layout, self.inputs.move)
        else:
            values = self.values if isinstance(self.inputs.core, Distinct) and not self.idle else None
            entered = None if self.idle else appended(self.inputs, values)
        opened = self.inputs.opened
        return empty_batch(opened, self.columns) if entered is None else placed_batch(entered, opened)

    @cached_property
    def made(self) -> BudgetedResults | None:
        """The results made under the node's budget; None if no row arrived and no result is owed."""
        own = self.planned.budget
        if own is None or (self.idle and not own.ledger.ranges and not own.ledger.later):
            return None
        reports = self.planned.short_lived == "report"
        return made_within(self.inputs, own.effective_budget, own.ledger, own.upto, reports=reports)

    @property
    def commit_metadata(self) -> dict[str, object]:
        """Further metadata of the commit of a node under a budget: the results that are owed after it."""
        return {} if self.planned.budget is None or self.made is None else {OWED: to_builtins(self.made.ledger)}

    @cached_property
    def values(self) -> DataFrame | pa.Table:
        """The new rows of a DISTINCT's values."""
        return moved_values(self.inputs)

    @property
    def replacement(self) -> Replacement:
        """The replacement of a keyed node's changed rows."""
        return self._replaced[0]

    @cached_property
    def _replaced(self) -> tuple[Replacement, DataFrame | pa.Table | None]:
        if self.idle:
            return Replacement(None, {}, {}, 0), None
        if self.spare_of is not None and self.spare_of.planned.budget is not None:
            return self._set_aside(self.spare_of), None
        if self.spare_of is not None:
            return spared(self.spare_of.inputs, self.spare_of.values, self.planned.layout), None
        return replaced(self.inputs)

    def _set_aside(self, view: NodeSource) -> Replacement:
        result, table = view.made, view.inputs.owed
        if result is None or table is None:
            return Replacement(None, {}, {}, 0)
        return set_aside_replacement(view.inputs, result.set_aside, table, self.planned.layout)

    @cached_property
    def idle(self) -> bool:
        """Whether the node has nothing to do: no input changed, and no ended row must be replaced by another one."""
        if self.spare_of is not None and self.spare_of.planned.budget is not None:
            return self.planned.first or self.spare_of.made is None
        node, tables = self.planned.node, self.inputs.tables
        own = self.planned.spare_of or node.table
        if self.planned.first or (isinstance(self.inputs.core, Distinct) and tables[own].may_expire()):
            return False
        read = list(scanned(node.operator))
        if not all(tables[table].is_unchanged() for table in read):
            return False
        if node.label != "STR" or self.spare_of is not None:
            return True
        ends = [(table, None) for table in read if not tables[table].keyed]
        return not any(tables[table].may_expire(window) for table, window in (*ends, *window_lengths(node.operator)))

    @cached_property
    def short_lived(self) -> DataFrame | None:
        """The short-lived results, which no epoch showed; None if they are unknown."""
        return None if self._short_lived is None else framed(self._short_lived, self)

    @property
    def dead(self) -> DeadRows | None:
        """The short-lived results as the nodes that read this one get them; None if there are none."""
        results = self._short_lived
        if results is None or not self.dead_rows or self.planned.budget is not None:
            return None
        frame = results if isinstance(results, DataFrame) else None
        in_driver = self.short_lived_in_driver
        return DeadRows(lambda: frame_of(self.session, results) if frame is None else frame, self.dead_rows, in_driver)

    @property
    def short_lived_in_driver(self) -> pa.Table | None:
        """The short-lived results, where the driver has them."""
        return self._short_lived if isinstance(self._short_lived, pa.Table) else None

    @cached_property
    def dead_rows(self) -> int:
        """How many short-lived results there are."""
        if self._short_lived is None:
            return 0
        if self.planned.node.label != "STR" and self.planned.budget is None:
            return self.batch.counts.dead
        return self._short_lived.num_rows if isinstance(self._short_lived, pa.Table) else self._short_lived.count()

    @cached_property
    def _short_lived(self) -> DataFrame | pa.Table | None:
        if self.planned.first or self.spare_of is not None:
            return None
        if self.planned.budget is not None:
            return None if self.made is None else self.made.reported
        if self.planned.node.label == "STR":
            return self._replaced[1] if isinstance(self.inputs.core, AntiJoin | None) else None
        if not self.batch.counts.dead:
            return None
        in_driver = self.batch.dead_in_driver()
        return self.batch.rows.where("_fate = 'dead'") if in_driver is None else in_driver

    def release(self) -> None:
        """Drop the cached rows."""
        self.inputs.cache.release()
