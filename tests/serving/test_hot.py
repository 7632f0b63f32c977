"""Tables in memory: what is read from disk and when, which slices a selection gets, and that memory outlives no file.

That answers are those of the files, every other test of this folder shows: its `reader` is one of each.
"""

from __future__ import annotations

import gc
import shutil
import weakref
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse import Warehouse
from warehouse.catalog.initialise import write_project
from warehouse.errors import EpochVacuumedError, NoEpochError, UnknownNameError, UsageError
from warehouse.serving import Reader
from warehouse.serving.engine import Resources
from warehouse.serving.hot_tables import HotTables
from warehouse.serving.pruning import KeyRange, Keys, NullKey
from warehouse.serving.read_log import VARIABLE, reads_of
from warehouse.storage.duckdb_sql import in_memory

from .house import add_epoch, build, same_tables_later, table_state

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.serving.pruning import Selection

    from .house import House


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, weakref.ref[pa.Table]]]:
    """Return each file that is read into memory, with a weak reference to its rows."""
    read_files: list[tuple[str, weakref.ref[pa.Table]]] = []
    read = HotTables.read

    def noted(self: HotTables, columns, key, schema_file, place, file):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202 - as it is
        rows = read(self, columns, key, schema_file, place, file)
        read_files.append((place, weakref.ref(rows.table)))
        return rows

    monkeypatch.setattr(HotTables, "read", noted)
    return read_files


def places(reader: Reader, table: str) -> set[str]:
    """Return the files of a table with live rows at the reader's epoch."""
    return {file.path for file in reader.pin.live_files(reader.pin.state(table), reader.epoch.window_time)}


def test_an_epoch_costs_what_it_added(tmp_path: Path, decoded: list[tuple[str, weakref.ref[pa.Table]]]) -> None:
    """The first read of a table reads its files, a later read only the new files of its epoch; dead files are released."""
    own = build(tmp_path / "root", slots=(2, 3))
    with Reader.open(own.root, hot=["names", "pairs"]) as reader:
        assert not decoded
        reader.probe("names", ["a"]).all()
        first = places(reader, "names")
        assert {path for path, _ in decoded} == first
        reader.scan("names").all()
        reader.sql("SELECT count(*) FROM names JOIN days ON true").all()
        assert len(decoded) == len(first)

        add_epoch(own, 2, 4, tuple(table_state(own, table, 4, 2) for table in own.tables.values()))
        assert reader.refresh()
        assert reader.probe("names", ["a"]).all() == own["names"].probed(lambda key: key == ("a",), 4)
        second = places(reader, "names")
        assert {path for path, _ in decoded[len(first) :]} == second - first
        assert second - first

        same_tables_later(own, 6)
        assert reader.refresh()
        assert reader.scan("names").arrow().num_rows == len(own["names"].live(4, reader.epoch.window_time))
        third = places(reader, "names")
        assert third < second
        assert len(decoded) == len(second)
        gc.collect()
        assert {path for path, rows in decoded if rows() is not None} == third
    gc.collect()
    assert not [path for path, rows in decoded if rows() is not None]


def test_warm_reads_all_hot_tables(own: House, decoded: list[tuple[str, weakref.ref[pa.Table]]]) -> None:
    """`warm` does the work of the first reads."""
    with Reader.open(own.root, hot=["names", "pairs"]) as reader:
        reader.warm()
        reader.warm()
        assert sorted(path for path, _ in decoded) == sorted(places(reader, "names") | places(reader, "pairs"))


def test_an_answer_outlives_the_refresh(own: House) -> None:
    """Rows that the next epoch has no more are in the answers of this one."""
    with Reader.open(own.root, hot=own.tables) as reader:
        answers = [
            reader.probe("names", from_=""),
            reader.scan("names", columns=["name"], where="name IS NOT NULL"),
            reader.sql("SELECT name FROM names WHERE name IS NOT NULL"),
        ]
        same_tables_later(own, 6)
        assert reader.refresh()
        assert len(reader.scan("names").all()) == len(own["names"].live(4, reader.epoch.window_time))
        live = [row.values for row in own["names"].live(4) if row.values[0] is not None]
        assert sorted(answers[0].all(), key=str) == sorted(live, key=str)
        for answer in answers[1:]:
            assert sorted(answer.all()) == sorted((values[0],) for values in live)


def test_memory_outlives_no_file(own: House) -> None:
    """What was erased, and its files deleted, is not served from memory by anyone who asks again."""
    with Reader.open(own.root, hot=["names"]) as reader:
        reader.warm()
        reader.sql("SELECT * FROM names").all()
        shutil.rmtree(next((own.root / "tables/names").glob("sub_index=*")))
        for read in (
            lambda: reader.scan("names"),
            lambda: reader.scan("names", where="true"),
            lambda: reader.sql("SELECT * FROM names"),
            lambda: reader.sql("SELECT count(*) FROM names"),
            lambda: reader.probe("names", from_=""),
        ):
            with pytest.raises(EpochVacuumedError):
                read()


def test_lists_of_tables_show_none_of_it(own: House) -> None:
    """The relations that stand for rows in memory are nobody's tables."""
    with Reader.open(own.root) as files, Reader.open(own.root, hot=own.tables) as memory:
        for query in (
            "SHOW TABLES",
            "SHOW ALL TABLES",
            "SELECT table_schema, table_name FROM information_schema.tables, names ORDER BY ALL",
            "DESCRIBE system.names",
            "SELECT DISTINCT table_name FROM _files ORDER BY 1",
        ):
            assert memory.sql(query).all() == files.sql(query).all()
        memory.scan("names").all()
        for relation in ('"names: live"', '"names: mixed"'):
            with pytest.raises(UnknownNameError):
                memory.sql(f"SELECT * FROM {relation}")


def test_a_table_may_come_later(own: House) -> None:
    """A name that the epoch does not know yet stands in nobody's way, and is kept when it comes."""
    later = [state for state in own.epochs[-1].tables if state.name == "pairs"]
    add_epoch(own, 3, 4, tuple(state for state in own.epochs[-1].tables if state.name != "pairs"))
    with Reader.open(own.root, hot=["names", "pairs"]) as reader:
        reader.warm()
        assert reader.probe("names", ["a"]).all()
        with pytest.raises(UnknownNameError):
            reader.scan("pairs")
        add_epoch(own, 4, 4, (*own.epochs[-1].tables, *later))
        reader.refresh()
        assert len(reader.scan("pairs").all()) == len(own["pairs"].live(4))


def test_names_are_those_of_the_project(tmp_path: Path) -> None:
    """A misspelt one is told at once; a declared table need not be there yet."""
    write_project(tmp_path / "new", "flights")
    with Warehouse.open(tmp_path / "new", hot=["flights", "with_weather"]) as warehouse, pytest.raises(NoEpochError):
        warehouse.warm()
    with pytest.raises(UnknownNameError, match='Did you mean "flights"'):
        Warehouse.open(tmp_path / "new", hot=["flihgts"])
    with pytest.raises(UsageError, match="list of names"):
        Warehouse.open(tmp_path / "new", hot="flights")


def test_a_project_follows_its_root(own: House, tmp_path: Path) -> None:
    """One object goes on to newer epochs, to another warehouse in the same place, and says when there is none."""
    with Warehouse(tmp_path, own.root, hot=["names"]) as warehouse:
        assert warehouse.scan("names").epoch == 2
        same_tables_later(own, 5)
        assert warehouse.scan("names").epoch == 3
        own.root.rename(tmp_path / "elsewhere")
        with pytest.raises(NoEpochError):
            warehouse.sql("SELECT 1")
        build(own.root, slots=(2,))
        assert warehouse.scan("names").epoch == 0
        assert len(warehouse.scan("names").all()) == len(own["names"].live(2))


def test_rows_go_with_their_epoch(own: House, decoded: list[tuple[str, weakref.ref[pa.Table]]]) -> None:
    """Rows are released also if their table is not read again, is gone, or has no live file."""
    with Reader.open(own.root, hot=["names", "pairs"]) as reader:
        reader.warm()
        live = places(reader, "names")
        add_epoch(own, 3, 6, tuple(state for state in own.epochs[-1].tables if state.name != "pairs"))
        reader.refresh()
        gc.collect()
        assert {path for path, rows in decoded if rows() is not None} == places(reader, "names") < live


def test_connections_are_renewed_now_and_then(own: House) -> None:
    """A reader that is refreshed for ever does not keep what it learnt of files that are gone; its answers stay."""
    with Reader.open(own.root) as reader:
        first, answer = reader.connection, reader.scan("days")
        for number in range(3, 40):
            add_epoch(own, number, 4, own.epochs[-1].tables)
            assert reader.refresh()
            reader.scan("days").all()
        assert reader.connection is not first
        assert len(answer.all()) == len(own["days"].live(4))


def test_reads_from_memory_are_not_logged(own: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Layouts do not matter to them, so `advise` does not hear of them."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "log"))
    with Reader.open(own.root, logged=True, hot=["names"]) as reader:
        reader.probe("names", ["a"]).all()
        reader.scan("names", where="true").all()
        reader.probe("days", null=True).all()
    assert [read.table for read in reads_of(own.root)] == ["days"]


def test_other_columns_are_read_anew(own: House) -> None:
    """A column that was added is null in rows that are in memory since before."""
    hot = HotTables(frozenset({"names"}), Resources())
    with Reader.open(own.root) as reader:
        state = reader.pin.state("names")
        files = reader.pin.live_files(state, reader.epoch.window_time)
        columns = reader.columns("names")
        schema = own.root / state.schema_file
        hot.load("names", columns, ("name",), str(schema), files, list)
        wider = own.root / "wider.parquet"
        rows = pq.read_table(schema).append_column("more", pa.array([], pa.int64()))
        pq.write_table(rows, wider)
        hot.load("names", (*columns, ("more", "BIGINT")), ("name",), str(wider), files, list)
        memory = hot.memory("names", files, NullKey(), 0)
        assert memory.mixed.num_rows == sum(file.rows or 0 for file in files)
        assert memory.mixed.column("more").null_count == memory.mixed.num_rows
    hot.close()


@given(
    st.lists(st.none() | st.integers(-3, 3), max_size=12),
    st.booleans(),
    st.lists(st.none() | st.integers(-4, 30), max_size=24),
    st.none() | st.integers(-4, 4),
    st.none() | st.integers(-4, 4),
)
def test_slices_hold_what_is_wanted_once(
    values: list[int | None], ordered: bool, wanted: list[int | None], low: int | None, high: int | None
) -> None:
    """Slices of any file have each wanted row exactly once; slices of a sorted file have few others."""
    if ordered:
        values = sorted(values, key=lambda value: (value is not None, value or 0))
    table = pa.table({"k": pa.array(values, pa.int64()), "n": pa.array(range(len(values)), pa.int64())})
    rows = HotTables.of(table, "k")
    selections: list[tuple[Selection, list[int]]] = [
        (Keys(tuple((key,) for key in wanted)), [n for n, value in enumerate(values) if value in wanted]),
        (
            KeyRange(None if low is None else (low,), None if high is None else (high,)),
            [
                n
                for n, value in enumerate(values)
                if value is not None and (low is None or value >= low) and (high is None or value < high)
            ],
        ),
        (NullKey(), [n for n, value in enumerate(values) if value is None]),
    ]
    for selection, expected in selections:
        numbers = [n for piece in rows.slices(selection) for n in piece.column("n").to_pylist()]
        assert len(numbers) == len(set(numbers))
        assert set(expected) <= set(numbers)
        if ordered and isinstance(selection, Keys):
            assert set(numbers) == set(expected)


@pytest.mark.parametrize(
    "keys",
    [
        pa.array(["b", "a"]),
        pa.array(["a", None, "b"]),
        pa.array([b"a", b"b"]),
        pa.array([1.0, 2.0]),
        pa.array([True, False]),
    ],
)
def test_keys_that_do_not_ascend_as_python_compares_are_not_sliced(keys: pa.Array) -> None:
    """Such a file is read whole."""
    table = pa.table({"k": keys})
    (whole,) = HotTables.of(table, "k").slices(Keys((("a",),)))
    assert whole.num_rows == len(keys)


def test_a_part_of_a_struct_in_a_struct_can_be_read() -> None:
    """DuckDB can read such a column only from its beginning."""
    inner = [{"a": n, "in": {"x": float(n)}} for n in range(4)]
    table = pa.table({"k": ["a", "b", "b", "c"], "s": pa.array(inner)})
    rows = HotTables.of(table, "k")
    for selection, expected in ((Keys((("b",),)), inner[1:3]), (KeyRange(("c",), None), inner[3:])):
        (part,) = rows.slices(selection)
        assert in_memory(()).from_arrow(part).project("s").fetchall() == [(struct,) for struct in expected]


def test_dates_that_python_has_not() -> None:
    """A file may hold keys beyond the year 9999 and before the year 1; others are found among them."""
    days = pa.array([-800_000, 0, 366, 3_000_000], pa.int32()).cast(pa.date32())
    rows = HotTables.of(pa.table({"k": days, "n": [0, 1, 2, 3]}), "k")
    many = tuple((date(1971, 1, day),) for day in range(1, 29))
    for selection, expected in (
        (Keys(((date(1970, 1, 1),),)), [1]),
        (Keys(many), [2]),
        (KeyRange((date(1970, 1, 2),), (date(9999, 1, 1),)), [2]),
        (KeyRange(None, (date(1, 1, 1),)), [0]),
    ):
        assert [n for part in rows.slices(selection) for n in part.column("n").to_pylist()] == expected
