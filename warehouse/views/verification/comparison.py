"""Compares two answers as bags, in one Spark job: the rows of a view's table, and Spark's answer to the view's own text.

Both are one relation of weighted rows (+1 stored, -1 from the query), grouped by all columns: a weight other than 0 is a
difference. Memory is that of Spark's grouping, which spills. These values count as equal:

* floats, also inside arrays and structures, to about nine digits, and beyond that within a millionth of the larger one, because
  they are added in another order; -0.0 is 0.0;
* values that :mod:`~warehouse.views.verification.judgement` leaves open: a difference is then no fault.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StringType, StructType

from warehouse.catalog.identifiers import quoted
from warehouse.views.maintenance.inputs import user_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.views.verification.verifying_query import VerifyingQuery

__all__ = ["Comparison", "Difference", "compared"]

MOST = 1_000
"""Rows that are compared one by one; if more differ, rounding is not the reason."""
_SHOWN = 3
_CLOSE = 1e-6
_LEAST = 1e-9
_DIGITS = {DoubleType: "%.8e", FloatType: "%.4e"}


@dataclass(frozen=True)
class Difference:
    """How two answers differ: how many different rows only one of them has (at most ``MOST``), and the first of each."""

    held: int
    asked: int
    first_held: tuple[str, ...] = ()
    first_asked: tuple[str, ...] = ()
    refused: str | None = None

    @property
    def summary(self) -> str:
        """The recorded text, without values of rows."""
        if self.refused:
            return f"Spark refuses its query: {self.refused}"
        least = "at least " if max(self.held, self.asked) >= MOST else ""
        return f"{least}{self.held} row(s) only in its table, {least}{self.asked} only in Spark's answer to its query"

    def messages(self) -> Iterator[str]:
        """Yield the first rows of both, for a person to look at."""
        yield from (f"only in its table: {row}" for row in self.first_held)
        yield from (f"only in Spark's answer: {row}" for row in self.first_asked)


@dataclass(frozen=True, eq=False)
class Comparison:
    """The difference of two answers, before it is computed.

    Parameters
    ----------
    held
        The rows of the view's table.
    summed
        The rows with different numbers in the two answers; ``w`` is how many more the table has.
    error
        The least allowed difference of floats.

    """

    held: DataFrame
    summed: DataFrame
    error: float

    def differing(self, view: str) -> DataFrame:
        """Return one row: the name of the view, and the number of different rows that one answer has more often."""
        return self.summed.groupBy().count().select(F.lit(view).alias("view"), "count")

    def difference(self) -> Difference | None:
        """Compute how the answers differ; None if they are equal."""
        weighted_rows = [(row[-1], list(row[:-1])) for row in self.summed.limit(2 * MOST).collect()]
        floats = any(_has_float(field.dataType) for field in self.held.schema.fields)
        left = _unmatched(weighted_rows, self.error) if floats and len(weighted_rows) < 2 * MOST else weighted_rows
        if not left:
            return None
        only_stored, only_answer = ([row for weight, row in left if (weight > 0) == stored] for stored in (True, False))
        names = self.held.columns
        return Difference(len(only_stored), len(only_answer), _first(names, only_stored), _first(names, only_answer))


def compared(
    session: SparkSession,
    query: VerifyingQuery,
    rows: Callable[[str], DataFrame],
    held: DataFrame,
    now: int,
    *,
    names: Mapping[str, str],
    without: frozenset[str] = frozenset(),
    error: float = 0.0,
) -> Comparison | Difference:
    """Return the comparison of a view's table with its query, not yet computed, or the error if Spark refuses the query.

    Parameters
    ----------
    session
        The session for the temporary views, while the query is analysed.
    query
        The query.
    rows
        Returns the live rows of a table, with the columns ``_ts`` and ``_exp``.
    held
        The live rows of the view's table.
    now
        The window time in microseconds.
    names
        All tables: the name for ``rows``, by the name in lower case.
    without
        Columns that are not compared, in lower case.
    error
        The least allowed difference of floats.

    Raises
    ------
    pyspark.errors.PySparkException
        When the query fails on a row.

    """
    try:
        answer = _answer(session, query, rows, now, names)
    except AnalysisException as problem:
        return Difference(0, 0, refused=str(problem).splitlines()[0])
    return _compared(held.selectExpr(*map(quoted, user_columns(held))), answer, without, error)


_asking = Lock()
"""Views of another thread's warehouse may have the same names, in the same session."""


def _answer(
    session: SparkSession, query: VerifyingQuery, rows: Callable[[str], DataFrame], now: int, names: Mapping[str, str]
) -> DataFrame:
    """Return the answer to the query, analysed, so that it no longer needs the temporary views."""
    view_names: list[str] = []
    with _asking:
        try:
            _show(query, rows, now, view_names, names)
            return session.sql(query.sql)
        finally:
            for name in view_names:
                session.catalog.dropTempView(name)


def _show(
    query: VerifyingQuery,
    rows: Callable[[str], DataFrame],
    now: int,
    view_names: list[str],
    names: Mapping[str, str],
) -> None:
    """Make the temporary views, in the session of the rows."""
    for table in query.tables:
        if table not in names:
            continue  # a WITH query
        live = rows(names[table])
        columns = [quoted(name) for name in user_columns(live)]
        live.selectExpr(*columns).createOrReplaceTempView(table)
        view_names.append(table)
        for view_window in query.windows:
            if view_window.table != table:
                continue
            window = view_window.window
            if window.length is not None:
                inside = live.where(f"unix_micros(_ts) + {window.length}L > {now}L")
            else:
                by = f"PARTITION BY {quoted(window.partition.name)} " if window.partition is not None else ""
                order = ", ".join(["_ts DESC", "_exp DESC", *columns])
                ranked = live.selectExpr("*", f"row_number() OVER ({by}ORDER BY {order}) AS _rank")
                inside = ranked.where(f"_rank <= {window.rows}")
            inside.selectExpr(*columns).createOrReplaceTempView(view_window.name)
            view_names.append(view_window.name)


def _compared(stored: DataFrame, answer: DataFrame, without: frozenset[str], error: float) -> Comparison | Difference:
    names = stored.columns
    if [name.lower() for name in answer.columns] != [name.lower() for name in names]:
        return Difference(0, 0, refused=f"it gives the columns {', '.join(answer.columns)}, the table has {', '.join(names)}")
    short_names = [f"c{number}" for number in range(len(names))]
    left_out = {short_name for short_name, name in zip(short_names, names, strict=True) if name.lower() in without}
    sides = [
        side.toDF(*short_names).selectExpr(*_comparable(side, left_out, error), f"{weight} AS w")
        for side, weight in ((stored, 1), (answer, -1))
    ]
    try:
        all_rows = sides[0].unionAll(sides[1])
    except AnalysisException as problem:
        return Difference(0, 0, refused=str(problem).splitlines()[0])
    summed = all_rows.groupBy(*short_names).agg({"w": "sum"}).withColumnRenamed("sum(w)", "w").where("w <> 0")
    return Comparison(stored, summed, error)


def _comparable(rows: DataFrame, left_out: set[str], error: float) -> list[str]:
    """Return each column in a form by which Spark can group, so that values that count as equal are equal."""
    fields = [(f"c{number}", field.dataType) for number, field in enumerate(rows.schema.fields)]
    return [f"{'NULL' if name in left_out else _grouped(name, kind, error)} AS {name}" for name, kind in fields]


def _grouped(value: str, kind: DataType, error: float, depth: int = 0) -> str:
    match kind:
        case DoubleType() | FloatType():
            wide = f"CAST({value} AS double)"
            odd = f"{value} IS NULL OR isnan({value}) OR abs({value}) = double('Infinity')"
            rounded = f"CAST(printf('{_DIGITS[type(kind)]}', {wide}) AS double)"
            return f"CASE WHEN {odd} THEN {wide} WHEN abs({value}) <= {error!r}D THEN 0D ELSE {rounded} END"
        case MapType():
            return f"array_sort(map_entries({value}))"
        case StringType():
            return value if kind.isUTF8BinaryCollation() else f"collate({value}, 'UTF8_BINARY')"
        case ArrayType() | StructType() if _has_map(kind):
            return f"to_json({value})"
        case ArrayType() if _has_float(kind):
            return f"transform({value}, e{depth} -> {_grouped(f'e{depth}', kind.elementType, error, depth + 1)})"
        case StructType() if _has_float(kind):
            fields = [f"'f{number}', {_grouped(f'{value}.{quoted(field.name)}', field.dataType, error, depth)}"
                      for number, field in enumerate(kind.fields)]  # fmt: skip
            return f"CASE WHEN {value} IS NOT NULL THEN named_struct({', '.join(fields)}) END"
        case _:
            return value


def _has_float(kind: DataType) -> bool:
    match kind:
        case DoubleType() | FloatType():
            return True
        case ArrayType():
            return _has_float(kind.elementType)
        case StructType():
            return any(_has_float(field.dataType) for field in kind.fields)
        case _:
            return False


def _has_map(kind: DataType) -> bool:
    match kind:
        case MapType():
            return True
        case ArrayType():
            return _has_map(kind.elementType)
        case StructType():
            return any(_has_map(field.dataType) for field in kind.fields)
        case _:
            return False


def _unmatched(differing_rows: Sequence[tuple[int, list[Any]]], error: float) -> list[tuple[int, list[Any]]]:
    """Return the rows that have no counterpart whose floats are close."""
    answer_rows = [row for weight, row in differing_rows if weight < 0]
    answer_remaining = [-weight for weight, _ in differing_rows if weight < 0]
    unmatched: list[tuple[int, list[Any]]] = []
    for weight, row in differing_rows:
        if weight < 0:
            continue
        remaining = weight
        for index, candidate in enumerate(answer_rows):
            if remaining and answer_remaining[index] and _alike(row, candidate, error):
                matched = min(remaining, answer_remaining[index])
                remaining, answer_remaining[index] = remaining - matched, answer_remaining[index] - matched
        if remaining:
            unmatched.append((remaining, row))
    return [*unmatched, *((-weight, row) for weight, row in zip(answer_remaining, answer_rows, strict=True) if weight)]


def _alike(value: object, other: object, error: float) -> bool:
    if isinstance(value, float) and isinstance(other, float):
        close = math.isclose(value, other, rel_tol=_CLOSE, abs_tol=max(error, _LEAST))
        return close or (math.isnan(value) and math.isnan(other))
    if isinstance(value, list | tuple) and isinstance(other, list | tuple):
        return len(value) == len(other) and all(_alike(a, b, error) for a, b in zip(value, other, strict=True))
    return value == other


def _first(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    shown = [", ".join(f"{name} = {value!r}" for name, value in zip(names, row, strict=True)) for row in rows]
    return tuple(sorted(shown)[:_SHOWN])
