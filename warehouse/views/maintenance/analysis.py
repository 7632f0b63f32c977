"""Finds the columns of a node's table by Spark's analyser, over empty inputs. Nothing runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, PySparkException

from warehouse.catalog.declaration import ColumnRecord
from warehouse.catalog.types import canonical, is_key_type, parse_type
from warehouse.errors import ConfigurationError, Problem
from warehouse.storage.scan import TableFiles
from warehouse.views.algebra import Changes, Distinct, Group, Join, OutputWindow, stateful_of, tables_read
from warehouse.views.maintenance.answers import answer
from warehouse.views.maintenance.cache import Cache
from warehouse.views.maintenance.groups import is_adjustable, state_columns
from warehouse.views.maintenance.inputs import NodeInputs, NodeTable
from warehouse.views.maintenance.pipelines import live, over
from warehouse.views.maintenance.replaced import current
from warehouse.views.maintenance.set_aside import set_aside_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.layout import Layout
    from warehouse.views.algebra import Node
    from warehouse.views.maintenance.input_facts import Move

__all__ = ["Shape", "shape_of"]

_SIDES = 2
"""Inputs of a join that may have a budget."""


@dataclass(frozen=True)
class Shape:
    """A node's user columns, its state columns, and the user columns that have no null (as Spark can prove).

    ``set_aside_columns`` are the columns of rows of a join's two inputs, which a view under a budget may set aside.
    """

    columns: tuple[ColumnRecord, ...]
    state: tuple[ColumnRecord, ...] = ()
    never_null: frozenset[str] = frozenset()
    set_aside_columns: tuple[ColumnRecord, ...] = ()


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
        The values of its step, for a first build.
    columns
        The columns of each table that it scans.
    view
        The declared view, for errors.

    Raises
    ------
    ConfigurationError
        When Spark refuses the query, or a column has a type that no table can have, or a key that no probe can.

    """
    def opened() -> SparkSession:
        return session

    tables = {
        name: NodeTable(name, columns[name], opened, TableFiles(Path()), move, base=None, version=None, loaded_until=move.k0)
        for name in tables_read(node.operator)
    }
    try:
        rows = _analysed(NodeInputs(node, layout, move, opened, tables, Cache()))
    except (AnalysisException, PySparkException) as error:
        refusal = f"a query that Spark refuses: {str(error).strip().splitlines()[0]}"
        raise ConfigurationError(
            [Problem("warehouse.toml", f"views.{view}.sql", refusal, "a query that Spark can run")]
        ) from None
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
        set_aside_columns(core.inputs, tables) if isinstance(core, Join) and len(core.inputs) == _SIDES else (),
    )


def _analysed(inputs: NodeInputs) -> DataFrame:
    """Return the answer over whole inputs, for its columns only: nothing runs."""
    core, tables = inputs.core, inputs.tables
    match core:
        case Distinct() | Changes():
            rows = live(core.input, tables)
        case OutputWindow():
            below = stateful_of(core.input)
            if isinstance(below, Join):
                results = answer(below, [live(operator, tables) for operator in below.inputs], inputs.move)
                rows = over(core.input, below, results)
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
    if not node.hidden and name.lower() in (column.lower() for column in node.search_key) and not is_key_type(parsed):
        allowed = "key columns that are strings, integers, decimals, dates, timestamps or booleans"
        return Problem("warehouse.toml", f"views.{view}.search_key", f'the column "{name}" of type {kind}', allowed)
    return None
