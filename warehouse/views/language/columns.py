"""The columns of a plan's rows: their names, and their types as far as they are certain without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.views.algebra import (
    AntiJoin,
    AsOf,
    BagDifference,
    Filter,
    Group,
    Join,
    OuterJoin,
    Project,
    Scan,
    UnionAll,
    inputs_of,
)
from warehouse.views.language.dialect import conjuncts, expression_of
from warehouse.views.language.types import type_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.views.algebra import Operator
    from warehouse.views.language.types import Types

__all__ = ["columns_of", "never_null", "types_of"]


def columns_of(operator: Operator, tables: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names of an operator's columns, in order; ``tables`` has the columns of the tables that it scans."""
    match operator:
        case Scan(table=table):
            return tables[table]
        case Project(columns=columns):
            return tuple(column.name for column in columns)
        case AsOf():
            return (*columns_of(operator.input, tables), *(column.name for column in operator.columns))
        case Join(inputs=inputs):
            return tuple(name for input_operator in inputs for name in columns_of(input_operator, tables))
        case OuterJoin():
            return (*columns_of(operator.left, tables), *columns_of(operator.right, tables))
        case Group(keys=keys, aggregates=aggregates):
            return (*keys, *(aggregate.name for aggregate in aggregates))
        case _:
            return columns_of(inputs_of(operator)[0], tables)


def types_of(operator: Operator, tables: Mapping[str, Types]) -> Types:
    """Return the types of an operator's columns; ``tables`` has the types of all tables that it scans, relations included."""
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
            return {
                name: kind for input_operator in inputs_of(operator) for name, kind in types_of(input_operator, tables).items()
            }
        case Group():
            below = types_of(operator.input, tables)
            kinds = {aggregate.name: type_of(aggregate.sql, below) for aggregate in operator.aggregates}
            return {**{key: below.get(key) for key in operator.keys}, **kinds}
        case UnionAll() | BagDifference():
            sides = [types_of(input_operator, tables) for input_operator in inputs_of(operator)]
            return {name: kind if all(side.get(name) == kind for side in sides) else None for name, kind in sides[0].items()}
        case AntiJoin():
            return types_of(operator.left, tables)
        case _:
            return types_of(inputs_of(operator)[0], tables)


# --- which columns of a plan provably hold no null; ``NOT IN`` needs such columns, since one null would empty its answer ---
# Proofs are a literal, ``coalesce`` with one, a count, a condition that a null would not pass (``IS NOT NULL``, an
# equality or comparison of the column), a join column, and each of these that a plan passes on.

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Like, exp.ILike, exp.RegexpLike)
_COUNTS = frozenset({"count", "count_if", "approx_count_distinct"})
_FALLBACKS = frozenset({"coalesce", "nvl", "ifnull"})


def never_null(operator: Operator, tables: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Return the columns, in lower case, that are never null; ``tables`` has such columns of the scanned tables."""
    match operator:
        case Scan(table=table):
            return tables[table]
        case Filter():
            return never_null(operator.input, tables) | _passed(operator.condition)
        case Project():
            below = never_null(operator.input, tables)
            return frozenset(column.name.lower() for column in operator.columns if _sound(expression_of(column.sql), below))
        case AsOf(outer=outer):
            return never_null(operator.input, tables) | frozenset(() if outer else (left.lower() for left, _ in operator.on))
        case UnionAll():
            return frozenset.intersection(*(never_null(input_operator, tables) for input_operator in operator.inputs))
        case Join():
            below = frozenset[str]().union(*(never_null(input_operator, tables) for input_operator in operator.inputs))
            equal = () if operator.null_safe else operator.equal
            matched = {name.lower() for equality in equal for name in (equality.left_column, equality.right_column)}
            return below | matched | (_passed(operator.where) if operator.where else frozenset())
        case OuterJoin(kind=kind):
            preserved = {"left": (operator.left,), "right": (operator.right,), "full": ()}[kind]
            return frozenset[str]().union(*(never_null(input_operator, tables) for input_operator in preserved))
        case Group():
            below = never_null(operator.input, tables)
            counts = {aggregate.name.lower() for aggregate in operator.aggregates if aggregate.function in _COUNTS}
            return frozenset(counts | {key.lower() for key in operator.keys if key.lower() in below})
        case BagDifference() | AntiJoin():
            return never_null(operator.left, tables)
        case _:
            return never_null(inputs_of(operator)[0], tables)


def _sound(node: exp.Expr, columns: frozenset[str]) -> bool:
    match node:
        case exp.Paren() | exp.Alias():
            return _sound(node.this, columns)
        case exp.Column():
            return not node.table and node.name.lower() in columns
        case exp.Literal() | exp.Boolean():
            return True
        case exp.Anonymous():
            return str(node.this).lower() in _FALLBACKS and any(_sound(argument, columns) for argument in node.expressions)
        case _:
            return False


def _passed(condition: str) -> frozenset[str]:
    """Return the columns that are not null in rows for which a condition holds."""
    names = set()
    for part in conjuncts(expression_of(condition)):
        compared: list[exp.Expr] = []
        match part:
            case exp.Not(this=exp.Is(expression=exp.Null()) as test):
                compared = [test.this]
            case exp.In() | exp.Between():
                compared = [part.this]
            case exp.Anonymous() if str(part.this).lower() == "isnotnull":
                compared = part.expressions
            case _ if isinstance(part, _COMPARISONS):
                compared = [part.this, part.expression]
        names |= {operand.name.lower() for operand in compared if isinstance(operand, exp.Column) and not operand.table}
    return frozenset(names)
