"""A small warehouse written without Spark, and the slow, obvious model of what is read from it.

slot      0    1    2    3    4    5    6       A = 2013-01-01T00:00Z, D = 1 h
time      A   +1h  +2h  +3h  +4h  +5h  +6h      epochs 0, 1, 2 at slots 2, 3, 4
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from tests.declared import write_declarations
from warehouse.epochs.journal import epoch_path, write_record
from warehouse.epochs.records import ColumnRecord, Counts, Declaration, Epoch, Partition, SideTable, TableState, ViewRecord
from warehouse.layout import Layout, exp_block, sub_index
from warehouse.time import HOUR, MINUTE, NEVER, at_slot, format_instant, parse_instant, slot, to_datetime
from warehouse.views.algebra import AsOf, Group, Named, Node, Operator, Project, Scan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

ANCHOR = parse_instant("2013-01-01T00:00:00Z")
LAYOUT = Layout("norebuild", 2, 2, "staggered", "blocks", periods=6, expiry_block=3, seal=True)
NAMES_COUNTS = (Counts("names", files=1, rows=10, inserted=9, rejected=1),)
SYSTEM = {
    "_ts": pa.timestamp("us", "UTC"),
    "_exp": pa.timestamp("us", "UTC"),
    "_load_slot": pa.int64(),
    "_exp_slot": pa.int64(),
    "sub_index": pa.int32(),
    "exp_block": pa.int64(),
}


@dataclass(frozen=True)
class Row:
    """A row: the user's values, arrival, expiration, and the slot that loaded it."""

    values: tuple[Any, ...]
    ts: int
    exp: int
    load: int

    def system(self) -> tuple[Any, ...]:
        """Return the system columns as they are stored."""
        b = slot(self.exp, ANCHOR, HOUR)
        never = self.exp == NEVER
        cell, block = (coordinate(LAYOUT, self.load, b, never=never) for coordinate in (sub_index, exp_block))
        return to_datetime(self.ts), to_datetime(self.exp), self.load, b, cell, block

    def shown(self) -> tuple[Any, ...]:
        """Return the system columns as they are shown."""
        ts, exp, *rest = self.system()
        return (ts, None if self.exp == NEVER else exp, *rest)


@dataclass(frozen=True)
class Table:
    """A table: its columns as (name, Spark type, Arrow type), its key, its rows."""

    name: str
    columns: tuple[tuple[str, str, pa.DataType], ...]
    key: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The user's columns."""
        return tuple(name for name, _, _ in self.columns)

    def key_of(self, row: Row) -> tuple[Any, ...]:
        """Return the search key of a row."""
        return tuple(row.values[self.names.index(name)] for name in self.key)

    def live(self, at: int, tau: int | None = None) -> list[Row]:
        """Return the rows that a read at the epoch of slot ``at`` finds at tau: a list and an if."""
        tau = at_slot(at, ANCHOR, HOUR) if tau is None else tau
        return [row for row in self.rows if row.load <= at and row.exp > tau]

    def probed(
        self, wanted: Callable[[tuple[Any, ...]], bool], at: int, tau: int | None = None
    ) -> list[tuple[Any, ...]]:
        """Return the values of live rows whose key is wanted, by key with nulls first, exp, ts."""
        rows = [row for row in self.live(at, tau) if wanted(self.key_of(row))]
        rows.sort(key=lambda row: ([(part is not None, part) for part in self.key_of(row)], row.exp, row.ts))
        return [row.values for row in rows]


@dataclass
class House:
    """A warehouse on disk and the model of its tables."""

    root: Path
    tables: dict[str, Table]
    epochs: list[Epoch] = field(default_factory=list)

    def __getitem__(self, name: str) -> Table:
        return self.tables[name]


def declare(directory: Path, root: str = "data", **sections: dict[str, object]) -> Path:
    """Write the ``warehouse.toml`` of a house below a directory, which is returned; ``warehouse`` has further keys of its own."""
    head = {"root": root, "anchor": format_instant(ANCHOR), "update_interval": "1h", **sections.pop("warehouse", {})}
    return write_declarations(directory, {"warehouse": head, **sections})


def _minutes(count: int) -> int:
    return ANCHOR + count * MINUTE


def names_table() -> Table:
    """String keys with common prefixes, quotes, odd characters; nulls; many rows per key; never-expiring ones."""
    keys = ["a", "aa", "ab", "b", "B", "007", "7", "", "it's", 'say "x"', "ü", "zzz", "x" * 40, "x" * 40 + "y", None]
    rows = []
    for load in (1, 2, 3, 4):
        for index, key in enumerate(keys):
            for copy in range(1 + (index + load) % 3):
                ts = _minutes(60 * load - 7 * copy - index % 5)
                exp = (
                    NEVER
                    if (index + copy + load) % 6 == 5
                    else _minutes(60 * load + 20 + 37 * ((index * 5 + copy) % 9))
                )
                value = index * 100 + load * 10 + copy
                rows.append(Row((key, value, None if value % 4 == 0 else value / 8, [value, None]), ts, exp, load))
    columns = (
        ("name", "string", pa.string()),
        ("value", "int", pa.int32()),
        ("weight", "double", pa.float64()),
        ("parts", "array<int>", pa.list_(pa.int32())),
    )
    return Table("names", columns, ("name",), tuple(rows))


def pairs_table() -> Table:
    """A composite key of three parts with nulls in each."""
    rows = []
    for load in (1, 2, 3, 4):
        for a in (None, -3, 0, 5):
            for b in (None, "x", "xy", "y"):
                for c in (None, 1) if load % 2 else (2,):
                    exp = NEVER if a == 5 and load == 1 else _minutes(60 * load + 45 * (1 + (load + (a or 1)) % 4))
                    rows.append(Row((a, b, c, len(rows)), _minutes(60 * load - 3), exp, load))
    columns = (
        ("a", "bigint", pa.int64()),
        ("b", "string", pa.string()),
        ("c", "int", pa.int32()),
        ("n", "int", pa.int32()),
    )
    return Table("pairs", columns, ("a", "b", "c"), tuple(rows))


def days_table() -> Table:
    """A date key."""
    rows = [
        Row((date(2012, 12, 20 + index % 9), index), _minutes(30 * index), _minutes(30 * index + 100), 1 + index // 2)
        for index in range(8)
    ]
    return Table("days", (("day", "date", pa.date32()), ("n", "int", pa.int32())), ("day",), tuple(rows))


def amounts_table() -> Table:
    """A decimal key beyond what a double holds, and a boolean column."""
    base = Decimal("1234567890123456.70")
    rows = [
        Row((base + Decimal(index) / 100, index % 2 == 0), _minutes(60), _minutes(60 * (2 + index)), 1)
        for index in range(6)
    ]
    columns = (("amount", "decimal(18,2)", pa.decimal128(18, 2)), ("even", "boolean", pa.bool_()))
    return Table("amounts", columns, ("amount",), tuple(rows))


def moments_table() -> Table:
    """A timestamp key with microseconds, before 1970 too, and a column that has the name of a helper column."""
    rows = [
        Row((to_datetime(moment), "file"), _minutes(60), _minutes(300), 1)
        for moment in (-1_500_001, -1, 0, 1, 999, 1_000_999, ANCHOR + 123_456)
    ]
    columns = (("moment", "timestamp", pa.timestamp("us", "UTC")), ("filename", "string", pa.string()))
    return Table("moments", columns, ("moment",), tuple(rows))


def empty_table() -> Table:
    """No row at all."""
    return Table("nothing", (("k", "string", pa.string()), ("v", "bigint", pa.int64())), ("k",), ())


def build(root: Path, *, slots: Iterable[int] = (2, 3, 4)) -> House:
    """Write a warehouse with an epoch for each slot; each appends what loaded since the last one."""
    tables = (names_table(), pairs_table(), days_table(), amounts_table(), moments_table(), empty_table())
    house = House(root, {table.name: table for table in tables})
    for number, at in enumerate(slots):
        states = tuple(table_state(house, table, at, number) for table in tables)
        add_epoch(house, number, at, states)
    return house


def add_epoch(
    house: House, number: int, at: int, states: tuple[TableState, ...], counts: tuple[Counts, ...] = NAMES_COUNTS
) -> Epoch:
    """Write an epoch record."""
    epoch = Epoch(
        number=number,
        window_time=at_slot(at, ANCHOR, HOUR),
        slot=at,
        previous_slot=at - 1,
        anchor=ANCHOR,
        update_interval=HOUR,
        committed_at=at_slot(at, ANCHOR, HOUR) + MINUTE,
        catalog_digest="",
        tables=states,
        counts=counts,
    )
    write_record(epoch_path(house.root, number), epoch)
    house.epochs.append(epoch)
    return epoch


def table_state(house: House, table: Table, at: int, number: int) -> TableState:
    """Write a table's rows up to a slot and return its state."""
    path = house.root / "tables" / table.name
    earlier = house.epochs[-1].slot if house.epochs else -99
    # two commits an epoch, so that a partition has several files
    batch = [row for row in table.rows if earlier < row.load <= at]
    for part in (batch[::2], batch[1::2]):
        if part or not (path / "_delta_log").exists():
            write_rows(path, table, part)
    delta = DeltaTable(str(path))
    schema_file = f"tables/{table.name}/_schema/columns.parquet"
    target = house.root / schema_file
    target.parent.mkdir(exist_ok=True)
    pq.write_table(arrow(table, []).drop_columns(["sub_index", "exp_block"]), target)
    return TableState(
        name=table.name,
        kind="stream",
        path=f"tables/{table.name}",
        table_id=str(delta.metadata().id),
        version=delta.version(),
        layout=LAYOUT,
        declaration=_declaration(table),
        schema_file=schema_file,
        partitions=(Partition(1, 0, 1, 1, 3, 100, 3),) if table.name == "names" else (),
        rejected=rejected_rows(house.root, table.name, number) if table.name == "names" else None,
    )


def arrow(table: Table, rows: list[Row]) -> pa.Table:
    """Return rows as they are stored."""
    types = {name: kind for name, _, kind in table.columns} | SYSTEM
    columns = list(zip(*((*row.values, *row.system()) for row in rows), strict=True)) or [()] * len(types)
    arrays = [pa.array(list(values), kind) for values, kind in zip(columns, types.values(), strict=True)]
    return pa.table(dict(zip(types, arrays, strict=True)))


def write_rows(path: Path, table: Table, rows: list[Row]) -> None:
    """Append rows, sorted by key and exp."""
    ordered = sorted(rows, key=lambda row: ([(part is not None, part) for part in table.key_of(row)], row.exp))
    write_deltalake(str(path), arrow(table, ordered), partition_by=["sub_index", "exp_block"], mode="append")


def rejected_rows(root: Path, name: str, number: int) -> SideTable:
    """Append one rejected row."""
    path = root / "rejected" / name
    row = {"file": [f"{number}.csv"], "record": [1], "reason": ["null_key"], "message": ["m"], "raw": ["a,b"]}
    write_deltalake(str(path), pa.table({**row, "epoch": pa.array([number], pa.int64())}), mode="append")
    delta = DeltaTable(str(path))
    return SideTable(f"rejected/{name}", str(delta.metadata().id), delta.version(), number + 1)


def _declaration(table: Table) -> Declaration:
    return Declaration(
        landing="../landing",
        files="*",
        format="csv",
        options=(),
        timezone="UTC",
        columns=tuple(ColumnRecord(name, kind) for name, kind, _ in table.columns),
        search_key=table.key,
        arrival="ts",
        expires="exp",
        max_lifetime=6 * HOUR,
        over_lifetime="accept",
        max_ahead=None,
        null_expiry="reject",
        unknown_columns="reject",
        label="WK",
    )


def same_tables_later(house: House, at: int) -> Epoch:
    """Write a further epoch with the same tables."""
    last = house.epochs[-1]
    return add_epoch(house, last.number + 1, at, tuple(replace(state) for state in last.tables))


VIEW_SQL = "SELECT name FROM names GROUP BY name"
_STATE_COLUMNS = (("name", "string", pa.string()), ("_state_rows", "bigint", pa.int64()))


def _rows(*values: tuple[object, ...], exp: int = NEVER) -> tuple[Row, ...]:
    return tuple(Row(row, ANCHOR + 290 * MINUTE, exp, 5) for row in values)


def _node(table: str, operator: Operator, *, hidden: bool = False) -> Node:
    return Node(table, operator, ("name",), ("name",), "STR", 6, hidden=hidden)


def _restored(root: Path, rows: int) -> SideTable:
    """Write short-lived results of epoch 3, each a minute later than the one before."""
    times = [to_datetime(ANCHOR + 200 * MINUTE + minute * MINUTE) for minute in range(rows + 1)]
    instants = pa.timestamp("us", "UTC")
    table = {
        "name": [f"n{number}" for number in range(rows)],
        "_ts": pa.array(times[:-1], instants),
        "_exp": pa.array(times[1:], instants),
        "_epoch": pa.array([3] * rows, pa.int64()),
    }
    write_deltalake(str(root / "restored" / "results"), pa.table(table))
    delta = DeltaTable(str(root / "restored" / "results"))
    return SideTable("restored/results", str(delta.metadata().id), delta.version(), rows)


def add_views(house: House) -> None:
    """Write epoch 3 at slot 5, with a view over `names` and a relation, the state of its operator and the relation.

    names and planes (a relation) --> results.1 (state: groups with _state_rows) --> results (reports short-lived results)
    """
    text = (("name", "string", pa.string()),)
    states: list[TableState] = []
    for table, kind in (
        (Table("results.1", _STATE_COLUMNS, ("name",), _rows(("a", 2), ("b", 1))), "state"),
        (Table("results", text, ("name",), _rows(("a",), ("b",))), "view"),
        (Table("planes", text, ("name",), (*_rows(("x",), ("y",)), *_rows(("x",), exp=ANCHOR + 295 * MINUTE))), "relation"),
    ):
        house.tables[table.name] = table
        state = table_state(house, table, 5, 3)
        declared = tuple(column for column in state.declaration.columns if not column.name.startswith("_"))
        states.append(replace(state, kind=kind, declaration=replace(state.declaration, columns=declared)))
    below = AsOf(Scan("names"), "planes", (("name", "name"),), (Named("kind", "`name`"),))
    nodes = {
        "results.1": _node("results.1", Group(below, ("name",), ()), hidden=True),
        "results": _node("results", Project(Scan("results.1"), (Named("name", "`name`"),))),
    }
    states = [
        replace(state, view=ViewRecord("results", VIEW_SQL, nodes[state.name], "report")) if state.name in nodes else state
        for state in states
    ]
    states[1] = replace(states[1], restored=_restored(house.root, 3))
    declaration = replace(states[2].declaration, op="op", retroactive=True)
    states[2] = replace(states[2], declaration=declaration)
    counts = (
        Counts("names", rows=10, inserted=10, expired=1, bytes_written=100),
        Counts("results.1", rows=7, inserted=7, bytes_written=30),
        Counts("results", rows=5, inserted=5, dead=3, expired=2, bytes_written=20),
    )
    add_epoch(house, 3, 5, (*house.epochs[-1].tables, *states), counts)
