"""Ways of reading an answer."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from warehouse.errors import PlatformError, QueryError, UsageError
from warehouse.serving import Reader, Resources
from warehouse.serving.answer import require_module

from .house import Row, Table, add_epoch, build

if TYPE_CHECKING:
    from .house import House

SOURCE = Path(__file__).parents[2]


def test_rows_arrow_and_batches_are_the_same(reader: Reader) -> None:
    """Every method gives the same rows each time it is called, and Arrow has the window state as metadata."""
    for answer in (reader.probe("names", ["a", "b"], system_columns=True), reader.scan("names", where="value > 0")):
        rows = answer.all()
        assert [len(piece) for piece in answer.rows(2)][:-1] == [2] * ((len(rows) - 1) // 2)
        table = answer.arrow()
        assert [tuple(row.values()) for row in table.to_pylist()] == rows or table.num_rows == len(rows)
        window, committed = b"2013-01-01T04:00:00Z", b"2013-01-01T04:01:00Z"
        metadata = {b"stream_wh.window_time": window, b"stream_wh.epoch": b"2", b"stream_wh.committed": committed}
        assert table.schema.metadata == metadata
        batches = answer.batches(3)
        assert isinstance(batches, pa.RecordBatchReader)
        assert batches.schema == table.schema
        assert batches.schema.metadata == table.schema.metadata
        assert batches.read_all().num_rows == len(rows)
        assert answer.explain is not None
        assert answer.explain.rows == len(rows)
        assert "window time 2013-01-01T04:00:00Z" in repr(answer)
    assert table.schema.field("name").type == pa.string()
    wide = reader.scan("names", system_columns=True).arrow().schema
    assert wide.field("_exp").type == pa.timestamp("us", "UTC")
    assert (wide.field("sub_index").type, wide.field("exp_block").type) == (pa.int32(), pa.int64())


def test_no_rows_are_one_empty_batch(reader: Reader) -> None:
    """So whatever writes batches learns the columns."""
    (batch,) = list(reader.probe("names", []).batches())
    assert (batch.num_rows, batch.schema.names) == (0, ["name", "value", "weight", "parts"])


def run(house: House, code: str, **environment: str) -> str:
    """Return what a process of its own prints that has a reader."""
    opening = f"import os, sys, pathlib; from warehouse.serving import Reader, table_status\nroot = {str(house.root)!r}\n"
    text = f"{opening}reader = Reader.open(pathlib.Path(root))\n{code}"
    return subprocess.run(
        [sys.executable, "-c", text], env=environment or None, cwd=SOURCE, capture_output=True, text=True, check=True
    ).stdout


def test_the_time_zone_of_the_machine_does_not_matter(house: House) -> None:
    """Texts of timestamps and literals without an offset are UTC on every cursor."""
    query = "SELECT max(_ts)::VARCHAR, max(_ts) < '2013-01-01 04:00', date_trunc('day', max(_ts))::VARCHAR "
    query += "FROM system.names"
    printed = run(house, f'print(reader.sql("{query}").all())', TZ="America/New_York")
    assert printed == "[('2013-01-01 04:00:00+00', False, '2013-01-01 00:00:00+00')]\n"


def test_reading_needs_no_spark_no_pyarrow_and_no_heavy_library(house: House) -> None:
    """A cold probe imports duckdb and deltalake, not what would make it slow; no process is started."""
    code = """
for _ in range(2):
    reader.probe("names", ["a"]).all()
reader.scan("names", where="value > 1").all()
reader.sql("SELECT * FROM names, _epochs, _files").all()
table_status.status(reader, retain=0)
heavy = ("pyspark", "py4j", "delta", "pyarrow", "pandas", "numpy", "pydantic", "sqlglot", "rich", "difflib")
children = pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
print([name for name in heavy if name in sys.modules], children.read_text().split() if children.exists() else [])
"""
    assert run(house, code) == "[] []\n"


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A table whose rows take about 200 MB when read, and 1 MB on disk."""
    house = build(tmp_path_factory.mktemp("wide") / "root", slots=(4,))
    table = Table("days", house["days"].columns, ("day",), ())
    path = house.root / "tables/days"
    system = Row((None, 0), 0, house.epochs[0].window_time * 2, 4).system()
    query = "SELECT DATE '2013-01-01' + (i % 9)::INTEGER AS day, i::INTEGER AS n, repeat('x', 1000) AS padding"
    with duckdb.connect() as connection:
        rows = connection.sql(f"{query} FROM range(200000) t(i)").to_arrow_table()
    grid = {"sub_index": pa.int32(), "exp_block": pa.int64(), "_load_slot": pa.int64(), "_exp_slot": pa.int64()}
    values = dict(zip(("_ts", "_exp", "_load_slot", "_exp_slot", "sub_index", "exp_block"), system, strict=True))
    for name, value in values.items():
        kind = grid.get(name, pa.timestamp("us", "UTC"))
        rows = rows.append_column(name, pa.repeat(pa.scalar(value, kind), rows.num_rows))
    write_deltalake(str(path), rows, mode="overwrite", schema_mode="overwrite")
    pq.write_table(rows.slice(0, 0), path / "_schema/columns.parquet")
    delta = DeltaTable(str(path))
    states = [
        replace(state, version=delta.version()) if state.name == table.name else state
        for state in house.epochs[0].tables
    ]
    add_epoch(house, 1, 4, tuple(states))
    return house


def test_results_larger_than_the_memory_come_in_pieces(wide: House) -> None:
    """Rows and batches of 200 MB pass through an engine that may hold 60 MB; so does a condition's result."""
    with Reader.open(wide.root, resources=Resources(memory_limit="60MB", threads=2)) as reader:
        for answer in (reader.scan("days"), reader.scan("days", where="n >= 0"), reader.sql("SELECT * FROM days")):
            assert sum(len(rows) for rows in answer.rows(1000)) == 200_000
        assert sum(batch.num_rows for batch in reader.scan("days").batches(1000)) == 200_000


def test_a_probe_larger_than_the_memory_is_sorted_on_disk(wide: House) -> None:
    """Its order needs all rows; they spill outside the warehouse."""
    with Reader.open(wide.root, resources=Resources(memory_limit="160MB", threads=1)) as reader:
        answer = reader.probe("days", from_=date(2000, 1, 1))
        assert sum(len(rows) for rows in answer.rows()) == 200_000


def test_an_answer_is_a_stream_of_arrow(reader: Reader) -> None:
    """Whatever takes the PyCapsule interface reads it, again each time."""
    answer = reader.scan("names")
    rows = answer.all()
    assert pa.table(answer).num_rows == len(rows)
    assert pa.RecordBatchReader.from_stream(answer).schema.metadata[b"stream_wh.epoch"] == b"2"
    assert len(pl.DataFrame(answer)) == len(rows)
    assert answer.pl().columns == answer.df().columns.to_list() == [name for name, _ in answer.columns]
    assert sorted(map(repr, answer)) == sorted(map(repr, rows))
    assert (len(answer), bool(answer), bool(reader.probe("names", []))) == (len(rows), True, False)


def test_a_notebook_shows_the_first_rows_as_text(reader: Reader) -> None:
    """Markup in data stays text; what is left out is said."""
    query = "SELECT '<b>' AS \"<i>\", NULL AS n UNION ALL SELECT 'x', i FROM range(30) t(i) ORDER BY n NULLS FIRST"
    shown = reader.sql(query)._repr_html_()
    assert "<td>&lt;b&gt;</td><td><i>null</i></td>" in shown
    assert "&lt;i&gt;" in shown
    assert shown.count("<tr>") == 21
    assert "epoch 2, window time 2013-01-01T04:00:00Z; only the first 20 rows are shown" in shown
    assert "only the first" not in reader.sql("SELECT 1")._repr_html_()


def test_values_are_bound_in_sql(reader: Reader) -> None:
    """By position and by name, again each time that the answer is read; a value is never SQL."""
    name = "it's"
    expected = reader.sql("SELECT value FROM names WHERE name = 'it''s' ORDER BY 1").all()
    assert expected
    for query, values in (
        ("SELECT value FROM names WHERE name = ? ORDER BY 1", [name]),
        ("SELECT value FROM names WHERE name = $1 ORDER BY 1", (name,)),
        ("SELECT value FROM names WHERE name = $name ORDER BY 1", {"name": name}),
    ):
        answer = reader.sql(query, values)
        assert answer.all() == answer.all() == expected
        assert len(answer) == answer.arrow().num_rows == len(expected)
    assert reader.sql("SELECT ?::VARCHAR", ["'; DROP TABLE names; --"]).all() == [("'; DROP TABLE names; --",)]
    for query, wrong in (("SELECT ?", []), ("SELECT ?", [1, 2]), ("SELECT $a", {"b": 1}), ("SELECT 1", [1])):
        with pytest.raises(QueryError):
            reader.sql(query, wrong).all()
    with pytest.raises(UsageError, match="parameters is one text"):
        reader.sql("SELECT ?", "x")


def test_what_is_closed_reads_no_more(house: House) -> None:
    """The answer of a closed reader says so; so does a library that is not installed."""
    with Reader.open(house.root) as opened:
        answer = opened.scan("names")
    with pytest.raises(UsageError, match="is closed"):
        answer.all()
    with pytest.raises(PlatformError, match="`pip install no_such_library`"):
        require_module("no_such_library", "x()")
