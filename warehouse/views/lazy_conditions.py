"""Finds coalesced tables that can be lazy: each read computes their rows from the points that their stream stores.

Every member must stay stored for the whole window, so rows of the stream must live for longer. DuckDB must evaluate the
condition as Spark does, since reads use no Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.catalog.retention import as_duration
from warehouse.catalog.spelling import FaultError, as_written
from warehouse.coalescing.definition import PREVIOUS, neighbour_column
from warehouse.errors import ConfigurationError, Problem
from warehouse.views.language.dialect import expression_of
from warehouse.views.language.driver_sql import translated
from warehouse.views.language.driver_types import DIGITS_OF, MOST_DIGITS, LeftToSparkError, decimal_digits
from warehouse.views.language.faults import RefusedError
from warehouse.views.language.scope import stream_label

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.catalog.model import Catalog, Coalesced, Stream
    from warehouse.coalescing.definition import CoalescedDefinition

__all__ = ["LazyCondition", "lazy_condition", "lazy_conditions", "lazy_fault"]

_CONNECTIVES = (exp.And, exp.Or, exp.Case, exp.In, exp.Between)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Cast)
_FRACTIONS = ("float", "double")
_EAGER = 'how = "eager"'


@dataclass(frozen=True)
class LazyCondition:
    """A condition in DuckDB's SQL, and the columns of the stream that it reads."""

    sql: str
    reads: tuple[str, ...]


def lazy_conditions(catalog: Catalog) -> dict[str, LazyCondition | None]:
    """Return the condition of each lazy table; None for a table that compares values.

    Raises
    ------
    ConfigurationError
        With every table that cannot be lazy.

    """
    faults = [(table, fault) for table in catalog.lazy for fault in lazy_fault(catalog, table)]
    if faults:
        file = catalog.file.name
        raise ConfigurationError(
            [Problem(file, f"coalesced.{table.name}.how", fault.found, fault.allowed) for table, fault in faults]
        )
    return {table.name: lazy_condition(catalog, table.definition) for table in catalog.lazy}


def lazy_fault(catalog: Catalog, table: Coalesced) -> Iterator[FaultError]:
    """Yield the reasons why a declared table cannot be lazy."""
    definition, stream = table.definition, catalog.stream(table.definition.source)
    if stream is None:
        return
    yield from _stored(stream, definition)
    try:
        lazy_condition(catalog, definition)
    except (LeftToSparkError, RefusedError) as error:
        condition = as_written(definition.same or definition.of or "")
        yield FaultError(f'"lazy" with the condition {condition}', f"{_EAGER}: reads use DuckDB, and {error}")


def _stored(stream: Stream, definition: CoalescedDefinition) -> Iterator[FaultError]:
    """Yield the fault that points may leave their stream before they leave the window."""
    label = stream_label(stream)
    if label.kind == "MON":
        return
    if definition.rows is not None:
        found = f'"lazy" with `rows`, over {stream.name}, whose rows expire'
        yield FaultError(found, f"{_EAGER}, or a stream without `expires`: the newest points must be stored however old they are")
        return
    lives = label.constant if label.kind == "WKS" else None
    if lives is not None and stream.over_lifetime == "clamp" and stream.max_lifetime is not None:
        lives = min(lives, stream.max_lifetime)
    if lives is None:
        found = f'"lazy" over {stream.name}, whose rows expire at {as_written(stream.expires)}'
        allowed = f'{_EAGER}, or a stream without `expires` or with a constant one such as "ts + INTERVAL 2 DAYS"'
        yield FaultError(found, f"{allowed}: every point must be stored for the whole window")
    elif definition.window is not None and lives <= definition.window:
        window, lifetime = as_duration(definition.window), as_duration(lives)
        found = f'"lazy" with a window of {window}, over {stream.name}, whose rows live {lifetime}'
        yield FaultError(found, f"{_EAGER}, or rows that live longer than the window, in which every point must be stored")


def lazy_condition(catalog: Catalog, definition: CoalescedDefinition) -> LazyCondition | None:
    """Return the condition of a table; None for a table that compares values.

    Raises
    ------
    LeftToSparkError, RefusedError
        When DuckDB is not known to evaluate it as Spark does.

    """
    text = definition.of if definition.same is None else definition.same
    stream = catalog.stream(definition.source)
    if text is None or stream is None:
        return None
    types = {column.name.lower(): column.type for column in stream.columns}
    columns: dict[str, str | None] = {**types, **{neighbour_column(name): kind for name, kind in types.items()}}
    spelled = {column.name.lower(): column.name for column in stream.columns}
    tree = expression_of(text).transform(_named_before, spelled)
    sql = translated(tree, columns).sql
    if _too_wide(tree, columns):
        raise LeftToSparkError("its numbers have too many digits for one decimal, as which DuckDB compares them")
    if "error(" in sql or (_may_fail(tree, columns) and _branches(tree)):
        raise LeftToSparkError("it fails for some values, where the engines may look at other parts of it first")
    column_names = dict.fromkeys(column.name for column in tree.find_all(exp.Column))
    return LazyCondition(f"TRY({sql})", tuple(name for name in column_names if name.lower() in types))


def _named_before(node: exp.Expr, spelled: dict[str, str]) -> exp.Expr:
    """Return a column with its declared spelling; a column of the neighbour before gets a name of its own."""
    if not isinstance(node, exp.Column):
        return node
    declared_name = spelled.get(node.name.lower(), node.name)
    if node.table.lower() == PREVIOUS:
        return exp.column(exp.to_identifier(neighbour_column(declared_name), quoted=True))
    return exp.column(exp.to_identifier(declared_name, quoted=True))


def _too_wide(tree: exp.Expr, columns: dict[str, str | None]) -> bool:
    """Whether no decimal has room for the digits of all numbers without a floating point, before the point and after it."""
    sizes = []
    for column in tree.find_all(exp.Column):
        kind = columns.get(column.name.lower()) or ""
        digits = (DIGITS_OF[kind], 0) if kind in DIGITS_OF else decimal_digits(kind)
        sizes += [] if digits is None else [(digits[0] - digits[1], digits[1])]
    for number in tree.find_all(exp.Literal):
        whole, _, fraction = ("" if number.is_string else number.this).partition(".")
        sizes.append((DIGITS_OF["int"] if len(whole) <= DIGITS_OF["int"] and not fraction else len(whole), len(fraction)))
    return bool(sizes) and max(whole for whole, _ in sizes) + max(part for _, part in sizes) > MOST_DIGITS


def _branches(tree: exp.Expr) -> bool:
    """Whether a part is evaluated only for some values of another part."""
    calls = (call for call in tree.find_all(exp.Anonymous) if str(call.this).lower() != "abs")
    return any(True for _ in tree.find_all(*_CONNECTIVES)) or any(True for _ in calls)


def _may_fail(tree: exp.Expr, columns: dict[str, str | None]) -> bool:
    """Whether a result may leave the range of its type, which is possible for numbers without a floating point."""
    kinds = [columns.get(column.name.lower()) for column in tree.find_all(exp.Column)]
    computes = any(True for _ in tree.find_all(*_ARITHMETIC)) or any(True for _ in tree.find_all(exp.Anonymous))
    return computes and any(kind not in _FRACTIONS for kind in kinds)
