"""The columns of a plan's rows: their names, and their types as far as they can be told without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.views.algebra import (
    AntiJoin,
    AsOf,
    BagDifference,
    Group,
    Join,
    OuterJoin,
    Project,
    Scan,
    UnionAll,
    inputs_of,
)
from warehouse.views.language.types import type_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.views.algebra import Operator
    from warehouse.views.language.types import Types

__all__ = ["columns_of", "types_of"]


def columns_of(operator: Operator, tables: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names of an operator's columns, in order; ``tables`` gives those of what it scans."""
    match operator:
        case Scan(table=table):
            return tables[table]
        case Project(columns=columns):
            return tuple(column.name for column in columns)
        case AsOf():
            return (*columns_of(operator.input, tables), *(column.name for column in operator.columns))
        case Join(inputs=inputs):
            return tuple(name for each in inputs for name in columns_of(each, tables))
        case OuterJoin():
            return (*columns_of(operator.left, tables), *columns_of(operator.right, tables))
        case Group(keys=keys, aggregates=aggregates):
            return (*keys, *(aggregate.name for aggregate in aggregates))
        case _:
            return columns_of(inputs_of(operator)[0], tables)


def types_of(operator: Operator, tables: Mapping[str, Types]) -> Types:
    """Return the types of an operator's columns; ``tables`` gives those of what it scans, relations included."""
    match operator:
        case Scan(table=table):
            return dict(tables[table])
        case Project(columns=columns):
            below = types_of(operator.input, tables)
            return {column.name: type_of(column.sql, below) for column in columns}
        case AsOf():
            relation = tables[operator.relation]
            added = {column.name: type_of(column.sql, relation) for column in operator.columns}
            return {**types_of(operator.input, tables), **added}
        case Join() | OuterJoin():
            return {name: kind for each in inputs_of(operator) for name, kind in types_of(each, tables).items()}
        case Group():
            below = types_of(operator.input, tables)
            kinds = {each.name: type_of(each.sql, below) for each in operator.aggregates}
            return {**{key: below.get(key) for key in operator.keys}, **kinds}
        case UnionAll() | BagDifference():
            sides = [types_of(each, tables) for each in inputs_of(operator)]
            return {name: kind if all(side.get(name) == kind for side in sides) else None for name, kind in sides[0].items()}
        case AntiJoin():
            return types_of(operator.left, tables)
        case _:
            return types_of(inputs_of(operator)[0], tables)
