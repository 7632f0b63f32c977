"""Finds the parts of a view's answer that depend on the order in which floats are added.

The engines add floats in different orders, so the last digits of a sum are open. If a query prints, rounds, compares or sorts
such a sum, whole values and rows are open, too, and two right answers can differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.views.algebra import (
    AntiJoin,
    BagDifference,
    Distinct,
    Filter,
    Group,
    Join,
    OuterJoin,
    Project,
    Scan,
    Top,
    UnionAll,
    inputs_of,
)
from warehouse.views.language.columns import columns_of, types_of
from warehouse.views.language.dialect import expression_of, names_in
from warehouse.views.language.types import type_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from warehouse.views.algebra import Node, Operator
    from warehouse.views.language.types import Types

__all__ = ["OpenParts", "open_parts"]

_SUMS = frozenset(
    {
        "sum", "try_sum", "avg", "mean", "try_avg", "std", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop",
        "var_samp", "corr", "covar_pop", "covar_samp", "skewness", "kurtosis", "regr_avgx", "regr_avgy", "regr_intercept",
        "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy",
    },
)  # fmt: skip
_FLOATING = frozenset({None, "float", "double"})
_SMOOTH = (exp.Column, exp.Dot, exp.Identifier, exp.Literal, exp.Null, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div)
_SMOOTH_CALLS = frozenset({"abs", "array", "coalesce", "double", "greatest", "ifnull", "least", "named_struct", "nvl", "struct"})
"""Functions for which the last digits of the operands change the last digits of the result."""


@dataclass(frozen=True)
class OpenParts:
    """The parts of an answer that depend on the order of addition.

    ``digits`` are columns whose last digits are open, ``values`` columns whose whole values are open, in lower case. ``rows``
    says whether the query chooses or groups rows by any of them.
    """

    digits: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    rows: bool = False

    @property
    def columns(self) -> frozenset[str]:
        """Both kinds of columns."""
        return self.digits | self.values


def open_parts(nodes: Sequence[Node], tables: Mapping[str, Types]) -> OpenParts:
    """Return the open parts of a view's own rows.

    Parameters
    ----------
    nodes
        The nodes of the view.
    tables
        The types of the columns of all tables that they scan, and of their own.

    """
    by_table = {node.table: node for node in nodes}
    own = next(node for node in nodes if not node.hidden)
    return _of(own.operator, by_table, tables, tables[own.table])


def _of(operator: Operator, nodes: Mapping[str, Node], tables: Mapping[str, Types], stored: Types) -> OpenParts:
    input_parts = [_of(input_operator, nodes, tables, stored) for input_operator in inputs_of(operator)]
    inner = _united(input_parts)
    match operator:
        case Scan(table=table):
            return _of(nodes[table].operator, nodes, tables, tables[table]) if table in nodes else OpenParts()
        case Project(columns=columns):
            column_kinds = {column.name.lower(): _computed(column.sql, inner) for column in columns}
            return _named(column_kinds, rows=inner.rows)
        case Group(keys=keys, aggregates=aggregates):
            types = types_of(operator.input, tables)
            column_kinds = {key.lower(): _as_is(key, inner) for key in keys}
            for aggregate in aggregates:
                kind = type_of(aggregate.sql, types) or stored.get(aggregate.name)
                summed = aggregate.function in _SUMS and kind in _FLOATING
                depends = bool(_lower(names_in(aggregate.sql)) & inner.columns)
                smooth = aggregate.function in _SUMS or aggregate.function in {"min", "max"}
                column_kinds[aggregate.name.lower()] = "digits" if (summed or depends) and smooth else "values" if depends else ""
            return _named(column_kinds, rows=inner.rows or bool(_lower(keys) & inner.columns))
        case UnionAll():
            names = [[name.lower() for name in columns_of(input_operator, _names(tables))] for input_operator in operator.inputs]
            renamed = [
                _named({first: _as_is(name, side) for name, first in zip(side_names, names[0], strict=True)}, rows=side.rows)
                for side_names, side in zip(names, input_parts, strict=True)
            ]
            return _united(renamed)
        case BagDifference() | Distinct():
            return OpenParts(inner.digits, inner.values, rows=inner.rows or bool(inner.columns))
        case _:
            return OpenParts(inner.digits, inner.values, rows=inner.rows or bool(_lower(_decisive(operator)) & inner.columns))


def _decisive(operator: Operator) -> set[str]:
    """Return the columns by which an operator chooses rows."""
    match operator:
        case Filter(condition=condition):
            return names_in(condition)
        case Join(equal=equal, where=where):
            return {name for equality in equal for name in (equality.left_column, equality.right_column)} | names_in(where or "")
        case OuterJoin(on=on, where=where):
            return {name for pair in on for name in pair} | names_in(where or "")
        case AntiJoin(on=on):
            return {name for pair in on for name in pair}
        case Top(partition=partition, order=order):
            return {*partition, *(term.column for term in order)}
        case _:
            return set()


def _computed(sql: str, inner: OpenParts) -> str:
    used = _lower(names_in(sql)) & inner.columns
    if not used:
        return ""
    node = expression_of(sql)
    return "digits" if all(map(_is_smooth, node.walk())) and not used & inner.values else "values"


def _is_smooth(node: exp.Expr) -> bool:
    return isinstance(node, _SMOOTH) or (isinstance(node, exp.Anonymous) and str(node.this).lower() in _SMOOTH_CALLS)


def _as_is(name: str, inner: OpenParts) -> str:
    return "values" if name.lower() in inner.values else "digits" if name.lower() in inner.digits else ""


def _named(column_kinds: Mapping[str, str], *, rows: bool) -> OpenParts:
    digits, values = (
        frozenset(name for name, column_kind in column_kinds.items() if column_kind == kind) for kind in ("digits", "values")
    )
    return OpenParts(digits, values, rows)


def _united(sides: Sequence[OpenParts]) -> OpenParts:
    values = frozenset(name for side in sides for name in side.values)
    digits = frozenset(name for side in sides for name in side.digits)
    return OpenParts(digits - values, values, any(side.rows for side in sides))


def _lower(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)


def _names(tables: Mapping[str, Types]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(columns) for name, columns in tables.items()}
