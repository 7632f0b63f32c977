"""What Spark's analyser says of a node over empty inputs, and of its view's own text: column by column the same, or no view.

The text is analysed over empty tables with the columns of those that the view names, so nothing runs. A type that differs says
that a name, a function or a conversion means something else to one of the two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, PySparkException

from warehouse.catalog.declaration import ColumnRecord
from warehouse.catalog.identifiers import quoted
from warehouse.catalog.spelling import FaultError
from warehouse.catalog.types import canonical, is_key_type, parse_type
from warehouse.errors import ConfigurationError, Problem
from warehouse.storage.scan import TableFiles
from warehouse.views.algebra import Changes, Distinct, Group, Join, OutputWindow, stateful_of, tables_read
from warehouse.views.language.own_text import without_windows
from warehouse.views.language.temporal_text import for_spark
from warehouse.views.maintenance.answers import answer
from warehouse.views.maintenance.cache import Cache
from warehouse.views.maintenance.feeds import live, over
from warehouse.views.maintenance.groups import is_adjustable, state_columns
from warehouse.views.maintenance.inputs import NodeInputs, NodeTable
from warehouse.views.maintenance.replaced import current

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.layout import Layout
    from warehouse.views.algebra import Node
    from warehouse.views.maintenance.inputs import Move

__all__ = ["Analyser", "Shape", "shape_of"]


@dataclass(frozen=True)
class Shape:
    """A node's user columns, its state columns, and which user columns surely hold no null, as Spark proves."""

    columns: tuple[ColumnRecord, ...]
    state: tuple[ColumnRecord, ...] = ()
    never_null: frozenset[str] = frozenset()


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
    tables = {
        name: NodeTable(name, columns[name], session, TableFiles(Path()), move, base=None, version=None, loaded_until=move.k0)
        for name in tables_read(node.operator)
    }
    try:
        rows = _analysed(NodeInputs(node, layout, move, session, tables, Cache()))
    except (AnalysisException, PySparkException) as error:
        found = f"a query that Spark refuses: {str(error).strip().splitlines()[0]}"
        raise ConfigurationError([Problem("warehouse.toml", f"views.{view}.sql", found, "a query that Spark can run")]) from None
    types = dict(rows.dtypes)
    core = stateful_of(node.operator)
    state: list[str] = []
    if isinstance(core, Group) and is_adjustable(core, dict(live(core.input, tables).dtypes)):
        state = state_columns(core)
    problems = [problem for name in node.columns if (problem := _problem(view, node, name, types[name]))]
    if problems:
        raise ConfigurationError(problems)
    return Shape(
        tuple(ColumnRecord(name, canonical(parse_type(types[name]))) for name in node.columns),
        tuple(ColumnRecord(name, types[name]) for name in state),
        frozenset(column.name for column in rows.schema.fields if not column.nullable),
    )


def _analysed(inputs: NodeInputs) -> DataFrame:
    """The answer over whole inputs, for its columns only: nothing runs."""
    core, tables = inputs.core, inputs.tables
    match core:
        case Distinct() | Changes():
            rows = live(core.input, tables)
        case OutputWindow():
            below = stateful_of(core.input)
            if isinstance(below, Join):
                whole = answer(below, [live(each, tables) for each in below.inputs], inputs.move)
                rows = over(core.input, below, whole)
            else:
                rows = live(core.input, tables)
        case _:
            return current(inputs, None, None)
    return over(inputs.node.operator, core, rows)


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


@dataclass
class Analyser:
    """Analyses the texts of views in a session of its own, where they are given tables without rows by their names."""

    session: SparkSession
    _known: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    def check(self, view: str, sql: str, tables: Mapping[str, Sequence[ColumnRecord]], shape: Shape) -> None:
        """Compare the columns that Spark gives a view's text with those of its table.

        Parameters
        ----------
        view, sql
            The view, and its query as declared.
        tables
            The columns of streams, relations and views.
        shape
            What the view's own node gives.

        Raises
        ------
        ConfigurationError
            When Spark refuses the text, or gives it other columns, types, or nulls where the node has none.

        """
        self._declare(tables)
        text = without_windows(for_spark(sql))
        try:
            found = self.session.sql(text).schema.fields
        except PySparkException as error:
            raise _refusal(view, f"a query that Spark refuses: {str(error).strip().splitlines()[0]}") from None
        theirs = [(column.name, _type(column.dataType.simpleString())) for column in found]
        ours = [(column.name, _type(column.type)) for column in shape.columns]
        differing = [
            f"{_named(one)} where Spark has {_named(other)}"
            for one, other in zip_longest(ours, theirs)
            if one is None or other is None or not _agree(one, other)
        ]
        if differing:
            raise _refusal(view, f"a query that this build reads in another way than Spark: {'; '.join(differing)}")
        nulls = [column.name for column in found if column.nullable and column.name in shape.never_null]
        if nulls:
            raise _refusal(view, f"a query that this build reads in another way than Spark: no nulls in {', '.join(nulls)}")

    def _declare(self, tables: Mapping[str, Sequence[ColumnRecord]]) -> None:
        for name, columns in tables.items():
            known = tuple((column.name, column.type) for column in columns)
            if self._known.get(name) != known:
                empty = [f"CAST(NULL AS {kind}) AS {quoted(column)}" for column, kind in known]
                self.session.range(0).selectExpr(*empty).createOrReplaceTempView(name)
                self._known[name] = known


def _type(kind: str) -> str:
    try:
        return canonical(parse_type(kind))
    except FaultError:
        return kind


def _agree(ours: tuple[str, str], theirs: tuple[str, str]) -> bool:
    """Whether a column is the same. Spark calls one without a name by its expression; here a field is called as it is."""
    named = ours[0].lower() == theirs[0].lower() or not re.fullmatch(r"\w+", theirs[0])
    return named and ours[1].lower() == theirs[1].lower()


def _named(column: tuple[str, str] | None) -> str:
    return "no column" if column is None else f"{column[0]} {column[1]}"


def _refusal(view: str, found: str) -> ConfigurationError:
    return ConfigurationError([Problem("warehouse.toml", f"views.{view}.sql", found, "a query that Spark can run")])
