"""The columns of a node's table, as Spark's analysis of the query over empty inputs gives them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, PySparkException

from warehouse.catalog.declaration import ColumnRecord
from warehouse.catalog.identifiers import quoted
from warehouse.catalog.types import canonical, is_key_type, parse_type
from warehouse.errors import ConfigurationError, Problem
from warehouse.storage.arrow_types import frame_of
from warehouse.views.algebra import Group, stateful_of
from warehouse.views.maintenance.feeds import Move, feed
from warehouse.views.maintenance.groups import is_adjustable, state_columns
from warehouse.views.maintenance.maintain import Maintenance

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from warehouse.layout import Layout
    from warehouse.views.algebra import Node

__all__ = ["Shape", "shape_of"]


@dataclass(frozen=True)
class Shape:
    """A node's user columns, the state columns beside them, and which of the former Spark proves to hold no null."""

    columns: tuple[ColumnRecord, ...]
    state: tuple[ColumnRecord, ...] = ()
    never_null: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Empty:
    """Tables without rows."""

    session: SparkSession
    columns: Mapping[str, Sequence[ColumnRecord]]
    keyed_tables: frozenset[str] = field(default_factory=frozenset)

    def arrived(self, table: str) -> DataFrame:
        return self.now(table)

    def before(self, table: str, keys: pa.Table | None = None) -> DataFrame:  # noqa: ARG002 - has no rows
        return self.now(table)

    def versions(self, relation: str) -> DataFrame:
        return self.now(relation)

    def stayed(self, table: str) -> DataFrame:
        return self.now(table)

    def unseen(self, table: str) -> DataFrame | None:
        return self.now(table)

    def stored(self, table: str) -> DataFrame:
        return self.now(table)

    def came(self, table: str) -> pa.Table | None:  # noqa: ARG002 - has no rows
        return None

    def found(self, table: str, keys: pa.Table, columns: AbstractSet[str] | None = None) -> pa.Table | None:  # noqa: ARG002 - has no rows
        return None

    def frame(self, rows: pa.Table) -> DataFrame:
        return frame_of(self.session, rows)

    def interpreted(self) -> AbstractContextManager[None]:
        return nullcontext()

    def ended(self, table: str) -> DataFrame:
        return self.now(table)

    def rows(self, table: str) -> int:  # noqa: ARG002 - of a table without rows
        return 0

    def most_arrived(self, table: str) -> int | None:  # noqa: ARG002 - same
        return 0

    def keyed(self, table: str) -> bool:
        return table in self.keyed_tables

    def now(self, table: str, keys: pa.Table | None = None) -> DataFrame:  # noqa: ARG002 - of a table without rows
        own = [f"CAST(NULL AS {column.type}) AS {quoted(column.name)}" for column in self.columns[table]]
        times = [f"CAST(NULL AS timestamp) AS {name}" for name in ("_ts", "_exp")]
        return self.session.range(0).selectExpr(*own, *times)


def shape_of(
    session: SparkSession,
    node: Node,
    layout: Layout,
    move: Move,
    columns: Mapping[str, Sequence[ColumnRecord]],
    view: str,
) -> Shape:
    """Return a node's columns.

    Parameters
    ----------
    session
        A session with the warehouse's settings.
    node, layout, move
        As its step will have them; a first build.
    columns
        The columns of each table that it scans.
    view
        The declared view, for errors.

    Raises
    ------
    ConfigurationError
        When Spark refuses the query, or a column has a type that no table can have, or a key that no probe can.

    """
    tables = _Empty(session, columns)
    maintenance = Maintenance(node, layout, move, tables, own=lambda _: None, spares=lambda _: None)
    try:
        rows = maintenance.analysed()
    except (AnalysisException, PySparkException) as error:
        found = f"a query that Spark refuses: {str(error).strip().splitlines()[0]}"
        raise ConfigurationError([Problem("warehouse.toml", f"views.{view}.sql", found, "a query that Spark can run")]) from None
    types = dict(rows.dtypes)
    core = stateful_of(node.operator)
    state: list[str] = []
    if isinstance(core, Group) and is_adjustable(core, dict(feed(core.input, tables.now, tables.versions).dtypes)):
        state = state_columns(core)
    problems = [problem for name in node.columns if (problem := _problem(view, node, name, types[name]))]
    if problems:
        raise ConfigurationError(problems)
    return Shape(
        tuple(ColumnRecord(name, canonical(parse_type(types[name]))) for name in node.columns),
        tuple(ColumnRecord(name, types[name]) for name in state),
        frozenset(column.name for column in rows.schema.fields if not column.nullable),
    )


def _problem(view: str, node: Node, name: str, kind: str) -> Problem | None:
    key = f"views.{view}.sql"
    try:
        parsed = parse_type(kind)
    except ValueError:
        allowed = "a column of a type that a table can have; CAST it"
        return Problem("warehouse.toml", key, f'the column "{name}" of type {kind}', allowed)
    if not node.hidden and name.lower() in (each.lower() for each in node.search_key) and not is_key_type(parsed):
        allowed = "key columns that are strings, integers, decimals, dates, timestamps or booleans"
        return Problem("warehouse.toml", f"views.{view}.search_key", f'the column "{name}" of type {kind}', allowed)
    return None
