"""Predicates on a table's columns: their meaning in plain Python, and their text for each reader."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from .values import arrow_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Term", "drawn", "holds", "in_arrow", "in_polars", "in_sql", "literal"]

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class Term:
    """A column compared with values; a predicate is a tuple of terms that all hold."""

    column: str
    kind: str
    operator: str
    values: tuple[Any, ...] = ()


def holds(terms: Sequence[Term], row: Mapping[str, Any]) -> bool:
    """Whether a row satisfies a predicate: null satisfies no comparison."""
    return all(_holds(term, row[term.column]) for term in terms)


def _holds(term: Term, value: Any) -> bool:  # noqa: ANN401 - any value
    if term.operator in ("is null", "is not null"):
        return (value is None) == (term.operator == "is null")
    if value is None:
        return False
    match term.operator:
        case "in":
            return value in term.values
        case "between":
            return bool(term.values[0] <= value <= term.values[1])
        case "starts":
            return bool(value.startswith(term.values[0]))
    return _COMPARISONS[term.operator](value, term.values[0])


def drawn(
    columns: Sequence[tuple[str, str]], rows: Sequence[Mapping[str, Any]], count: int, seed: int = 1
) -> list[tuple[Term, ...]]:
    """Return predicates on some columns: null tests, each value of the rows compared, ranges, sets, prefixes, conjunctions."""
    dice = random.Random(seed)  # noqa: S311 - a test draws the same again
    singles: list[Term] = []
    for name, kind in columns:
        values = [row[name] for row in rows if row[name] is not None]
        present = sorted(set(values)) if kind != "array<int>" else []
        singles += [Term(name, kind, "is null"), Term(name, kind, "is not null")]
        for value in present:
            singles += [Term(name, kind, operator, (value,)) for operator in ("=", "<", "<=", ">", ">=")]
            other = dice.choice(present)
            singles.append(Term(name, kind, "between", (min(value, other), max(value, other))))
            singles.append(Term(name, kind, "in", tuple({value, other, dice.choice(present)})))
            if kind == "string" and value:
                singles.append(Term(name, kind, "starts", (value[: dice.choice((1, 2, 32, 33, 40))],)))
    must = [single for single in singles if single.operator in ("is null", "is not null", "=")]
    dice.shuffle(must)
    dice.shuffle(singles)
    half = must[: count // 3] + [single for single in singles if single not in must[: count // 3]]
    pairs = [(single, dice.choice(singles)) for single in singles[: max(1, count // 4)]]
    return [(single,) for single in half[: count - len(pairs)]] + pairs


def literal(value: Any, kind: str, engine: str) -> str:  # noqa: ANN401 - any value; one return a type
    """Return a value as an SQL literal of an engine: spark, datafusion or duckdb."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            if engine == "spark":
                return f"CAST(X'{value.encode().hex()}' AS STRING)"
            return "'" + value.replace("'", "''") + "'"
        case int() if kind == "timestamp":
            return {
                "spark": f"timestamp_micros({value}L)",
                "duckdb": f"make_timestamptz({value})",
                "datafusion": f"arrow_cast({value}, 'Timestamp(Microsecond, Some(\"UTC\"))')",
            }[engine]
        case int() | Decimal():
            return f"CAST('{value:f}' AS {kind.upper()})" if isinstance(value, Decimal) else f"CAST('{value}' AS {kind.upper()})"
        case date():
            return f"DATE '{value.isoformat()}'"
        case float():
            return f"CAST('{value!r}' AS {'DOUBLE' if kind == 'double' else kind.upper()})"
    raise TypeError(value)


def in_sql(terms: Sequence[Term], engine: str) -> str:
    """Return a predicate as a condition of an engine."""
    return " AND ".join(_sql(term, engine) for term in terms)


def _sql(term: Term, engine: str) -> str:
    sign = "`" if engine == "spark" else '"'
    name = f"{sign}{term.column}{sign}"
    literals = [literal(value, term.kind, engine) for value in term.values]
    match term.operator:
        case "in":
            return f"{name} IN ({', '.join(literals)})"
        case "between":
            return f"{name} BETWEEN {literals[0]} AND {literals[1]}"
        case "starts":
            function = {"spark": "startswith", "duckdb": "starts_with", "datafusion": "starts_with"}[engine]
            return f"{function}({name}, {literals[0]})"
        case "is null" | "is not null":
            return f"{name} {term.operator.upper()}"
    return f"{name} {term.operator} {literals[0]}"


def in_arrow(terms: Sequence[Term]) -> pc.Expression:
    """Return a predicate as an expression of PyArrow."""
    return reduce(lambda left, right: left & right, map(_arrow, terms))


def _arrow(term: Term) -> pc.Expression:
    field = pc.field(term.column)
    kind = arrow_type(term.kind)
    plain = pa.int64() if term.kind == "timestamp" else kind
    scalars = [pa.scalar(value, plain).cast(kind) for value in term.values]
    match term.operator:
        case "in":
            return field.isin(pa.array(term.values, plain).cast(kind))
        case "between":
            return (field >= scalars[0]) & (field <= scalars[1])
        case "starts":
            return pc.starts_with(field, term.values[0])
        case "is null":
            return field.is_null()
        case "is not null":
            return field.is_valid()
    comparisons: dict[str, Callable[[Any, Any], pc.Expression]] = {
        "=": lambda a, b: a == b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }
    return comparisons[term.operator](field, scalars[0])


def in_polars(terms: Sequence[Term]) -> pl.Expr:
    """Return a predicate as an expression of Polars."""
    return reduce(lambda left, right: left & right, map(_polars, terms))


def _polars(term: Term) -> pl.Expr:
    field = pl.col(term.column)
    kind = arrow_type(term.kind)
    moments = term.kind == "timestamp"
    series = pl.from_arrow(pa.array(term.values, pa.int64() if moments else kind).cast(kind)) if term.values else pl.Series([])
    assert isinstance(series, pl.Series)
    literals = [pl.lit(value).cast(series.dtype) if moments else pl.lit(value, dtype=series.dtype) for value in term.values]
    match term.operator:
        case "in":
            return field.is_in(series.implode())
        case "between":
            return field.is_between(literals[0], literals[1])
        case "starts":
            return field.str.starts_with(term.values[0])
        case "is null":
            return field.is_null()
        case "is not null":
            return field.is_not_null()
    comparisons: dict[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
        "=": lambda a, b: a == b,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b,
        ">=": lambda a, b: a >= b,
    }
    return comparisons[term.operator](field, literals[0])
