"""Replaces the columns of an expression, and nothing else: variables of lambda functions are no columns.

As in Spark, a variable hides a column of its name, also a qualified one (``a -> a.x`` is a field of the variable). Each
gets a name that no column has, so that a column put into the expression later is never taken for the variable.

Functions that call fields as their arguments are written (``struct``, ``(a, b)``, ``arrays_zip``) get these names as constants,
because the arguments get other names later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["replaced_columns", "with_field"]


def replaced_columns(node: exp.Expr, replacement: Callable[[exp.Column], exp.Expr]) -> exp.Expr:
    """Return a copy of an expression with other columns.

    Parameters
    ----------
    node
        The expression, as parsed.
    replacement
        Returns the replacement of a column.

    Examples
    --------
    >>> from warehouse.views.language.dialect import parse_query, text
    >>> tree = parse_query("SELECT transform(xs, X -> x + a.x + x.n) FROM a").selects[0]
    >>> text(replaced_columns(tree, lambda column: exp.column(exp.to_identifier(f"col_{column.name}", quoted=True))))
    'transform(`col_xs`, `#x#` -> `#x#` + `col_x` + `#x#`.`n`)'

    """
    return _replaced(node, replacement, frozenset())


def _replaced(node: exp.Expr, replacement: Callable[[exp.Column], exp.Expr], variables: frozenset[str]) -> exp.Expr:
    match node:
        case exp.Column():
            parts = [part.name for part in node.parts]
            if parts and parts[0].lower() in variables:
                return _variable(parts)
            return replacement(node)
        case exp.Identifier() if node.name.lower() in variables:
            return _variable([node.name])
        case exp.DataType() | exp.Query():
            return node.copy()
        case exp.Anonymous() | exp.Tuple() if _names_fields(node):
            arguments = [_replaced(_unnamed(argument), replacement, variables) for argument in node.expressions]
            return _with_names(node, arguments)
        case exp.Dot():
            return exp.Dot(this=_replaced(node.this, replacement, variables), expression=node.expression.copy())
        case exp.Lambda():
            names = [parameter.name for parameter in node.expressions]
            inner = variables | {name.lower() for name in names}
            body = _replaced(node.this, replacement, inner)
            return exp.Lambda(this=body, expressions=[_variable([name]) for name in names])
    copy: exp.Expr = node.copy()
    for key, value in node.args.items():
        if isinstance(value, exp.Expr) and key != "alias":
            copy.set(key, _replaced(value, replacement, variables))
        elif isinstance(value, list):
            copy.set(key, [_replaced(item, replacement, variables) if isinstance(item, exp.Expr) else item for item in value])
    return copy


def _names_fields(node: exp.Anonymous | exp.Tuple) -> bool:
    """Whether a call names fields by its arguments; each argument must be one expression."""
    if isinstance(node, exp.Tuple) and isinstance(node.parent, (exp.Any, exp.All)):
        return False  # LIKE ANY ('a', 'b')
    called = "struct" if isinstance(node, exp.Tuple) else str(node.this).lower()
    return called in {"struct", "arrays_zip"} and not any(isinstance(argument, exp.Star) for argument in node.expressions)


def _with_names(call: exp.Anonymous | exp.Tuple, arguments: Sequence[exp.Expr]) -> exp.Expr:
    """Return the same call with the names of its fields as constants, as Spark derives them from the written arguments."""
    fields = list(zip(map(_field_name, call.expressions), arguments, strict=True))
    if isinstance(call, exp.Anonymous) and str(call.this).lower() == "arrays_zip":
        named_fields = [_one_field(name or str(number), value) for number, (name, value) in enumerate(fields)]
        return exp.Anonymous(this=call.this, expressions=named_fields)
    return _structure((name or f"col{number}", value) for number, (name, value) in enumerate(fields, start=1))


def _structure(fields: Iterator[tuple[str, exp.Expr]]) -> exp.Anonymous:
    parts = [part for name, value in fields for part in (exp.Literal.string(name), value)]
    return exp.Anonymous(this="named_struct", expressions=parts)


def _one_field(name: str, node: exp.Expr) -> exp.Expr:
    """Return an expression to which Spark gives a name: a field, since aliases are not possible inside calls."""
    if isinstance(node, exp.Dot) and _field_name(node) == name:
        return node
    return with_field(_structure(iter([(name, node)])), name)


def _unnamed(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Alias) else node


def _field_name(node: exp.Expr) -> str | None:
    """Return Spark's name of a field that is computed by an expression; None if it only gets a number."""
    match node:
        case exp.Alias():
            return str(node.alias)
        case exp.Column() | exp.Identifier():
            return str(node.name)
        case exp.Dot():
            return str(node.expression.name)
        case exp.Bracket(expressions=[exp.Literal(is_string=True) as key]):
            return str(key.name)
        case exp.Paren():
            return _field_name(node.this)
        case _:
            return None


def _variable(parts: list[str]) -> exp.Expr:
    """Return a variable, or a field of it."""
    name = parts[0].lower()
    variable: exp.Expr = exp.to_identifier(name if name.startswith("#") else f"#{name}#", quoted=True)
    for part in parts[1:]:
        variable = exp.Dot(this=variable, expression=exp.to_identifier(part, quoted=True))
    return variable


def with_field(node: exp.Expr, name: str) -> exp.Expr:
    """Return a field of a structure."""
    return exp.Dot(this=node, expression=exp.to_identifier(name, quoted=True))
