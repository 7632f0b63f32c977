"""Every reader returns the rows of a table's files, however it prunes; other engines can change a copy of a table."""

from __future__ import annotations

import shutil
from datetime import date
from typing import TYPE_CHECKING

import polars as pl
import pytest

from warehouse import Warehouse
from warehouse.checking.check import check

from .engines import alter, clone, optimize, reopened, vacuum, vacuum_by_delta_rs
from .predicates import Term, holds, in_sql
from .readers import DataFusion, Spark, light_readers
from .suite import Result, compare, predicates_on
from .tables import ODD_DIRECTORY, built, shapes, stored

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.operations.projects import Project

    from .tables import Stored

TABLES = ("wide", "mixed", "moments", "numbers", "rel", "seen")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """A warehouse in a directory with an odd name, after two updates."""
    return built(tmp_path_factory.mktemp("conformance") / ODD_DIRECTORY, spark, shapes(), updates=2, rows=30)


@pytest.fixture(scope="module")
def tables(project: Project) -> list[Stored]:
    """Return the tables of the project."""
    return [stored(project, name) for name in TABLES]


def test_the_tables_are_sound_and_have_every_row(project: Project, tables: list[Stored]) -> None:
    """No row was rejected, the check finds nothing, and the live rows are the rows that the warehouse serves."""
    assert check(project.root).findings == ()
    assert not any(counts.rejected for counts in project.epoch.counts)
    with Warehouse.open(project.directory) as warehouse:
        for table in tables:
            live = sorted(row["n"] for row in table.rows if row["_exp"] > project.epoch.window_time)
            assert sorted(row[0] for row in warehouse.scan(table.name, columns=["n"]).all()) == live
            assert live


def test_readers_without_a_jvm(tables: list[Stored]) -> None:
    """delta-rs in three ways, DuckDB, Polars: all rows with all columns, then by predicates."""
    result = Result()
    for table in tables:
        compare(result, table, light_readers(table), predicates_on(table, 60))
    assert [difference.text for difference in result.differences] == []
    assert min(result.answers.values()) > 300


def test_spark(spark: SparkSession, tables: list[Stored]) -> None:
    """Spark with Delta: all rows with all columns, then by some of the predicates."""
    result = Result()
    for table in tables[:2]:
        compare(result, table, [Spark(table, spark)], predicates_on(table, 60)[:5])
    assert [difference.text for difference in result.differences] == []


def test_known_spark_skips_by_days_that_the_calendar_left_out(spark: SparkSession, tables: list[Stored]) -> None:
    """delta-spark 4.4.0 (:mod:`.deviations`); if this test fails, delta-spark was corrected."""
    terms = (Term("day", "date", "=", (date(1582, 10, 10),)),)
    assert any(holds(terms, row) for row in tables[1].rows)
    assert Spark(tables[1], spark).numbers(terms) == []


def test_the_warehouse_prunes_no_row_away(project: Project, tables: list[Stored]) -> None:
    """Probes of every key, key ranges, null keys, and scans by the same predicates."""
    with Warehouse.open(project.directory) as warehouse:
        for table in tables:
            rows = [row for row in table.rows if row["_exp"] > project.epoch.window_time]
            first = table.key[0]
            kind = dict(table.columns)[first]
            for terms in predicates_on(table, 60):
                if any(term.column == "_exp" for term in terms):
                    continue  # it is shown as null where a row never expires
                expected = sorted(row["n"] for row in rows if holds(terms, row))
                answer = warehouse.scan(table.name, columns=["n"], where=in_sql(terms, "duckdb")).all()
                assert sorted(row[0] for row in answer) == expected, terms
            if kind == "timestamp":
                continue
            keys = sorted({row[first] for row in rows if row[first] is not None})
            for key in keys:
                answer = warehouse.probe(table.name, [(key,)], columns=["n"]).all()
                assert sorted(row[0] for row in answer) == sorted(row["n"] for row in rows if row[first] == key)
                answer = warehouse.probe(table.name, from_=(key,), columns=["n"]).all()
                above = sorted(row["n"] for row in rows if row[first] is not None and row[first] >= key)
                assert sorted(row[0] for row in answer) == above


def test_other_engines_clone_and_alter(spark: SparkSession, tables: list[Stored], tmp_path: Path) -> None:
    """SHALLOW CLONE and ALTER TABLE of Spark with Delta, of a table with a boolean key."""
    table = tables[1]
    clone(spark, table, tmp_path / "clone")
    cloned = spark.read.format("delta").load(str(tmp_path / "clone")).select("n").toArrow()
    assert sorted(cloned.column("n").to_pylist()) == sorted(row["n"] for row in table.rows)
    copy = tmp_path / ODD_DIRECTORY
    shutil.copytree(table.path, copy)
    alter(spark, copy)
    assert DataFusion(reopened(table, copy)).everything() == DataFusion(table).everything()


@pytest.mark.long
def test_many_predicates(tables: list[Stored]) -> None:
    """Four hundred predicates for each table."""
    result = Result()
    for table in tables:
        compare(result, table, light_readers(table), predicates_on(table, 400))
    assert [difference.text for difference in result.differences] == []
    print(f"{len(tables)} tables, answers compared: {dict(result.answers)}")  # noqa: T201 - the figure is for the reader of the run


@pytest.mark.long
@pytest.mark.parametrize("delete", [vacuum, vacuum_by_delta_rs])
def test_other_engines_compact_and_vacuum_copies(
    spark: SparkSession, tables: list[Stored], tmp_path: Path, delete: Callable[[SparkSession, Path], None]
) -> None:
    """OPTIMIZE of Spark with Delta and of delta-rs, then VACUUM of one of them: every reader has the same rows after each."""
    table = tables[1]
    copy = tmp_path / ODD_DIRECTORY
    shutil.copytree(table.path, copy)
    result, files = Result(), []
    for change in (optimize, delete):
        change(spark, copy)
        changed = reopened(table, copy)
        compare(result, changed, [*light_readers(changed), Spark(changed, spark)], predicates_on(table, 20))
        files.append(sorted(copy.rglob("*.parquet")))
    assert [difference.text for difference in result.differences] == []
    assert set(files[1]) < set(files[0])


def test_known_polars_finds_no_files_below_odd_directories(tables: list[Stored]) -> None:
    """Polars 2.1 (:mod:`.deviations`); if this test fails, Polars was corrected."""
    with pytest.raises(FileNotFoundError):
        pl.scan_delta(str(tables[0].path)).collect()


def test_the_comparison_can_fail(tables: list[Stored]) -> None:
    """The comparison names the rows that a reader misses."""

    class Blind(DataFusion):
        def numbers(self, terms: object) -> list[int]:
            return super().numbers(terms)[1:]  # type: ignore[arg-type]

    result = Result()
    compare(result, tables[1], [Blind(tables[1])], [(Term("n", "bigint", "is not null"),)])
    assert len(result.differences) == 1
