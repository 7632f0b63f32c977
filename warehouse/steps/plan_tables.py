"""The tables that the step of a view's node reads: all at epoch n's version, or moved by this plan.

What a table gained is read back from its own commit (``_load_slot > k0``), so that a view resumed after a crash sees what
its inputs loaded; rows that died before they were stored come from memory, while it lasts.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from warehouse.catalog.identifiers import quoted
from warehouse.steps.evaluation import INTERPRETED
from warehouse.storage.arrow_types import can_be_gathered, frame_of
from warehouse.storage.deltalog import commits_after
from warehouse.storage.scan import SlotBounds
from warehouse.time import at_slot
from warehouse.views.maintenance.feeds import Move, user_columns
from warehouse.views.maintenance.kept import FEW

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.epochs.records import Epoch
    from warehouse.planning.steps import NodePlan, Plan
    from warehouse.storage.scan import TableFiles
    from warehouse.storage.snapshot import DataFile

__all__ = ["PlanTables", "move_of"]

_WIDE = 8 * 1024 * 1024
"""Bytes of files whose rows the driver does not take, however few they are: compressed texts may be many times as long."""


def move_of(plan: Plan, planned: NodePlan) -> Move:
    """Return from when to when a node's step moves it."""
    return Move(
        k0=planned.k0,
        k=plan.slot,
        before=at_slot(planned.k0, plan.anchor, plan.update_interval),
        now=plan.window_time,
        anchor=plan.anchor,
        interval=plan.update_interval,
        first=planned.first,
    )


@dataclass(frozen=True)
class PlanTables:
    """The tables that one node's step reads, in the node's session.

    ``dead`` gives rows of a table that this process knows to have died before they were stored, ``dead_rows`` how many;
    none when there are none, or when they are not known any more. Where ``keys`` are given, rows that have other values in
    these columns may be missing.
    """

    root: Path
    plan: Plan
    last: Epoch | None
    move: Move
    session: SparkSession
    files: TableFiles
    dead: Callable[[str], DataFrame | None]
    dead_rows: Callable[[str], int]

    def arrived(self, table: str) -> DataFrame:
        """Return the rows that this plan loaded, dead ones included; on a first build the live rows."""
        if self.move.first:
            return self.now(table)
        k0 = self._loaded_until(table)
        if self.move.k0 == self.move.k:  # files were left over: the epoch before loaded the same slots
            lives = SlotBounds.expiring_after(self.move.k)
            rows = self._live(self._moved(table, lives)).exceptAll(self._live(self._base(table, lives)))
        else:
            rows = self._live(self._moved(table, SlotBounds.loaded_after(k0))).where(f"_load_slot > {k0}L")
        loaded = self._plain(rows)
        gone = None if self.keyed(table) else self.dead(table)
        return loaded if gone is None else loaded.unionByName(self._declared(gone, table))

    def most_arrived(self, table: str) -> int | None:
        """Return a number of rows than which no more arrived; none if there is no telling, or if rows are wide."""
        again = self.move.first or self.move.k0 == self.move.k
        wanted = SlotBounds.expiring_after(self.move.k) if again else SlotBounds.loaded_after(self._loaded_until(table))
        held = [file for file in self._files(table, self._version(table)) if wanted(file)]
        if any(file.rows is None for file in held) or sum(file.size for file in held) > _WIDE:
            return None
        gone = 0 if self.move.first or self.keyed(table) else self.dead_rows(table)
        return sum(file.rows or 0 for file in held) + gone

    def _loaded_until(self, table: str) -> int:
        """The last load slot of the rows that the last epoch has."""
        stream = next((stream for stream in self.plan.streams if stream.name == table), None)
        return self.move.k0 if stream is None else stream.k0

    def _files(self, table: str, version: int) -> Sequence[DataFile]:
        return self.files.files(f"tables/{table}", version)

    def before(self, table: str, keys: pa.Table | None = None) -> DataFrame:
        """Return the rows that were live at the last epoch; none on a first build."""
        if self.move.first:
            return self.now(table).where("false")
        return self._plain(self.own(table, keys))

    def stayed(self, table: str) -> DataFrame:
        """Return the rows that were live at the last epoch and are in the table still; none on a first build."""
        if self.move.first:
            return self.now(table).where("false")
        lives = SlotBounds.expiring_after(self.move.k)
        rows = self._live(self._moved(table, lives))
        if self.move.k0 == self.move.k:
            return self._plain(rows.intersectAll(self._live(self._base(table, lives))))
        return self._plain(rows.where(f"_load_slot <= {self.move.k0}L"))

    def stored(self, table: str) -> DataFrame:
        """Return the rows that were live at the last epoch, and others that had ended by then; none on a first build."""
        if self.move.first:
            return self.now(table).where("false")
        return self._plain(self._base(table, SlotBounds.expiring_after(self.move.k0)))

    def ended(self, table: str) -> DataFrame:
        """Return the rows that were live at the last epoch and have reached their own end; none on a first build."""
        if self.move.first:
            return self.now(table).where("false")

        def may_end(file: DataFile) -> bool:
            return lived(file) and (file.min_exp_slot is None or file.min_exp_slot <= self.move.k)

        lived = SlotBounds.expiring_after(self.move.k0)
        rows = self._base(table, may_end)
        return self._plain(rows.where(f"_exp_slot > {self.move.k0}L AND _exp_slot <= {self.move.k}L"))

    def came(self, table: str) -> pa.Table | None:
        """Return the rows that this plan loaded, dead ones included, read by this process; none when Spark is to read them."""
        move = self.move
        if move.first or move.k0 == move.k:
            return None
        gone = None if self.keyed(table) else self.dead(table)
        if gone is not None and self.dead_rows(table) > FEW:
            return None
        k0 = self._loaded_until(table)
        rows = self.files.found(
            f"tables/{table}", self._version(table), self._columns(table), SlotBounds.loaded_after(k0),
            most=FEW, where=f"_load_slot > {k0} AND _exp_slot > {move.k} AND epoch_us(_exp) > {move.now}",
        )  # fmt: skip
        if rows is None or gone is None:
            return rows
        gone = self._declared(gone, table)
        return pa.concat_tables([rows, gone.toArrow().cast(rows.schema)]) if can_be_gathered(gone.schema) else None

    def found(self, table: str, keys: pa.Table, columns: AbstractSet[str] | None = None) -> pa.Table | None:
        """Return the rows of some keys that were live at the last epoch, and others that had ended; none when Spark is to.

        ``columns`` are the names, in lower case, of those that are wanted; none: all.
        """
        state = self.last.table(table) if self.last else None
        if self.move.first or state is None:
            return None
        return self.files.found(
            f"tables/{table}",
            state.version,
            [column for column in self._columns(table) if columns is None or column.name.lower() in columns],
            SlotBounds.expiring_after(self.move.k0),
            keys=keys,
        )

    def frame(self, rows: pa.Table) -> DataFrame:
        """Return rows as a local relation."""
        return frame_of(self.session, rows)

    @contextmanager
    def interpreted(self) -> Iterator[None]:
        """Do without generated code meanwhile."""
        before = {name: str(self.session.conf.get(name)) for name in INTERPRETED}
        for name, value in INTERPRETED.items():
            self.session.conf.set(name, value)
        try:
            yield
        finally:
            for name, former in before.items():
                self.session.conf.set(name, former)

    def now(self, table: str, keys: pa.Table | None = None) -> DataFrame:
        """Return the rows that are live at the plan's window time."""
        return self._plain(self._live(self._moved(table, SlotBounds.expiring_after(self.move.k), keys)))

    def unseen(self, table: str) -> DataFrame | None:
        """Return rows that began and ended since the last epoch; none when there are none, or when they are not known."""
        gone = self.dead(table)
        return None if gone is None else self._declared(gone, table)

    def quiet(self, table: str) -> bool:
        """Whether a table gained no row since the last epoch; a keyed one: whether it lost none either."""
        state = self.last.table(table) if self.last else None
        if self.move.first or state is None:
            return False
        if self.dead(table) is not None:
            return False
        version = self._version(table)
        if self.keyed(table):
            return version == state.version
        came = SlotBounds.loaded_after(self._loaded_until(table))
        return version == state.version or not any(came(file) for file in self._files(table, version))

    def expiring(self, table: str, window: int | None = None) -> bool:
        """Whether rows of a table, or of a time window of that many microseconds over it, may have ended since the last epoch."""
        state = self.last.table(table) if self.last else None
        if self.move.first or state is None:
            return False
        lived = SlotBounds.expiring_after(self.move.k0)
        held = [file for file in self._files(table, state.version) if lived(file)]
        if window is not None:
            inside = SlotBounds.loaded_after(self.move.k0 - window // self.move.interval - 1)
            return any(inside(file) for file in held)
        return any(file.min_exp_slot is None or file.min_exp_slot <= self.move.k for file in held)

    def versions(self, relation: str) -> DataFrame:
        """Return all versions of a relation that are kept, closed ones included."""
        return self._plain(self._moved(relation, lambda _: True))

    def rows(self, table: str) -> int:
        """Return about how many rows a table has."""
        state = self.last.table(table) if self.last else None
        return sum(part.rows for part in state.partitions) if state else 0

    def keyed(self, table: str) -> bool:
        """Whether rows of a table may leave it before their own end."""
        node = self.plan.node(table)
        if node is not None:
            return node.node.label == "STR"
        planned = next((stream for stream in self.plan.streams if stream.name == table), None)
        if planned is not None:
            return planned.declaration.op is not None
        state = self.last.table(table) if self.last else None
        if state is None:
            return False
        return state.kind == "relation" or (state.view is not None and state.view.node.label == "STR")

    def own(self, table: str, keys: pa.Table | None = None) -> DataFrame:
        """Return the rows of a table that were live at the last epoch, with all columns but those of partitions."""
        rows = self._base(table, SlotBounds.expiring_after(self.move.k0), keys)
        return rows.where(f"_exp_slot > {self.move.k0}L AND unix_micros(_exp) > {self.move.before}L")

    def _base(self, table: str, wanted: Callable[[DataFile], bool], keys: pa.Table | None = None) -> DataFrame:
        state = self.last.table(table) if self.last else None
        if state is None:
            return self._moved(table, lambda _: False)
        return self._read(table, state.version, wanted, keys)

    def _moved(self, table: str, wanted: Callable[[DataFile], bool], keys: pa.Table | None = None) -> DataFrame:
        """The table with what this plan has committed."""
        return self._read(table, self._version(table), wanted, keys)

    def _version(self, table: str) -> int:
        state = self.last.table(table) if self.last else None
        version = state.version if state else 0
        for commit in commits_after(self.root / "tables" / table, version):
            if commit.metadata.get("epoch") == self.plan.epoch:
                version = commit.version
        return version

    def _read(
        self, table: str, version: int, wanted: Callable[[DataFile], bool], keys: pa.Table | None = None
    ) -> DataFrame:
        return self.files.read(self.session, f"tables/{table}", version, self._columns(table), wanted, keys=keys)

    def _columns(self, table: str) -> Sequence[ColumnRecord]:
        node = self.plan.node(table)
        if node is not None:
            return (*node.columns, *node.state)
        planned = next((stream for stream in self.plan.streams if stream.name == table), None)
        state = self.last.table(table) if self.last else None
        declaration = planned.declaration if planned is not None else state.declaration if state is not None else None
        if declaration is None:
            raise KeyError(table)
        own = (column for column in declaration.columns if column.name not in declaration.added)  # views read what is declared
        kept = state.view.state if planned is None and state is not None and state.view is not None else ()
        return (*own, *kept)

    def _declared(self, rows: DataFrame, table: str) -> DataFrame:
        """Rows of a batch, which may have columns too that views do not read, with those that they do."""
        there = {name.lower() for name in rows.columns}
        own = [quoted(column.name) for column in self._columns(table) if column.name.lower() in there]
        return rows.select(*own, "_ts", "_exp")

    def _live(self, rows: DataFrame) -> DataFrame:
        return rows.where(f"_exp_slot > {self.move.k}L AND unix_micros(_exp) > {self.move.now}L")

    def _plain(self, rows: DataFrame) -> DataFrame:
        return rows.selectExpr(*_kept(rows))


def _kept(rows: DataFrame) -> list[str]:
    return [*(quoted(name) for name in user_columns(rows)), "_ts", "_exp"]
