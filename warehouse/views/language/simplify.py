"""Removes projections without effect, and merges two projections in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from sqlglot import exp

from warehouse.views.algebra import Join, Named, Project, Scan, UnionAll, inputs_of
from warehouse.views.language.dialect import column_of, expression_of, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.views.algebra import Operator

__all__ = ["simplified", "with_inputs"]


def with_inputs(operator: Operator, inputs: Sequence[Operator]) -> Operator:
    """Return an operator over other inputs, in the order of :func:`warehouse.views.algebra.inputs_of`."""
    if isinstance(operator, (Join, UnionAll)):
        return msgspec.structs.replace(operator, inputs=tuple(inputs))
    if len(inputs) > 1:
        return msgspec.structs.replace(operator, left=inputs[0], right=inputs[1])
    return msgspec.structs.replace(operator, input=inputs[0]) if inputs else operator


def simplified(operator: Operator, tables: Mapping[str, tuple[str, ...]]) -> Operator:
    """Return an equal plan with fewer projections.

    Parameters
    ----------
    operator
        A plan.
    tables
        The columns of the tables that it scans.

    """
    operator = with_inputs(operator, [simplified(input_operator, tables) for input_operator in inputs_of(operator)])
    if not isinstance(operator, Project):
        return operator
    below = operator.input
    if isinstance(below, Project):
        columns = _composed(operator, below)
        if columns is not None:
            operator = Project(below.input, columns)
    return operator.input if _all_of(operator, tables) else operator


def _composed(above: Project, below: Project) -> tuple[Named, ...] | None:
    """Return the columns of two projections in a row, if one of them only selects and renames."""
    sql_of = {column.name: column.sql for column in below.columns}
    renamed = [(column.name, column_of(column.sql)) for column in above.columns]
    if all(name in sql_of for _, name in renamed):
        return tuple(Named(new, sql_of[name]) for new, name in renamed if name is not None)
    names = {name: column for name, sql in sql_of.items() if (column := column_of(sql)) is not None}
    return tuple(Named(column.name, _under(column.sql, names)) for column in above.columns) if len(names) == len(sql_of) else None


def _under(sql: str, names: Mapping[str, str]) -> str:
    """Return an expression with other names for its columns."""
    node = expression_of(sql)

    def other(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column):
            if part.table or part.name not in names:
                raise ValueError(f"{sql}: {text(part)} is no column of {', '.join(names)}")
            return exp.column(exp.to_identifier(names[part.name], quoted=True))
        return part

    return text(node.transform(other))


def _all_of(project: Project, tables: Mapping[str, tuple[str, ...]]) -> bool:
    below = project.input
    names = tuple(column.name for column in project.columns)
    keeps_names = all(column_of(column.sql) == column.name for column in project.columns)
    return keeps_names and isinstance(below, Scan) and names == tables[below.table]
