"""Expressions of Spark SQL that Arrow computes over rows in the driver: a query of DuckDB takes longer than the work.

Arrow computes columns, constants, comparisons of whole numbers, texts, dates and times, and combinations of these conditions.
DuckDB computes everything else (:mod:`warehouse.views.language.driver_sql`). A translation contains no instants: these differ at
each update, but the expressions of a project's views are translated once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from warehouse.views.language.dialect import expression_of
from warehouse.views.language.faults import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["ArrowTerm", "Kinds", "restored", "term_of", "without_instants"]

Kinds: TypeAlias = "tuple[tuple[str, str | None], ...]"
"""The names of columns in lower case, with their Spark SQL types; None: a column that is only passed on."""
_Columns: TypeAlias = "Mapping[str, pa.ChunkedArray]"
_Value: TypeAlias = "Callable[[_Columns, Sequence[int]], Any]"
"""Computes a value of columns, by their names in lower case, and of the instants of an expression."""

_TRANSLATED = 4096
_INSTANT = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|\b(?P<instant>\d{14,18})(?=L\b)""", re.DOTALL)
"""Matches an instant; it also matches quoted texts and names, since digits in them are no instant."""
_FIRST = 8_999_999_999_999_990_000
"""The number that stands for the first instant of an expression."""
_PLACES = 1_000
_STANDS = re.compile(r"89999999999999\d{5}")
_INT, _LONG = 2**31, 2**63
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_ORDERED = ("string", "date", "timestamp")
_COMPARED: dict[type[exp.Expr], str] = {
    exp.EQ: "equal", exp.NEQ: "not_equal", exp.LT: "less", exp.LTE: "less_equal", exp.GT: "greater", exp.GTE: "greater_equal",
}  # fmt: skip
_TIME = pa.timestamp("us", "UTC")


@dataclass(frozen=True)
class ArrowTerm:
    """A function that Arrow computes, and its Spark SQL type; None: a column that is only passed on."""

    of: _Value
    kind: str | None
    constant: bool = False


def without_instants(sql: str) -> tuple[str, tuple[int, ...]]:
    """Return an expression with numbers that stand for its instants, and the instants.

    Examples
    --------
    >>> without_instants("unix_micros(_exp) > 2208989340000000L AND v > 90")
    ('unix_micros(_exp) > 8999999999999990000L AND v > 90', (2208989340000000,))
    >>> without_instants("s = '12345678901234L' OR `12345678901234L` > 0")
    ("s = '12345678901234L' OR `12345678901234L` > 0", ())

    """
    instants: list[int] = []

    def stand_in(match: re.Match[str]) -> str:
        if match["instant"] is None:
            return match[0]
        instants.append(int(match["instant"]))
        return str(_FIRST + len(instants) - 1)

    if _STANDS.search(sql):
        return sql, ()
    template = _INSTANT.sub(stand_in, sql)
    return (template, tuple(instants)) if len(instants) < _PLACES else (sql, ())


def restored(sql: str, instants: Sequence[int]) -> str:
    """Return SQL with the instants themselves."""
    return _STANDS.sub(lambda match: str(instants[int(match[0]) - _FIRST]), sql) if instants else sql


@lru_cache(maxsize=_TRANSLATED)
def term_of(sql: str, kinds: Kinds) -> ArrowTerm | None:
    """Return the Arrow function of an expression without an alias and without instants; None: DuckDB must compute it."""
    try:
        node = expression_of(sql)
    except RefusedError:
        return None
    return _term(node.this if isinstance(node, exp.Alias) else node, dict(kinds))


def _term(node: exp.Expr, kinds: Mapping[str, str | None]) -> ArrowTerm | None:
    match node:
        case exp.Paren():
            return _term(node.this, kinds)
        case exp.Column() if not node.table and node.name.lower() in kinds:
            name = node.name.lower()
            return ArrowTerm(lambda columns, _: columns[name], kinds[name])
        case exp.Literal():
            return _literal(node)
        case exp.Neg():
            return _negative(_term(node.this, kinds))
        case exp.Cast():
            return _long(node, kinds)
        case exp.Anonymous():
            return _of_time(node, kinds)
        case _:
            return _condition(node, kinds)


def _literal(node: exp.Literal) -> ArrowTerm | None:
    if node.is_string:
        unsure = "\\" in str(node.meta.get("as_written", "")) or "\\" in node.this or _STANDS.search(node.this)
        return None if unsure else _constant(pa.scalar(str(node.this), pa.string()), "string")
    if not str(node.this).isdecimal() or int(node.this) >= _LONG or int(node.this) == _INT:
        return None
    number = int(node.this)
    if _FIRST <= number < _FIRST + _PLACES:
        position = number - _FIRST
        return ArrowTerm(
            lambda _, instants: pa.scalar(instants[position] if instants else number, pa.int64()), "bigint", constant=True
        )
    kind = "int" if number < _INT else "bigint"
    return _constant(pa.scalar(number, pa.int32() if kind == "int" else pa.int64()), kind)


def _constant(value: pa.Scalar, kind: str) -> ArrowTerm:
    return ArrowTerm(lambda *_: value, kind, constant=True)


def _negative(inner: ArrowTerm | None) -> ArrowTerm | None:
    if inner is None or not inner.constant or inner.kind not in ("int", "bigint"):
        return None
    return ArrowTerm(lambda *args: pc.negate_checked(inner.of(*args)), inner.kind, constant=True)


def _long(node: exp.Cast, kinds: Mapping[str, str | None]) -> ArrowTerm | None:
    """Return a whole number as a bigint, as ``1L`` is."""
    inner = _term(node.this, kinds)
    if inner is None or inner.kind not in _WHOLE or node.args["to"].sql("spark").lower() != "bigint":
        return None
    return ArrowTerm(lambda *args: inner.of(*args).cast(pa.int64()), "bigint", inner.constant)


def _of_time(node: exp.Anonymous, kinds: Mapping[str, str | None]) -> ArrowTerm | None:
    if len(node.expressions) != 1:
        return None
    inner = _term(node.expressions[0], kinds)
    match str(node.this).lower():
        case "unix_micros" if inner is not None and inner.kind == "timestamp":
            return ArrowTerm(lambda *args: inner.of(*args).cast(_TIME).cast(pa.int64()), "bigint", inner.constant)
        case "timestamp_micros" if inner is not None and inner.kind == "bigint":
            return ArrowTerm(lambda *args: inner.of(*args).cast(_TIME), "timestamp", inner.constant)
    return None


def _condition(node: exp.Expr, kinds: Mapping[str, str | None]) -> ArrowTerm | None:
    match node:
        case exp.Boolean():
            return _constant(pa.scalar(bool(node.this)), "boolean")
        case exp.And():
            return _joined(pc.and_kleene, [_term(node.this, kinds), _term(node.expression, kinds)])
        case exp.Or():
            return _joined(pc.or_kleene, [_term(node.this, kinds), _term(node.expression, kinds)])
        case exp.Not():
            return _inverted(_term(node.this, kinds))
        case exp.Is() if isinstance(node.expression, exp.Null):
            inner = _term(node.this, kinds)
            return None if inner is None else ArrowTerm(lambda *args: pc.is_null(inner.of(*args)), "boolean", inner.constant)
        case exp.In() if node.expressions and not node.args.get("query"):
            return _joined(pc.or_kleene, [_compared("equal", node.this, expression, kinds) for expression in node.expressions])
        case exp.Between():
            low = _compared("greater_equal", node.this, node.args["low"], kinds)
            return _joined(pc.and_kleene, [low, _compared("less_equal", node.this, node.args["high"], kinds)])
        case _ if type(node) in _COMPARED:
            return _compared(_COMPARED[type(node)], node.this, node.expression, kinds)
        case _:
            return None


def _inverted(inner: ArrowTerm | None) -> ArrowTerm | None:
    if inner is None or inner.kind != "boolean":
        return None
    return ArrowTerm(lambda *args: pc.invert(inner.of(*args)), "boolean", inner.constant)


def _joined(combine: Callable[..., Any], terms: Sequence[ArrowTerm | None]) -> ArrowTerm | None:
    """Return the combination of conditions; None if one of the terms is no condition."""
    conditions = [term for term in terms if term is not None and term.kind == "boolean"]
    if len(conditions) < len(terms):
        return None
    constant = all(term.constant for term in conditions)
    return ArrowTerm(lambda *args: reduce(combine, [term.of(*args) for term in conditions]), "boolean", constant)


def _compared(function: str, first: exp.Expr, second: exp.Expr, kinds: Mapping[str, str | None]) -> ArrowTerm | None:
    left, right = _term(first, kinds), _term(second, kinds)
    if left is None or right is None:
        return None
    alike = (left.kind in _WHOLE and right.kind in _WHOLE) or (left.kind == right.kind and left.kind in _ORDERED)
    if not alike:
        return None
    compare = getattr(pc, function)
    return ArrowTerm(lambda *args: compare(left.of(*args), right.of(*args)), "boolean", left.constant and right.constant)
