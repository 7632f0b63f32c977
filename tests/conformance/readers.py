"""Readers of a Delta table: each gives the numbers of the rows that satisfy a predicate, and all rows."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from .predicates import in_arrow, in_polars, in_sql
from .tables import plain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from .predicates import Term
    from .tables import Stored

__all__ = ["DataFusion", "Dataset", "DuckDB", "Filters", "Polars", "Reader", "Spark", "light_readers"]


@dataclass
class Reader:
    """A way to read one table."""

    stored: Stored
    name = ""

    def numbers(self, terms: Sequence[Term]) -> list[int]:
        """Return ``n`` of the rows that satisfy a predicate, in order."""
        return sorted(self.select(terms).column("n").to_pylist())

    def select(self, terms: Sequence[Term] | None) -> pa.Table:
        """Return the rows that satisfy a predicate, or all with all columns."""
        raise NotImplementedError

    def everything(self) -> list[str]:
        """Return all rows with all columns, as text, in order."""
        table = plain(self.select(None))
        names = [name for name, _ in self.stored.columns]
        return sorted(repr([row[name] for name in names]) for row in table.to_pylist())


@dataclass
class DataFusion(Reader):
    """delta-rs' query engine."""

    name = "delta-rs QueryBuilder"
    context: Any = field(init=False)

    def __post_init__(self) -> None:
        """Open the table once."""
        self.context = QueryBuilder().register("t", DeltaTable(str(self.stored.path), version=self.stored.version))

    def select(self, terms: Sequence[Term] | None) -> pa.Table:
        """Query it."""
        query = "SELECT * FROM t" if terms is None else f"SELECT n FROM t WHERE {in_sql(terms, 'datafusion')}"
        return pa.table(self.context.execute(query).read_all())


@dataclass
class Dataset(Reader):
    """delta-rs' dataset of PyArrow, whose files have guarantees from the log."""

    name = "delta-rs to_pyarrow_dataset"
    dataset: Any = field(init=False)

    def __post_init__(self) -> None:
        """Open the table once."""
        self.dataset = DeltaTable(str(self.stored.path), version=self.stored.version).to_pyarrow_dataset()

    def select(self, terms: Sequence[Term] | None) -> pa.Table:
        """Filter the dataset."""
        return self.dataset.to_table() if terms is None else self.dataset.to_table(columns=["n"], filter=in_arrow(terms))


@dataclass
class Filters(Reader):
    """delta-rs' data frames of pandas and PyArrow with filters."""

    name = "delta-rs to_pyarrow_table(filters)"
    table: DeltaTable = field(init=False)

    def __post_init__(self) -> None:
        """Open the table once."""
        self.table = DeltaTable(str(self.stored.path), version=self.stored.version)

    def select(self, terms: Sequence[Term] | None) -> pa.Table:
        """Read the table with an expression as its filters."""
        whole = terms is None
        return self.table.to_pyarrow_table() if whole else self.table.to_pyarrow_table(columns=["n"], filters=in_arrow(terms))


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


@dataclass
class DuckDB(Reader):
    """DuckDB over the files, as ``stream-wh files`` lists them, after the zero-row file of the columns."""

    name = "DuckDB"
    connection: duckdb.DuckDBPyConnection = field(init=False)

    def __post_init__(self) -> None:
        """Make a view of the files."""
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        files = ", ".join(_quoted(path) for path in self.stored.files)
        types = "{'sub_index': INT, 'exp_block': BIGINT}"
        self.connection.execute(
            f"CREATE VIEW t AS SELECT * FROM read_parquet({_quoted(self.stored.schema_file)}) UNION ALL BY NAME "
            f"SELECT * FROM read_parquet([{files}], union_by_name = true, hive_partitioning = true, "
            f"hive_types_autocast = false, hive_types = {types})"
        )

    def select(self, terms: Sequence[Term] | None) -> pa.Table:
        """Query the view."""
        query = "SELECT * FROM t" if terms is None else f"SELECT n FROM t WHERE {in_sql(terms, 'duckdb')}"
        return self.connection.sql(query).to_arrow_table()


@dataclass
class Polars(Reader):
    """Polars, lazily, over a copy in a directory with a plain name: it finds no files below others (:mod:`.deviations`)."""

    name = "Polars scan_delta"
    copies: TemporaryDirectory[str] = field(init=False)
    frame: pl.LazyFrame = field(init=False)

    def __post_init__(self) -> None:
        """Copy the table, and open it once."""
        self.copies = TemporaryDirectory()
        shutil.copytree(self.stored.path, f"{self.copies.name}/table")
        self.frame = pl.scan_delta(f"{self.copies.name}/table", version=self.stored.version)

    def select(self, terms: Sequence[Term] | None) -> pa.Table:
        """Scan the table."""
        return (self.frame if terms is None else self.frame.filter(in_polars(terms)).select("n")).collect().to_arrow()


@dataclass
class Spark(Reader):
    """Spark with Delta."""

    session: SparkSession
    name = "Spark with Delta"

    def frame(self) -> DataFrame:
        """Return the table."""
        return self.session.read.format("delta").option("versionAsOf", self.stored.version).load(str(self.stored.path))

    def select(self, terms: Sequence[Term] | None) -> pa.Table:
        """Query it."""
        frame = self.frame()
        return (frame if terms is None else frame.where(in_sql(terms, "spark")).select("n")).toArrow()


def light_readers(stored: Stored) -> list[Reader]:
    """Return the readers that take milliseconds."""
    return [DataFusion(stored), Dataset(stored), Filters(stored), DuckDB(stored), Polars(stored)]
