"""``arrival`` and ``expires``: Spark SQL expressions that are row-wise, deterministic, and of declared columns only.

Names of functions are judged as Spark will see them, token by token; structure and columns on sqlglot's tree. Types that only
Spark knows are checked when an update is planned, the rest in this package (:mod:`warehouse.catalog.expression_types`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from warehouse.catalog.expression_types import type_faults
from warehouse.catalog.functions import AGGREGATES, GENERATORS, IMPURE, ROW_WISE, WINDOWS, WITHOUT_PARENTHESES
from warehouse.catalog.spelling import FaultError, nearest
from warehouse.catalog.types import Array, AtomicType, SqlType, Struct, canonical

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from sqlglot import exp
    from sqlglot.tokenizer_core import Token

__all__ = ["columns_of", "expression_faults"]

_DECLARED = "declared columns"
_TIMESTAMP = AtomicType("timestamp")
_ROW_WISE = "a row-wise, deterministic expression"
# Words that may precede a parenthesis without being function calls.
_SYNTAX_WORDS = """
    all and any array between by case char character dec distinct div else end from ilike in interval is like not
    numeric on or over regexp rlike select some struct then using values varchar when where with within
"""
_SYNTAX = frozenset(_SYNTAX_WORDS.split())
_AFTER_LIKE = frozenset({"like", "ilike", "rlike"})
_CLOCK_LITERALS = frozenset({"now", "today", "tomorrow", "yesterday"})
_WORD = re.compile(r"[^\W\d]\w*")


def expression_faults(
    text: str,
    columns: Mapping[str, SqlType | None],
    *,
    allows_ts: bool,
    result_type: SqlType = _TIMESTAMP,
    description: str = _DECLARED,
) -> Iterator[FaultError]:
    """Yield all faults of an expression.

    Parameters
    ----------
    text
        The Spark SQL expression.
    columns
        The declared columns; a type with a fault is None.
    allows_ts
        Whether ``ts``, the arrival time, may be named although it is no column.
    result_type
        The type that the result must have, as far as it is known without Spark.
    description
        A description of the columns, for messages.

    """
    try:
        yield from _cached_faults(
            text, tuple(columns.items()), allows_ts=allows_ts, result_type=result_type, description=description
        )
    except RecursionError:
        yield FaultError("an expression nested too deeply", f"{_ROW_WISE} of at most some dozen levels of parentheses")


def columns_of(text: str) -> Iterator[str]:
    """Yield the columns that a valid expression names."""
    import sqlglot  # noqa: PLC0415 - as below
    from sqlglot import exp  # noqa: PLC0415 - same

    yield from (column.parts[0].name for column in sqlglot.parse_one(f"SELECT {text}", read="spark").find_all(exp.Column))


@lru_cache(maxsize=256)  # a process that updates again and again reads the declarations each time
def _cached_faults(
    text: str, columns: tuple[tuple[str, SqlType | None], ...], *, allows_ts: bool, result_type: SqlType, description: str
) -> tuple[FaultError, ...]:
    return tuple(_faults(text, dict(columns), allows_ts=allows_ts, result_type=result_type, description=description))


def _faults(
    text: str, columns: Mapping[str, SqlType | None], *, allows_ts: bool, result_type: SqlType, description: str
) -> Iterator[FaultError]:
    import sqlglot  # noqa: PLC0415 - it takes time to import, and reading commands look at no expression
    from sqlglot.errors import SqlglotError  # noqa: PLC0415 - same

    scope: dict[str, SqlType | None] = dict(columns)
    if allows_ts and "ts" not in (name.lower() for name in scope):
        scope["ts"] = AtomicType("timestamp")
    try:
        tokens = sqlglot.tokenize(text, read="spark")
        tree = sqlglot.parse_one(f"SELECT {text}", read="spark") if text.strip() else None
    except SqlglotError as error:
        yield FaultError(f'"{text}", which does not parse: {_first_line(str(error))}', f"{_ROW_WISE} in Spark SQL")
        return
    if any(token.comments for token in tokens):
        yield FaultError(f'"{text}" with an SQL comment', "no comment; write it behind # on a line of its own")
    function_faults = list(_function_faults(tokens))
    yield from function_faults
    expression = _only_expression(tree) if tree else None
    if expression is None:
        yield FaultError(f'"{text}"', "one expression in Spark SQL, e.g. a column")
        return
    if not function_faults:
        yield from _structure_faults(expression)
    column_faults = list(_column_faults(expression, scope, allows_ts=allows_ts, description=description))
    yield from column_faults
    result_faults = [] if description != _DECLARED else list(_result_faults(expression, scope, canonical(result_type)))
    yield from result_faults
    if not (function_faults or column_faults or result_faults):
        yield from type_faults(expression, scope, result_type)


def _first_line(message: str) -> str:
    return re.sub(r"\x1b\[\d+m", "", message).splitlines()[0].rstrip(". ")


def _only_expression(tree: exp.Expr) -> exp.Expr | None:
    from sqlglot import exp  # noqa: PLC0415 - as above

    if not isinstance(tree, exp.Select) or any(value for key, value in tree.args.items() if key != "expressions"):
        return None
    listed = tree.expressions
    if len(listed) != 1 or isinstance(listed[0], (exp.Alias, exp.Star)):
        return None
    expression: exp.Expr = listed[0].copy()  # without the SELECT around it
    return expression


def _function_faults(tokens: Sequence[Token]) -> Iterator[FaultError]:
    for index, token in enumerate(tokens):
        name = token.text.lower()
        if not _WORD.fullmatch(name) or token.token_type.name in {"STRING", "NUMBER"}:
            continue
        before, after, later = (tokens[at].text.lower() if 0 <= at < len(tokens) else "" for at in _neighbours(index))
        if after != "(":
            continue
        if name == "unix_timestamp" and later == ")":
            yield FaultError("unix_timestamp(), which reads the clock", f"{_ROW_WISE}: unix_timestamp(column)")
        elif before == ".":
            yield FaultError(f"the function .{name}()", "functions of Spark SQL, without a qualifier")
        elif name not in ROW_WISE and not (name in _SYNTAX and (name not in AGGREGATES or before in _AFTER_LIKE)):
            yield _function_fault(name)


def _neighbours(index: int) -> tuple[int, int, int]:
    return index - 1, index + 1, index + 2


def _function_fault(name: str) -> FaultError:
    for group, description in (
        (IMPURE, "whose result depends on more than its arguments (the clock, chance or the session)"),
        (AGGREGATES, "an aggregate"),
        (GENERATORS, "which makes several rows of one"),
        (WINDOWS, "which looks at other rows"),
    ):
        if name in group:
            return FaultError(f"{name}(), {description}", _ROW_WISE)
    allowed = f"{_ROW_WISE} of Spark SQL's functions"
    return FaultError(f"the unknown function {name}()", allowed, nearest(name, ROW_WISE))


def _structure_faults(expression: exp.Expr) -> Iterator[FaultError]:
    from sqlglot import exp  # noqa: PLC0415 - as above

    kinds: tuple[tuple[tuple[type, ...], str], ...] = (
        ((exp.Query, exp.Values), "a sub-query"),
        ((exp.Window, exp.WithinGroup, exp.Filter), "a window function"),
        ((exp.Star,), "*"),
        ((exp.Placeholder, exp.Parameter), "a parameter"),
    )
    for types, description in kinds:
        if expression.find(*types):
            yield FaultError(description, _ROW_WISE)
    for cast in expression.find_all(exp.Cast):
        literal = cast.this
        if isinstance(literal, exp.Literal) and literal.is_string and literal.name.strip().lower() in _CLOCK_LITERALS:
            yield FaultError(f"the literal '{literal.name}', which reads the clock", _ROW_WISE)


def _column_faults(
    expression: exp.Expr, scope: Mapping[str, SqlType | None], *, allows_ts: bool, description: str
) -> Iterator[FaultError]:
    from sqlglot import exp  # noqa: PLC0415 - as above

    by_lower = {name.lower(): kind for name, kind in scope.items()}
    seen = set()
    for column in expression.find_all(exp.Column, exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentUser, exp.SessionUser):
        names = tuple(part.name for part in column.parts) if isinstance(column, exp.Column) else (column.sql("spark"),)
        if names in seen or "*" in names or column.find_ancestor(exp.Query):
            continue
        seen.add(names)
        root = names[0].lower().removesuffix("()")
        if root in by_lower and isinstance(column, exp.Column):
            yield from _field_faults(names, by_lower[root])
        elif root in WITHOUT_PARENTHESES:
            yield FaultError(f"{root}, {_IMPURE_WORD}", f"{_ROW_WISE}; a column of that name is written `{root}`")
        elif isinstance(column, exp.Column):
            scope_names = ", ".join(scope) or "none"
            hint = (
                ""
                if allows_ts or root != "ts" or description != _DECLARED
                else "; ts is what `arrival` gives and exists in `expires` only"
            )
            found = f'the unknown column "{names[0]}"'
            yield FaultError(found, f"{description} ({scope_names}){hint}", nearest(names[0], scope))


_IMPURE_WORD = "whose result depends on the clock or the session"


def _field_faults(names: tuple[str, ...], kind: SqlType | None) -> Iterator[FaultError]:
    for depth, name in enumerate(names[1:], start=1):
        while isinstance(kind, Array):
            kind = kind.element
        if kind is None:
            return
        fields = {field.name: field.type for field in kind.fields} if isinstance(kind, Struct) else {}
        field_name = next((candidate for candidate in fields if candidate.lower() == name.lower()), None)
        if field_name is None:
            owner = ".".join(names[:depth])
            listed = f"fields of {owner} ({', '.join(fields)})"
            allowed = listed if fields else f"{owner} is {canonical(kind)} and has no fields"
            yield FaultError(f'the unknown field "{".".join(names[: depth + 1])}"', allowed, nearest(name, fields))
            return
        kind = fields[field_name]


def _result_faults(expression: exp.Expr, scope: Mapping[str, SqlType | None], result_type: str) -> Iterator[FaultError]:
    from sqlglot import exp  # noqa: PLC0415 - as above

    if not isinstance(expression, exp.Column) or len(expression.parts) > 1:
        return
    name = expression.name
    kind = next((kind for column, kind in scope.items() if column.lower() == name.lower()), None)
    if kind is None or kind == AtomicType(result_type):
        return
    type_name = canonical(kind)
    if result_type != "timestamp":
        yield FaultError(f'the column "{name}" of type {type_name}', f"an expression that gives a {result_type}")
        return
    remedy = {
        "date": f"CAST({name} AS TIMESTAMP)",
        "string": f'to_timestamp({name}), or {name} = "timestamp" under columns',
        "int": f"timestamp_seconds({name})",
        "bigint": f"timestamp_seconds({name}), timestamp_millis({name}) or timestamp_micros({name})",
    }.get(type_name)
    raw = f'the column "{name}" of type {type_name}'
    yield FaultError(raw, "an expression that gives a timestamp" + (f", e.g. {remedy}" if remedy else ""))
