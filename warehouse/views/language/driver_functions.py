"""The functions and aggregates of Spark SQL that the driver computes in DuckDB.

A function is here if both engines give the same result for its arguments, or if the SQL raises an error where they would not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from sqlglot import exp

from warehouse.catalog.duck_sql import literal
from warehouse.views.language.dialect import text
from warehouse.views.language.driver_types import (
    EXACT,
    MOST_DIGITS,
    WHOLE,
    LeftToSparkError,
    Translated,
    decimal_digits,
    duck_type,
    exactly_grouped,
)

__all__ = ["AGGREGATES", "FUNCTIONS", "ArgumentTranslator"]

_UNITS = ("year", "month", "day", "hour", "minute", "second")


class ArgumentTranslator(Protocol):
    """Translates the arguments of a function; raises ``LeftToSparkError`` for an argument that the driver cannot compute."""

    def of(self, node: exp.Expr) -> Translated:
        """Return an expression as DuckDB's."""
        ...

    def same(self, nodes: Sequence[exp.Expr]) -> tuple[list[str], str]:
        """Return the SQL of expressions, cast to one type, and this type."""
        ...

    def truth(self, node: exp.Expr) -> str:
        """Return the SQL of a condition."""
        ...

    def string(self, node: exp.Expr) -> str:
        """Return the SQL of a text."""
        ...

    def typed(self, node: exp.Expr, kind: str) -> str:
        """Return the SQL of an expression of a type."""
        ...

    def ascii(self, node: exp.Expr) -> str:
        """Return the SQL of a text, which raises an error for letters that the engines might treat differently."""
        ...


_Function = Callable[[ArgumentTranslator, Sequence[exp.Expr]], Translated]


def _only(arguments: Sequence[exp.Expr], count: int) -> Sequence[exp.Expr]:
    if len(arguments) != count:
        raise LeftToSparkError("the driver does not know the function with so many arguments")
    return arguments


def _coalesced(translator: ArgumentTranslator, arguments: Sequence[exp.Expr]) -> Translated:
    values, kind = translator.same(arguments)
    return Translated(f"coalesce({', '.join(values)})", kind)


def _chosen(translator: ArgumentTranslator, arguments: Sequence[exp.Expr]) -> Translated:
    condition, *results = _only(arguments, 3)
    values, kind = translator.same(results)
    return Translated(f"(CASE WHEN {translator.truth(condition)} THEN {values[0]} ELSE {values[1]} END)", kind)


def _extreme(word: str) -> _Function:
    def made(translator: ArgumentTranslator, arguments: Sequence[exp.Expr]) -> Translated:
        values, kind = translator.same(arguments)
        if kind in ("float", "double", "binary", "boolean"):
            raise LeftToSparkError(f"the driver does not compute {word} of {kind}")
        return Translated(f"{word}({', '.join(values)})", kind)

    return made


def _letters(word: str) -> _Function:
    return lambda translator, arguments: Translated(f"{word}({translator.ascii(_only(arguments, 1)[0])})", "string")


def _length(translator: ArgumentTranslator, arguments: Sequence[exp.Expr]) -> Translated:
    return Translated(f"CAST(length({translator.ascii(_only(arguments, 1)[0])}) AS INTEGER)", "int")


def _concatenated(translator: ArgumentTranslator, arguments: Sequence[exp.Expr]) -> Translated:
    if not arguments:
        raise LeftToSparkError("the driver does not concatenate nothing")
    return Translated(f"({' || '.join(map(translator.string, arguments))})", "string")


def _magnitude(translator: ArgumentTranslator, arguments: Sequence[exp.Expr]) -> Translated:
    value = translator.of(_only(arguments, 1)[0])
    if value.kind not in (*WHOLE, "double"):
        raise LeftToSparkError(f"the driver does not compute abs of {value.kind}")
    return Translated(f"abs({value.sql})", value.kind)


def _cut(translator: ArgumentTranslator, arguments: Sequence[exp.Expr]) -> Translated:
    unit, value = _only(arguments, 2)
    if not isinstance(unit, exp.Literal) or unit.this.lower() not in _UNITS:
        raise LeftToSparkError(f"the driver does not cut times at {text(unit)}")
    utc = f"({translator.typed(value, 'timestamp')} AT TIME ZONE 'UTC')"
    return Translated(f"(date_trunc({literal(unit.this.lower())}, {utc}) AT TIME ZONE 'UTC')", "timestamp")


def _micros(translator: ArgumentTranslator, arguments: Sequence[exp.Expr]) -> Translated:
    return Translated(f"epoch_us({translator.typed(_only(arguments, 1)[0], 'timestamp')})", "bigint")


def _instant(translator: ArgumentTranslator, arguments: Sequence[exp.Expr]) -> Translated:
    return Translated(f"make_timestamptz({translator.typed(_only(arguments, 1)[0], 'bigint')})", "timestamp")


def _counted(translator: ArgumentTranslator, arguments: Sequence[exp.Expr]) -> Translated:
    (value,) = _only(arguments, 1)
    return Translated(f"count({'*' if isinstance(value, exp.Star) else translator.of(value).sql})", "bigint")


def _bound(word: str) -> _Function:
    def made(translator: ArgumentTranslator, arguments: Sequence[exp.Expr]) -> Translated:
        value = translator.of(_only(arguments, 1)[0])
        if not exactly_grouped(value.kind):
            raise LeftToSparkError(f"the driver does not compute {word} of {value.kind}")
        return Translated(f"{word}({value.sql})", value.kind)

    return made


def _summed(translator: ArgumentTranslator, arguments: Sequence[exp.Expr]) -> Translated:
    value = translator.of(_only(arguments, 1)[0])
    digits = decimal_digits(value.kind)
    if digits is not None:
        kind = f"decimal({min(MOST_DIGITS, digits[0] + 10)},{digits[1]})"
        return Translated(f"CAST(sum({value.sql}) AS {duck_type(kind)})", kind)
    if value.kind not in WHOLE:
        raise LeftToSparkError(f"the driver does not sum {value.kind}")
    return Translated(f"CAST(sum({value.sql}) AS BIGINT)", "bigint")


def _averaged(translator: ArgumentTranslator, arguments: Sequence[exp.Expr]) -> Translated:
    """Return the average; it is exact only if no sum is rounded, since Spark adds doubles in any order."""
    value = translator.of(_only(arguments, 1)[0])
    if value.kind not in WHOLE:
        raise LeftToSparkError(f"the driver does not average {value.kind}")
    mean = f"CAST(sum({value.sql}) AS DOUBLE) / CAST(count({value.sql}) AS DOUBLE)"
    exact = f"sum(abs(CAST({value.sql} AS HUGEINT))) <= {EXACT}"
    return Translated(
        f"(CASE WHEN count({value.sql}) = 0 THEN NULL WHEN {exact} THEN {mean} ELSE error('rounded') END)", "double"
    )


FUNCTIONS: dict[str, _Function] = {
    "coalesce": _coalesced,
    "if": _chosen,
    "greatest": _extreme("greatest"),
    "least": _extreme("least"),
    "upper": _letters("upper"),
    "lower": _letters("lower"),
    "length": _length,
    "concat": _concatenated,
    "abs": _magnitude,
    "date_trunc": _cut,
    "unix_micros": _micros,
    "timestamp_micros": _instant,
}
AGGREGATES: dict[str, _Function] = {
    "sum": _summed,
    "avg": _averaged,
    "count": _counted,
    "max": _bound("max"),
    "min": _bound("min"),
}
