"""SQL over the tables, and what it cannot reach."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from warehouse.errors import QueryError, UnknownNameError, UsageError
from warehouse.serving import Reader
from warehouse.serving.guard import CATALOG_MACROS, CheckedQuery, query_error
from warehouse.serving.pinned_sandboxes import sandbox_of
from warehouse.time import MINUTE

if TYPE_CHECKING:
    from .house import House


def test_tables_by_name_with_and_without_system_columns(house: House, reader: Reader) -> None:
    """A table has the user's columns; schema system has it with all."""
    live = house["names"].live(4)
    assert reader.sql("SELECT count(*), sum(value) FROM names").all() == [(len(live), sum(row.values[1] for row in live))]
    assert [name for name, _ in reader.sql("FROM names").columns] == ["name", "value", "weight", "parts"]
    everything = reader.sql("SELECT * FROM system.names WHERE name = 'a'")
    assert [name for name, _ in everything.columns][4:] == [
        "_ts",
        "_exp",
        "_load_slot",
        "_exp_slot",
        "sub_index",
        "exp_block",
    ]
    assert {row[4:] for row in everything.all()} == {row.shown() for row in live if row.values[0] == "a"}
    joined = "SELECT count(*) FROM names a JOIN system.names b USING (name, value) WHERE b._exp IS NULL"
    assert reader.sql(joined).all() == [(sum(row.shown()[1] is None for row in live if row.values[0] is not None),)]
    assert (
        reader.sql("SELECT system.days.n FROM system.days ORDER BY 1").all() == reader.sql("SELECT n FROM days ORDER BY 1").all()
    )


def test_a_later_instant(house: House, reader: Reader) -> None:
    """`now` lets more rows expire, in views that differ from those of the window time."""
    before = reader.sql("SELECT count(*) FROM names")
    later = house.epochs[-1].window_time + 90 * MINUTE
    after = reader.sql("SELECT count(*) FROM names", now=later)
    assert after.all() == [(len(house["names"].live(4, later)),)]
    assert before.all() == [(len(house["names"].live(4)),)]
    with pytest.raises(UsageError, match="before the window time"):
        reader.sql("SELECT 1", now=0)


def test_names_and_columns_can_be_listed(reader: Reader) -> None:
    """SHOW TABLES, DESCRIBE, SUMMARIZE, EXPLAIN, information_schema."""
    names = [row[0] for row in reader.sql("SHOW TABLES").all()]
    assert names == ["_epochs", "_files", "_rejected", "amounts", "days", "moments", "names", "nothing", "pairs"]
    assert [row[:2] for row in reader.sql("DESCRIBE days").all()] == [("day", "DATE"), ("n", "INTEGER")]
    assert len(reader.sql("DESCRIBE system.days").all()) == 8
    assert len(reader.sql("SUMMARIZE days").all()) == 2
    assert len(reader.sql("SHOW TABLES FROM system").all()) == 6
    assert {row[1] for row in reader.sql("SHOW ALL TABLES").all()} == {"main", "system"}
    assert len(reader.sql("FROM information_schema.tables").all()) == 15
    assert reader.sql("EXPLAIN SELECT * FROM days").all()[0][0] == "physical_plan"
    assert reader.sql("/* why */ EXPLAIN ANALYZE SELECT * FROM system.days").all()[0][0] == "analyzed_plan"


def test_the_warehouse_tells_of_itself(house: House, reader: Reader) -> None:
    """_epochs, _files and _rejected."""
    epochs = reader.sql("SELECT number, window_time, inserted FROM _epochs ORDER BY 1").all()
    assert [(row[0], row[2]) for row in epochs] == [(0, 9), (1, 9), (2, 9)]
    files = reader.sql("SELECT count(*), bool_and(path LIKE 'tables/names/sub_index=%') FROM _files WHERE table_name = 'names'")
    plan = reader.scan("names").explain
    assert plan is not None
    assert files.all() == [(plan.plan.files_read, True)]
    assert reader.sql("SELECT table_name, file, epoch FROM _rejected ORDER BY epoch").all() == [
        ("names", f"{number}.csv", number) for number in range(3)
    ]
    with Reader.open(house.root, as_of=house.epochs[0].window_time) as early:
        assert early.sql("SELECT max(number) FROM _epochs").all() == [(0,)]
        assert early.sql("SELECT count(*) FROM _rejected").all() == [(1,)]


def test_common_table_expressions_shadow_tables(reader: Reader) -> None:
    """Also recursively, and with a table's own name."""
    assert reader.sql("WITH names AS (SELECT 1 AS one) FROM names").all() == [(1,)]
    assert reader.sql(
        "WITH RECURSIVE r AS (SELECT 1 i UNION ALL SELECT i + 1 FROM r WHERE i < 3) SELECT max(i) FROM r"
    ).all() == [(3,)]
    assert reader.sql("SELECT count(*) FROM range(3) t(i), unnest([1, 2]) u(j)").all() == [(6,)]
    assert reader.sql("VALUES (1), (2);").all() == [(1,), (2,)]
    assert reader.sql("SELECT count(*) FROM names USING SAMPLE 100%").all() == reader.sql("SELECT count(*) FROM names").all()
    assert len(reader.sql("SELECT * FROM days TABLESAMPLE reservoir(2 ROWS)").all()) == 2
    assert reader.sql("SELECT 1 -- a comment; or two").all() == [(1,)]


REFUSED = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM parquet_metadata('/tmp/x.parquet')",
    "SELECT * FROM query('SELECT 1')",
    "SELECT * FROM query_table('names')",
    "SELECT * FROM json_execute_serialized_sql('{}')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM enable_logging(storage = 'file', storage_path = '/tmp/log')",
    "SELECT * FROM force_checkpoint()",
    "WITH x AS (COPY names TO '/tmp/x.csv') SELECT 1",
    "WITH x AS (INSERT INTO _epochs SELECT * FROM _epochs RETURNING *) FROM x",
    "WITH x AS (DELETE FROM _epochs RETURNING *) FROM x",
    "COPY names TO '/tmp/x.csv'",
    "COPY (SELECT 1) TO '/tmp/x.csv'",
    "EXPLAIN COPY names TO '/tmp/x.csv'",
    "EXPLAIN ANALYZE COPY names TO '/tmp/x.csv'",
    "EXPLAIN ANALYZE INSERT INTO _epochs SELECT * FROM _epochs",
    "EXPORT DATABASE '/tmp/x'",
    "IMPORT DATABASE '/tmp/x'",
    "ATTACH '/tmp/x.db'",
    "DETACH memory",
    "INSTALL httpfs",
    "LOAD httpfs",
    "PRAGMA version",
    "PRAGMA enable_profiling",
    "CALL pragma_version()",
    "SET threads = 1",
    "SET VARIABLE a = 1",
    "RESET threads",
    "USE memory",
    "CREATE TABLE x (a INTEGER)",
    "CREATE MACRO m() AS 1",
    "CREATE SECRET (TYPE s3)",
    "DROP VIEW names",
    "DELETE FROM _epochs",
    "INSERT INTO _epochs SELECT * FROM _epochs",
    "UPDATE _epochs SET number = 1",
    "BEGIN",
    "CHECKPOINT",
    "VACUUM",
    "PREPARE p AS SELECT 1",
    "SELECT 1; SELECT 2",
    "SELECT 1; DROP VIEW names",
    "PIVOT names ON value USING count(*)",
    "SELECT getenv('HOME')",
    "SELECT ?",
    "SELECT nope FROM names",
    "SELECT",
    "",
    ";",
    "-- nothing",
    "SHOW TABLES FROM pg_catalog",
    "SHOW nope; SELECT 1",
]


def test_a_name_that_needs_quotes_is_told(reader: Reader) -> None:
    """A table may be called like a word of SQL."""
    with pytest.raises(QueryError, match='"order" is a word of SQL: as the name of a table or column it needs quotes'):
        reader.sql("SELECT * FROM order").all()


@pytest.mark.parametrize("query", REFUSED)
def test_anything_but_one_query_is_refused(reader: Reader, query: str) -> None:
    """Files, other statements, several statements, writes inside queries."""
    with pytest.raises(QueryError):
        reader.sql(query).all()


@pytest.mark.parametrize(
    "name",
    [
        "'/etc/passwd'",
        '"/etc/passwd"',
        "'https://example.org/x.parquet'",
        "'*.parquet'",
        "nmaes",
        "main.nope",
        "system.nope",
        "pg_catalog.pg_class",
        "information_schema.views",
        "duckdb_settings",
        "sqlite_master",
        "reader",  # a Python variable
        "a.b.c",
    ],
)
def test_unknown_tables_are_never_looked_for_elsewhere(reader: Reader, name: str) -> None:
    """Not in files, not in DuckDB's own catalogs, not in Python."""
    for query in (
        f"SELECT * FROM {name}",
        f"DESCRIBE {name}",
        f"SUMMARIZE {name}",
        f"SELECT (SELECT count(*) FROM {name})",
    ):
        with pytest.raises(UnknownNameError):
            reader.sql(query)
    with pytest.raises(UnknownNameError, match='Did you mean "names"'):
        reader.sql("FROM nmaes")


@pytest.mark.parametrize("hidden", ["names: mixed", "names: live", "duckdb_views", "sqlite_master"])
def test_an_expression_has_its_name_where_it_is_defined(reader: Reader, hidden: str) -> None:
    """A name of no table is none because some sub-query elsewhere defines it; within, and within that, it is."""
    inside = f'(WITH "{hidden}" AS (SELECT 1 AS one) SELECT count(*) FROM "{hidden}", (SELECT * FROM "{hidden}"))'
    assert reader.sql(f"SELECT {inside} FROM names LIMIT 1").all() == [(1,)]
    recursive = f'WITH RECURSIVE "{hidden}" AS (SELECT 1 i UNION ALL SELECT i + 1 FROM "{hidden}" WHERE i < 3) '
    assert reader.sql(f'{recursive} SELECT max(i) FROM "{hidden}"').all() == [(3,)]
    both = f'WITH a AS (SELECT 1), "{hidden}" AS MATERIALIZED (SELECT * FROM a) (SELECT * FROM "{hidden}" UNION ALL FROM a)'
    assert reader.sql(both).all() == [(1,), (1,)]
    for query in (
        f'SELECT count(*), {inside} FROM "{hidden}"',
        f'SELECT * FROM "{hidden}" WHERE (SELECT count(*) FROM names) > 0 AND {inside} > 0',
        f'DESCRIBE SELECT * FROM "{hidden}" WHERE {inside} > 0',
        f'WITH "{hidden}" AS (SELECT * FROM "{hidden}") SELECT count(*) FROM "{hidden}", names',
        f'WITH a AS (SELECT * FROM "{hidden}"), "{hidden}" AS (SELECT 1) SELECT * FROM a',
        f'WITH a AS (WITH "{hidden}" AS (SELECT 1) SELECT * FROM "{hidden}") SELECT * FROM a, "{hidden}"',
        f'WITH RECURSIVE "{hidden}" AS (SELECT 1 FROM "{hidden}" UNION ALL SELECT 1 WHERE false) SELECT * FROM "{hidden}"',
        f'WITH "{hidden}" AS (SELECT 1) SELECT * FROM (SHOW "{hidden}"), names',
        f'SELECT * FROM "{hidden}" UNION ALL (WITH "{hidden}" AS (SELECT 1) SELECT * FROM "{hidden}")',
    ):
        with pytest.raises(UnknownNameError):
            reader.sql(query)


def test_macros_over_the_catalog_are_refused(reader: Reader) -> None:
    """All of them that this DuckDB has; in a condition too."""
    macros = reader.connection.execute(
        "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'macro' "
        "AND regexp_matches(macro_definition, '(?i)\\bfrom\\s+(duckdb_|pragma_|sqlite_|pg_)')"
    ).fetchall()
    assert {name for (name,) in macros} == CATALOG_MACROS
    for name in CATALOG_MACROS:
        with pytest.raises(QueryError, match="is not allowed"):
            reader.sql(f"SELECT {name.upper()}(1)")
        with pytest.raises(QueryError, match="is not allowed"):
            reader.scan("names", where=f"{name}(1) IS NULL")


def test_names_are_compared_as_duckdb_does(house: House, reader: Reader) -> None:
    """Letters beyond ASCII have one case: the sign of kelvins is no k."""
    assert reader.sql("WITH Ask AS (SELECT 1 AS one) SELECT one FROM aSK").all() == [(1,)]
    assert reader.sql("SELECT count(*) FROM NAMES").all() == [(len(house["names"].live(4)),)]
    with pytest.raises(UnknownNameError):
        reader.sql('WITH "\u212a" AS (SELECT 1) SELECT * FROM "k", names')


@pytest.mark.parametrize("before", ["", "system.", "main.", "memory.main.", "memory.system."])
def test_ways_to_name_a_table(house: House, reader: Reader, before: str) -> None:
    """With and without schema and catalog."""
    assert reader.sql(f"SELECT count(*) FROM {before}names").all() == [(len(house["names"].live(4)),)]
    columns = 6 if "system" in before else 0
    assert len(reader.sql(f"DESCRIBE {before}names").all()) == len(house["names"].columns) + columns
    assert len(reader.sql(f"SUMMARIZE {before}names").all()) == len(house["names"].columns) + columns


def test_the_sandbox_holds_without_the_guard(house: House, reader: Reader, tmp_path: Path) -> None:
    """What the syntax check refuses, the connection refuses as well."""
    query = CheckedQuery("", frozenset({"names"}), frozenset(), lists=False, in_system=False)
    sandbox = sandbox_of(reader.pin, reader.connection, reader._resources, query, house.epochs[-1].window_time)
    (file, *_) = reader.pin.snapshot(reader.pin.state("pairs")).files
    (mine, *_) = reader.pin.snapshot(reader.pin.state("names")).files
    size = Path(mine.path).stat().st_size
    quoted = mine.path.replace("'", "''")
    for text in (
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM '/etc/passwd'",
        f"SELECT * FROM read_parquet('{file.path.replace(chr(39), chr(39) * 2)}')",
        f"COPY names TO '{tmp_path}/x.csv'",
        f"COPY names TO '{quoted}'",
        f"WITH x AS (COPY names TO '{tmp_path}/x.csv') SELECT 1",
        f"ATTACH '{tmp_path}/x.db'",
        f"EXPORT DATABASE '{tmp_path}/x'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "SET allowed_paths = ['/etc/passwd']",
        "SET lock_configuration = false",
        f"SELECT * FROM enable_logging(storage = 'file', storage_path = '{tmp_path}/log')",
        f"PRAGMA enable_profiling; SET profile_output = '{tmp_path}/p'",
        "SELECT * FROM sandbox",
    ):
        with pytest.raises(duckdb.Error):
            sandbox.cursor().execute(text).fetchall()
    assert list(tmp_path.iterdir()) == []
    assert Path(mine.path).stat().st_size == size


def test_results_side_by_side(house: House, reader: Reader) -> None:
    """A half-read answer does not block others, nor other threads."""
    rows = reader.sql("SELECT * FROM range(100000)").rows(10)
    assert len(next(rows)) == 10
    assert reader.sql("SELECT count(*) FROM days").all() == [(len(house["days"].live(4)),)]
    answer, counts = reader.scan("names"), []
    threads = [threading.Thread(target=lambda: counts.append(len(answer.all()))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [len(house["names"].live(4))] * 3
    assert len(next(rows)) == 10
    rows.close()


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("SELECT full FROM t", "full"),
        ("SELECT x, at FROM t", "at"),
        ("SELECT order FROM t", "order"),
        ("SELECT count(*) AS n, min(at), max(at) FROM t", "at"),
        ("SELECT 1 FROM t WHERE full > 3", "full"),
    ],
)
def test_a_syntax_error_names_the_word_that_needs_quotes(query: str, word: str) -> None:
    """DuckDB names the word after it."""
    with duckdb.connect() as connection, pytest.raises(duckdb.Error) as caught:
        connection.execute(query)
    assert f'"{word}" is a word of SQL' in str(query_error(caught.value))


@pytest.mark.parametrize("query", ["SELECT min(x) y z FROM t", "SELECT x,, y FROM t", "SELECT (x FROM t"])
def test_other_syntax_errors_name_no_word(query: str) -> None:
    """A keyword that opens a clause is hardly a name."""
    with duckdb.connect() as connection, pytest.raises(duckdb.Error) as caught:
        connection.execute(query)
    assert "is a word of SQL" not in str(query_error(caught.value))
