"""Nodes of earlier builds in the spelling of this one: a view is rebuilt if its plan changes, but not if only the spelling does.

Earlier builds wrote a field of a column as a name of two parts, left the names of lambda variables, and let ``struct`` name its
fields. This one writes ``(`st`).`x```, ``#v#`` and ``named_struct``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from sqlglot import exp

from warehouse.views.language.binding import replaced_columns, with_field
from warehouse.views.language.dialect import parse_query, text
from warehouse.views.language.faults import RefusedError

if TYPE_CHECKING:
    from warehouse.views.algebra import Node

__all__ = ["same_plan"]

_SQL = frozenset({"sql", "condition", "where"})


def same_plan(recorded: Node, node: Node) -> bool:
    """Whether a recorded node computes and stores the same as a node of this build."""
    if recorded == node:
        return True
    try:
        return bool(_in_our_words(msgspec.to_builtins(recorded)) == _in_our_words(msgspec.to_builtins(node)))
    except RefusedError:  # an expression that this build cannot read
        return False


def _in_our_words(value: Any, key: str = "") -> Any:  # noqa: ANN401 - builtins
    match value:
        case dict():
            return {name: _in_our_words(item, name) for name, item in value.items()}
        case list() | tuple():
            return [_in_our_words(item, key) for item in value]
        case str() if key in _SQL:
            return _expression(value)
        case _:
            return value


def _expression(sql: str) -> str:
    """Return an expression in which each column is one name in backticks, with its fields behind it.

    >>> _expression("transform(`f.st`.`xs`, x -> struct(x, `n`))")
    "transform((`f.st`).`xs`, `#x#` -> named_struct('x', `#x#`, 'n', `n`))"
    """

    def column(recorded_column: exp.Column) -> exp.Expr:
        first, *fields = [part.name for part in recorded_column.parts]
        expression: exp.Expr = exp.column(exp.to_identifier(first, quoted=True))
        for field in fields:
            expression = with_field(expression, field)
        return expression

    return text(replaced_columns(parse_query(f"SELECT {sql}").selects[0], column))
