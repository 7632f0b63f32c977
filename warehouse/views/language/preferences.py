"""The expression by which a budget prefers results: its value for each key, where arithmetic that fails has no value."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["without_failures"]


def without_failures(text: str) -> str:
    """Return an expression that gives null where this one divides by zero, or leaves the range of whole numbers.

    A preference is an order, so that no value of it stops the view; what has none comes last.

    >>> without_failures("left_count / (age - 1) + 2")
    'TRY_ADD(left_count / NULLIF((TRY_SUBTRACT(age, 1)), 0), 2)'
    >>> without_failures("CASE k WHEN 'r' THEN 100 ELSE pow(0.8, age) END")
    "CASE k WHEN 'r' THEN 100 ELSE POWER(0.8, age) END"
    """
    import sqlglot  # noqa: PLC0415 - it takes time to import, and few budgets have an expression

    return _lenient(sqlglot.parse_one(text, read="spark")).sql(dialect="spark")


def _lenient(node: exp.Expr) -> exp.Expr:
    from sqlglot import exp  # noqa: PLC0415 - as above

    for key, value in [*node.args.items()]:
        if isinstance(value, exp.Expr):
            node.set(key, _lenient(value))
        elif isinstance(value, list):
            node.set(key, [_lenient(each) if isinstance(each, exp.Expr) else each for each in value])
    match node:
        case exp.Div() | exp.IntDiv() | exp.Mod():
            node.set("expression", exp.Anonymous(this="nullif", expressions=[node.expression, exp.Literal.number(0)]))
            return node
        case exp.Mul():
            return exp.Anonymous(this="try_multiply", expressions=[node.this, node.expression])
        case exp.Add():
            return exp.Anonymous(this="try_add", expressions=[node.this, node.expression])
        case exp.Sub():
            return exp.Anonymous(this="try_subtract", expressions=[node.this, node.expression])
        case _:
            return node
