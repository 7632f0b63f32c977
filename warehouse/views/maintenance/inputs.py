"""The inputs of a node at one step, as values: rows that arrived, ended or are live, and a lookup by key.

A value has the facts that are known without Spark: versions, files with exact bounds of their slots, and rows that expired before
they were stored. Its relations are read only when they are needed. The rows that a table gained are read from its own commits
(``_load_slot > k0``), so a view that is resumed after a crash sees the rows that its inputs loaded.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.catalog.identifiers import quoted
from warehouse.layout.columns import CELL, is_system
from warehouse.storage.arrow_types import can_be_collected
from warehouse.storage.lookup import Bound, live_at
from warehouse.storage.scan import SlotBounds, few, no_rows, no_rows_in_driver
from warehouse.storage.session import interpreted
from warehouse.views.algebra import stateful_of
from warehouse.views.maintenance.cache import FEW
from warehouse.views.maintenance.input_facts import InputFacts
from warehouse.views.maintenance.keys import bag_difference, bag_intersection

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from collections.abc import Set as AbstractSet
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.layout import Layout
    from warehouse.storage.snapshot import DataFile
    from warehouse.views.algebra import Node, Operator
    from warehouse.views.maintenance.cache import Cache
    from warehouse.views.maintenance.driver_rows import DriverRows
    from warehouse.views.maintenance.input_facts import DeadRows, Move

__all__ = ["NodeInputs", "NodeTable", "few_interpreted", "user_columns"]

@dataclass(frozen=True, eq=False)
class NodeTable(InputFacts):
    """A table that a node reads at one step; every relation has the user columns, ``_ts`` and ``_exp``."""

    # --- relations, read by Spark ---

    def arrived(self) -> DataFrame:
        """Return the rows that this plan loaded, dead rows included; on a first build the live rows."""
        if self.move.first:
            return self.live_now()
        if self._overlaps():
            rows = bag_difference(self._lives_at(self.version), self._lives_at(self.base))
        else:
            rows = self._read(self.version, SlotBounds.loaded_after(self.loaded_until))
            rows = self._live(rows).where(f"_load_slot > {self.loaded_until}L")
        loaded = _plain(rows)
        return loaded if self.dead is None or self.keyed else loaded.unionByName(self._declared(self.dead.rows))

    def live_before(self, keys: pa.Table | None = None) -> DataFrame:
        """Return the rows that were live at the last epoch, empty on a first build; with ``keys``, other rows may be missing."""
        return self._none() if self.move.first else _plain(self._lived(keys))

    def live_now(self, keys: pa.Table | None = None) -> DataFrame:
        """Return the rows that are live at the plan's window time; with ``keys``, rows without these keys may be missing."""
        return _plain(self._live(self._read(self.version, SlotBounds.expiring_after(self.move.k), keys)))

    def live_now_with_slots(self) -> DataFrame:
        """Return the rows that are live at the plan's window time, with ``_loaded``: the load slot of each row."""
        rows = self._live(self._read(self.version, SlotBounds.expiring_after(self.move.k)))
        return rows.selectExpr(*map(quoted, user_columns(rows)), "_ts", "_exp", "_load_slot AS _loaded")

    def still_stored(self) -> DataFrame:
        """Return the rows that were live at the last epoch and are still in the table; empty on a first build."""
        if self.move.first:
            return self._none()
        rows = self._lives_at(self.version)
        if self._overlaps():
            return _plain(bag_intersection(rows, self._lives_at(self.base)))
        return _plain(rows.where(f"_load_slot <= {self.move.k0}L"))

    def stored_before(self) -> DataFrame:
        """Return the rows that were live at the last epoch, and perhaps rows that had ended by then; empty on a first build."""
        if self.move.first:
            return self._none()
        return _plain(self._read(self.base, SlotBounds.expiring_after(self.move.k0)))

    def ended(self) -> DataFrame:
        """Return the rows that were live at the last epoch and have reached their own end; empty on a first build."""
        if self.move.first:
            return self._none()
        lived = SlotBounds.expiring_after(self.move.k0)
        rows = self._read(self.base, lambda file: lived(file) and self._may_end(file))
        return _plain(rows.where(f"_exp_slot > {self.move.k0}L AND _exp_slot <= {self.move.k}L"))

    def live_before_with_slots(self, *, whole: bool) -> DataFrame:
        """Return the rows that were live at the last epoch, with ``_loaded``; ``whole``: also the rows that have not ended."""
        if self.move.first:
            return self._none().selectExpr("*", "0L AS _loaded")
        lived = SlotBounds.expiring_after(self.move.k0)
        rows = self._read(self.base, lambda file: lived(file) and (whole or self._may_end(file)))
        rows = rows.where(f"_exp_slot > {self.move.k0}L AND unix_micros(_exp) > {self.move.before}L")
        return rows.selectExpr(*map(quoted, user_columns(rows)), "_ts", "_exp", "_load_slot AS _loaded")

    def short_lived(self) -> DataFrame:
        """Return the rows that are known to have begun and ended since the last epoch."""
        return self._none() if self.dead is None else self._declared(self.dead.rows)

    def versions(self) -> DataFrame:
        """Return all stored versions of a relation, closed versions included."""
        return _plain(self._read(self.version, lambda _: True))

    def rows_to_rewrite(self, keys: pa.Table | None = None) -> DataFrame | None:
        """Return the rows that were live at the last epoch, without the partition columns; None on a first build.

        With ``keys``, rows without these keys may be missing. The rows are written again in buckets that change, so their files
        are verified first.
        """
        return None if self.move.first or self.base is None else self._lived(keys, rewritten=True)

    # --- relations, read in the driver ---

    def arrived_in_driver(self) -> pa.Table | None:
        """Return the rows that this plan loaded, dead rows included; None: Spark must read them.

        On a first build these are the live rows.
        """
        move = self.move
        if move.first:
            return self.live_now_in_driver()
        if self.version is None or self._overlaps():
            return None
        dead = None if self.keyed else self.dead
        if dead is not None and dead.count > FEW:
            return None
        rows = self.files.found(
            self._path, self.version, self.columns, SlotBounds.loaded_after(self.loaded_until), most=FEW,
            where=[Bound("_load_slot", ">", self.loaded_until), *live_at(move.k, move.now)],
        )  # fmt: skip
        dead_rows = None if rows is None or dead is None else self._died(dead, rows.schema)
        return rows if rows is None or dead is None else None if dead_rows is None else pa.concat_tables([rows, dead_rows])

    def short_lived_in_driver(self) -> pa.Table | None:
        """Return the rows that are known to have begun and ended since the last epoch; None: Spark must read them."""
        empty = no_rows_in_driver(self.columns)
        return empty if empty is None or self.dead is None else self._died(self.dead, empty.schema)

    def _died(self, dead: DeadRows, schema: pa.Schema) -> pa.Table | None:
        """Return rows that expired before they were stored; None if they are many or do not fit in Arrow."""
        if dead.count > FEW:
            return None
        if dead.in_driver is not None:
            columns = {name.lower(): dead.in_driver[name] for name in dead.in_driver.column_names}
            if columns.keys() >= {name.lower() for name in schema.names}:
                return pa.table({name: columns[name.lower()] for name in schema.names}).cast(schema)
        rows = self._declared(dead.rows)
        return rows.toArrow().cast(schema) if can_be_collected(rows.schema) else None

    def ended_in_driver(self) -> pa.Table | None:
        """Return the rows that were live at the last epoch and have reached their own end; None: Spark must read them."""
        if self.move.first:
            return no_rows_in_driver(self.columns)
        if self.base is None:
            return None
        lived = SlotBounds.expiring_after(self.move.k0)
        return self.files.found(
            self._path, self.base, self.columns, lambda file: lived(file) and self._may_end(file), most=FEW,
            where=[Bound("_exp_slot", ">", self.move.k0), Bound("_exp_slot", "<=", self.move.k)],
        )  # fmt: skip

    def inserted_in_driver(self) -> pa.Table | None:
        """Return the rows that were inserted into a keyed table since the last epoch; None if they are unknown."""
        return None if self.changed is None else self.changed.inserted

    def removed_in_driver(self) -> pa.Table | None:
        """Return the rows that were removed from a keyed table since the last epoch; None if they are unknown."""
        return None if self.changed is None else self.changed.removed

    def live_now_in_driver(self, keys: pa.Table | None = None) -> pa.Table | None:
        """Return the rows that are live at the plan's window time, at least those of the keys; None: Spark must read them."""
        if self.version is None or (keys is None and not self.has_few_live()):
            return None
        live = live_at(self.move.k, self.move.now)
        wanted = SlotBounds.expiring_after(self.move.k)
        return self.files.found(self._path, self.version, self.columns, wanted, keys=keys, where=live, most=FEW)

    def live_before_in_driver(self, keys: pa.Table | None = None) -> pa.Table | None:
        """Return the rows that were live at the last epoch, at least those of the keys; None: Spark must read them."""
        if self.move.first:
            return no_rows_in_driver(self.columns)
        if self.base is None or (keys is None and not few(self._files(self.base))):
            return None
        live = live_at(self.move.k0, self.move.before)
        wanted = SlotBounds.expiring_after(self.move.k0)
        return self.files.found(self._path, self.base, self.columns, wanted, keys=keys, where=live, most=FEW)

    def rows_to_rewrite_in_driver(self) -> pa.Table | None:
        """Return the rows of :meth:`rows_to_rewrite` with the partition columns; None on a first build, or if they are many."""
        if self.move.first or self.base is None:
            return None
        lived = SlotBounds.expiring_after(self.move.k0)
        live = live_at(self.move.k0, self.move.before)
        return self.files.to_rewrite(self._path, self.base, self.columns, lived, live)

    def cells_to_rewrite_in_driver(
        self,
        wanted: Callable[[tuple[int, int]], bool] = lambda _: True,
        *,
        present: Callable[[tuple[int, int]], bool] = lambda _: False,
    ) -> pa.Table | None:
        """Return the rows of :meth:`rows_to_rewrite_in_driver` in the ``wanted`` cells, few or many; None on a first build.

        The rows of the cells ``present`` are in the driver already. Returns None, too, if Spark must read the rows.
        """
        if self.move.first or self.base is None:
            return None
        lived = SlotBounds.expiring_after(self.move.k0)
        rows = self.files.many_to_rewrite(
            self._path, self.base, self.columns, lambda file: lived(file) and wanted((file.sub_index, file.exp_block)),
            present=lambda file: lived(file) and present((file.sub_index, file.exp_block)),
        )  # fmt: skip
        if rows is None:
            return None
        alive = pc.and_(
            pc.greater(rows["_exp_slot"], self.move.k0), pc.greater(rows["_exp"].cast(pa.int64()), self.move.before)
        )
        return rows if pc.all(alive).as_py() else rows.filter(alive)

    def all_rows_to_rewrite_in_driver(self) -> pa.Table | None:
        """Return the rows of :meth:`rows_to_rewrite_in_driver`, few or many; None: Spark must read them.

        On a first build there are no rows.
        """
        if self.move.first:
            return no_rows_in_driver(self.columns, rewritten=True)
        few = self.rows_to_rewrite_in_driver()
        return self.cells_to_rewrite_in_driver() if few is None else few

    def columns_of_cells_in_driver(self, cells: Collection[tuple[int, int]], columns: pa.Schema) -> pa.Table | None:
        """Return these columns of all rows of some cells, with their cells; None if this process cannot read them."""
        if self.base is None:
            return None
        return self.files.some_columns(
            self._path, self.base, lambda file: (file.sub_index, file.exp_block) in cells, columns
        )

    def stored_arrivals_in_driver(self, columns: pa.Schema, most: int) -> pa.Table | None:
        """Return these columns of the rows that this plan loaded and stored; None if there may be more than ``most`` rows."""
        loaded = SlotBounds.loaded_after(self.loaded_until)
        row_counts = [most + 1 if file.rows is None else file.rows for file in self._files(self.version) if loaded(file)]
        if self.version is None or self._overlaps() or sum(row_counts) > most:
            return None
        fields = [*columns, pa.field("_load_slot", pa.int64())]
        rows = self.files.some_columns(self._path, self.version, loaded, pa.schema(fields))
        return None if rows is None else rows.filter(pc.greater(rows["_load_slot"], self.loaded_until))

    def versions_in_driver(self) -> pa.Table | None:
        """Return all versions of a relation that has few versions, closed versions included; None: Spark must read them."""
        if self.version is None or not few(self._files(self.version)):
            return None
        return self.files.found(self._path, self.version, self.columns, lambda _: True)

    def rows_of_keys_in_driver(self, keys: pa.Table, columns: AbstractSet[str] | None = None) -> pa.Table | None:
        """Return the rows of some keys that were live at the last epoch, and perhaps ended rows; None: Spark must read them.

        ``columns`` are the names, in lower case, of the columns to read. None: all.
        """
        if self.move.first or self.base is None:
            return None
        wanted = [column for column in self.columns if columns is None or column.name.lower() in columns]
        return self.files.found(self._path, self.base, wanted, SlotBounds.expiring_after(self.move.k0), keys=keys)

    def buckets_to_rewrite_in_driver(self, buckets: Collection[int]) -> pa.Table | None:
        """Return the live rows of some buckets with all columns, to write them again; None: Spark must read them."""
        if self.base is None:
            return None
        live = live_at(self.move.k, self.move.now)
        return self.files.to_rewrite(self._path, self.base, self.columns, lambda file: file.sub_index in buckets, live)

    # --- reading ---

    def _read(
        self,
        version: int | None,
        wanted: Callable[[DataFile], bool],
        keys: pa.Table | None = None,
        *,
        rewritten: bool = False,
    ) -> DataFrame:
        if version is None:
            return no_rows(self.session, self.columns)
        return self.files.read(self.session, self._path, version, self.columns, wanted, keys=keys, rewritten=rewritten)

    def _lived(self, keys: pa.Table | None, *, rewritten: bool = False) -> DataFrame:
        """Return the rows that were live at the last epoch, without the partition columns."""
        rows = self._read(self.base, SlotBounds.expiring_after(self.move.k0), keys, rewritten=rewritten)
        return rows.where(f"_exp_slot > {self.move.k0}L AND unix_micros(_exp) > {self.move.before}L")

    def _live(self, rows: DataFrame) -> DataFrame:
        return rows.where(f"_exp_slot > {self.move.k}L AND unix_micros(_exp) > {self.move.now}L")

    def _lives_at(self, version: int | None) -> DataFrame:
        """Return the rows of a version that are live at the plan's window time; the columns are the same even without a file."""
        return self._live(self._read(version, SlotBounds.expiring_after(self.move.k))).drop(*CELL)

    def _none(self) -> DataFrame:
        return _plain(no_rows(self.session, self.columns))

    def _declared(self, rows: DataFrame) -> DataFrame:
        """Return rows of a batch, with only the columns that views read."""
        available = {name.lower() for name in rows.columns}
        columns = [quoted(column.name) for column in self.columns if column.name.lower() in available]
        return rows.select(*columns, "_ts", "_exp")


@dataclass(frozen=True, eq=False)
class NodeInputs:
    """The inputs of one node's step.

    Parameters
    ----------
    node, layout
        The node, and the layout of its table.
    move
        The times between which the step moves.
    opened
        Opens the session of its table, for the work of Spark.
    tables
        By name: the tables that the node scans, relations that it looks up, its own table, and a DISTINCT's table of spare rows.
    cache
        Caches intermediate rows until the step is done.

    """

    node: Node
    layout: Layout
    move: Move
    opened: Callable[[], SparkSession]
    tables: Mapping[str, NodeTable]
    cache: Cache

    @property
    def session(self) -> SparkSession:
        """The session of its table."""
        return self.opened()

    @property
    def core(self) -> Operator | None:
        """The operator whose state the node is."""
        return stateful_of(self.node.operator)

    @property
    def own(self) -> NodeTable:
        """The node's own table."""
        return self.tables[self.node.table]

    @property
    def owed(self) -> NodeTable | None:
        """The table of rows that are set aside for owed results; None if there is no such table."""
        return self.tables.get(f"{self.node.table}.owed")

    @property
    def spares(self) -> NodeTable | None:
        """The table of a DISTINCT's spare rows; None if rows do not end."""
        return self.tables.get(f"{self.node.table}.spare")


def few_interpreted(inputs: NodeInputs) -> AbstractContextManager[None]:
    """Return a context in which Spark generates no code if the node has few rows."""
    return interpreted(inputs.session) if inputs.own.is_small() else nullcontext()


def user_columns(rows: DataFrame | DriverRows) -> list[str]:
    """Return the names of the columns that are not the system's."""
    return [name for name in rows.columns if not is_system(name)]


def _plain(rows: DataFrame) -> DataFrame:
    return rows.selectExpr(*map(quoted, user_columns(rows)), "_ts", "_exp")
