"""The query of coalesced rows, run by DuckDB: the vectors of the sheet, and random streams beside the model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.docs.blocks import blocks_of
from warehouse.coalescing.definition import STAMPS, CoalescedDefinition
from warehouse.coalescing.islands import AT, DUCKDB, Edge, coalesced
from warehouse.storage.duckdb_sql import in_memory

from .model import Model, Reading, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb

EQUAL = CoalescedDefinition("s", (("g", "string"),), (("v", "string"),), ("g",), window=6)
NUMBERS = replace(EQUAL, values=(("v", "int"),))
INCREASING = replace(NUMBERS, same="v > previous.v")
BOUNDED = replace(NUMBERS, same="abs(v - previous.v) <= 1")
_KINDS = {
    "string": pa.string(), "int": pa.int32(), "timestamp": pa.timestamp("us", "UTC"), "bigint": pa.int64(), "boolean": pa.bool_(),
}  # fmt: skip


def _kind(text: str) -> pa.DataType:
    return pa.list_(_kind(text[6:-1])) if text.startswith("array<") else _KINDS[text]


@dataclass
class Table:
    """A coalesced table that DuckDB keeps: its stored rows, moved batch by batch."""

    definition: CoalescedDefinition
    connection: duckdb.DuckDBPyConnection
    now: int = 0
    stored: pa.Table = field(init=False)

    def __post_init__(self) -> None:
        columns = [*self.definition.columns, *self.definition.state]
        self.stored = pa.schema([(name, _kind(text)) for name, text in columns]).empty_table()

    def arrive(self, batch: Sequence[Reading], now: int) -> None:
        """Move the table to a window time with a batch of points."""
        self.now = max(self.now, now)
        kind = _kind(self.definition.values[0][1])
        arrived = pa.table({
            "g": pa.array([point[0] for point in batch], pa.string()),
            "v": pa.array([point[2] for point in batch], kind),
            AT: pa.array([point[1] for point in batch], pa.int64()),
        })  # fmt: skip
        self.connection.register("stored", self.stored)
        self.connection.register("arrived", arrived)
        query = coalesced(self.definition, DUCKDB, self._edge(arrived), stored="stored", arrived="arrived")
        result = self.connection.sql(query.whole(self.definition.same or "")).to_arrow_table()
        self.stored = result.select(self.stored.column_names).cast(self.stored.schema)

    def _edge(self, arrived: pa.Table) -> Edge:
        if self.definition.window is not None:
            return Edge(self.now - self.definition.window)
        stamps = {(row["g"], stamp) for row in self.stored.to_pylist() for stamp in row[STAMPS]}
        stamps |= {(row["g"], row[AT]) for row in arrived.to_pylist()}
        ordered = sorted(stamps, key=lambda pair: (pair[1], pair[0] is not None, pair[0] or ""))
        rows = self.definition.rows or 0
        if len(ordered) <= rows:
            return Edge()
        group, stamp = ordered[-rows]
        return Edge(stamp, ("NULL" if group is None else f"'{group}'",))

    def table(self) -> list[Run]:
        """Return the rows in the model's form."""
        micros = self.stored
        for name in ("valid_from", "valid_to"):
            micros = micros.set_column(micros.schema.get_field_index(name), name, micros[name].cast(pa.int64()))
        shown = "v" if self.definition.same is None else "first_v"
        runs = [
            (row["g"], row[shown], row["valid_from"], row["valid_to"], tuple(row[STAMPS])) for row in micros.to_pylist()
        ]
        assert all(row["members"] == len(row[STAMPS]) for row in micros.to_pylist())
        last = {row["g"]: row["valid_from"] for row in sorted(micros.to_pylist(), key=lambda row: row["valid_from"])}
        assert all(row["open"] == (row["valid_from"] == last[row["g"]]) for row in micros.to_pylist())
        return sorted(runs, key=lambda run: (run[0] is not None, run[0] or "", run[2]))


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    """DuckDB in this process, by one thread: the tables have a dozen rows."""
    connection: Any = in_memory(["threads = 1"])
    return connection.__enter__() if hasattr(connection, "__enter__") else connection


def points(text: str) -> list[Reading]:
    """Return arrivals in the sheet's notation: ``7b`` is value b at 7, ``p1x`` is value x at 1 of group p.

    >>> points("7b p1x")
    [('', 7, 'b'), ('p', 1, 'x')]
    """
    readings = []
    for word in text.split():
        group = word[0] if word[0].isalpha() else ""
        readings.append((group, int(word[len(group) : -1]), word[-1]))
    return readings


def shown(runs: Sequence[Run]) -> str:
    """Rows as the sheet writes them."""
    return " ".join(
        f"{group + ':' if group else ''}{value}[{start},{end}){{{','.join(map(str, stamps[1:]))}}}"
        for group, value, start, end, stamps in runs
    )


V1 = [
    ("1a", "a[1,1){}"), ("3a", "a[1,3){3}"), ("4b", "a[1,4){3} b[4,4){}"), ("7b", "a[1,4){3} b[4,7){7}"),
    ("9b", "a[3,4){} b[4,9){7,9}"), ("10a", "b[4,10){7,9} a[10,10){}"), ("12a", "b[7,10){9} a[10,12){12}"),
    ("15a", "b[9,10){} a[10,15){12,15}"), ("16a", "a[10,16){12,15,16}"), ("20c", "a[12,20){15,16} c[20,20){}"),
]  # fmt: skip
V2 = [
    ("1a 5a 9a 13b", "a[1,13){5,9} b[13,13){}"), ("7b", "a[1,7){5} b[7,9){} a[9,13){} b[13,13){}"),
    ("3a", "a[1,7){3,5} b[7,9){} a[9,13){} b[13,13){}"), ("15b", "a[3,7){5} b[7,9){} a[9,13){} b[13,15){15}"),
    ("11b", "a[5,7){} b[7,9){} a[9,11){} b[11,15){13,15}"), ("4a", "a[5,7){} b[7,9){} a[9,11){} b[11,15){13,15}"),
    ("6c", "c[6,7){} b[7,9){} a[9,11){} b[11,15){13,15}"), ("8a", "b[7,8){} a[8,11){9} b[11,15){13,15}"),
    ("16b", "a[8,11){9} b[11,16){13,15,16}"), ("14b", "a[9,11){} b[11,16){13,14,15,16}"),
]  # fmt: skip
V3 = [
    ("1a 5a 9b", "a[1,9){5} b[9,9){}"), ("3a", "a[3,9){5} b[9,9){}"), ("2b", "a[3,9){5} b[9,9){}"),
    ("4b", "b[4,5){} a[5,9){} b[9,9){}"),
]  # fmt: skip
V6 = [
    ("p1x q2y p4x q5y", "p:x[1,4){4} q:y[2,5){5}"), ("p6x", "p:x[4,6){6} q:y[2,5){5}"),
    ("q8z", "p:x[4,6){6} q:y[5,8){} q:z[8,8){}"), ("p3x", "p:x[4,6){6} q:y[5,8){} q:z[8,8){}"),
    ("p7y", "p:x[6,7){} p:y[7,7){} q:y[5,8){} q:z[8,8){}"), ("q9z", "p:x[6,7){} p:y[7,7){} q:z[8,9){9}"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "steps"), [(4, V1), (6, V2), (3, V3), (4, V6)], ids=["V1", "V2", "V3", "V6"]
)
def test_windows_of_rows(connection: duckdb.DuckDBPyConnection, rows: int, steps: list[tuple[str, str]]) -> None:
    """V1, V2, V3, V6: the window has the newest rows over all groups, step by step; the model says the same."""
    table, model = Table(replace(EQUAL, window=None, rows=rows), connection), Model(rows=rows)
    for arrivals, after in steps:
        for implementation in [table, model]:
            implementation.arrive(points(arrivals), 0)
            assert shown(implementation.table()) == after


V4 = [
    ("1a 3a 5a", 5, "a[1,5){3,5}"), ("8b", 8, "a[3,8){5} b[8,8){}"), ("10b", 10, "a[5,8){} b[8,10){10}"),
    ("11a", 11, "a[5,8){} b[8,11){10} a[11,11){}"), ("12a", 12, "b[8,11){10} a[11,12){12}"), ("18a", 18, "a[12,18){18}"),
    ("", 20, "a[18,18){}"), ("", 25, ""), ("26c", 26, "c[26,26){}"),
]  # fmt: skip
V5 = [
    ("1a 5a 9a", 9, "a[1,9){5,9}"), ("7b", 9, "a[1,7){5} b[7,9){} a[9,9){}"),
    ("12b", 12, "a[5,7){} b[7,9){} a[9,12){} b[12,12){}"), ("10b", 12, "a[5,7){} b[7,9){} a[9,10){} b[10,12){12}"),
    ("2a", 12, "a[2,7){5} b[7,9){} a[9,10){} b[10,12){12}"), ("1b", 12, "a[2,7){5} b[7,9){} a[9,10){} b[10,12){12}"),
    ("14a", 14, "a[5,7){} b[7,9){} a[9,10){} b[10,14){12} a[14,14){}"),
    ("3c", 14, "a[5,7){} b[7,9){} a[9,10){} b[10,14){12} a[14,14){}"),
    ("13b", 14, "a[5,7){} b[7,9){} a[9,10){} b[10,14){12,13} a[14,14){}"),
]  # fmt: skip


@pytest.mark.parametrize(("length", "steps"), [(6, V4), (10, V5)], ids=["V4", "V5"])
def test_windows_of_time(connection: duckdb.DuckDBPyConnection, length: int, steps: list[tuple[str, int, str]]) -> None:
    """V4, V5: the window has points up to its length, both ends included; it also moves without points."""
    table, model = Table(replace(EQUAL, window=length), connection), Model(window=length)
    for arrivals, now, after in steps:
        for implementation in [table, model]:
            implementation.arrive(points(arrivals), now)
            assert shown(implementation.table()) == after


def test_nine_readings_make_five_rows(connection: duckdb.DuckDBPyConnection) -> None:
    """V7."""
    table = Table(replace(NUMBERS, window=100), connection)
    readings = {"1": (81, 81, 81), "2": (81, 79, 81), "3": (81, 81, 81)}
    table.arrive([(group, hour, value) for group, own in readings.items() for hour, value in enumerate(own, start=1)], 3)
    assert shown(table.table()) == "1:81[1,3){2,3} 2:81[1,2){} 2:79[2,3){} 2:81[3,3){} 3:81[1,3){2,3}"


V8 = """
  ('Andy', '100k', 2000, 2004), ('Andy', '120k', 2004, 2008), ('Andy', '120k', 2008, 9999), ('k', 'a', 1, 4), ('k', 'a', 4, 6),
  ('k', 'a', 8, 12), ('k', 'a', 9, 10), ('k', 'a', 11, 13), ('k', 'b', 6, 8), ('k', NULL, 20, 22), ('k', NULL, 22, 25)),
"""


def test_intervals_that_are_there_already_are_put_together(connection: duckdb.DuckDBPyConnection) -> None:
    """V8, by the query of the how-to: a contained interval does not end a row, adjacent ones are one, null equals null."""
    (shown,) = [block.text for block in blocks_of("coalesced.md") if "spans.sql" in block.text]
    query = "".join(line.removeprefix("> ") for line in shown.splitlines(keepends=True)[1:] if line.startswith("> "))
    before, values, after = query.removesuffix("END\n").replace("(VALUES", "(VALUES|").replace(")),\n", "|", 1).split("|")
    assert "valid_from" not in values
    assert connection.sql(before + V8 + after).fetchall() == [
        ("Andy", "100k", 2000, 2004), ("Andy", "120k", 2004, 9999),
        ("k", "a", 1, 6), ("k", "b", 6, 8), ("k", "a", 8, 13), ("k", None, 20, 25),
    ]  # fmt: skip


def test_a_batch_of_late_points_changes_the_rows_that_it_hits(connection: duckdb.DuckDBPyConnection) -> None:
    """V9: splits, extensions and merges of one batch, in either order; then the window's edge cuts, and empties a group."""
    for turned in (False, True):
        table = Table(replace(EQUAL, window=15), connection)
        stored = "g1a g5a g9b g11b g13a g20d h2x h8x"
        table.arrive(points(stored), 16)
        assert shown(table.table()) == "g:a[1,9){5} g:b[9,13){11} g:a[13,20){} g:d[20,20){} h:x[2,8){8}"
        batch = points("g3a g7b g10a g12a g22d g25c")
        table.arrive(batch[::-1] if turned else batch, 16)
        assert shown(table.table()) == (
            "g:a[1,7){3,5} g:b[7,10){9} g:a[10,11){} g:b[11,12){} g:a[12,20){13} g:d[20,25){22} g:c[25,25){} h:x[2,8){8}"
        )
        table.arrive([], 25)
        assert shown(table.table()) == "g:a[10,11){} g:b[11,12){} g:a[12,20){13} g:d[20,25){22} g:c[25,25){}"
        table.arrive([], 30)
        assert shown(table.table()) == "g:d[20,25){22} g:c[25,25){}"


@pytest.mark.parametrize(
    ("definition", "before", "after"),
    [
        (INCREASING, ["1,2,4", "5", "7,9"], ["1,2,4", "5,6", "7,9"]),
        (BOUNDED, ["1,2", "4,5,7", "9"], ["1,2", "4,5", "6", "7", "9"]),
    ],
    ids=["increasing", "bounded"],
)
def test_neighbours_may_be_compared_by_a_condition(
    connection: duckdb.DuckDBPyConnection, definition: CoalescedDefinition, before: list[str], after: list[str]
) -> None:
    """V10: a late point joins, and cuts what was joined."""
    table = Table(replace(definition, window=100), connection)
    table.arrive([("", 1, 5), ("", 2, 6), ("", 4, 9), ("", 5, 8), ("", 7, 8), ("", 9, 12)], 9)
    assert [",".join(map(str, run[4])) for run in table.table()] == before
    ends = [(row["first_v"], row["last_v"], row["min_v"], row["max_v"]) for row in table.stored.sort_by("valid_from").to_pylist()]
    assert ends[0] == ((5, 9, 5, 9) if definition is INCREASING else (5, 6, 5, 6))
    table.arrive([("", 6, 10)], 9)
    assert [",".join(map(str, run[4])) for run in table.table()] == after


_POINT = st.tuples(st.sampled_from(["p", "q", None]), st.integers(0, 30), st.sampled_from([1, 2, 3, None]))
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "equal": lambda before, now: before == now,
    "v > previous.v": lambda before, now: None not in (before, now) and now > before,
}


@settings(max_examples=120, deadline=None)
@given(
    batches=st.lists(st.tuples(st.lists(_POINT, max_size=12), st.integers(0, 6)), max_size=6),
    window=st.integers(0, 20),
    rows=st.none() | st.integers(1, 12),
    compared=st.sampled_from(sorted(_COMPARED)),
)
def test_every_batching_gives_what_the_model_gives(
    connection: duckdb.DuckDBPyConnection,
    batches: list[tuple[list[Reading], int]],
    window: int,
    rows: int | None,
    compared: str,
) -> None:
    """Random points of three groups (one is null), late and equal ones among them, arrive in batches while the window moves."""
    same = None if compared == "equal" else compared
    definition = replace(NUMBERS, window=None if rows else window, rows=rows, same=same)
    table = Table(definition, connection)
    model = Model(window=None if rows else window, rows=rows, alike=_COMPARED[compared])
    now = 0
    for batch, step in batches:
        now += step
        for implementation in [table, model]:
            implementation.arrive(batch, now)
        assert table.table() == model.table()


def test_a_group_may_have_the_name_of_any_stamp(connection: duckdb.DuckDBPyConnection) -> None:
    """At the edge of a window of rows the groups of one stamp are compared, whatever the column is called."""
    definition = replace(NUMBERS, group_by=(("s", "string"),), search_key=("s",), window=None, rows=2)
    stored = pa.table({
        "s": pa.array(["a", "b", "c"]), "v": pa.array([1, 1, 1], pa.int32()),
        STAMPS: pa.array([[7, 8], [8], [8]], pa.list_(pa.int64())),
    })  # fmt: skip
    arrived = pa.table({"s": pa.array([], pa.string()), "v": pa.array([], pa.int32()), AT: pa.array([], pa.int64())})
    connection.register("stored", stored)
    connection.register("arrived", arrived)
    query = coalesced(definition, DUCKDB, Edge(8, ("'b'",)), stored="stored", arrived="arrived")
    rows = connection.sql(query.whole()).to_arrow_table().select(["s", STAMPS]).to_pylist()
    assert sorted((row["s"], row[STAMPS]) for row in rows) == [("b", [8]), ("c", [8])]
