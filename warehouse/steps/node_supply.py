"""What the step of a view's node commits: the rows that enter its table, or what replaces those that changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.catalog.identifiers import quoted
from warehouse.ingest.batch import Batch
from warehouse.ingest.batch_counts import BatchCounts
from warehouse.storage.tables import SYSTEM_COLUMNS
from warehouse.views.algebra import AntiJoin, Distinct, scanned, stateful_of
from warehouse.views.maintenance.feeds import window_lengths
from warehouse.views.maintenance.keyed import Replacement

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.planning.steps import NodePlan
    from warehouse.steps.plan_tables import PlanTables
    from warehouse.views.maintenance.maintain import Maintenance

__all__ = ["NodeSupply"]


@dataclass
class NodeSupply:
    """One node while its steps run."""

    planned: NodePlan
    session: SparkSession
    maintenance: Maintenance
    tables: PlanTables
    spare_of: NodeSupply | None = None
    _batch: Batch | None = None
    _replacement: tuple[Replacement, DataFrame | None] | None = None
    _lost_rows: int | None = None

    @property
    def columns(self) -> tuple[ColumnRecord, ...]:
        """The stored columns before the system's: the user's, then those of aggregates' state."""
        return (*self.planned.columns, *self.planned.state)

    @property
    def key(self) -> list[tuple[str, str]]:
        """The search key with its types."""
        types = {column.name.lower(): column.type for column in self.planned.columns}
        return [(name, types[name.lower()]) for name in self.planned.node.search_key]

    def batch(self) -> Batch:
        """Return what an append node gains."""
        if self._batch is None:
            entered = None if self._idle() else self.maintenance.appended()
            if entered is None:
                self._batch = Batch(self._no_rows(), BatchCounts(), persisted=False)
            else:
                counts = _counts(entered.rows) if entered.known is None else _counted(entered.known)
                self._batch = Batch(entered.rows, counts, persisted=False)
        return self._batch

    def _no_rows(self) -> DataFrame:
        """A batch of none, with which a step may still let rows go."""
        columns = [*((column.name, column.type) for column in self.columns), *SYSTEM_COLUMNS, ("_fate", "string")]
        return self.session.range(0).selectExpr(*[f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in columns])

    def replacement(self) -> Replacement:
        """Return what replaces a keyed node's changed rows."""
        if self._replacement is None:
            if self._idle():
                self._replacement = (Replacement(None, {}, {}, 0), None)
            elif self.spare_of is not None:
                self._replacement = (self.spare_of.maintenance.spared(self.planned.layout), None)
            else:
                self._replacement = self.maintenance.replaced()
        return self._replacement[0]

    def _idle(self) -> bool:
        """Whether nothing that the node reads has changed, nor a row of its own that another waits for has gone."""
        node, tables = self.planned.node, self.tables
        core = stateful_of(node.operator)
        own = self.planned.spare_of or node.table
        if self.planned.first or (isinstance(core, Distinct) and tables.expiring(own)):
            return False
        read = list(scanned(node.operator))
        if not all(tables.quiet(table) for table in read):
            return False
        if node.label != "STR" or self.spare_of is not None:
            return True
        ends = [(table, None) for table in read if not tables.keyed(table)]
        return not any(tables.expiring(table, window) for table, window in (*ends, *window_lengths(node.operator)))

    def lost(self) -> DataFrame | None:
        """Return the short-lived results: those that nobody could see; none when they are not known."""
        if self.planned.first or self.spare_of is not None:
            return None
        core = stateful_of(self.planned.node.operator)
        if self.planned.node.label != "STR":
            batch = self.batch()
            return batch.rows.where("_fate = 'dead'") if batch.counts.dead else None
        if core is not None and not isinstance(core, AntiJoin):
            return None
        self.replacement()
        return self._replacement[1] if self._replacement else None

    def lost_rows(self) -> int:
        """Return how many short-lived results there are."""
        if self._lost_rows is None:
            lost = self.lost()
            if lost is None:
                self._lost_rows = 0
            else:
                self._lost_rows = lost.count() if self.planned.node.label == "STR" else self.batch().counts.dead
        return self._lost_rows

    def release(self) -> None:
        """Let the kept rows go."""
        self.maintenance.release()
        self._batch = self._replacement = None


_PLACE = ("_fate", "sub_index", "exp_block")


def _counts(rows: DataFrame) -> BatchCounts:
    return _summed((row[0], row[1], row[2], row[3]) for row in rows.groupBy(*_PLACE).count().collect())


def _counted(rows: pa.Table) -> BatchCounts:
    counted = rows.select(_PLACE).group_by(_PLACE).aggregate([([], "count_all")]).select([*_PLACE, "count_all"])
    return _summed(zip(*(column.to_pylist() for column in counted.columns), strict=True))


def _summed(summary: Iterable[tuple[str, int, int, int]]) -> BatchCounts:
    counted = list(summary)
    cells = {(sub_index, block): count for fate, sub_index, block, count in counted if fate == "live"}
    live = sum(cells.values())
    dead = sum(count for fate, _, _, count in counted if fate == "dead")
    return BatchCounts(rows=live + dead, live=live, dead=dead, cells=cells)
