"""Rows in the driver, with the methods of Spark's frames that pipelines use: both can run the same definition of a pipeline.

Nothing is computed before :meth:`DriverRows.toArrow`. It runs one DuckDB query, or none if Arrow can compute everything. An
expression that the driver would not compute like Spark raises :class:`~warehouse.views.language.driver_types.LeftToSparkError`;
the caller then runs the same pipeline over Spark's frames.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import StructType
from sqlglot import exp

from warehouse.catalog.duck_sql import quoted
from warehouse.storage.arrow_keys import have_key, is_exact
from warehouse.storage.lookup import FAILURES, query_in_driver
from warehouse.views.language.dialect import expression_of
from warehouse.views.language.driver_sql import translated
from warehouse.views.language.driver_types import LeftToSparkError, exactly_grouped, plain_type
from warehouse.views.language.faults import RefusedError
from warehouse.views.maintenance.arrow_terms import restored, term_of, without_instants

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from warehouse.views.language.driver_types import Translated
    from warehouse.views.maintenance.arrow_terms import ArrowTerm, Kinds

__all__ = ["DriverRows", "Frame"]

_ORDERED = re.compile(r"(?:`(?P<quoted>[^`]+)`|(?P<plain>\w+))(?: (?P<way>ASC|DESC))?(?: NULLS (?P<nulls>FIRST|LAST))?")
_JSON = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
_TRANSLATED = 4096
"""Expressions and types whose translations are kept: more than the views of a large project have."""
_Computed: TypeAlias = "Callable[[], pa.Table]"


@dataclass(frozen=True)
class DriverRows:
    """Rows that DuckDB computes.

    ``query`` is SQL over ``tables``; ``types`` are the types of its columns, in order. ``computed`` returns the same rows from
    Arrow alone; None if only DuckDB can compute them.
    """

    query: str
    types: Mapping[str, pa.DataType]
    tables: Mapping[str, pa.Table] = field(repr=False)
    computed: _Computed | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, rows: pa.Table) -> DriverRows:
        """Return the rows of a table, whose types are as Spark gives them to Arrow."""
        name = f"rows_{id(rows)}"
        types = dict(zip(rows.column_names, rows.schema.types, strict=True))
        return cls(f"SELECT * FROM {name}", _distinct(types, rows.num_columns), {name: rows}, lambda: rows)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.types)

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        """The names of the columns and their Spark SQL types; ``nested`` for columns that are only passed on."""
        return [(name, _spark_type(kind) or "nested") for name, kind in self.types.items()]

    def selectExpr(self, *expressions: str) -> DriverRows:  # noqa: N802 - as Spark calls it
        """Return columns: ``*``, or expressions of Spark SQL with names.

        Raises
        ------
        LeftToSparkError
            When the driver does not compute one of the expressions.

        """
        shown: list[str] = []
        types: list[tuple[str, pa.DataType]] = []
        terms: list[tuple[ArrowTerm | None, tuple[int, ...]]] = []
        for expression in expressions:
            if expression == "*":
                shown += map(quoted, self.types)
                types += self.types.items()
                terms += [(term_of(f"`{name}`", self._kinds), ()) for name in self.types]
                continue
            sql, instants = without_instants(expression)
            name, column, translation = _named(sql, self._kinds)
            shown.append(f"{restored(translation.sql, instants)} AS {quoted(name)}")
            types.append((name, self._type(column) if column else _arrow_type(str(translation.kind))))
            terms.append((term_of(sql, self._kinds), instants))
        kinds = _distinct(dict(types), len(types))
        computed = self._picked([(term, instants) for term, instants in terms if term is not None], kinds)
        return DriverRows(f"SELECT {', '.join(shown)} FROM ({self.query})", kinds, self.tables, computed)

    def _picked(self, terms: Sequence[tuple[ArrowTerm, tuple[int, ...]]], types: Mapping[str, pa.DataType]) -> _Computed | None:
        inner = self.computed
        if inner is None or len(terms) < len(types):
            return None

        def made() -> pa.Table:
            rows = inner()
            by_name, columns = _by_name(rows), []
            for (term, instants), kind in zip(terms, types.values(), strict=True):
                value = term.of(by_name, instants)
                column = pa.repeat(value, rows.num_rows) if term.constant else value
                columns.append(column if column.type == kind else column.cast(kind))
            return pa.Table.from_arrays(columns, list(types))

        return made

    def where(self, condition: str) -> DriverRows:
        """Return the rows for which a condition holds.

        Raises
        ------
        LeftToSparkError
            When the driver cannot compute it.

        """
        query = f"SELECT * FROM ({self.query}) WHERE {self.condition(condition)}"
        sql, instants = without_instants(condition)
        inner, term = self.computed, term_of(sql, self._kinds)
        if inner is None or term is None:
            return DriverRows(query, self.types, self.tables)

        def made() -> pa.Table:
            rows = inner()
            mask = term.of(_by_name(rows), instants)
            return rows.filter(pa.repeat(mask, rows.num_rows) if term.constant else mask)

        return DriverRows(query, self.types, self.tables, made)

    def condition(self, sql: str) -> str:
        """Return a condition of Spark SQL over the columns as DuckDB's.

        Raises
        ------
        LeftToSparkError
            When the driver cannot compute it.

        """
        template, instants = without_instants(sql)
        translation = _translated(template, self._kinds)
        if translation.kind != "boolean":
            raise LeftToSparkError(f"{sql} is no condition")
        return restored(translation.sql, instants)

    def unionByName(self, other: DriverRows) -> DriverRows:  # noqa: N802 - as Spark calls it
        """Return the rows of both frames, which have the same columns.

        Raises
        ------
        LeftToSparkError
            When types differ: Spark would convert them.

        """
        other_columns = {name.lower(): (name, kind) for name, kind in other.types.items()}
        if {name.lower(): kind for name, kind in self.types.items()} != {name: kind for name, (_, kind) in other_columns.items()}:
            raise LeftToSparkError("the inputs of a UNION ALL have columns of different types")
        aligned = ", ".join(f"{quoted(other_columns[name.lower()][0])} AS {quoted(name)}" for name in self.types)
        query = f"SELECT * FROM ({self.query}) UNION ALL SELECT {aligned} FROM ({other.query})"
        first, second, names = self.computed, other.computed, list(self.types)
        if first is None or second is None:
            return DriverRows(query, self.types, {**self.tables, **other.tables})

        def made() -> pa.Table:
            by_name = _by_name(second())
            above, below = pa.Table.from_arrays(first().columns, names), [by_name[name.lower()] for name in names]
            return pa.concat_tables([above, pa.Table.from_arrays(below, names)])

        return DriverRows(query, self.types, {**self.tables, **other.tables}, made)

    def join(self, other: DriverRows, condition: str, how: str) -> DriverRows:
        """Return pairs of rows for which a condition holds; ``how`` is Spark's name of the kind of join.

        Raises
        ------
        LeftToSparkError
            When the driver cannot compute the condition, or both sides have a column of the same name.

        """
        types = _distinct({**self.types, **other.types}, len(self.types) + len(other.types))
        word = how.removeprefix("left_")
        both = DriverRows(f"({self.query}) AS l {word} JOIN ({other.query}) AS r", types, {**self.tables, **other.tables})
        shown = types if word == how else self.types
        return DriverRows(f"SELECT * FROM {both.query} ON {both.condition(condition)}", shown, both.tables)

    def matched(self, keys: DriverRows, columns: Sequence[str], condition: str, how: str) -> DriverRows:
        """Return the rows whose columns have one of the keys, or with ``left_anti`` have none of them; null equals null.

        Parameters
        ----------
        keys
            The keys: the columns in the same order.
        columns
            Names of columns.
        condition
            The condition that columns and keys are equal, as Spark SQL.
        how
            ``left_semi`` or ``left_anti``.

        Raises
        ------
        LeftToSparkError
            When the driver cannot compare them.

        """
        joined = self.join(keys, condition, how)
        inner, computed_keys, types = self.computed, keys.computed, [self._type(name) for name in columns]
        if inner is None or computed_keys is None or types != [*keys.types.values()] or not all(map(is_exact, types)):
            return joined

        def made() -> pa.Table:
            rows = inner()
            by_name = _by_name(rows)
            mask = have_key([by_name[name.lower()] for name in columns], computed_keys().columns)
            return rows.filter(mask if how == "left_semi" else pc.invert(mask))

        return replace(joined, computed=made)

    def numbered(self, partition: Sequence[str], order: Sequence[str], name: str) -> DriverRows:
        """Return the rows, numbered from 1 in an order within each partition.

        Parameters
        ----------
        partition
            Names of columns.
        order
            Terms over columns, as Spark SQL.
        name
            The name of the column with the number.

        Raises
        ------
        LeftToSparkError
            When the engines might disagree on the order.

        """
        kinds = dict(self._kinds)
        terms = [f"{quoted(column)} {direction}" for column, direction in map(_term, order)]
        if any(not exactly_grouped(kinds[column.lower()]) for column in (*partition, *(_term(term)[0] for term in order))):
            raise LeftToSparkError("the driver does not order by floats or nested values")
        by = f"PARTITION BY {', '.join(map(quoted, partition))} " if partition else ""
        number = f"CAST(row_number() OVER ({by}ORDER BY {', '.join(terms)}) AS INTEGER) AS {quoted(name)}"
        types = {**self.types, name: pa.int32()}
        return DriverRows(f"SELECT *, {number} FROM ({self.query})", _distinct(types, len(self.types) + 1), self.tables)

    def grouped(self, keys: Sequence[str], aggregates: Sequence[tuple[str, str]]) -> DriverRows:
        """Return aggregates of each combination of keys; no keys: of all rows.

        Parameters
        ----------
        keys
            Names of columns.
        aggregates
            Sums and the like as Spark SQL, with their names.

        Raises
        ------
        LeftToSparkError
            When the driver does not group by the keys or compute an aggregate as Spark does.

        """
        kinds = dict(self._kinds)
        if any(not exactly_grouped(kinds[name.lower()]) for name in keys):
            raise LeftToSparkError("the driver does not group by floats or nested values")
        values = [(_translated(sql, self._kinds, aggregates=True), name) for sql, name in aggregates]
        shown = [*map(quoted, keys), *(f"{value.sql} AS {quoted(name)}" for value, name in values)]
        types = [*((name, self._type(name)) for name in keys), *((name, _arrow_type(str(value.kind))) for value, name in values)]
        by = f" GROUP BY {', '.join(map(quoted, keys))}" if keys else ""
        query = f"SELECT {', '.join(shown)} FROM ({self.query}){by}"
        result_types = _distinct(dict(types), len(types))
        exact = not aggregates and all(map(is_exact, result_types.values()))
        return DriverRows(query, result_types, self.tables, self._distinct_values(keys) if exact else None)

    def _distinct_values(self, columns: Sequence[str]) -> _Computed | None:
        inner, names = self.computed, list(columns)
        if inner is None or not names:
            return None

        def made() -> pa.Table:
            by_name = _by_name(inner())
            rows = pa.Table.from_arrays([by_name[name.lower()] for name in names], names)
            return rows.group_by(names, use_threads=False).aggregate([]).select(names)

        return made

    def limit(self, count: int) -> DriverRows:
        """Return at most this number of rows."""
        return DriverRows(f"SELECT * FROM ({self.query}) LIMIT {count}", self.types, self.tables)

    def toArrow(self) -> pa.Table:  # noqa: N802 - as Spark calls it
        """Return the rows, computed.

        Raises
        ------
        LeftToSparkError
            When DuckDB cannot compute them: Spark then gives the answer, or the error.

        """
        kinds = pa.schema(list(self.types.items()))
        if self.computed is not None:
            try:
                return self.computed().rename_columns(self.columns).cast(kinds)
            except FAILURES as error:
                logging.getLogger("warehouse").info("left to DuckDB: %s", error)
        rows = query_in_driver(self.query, self.tables)
        if rows is None:
            raise LeftToSparkError("DuckDB did not compute the rows")
        return rows.rename_columns(self.columns).cast(kinds)

    def _type(self, column: str) -> pa.DataType:
        return next(kind for name, kind in self.types.items() if name.lower() == column.lower())

    @cached_property
    def _kinds(self) -> Kinds:
        return tuple((name.lower(), _spark_type(kind)) for name, kind in self.types.items())


Frame = TypeVar("Frame", "DataFrame", DriverRows)
"""Rows that Spark computes, or the driver."""


# A process updates a warehouse again and again: the expressions of its views are translated once.


@lru_cache(maxsize=_TRANSLATED)
def _translated(sql: str, kinds: Kinds, *, aggregates: bool = False) -> Translated:
    return translated(sql, dict(kinds), aggregates=aggregates)


@lru_cache(maxsize=_TRANSLATED)
def _named(sql: str, kinds: Kinds) -> tuple[str, str | None, Translated]:
    """Return the name of an expression, its column (None if it is no plain column), and its translation for DuckDB."""
    try:
        node = expression_of(sql)
    except RefusedError as error:
        raise LeftToSparkError(str(error)) from None
    inner, name = (node.this, node.alias) if isinstance(node, exp.Alias) else (node, _name(node))
    translation = translated(inner, dict(kinds))
    column = inner.name if isinstance(inner, exp.Column) else None
    if column is None and translation.kind is None:
        raise LeftToSparkError("the driver passes on columns of nested types only")
    return name, column, translation


def _by_name(rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    """Return the columns by their names in lower case."""
    return dict(zip(map(str.lower, rows.column_names), rows.columns, strict=True))


def _term(sql: str) -> tuple[str, str]:
    """Return the column of a term of an order, and its direction, with nulls where Spark puts them."""
    match = _ORDERED.fullmatch(sql)
    if match is None:
        raise LeftToSparkError(f"the driver does not order by {sql}")
    nulls = match["nulls"] or ("LAST" if match["way"] == "DESC" else "FIRST")
    return match["quoted"] or match["plain"], f"{match['way'] or 'ASC'} NULLS {nulls}"


def _name(node: exp.Expr) -> str:
    if not isinstance(node, exp.Column) or node.table:
        raise LeftToSparkError("an expression has no name")
    return node.name


def _distinct(types: dict[str, pa.DataType], count: int) -> dict[str, pa.DataType]:
    if len({name.lower() for name in types}) < count:
        raise LeftToSparkError("two columns have one name")
    return types


@lru_cache(maxsize=_TRANSLATED)
def _spark_type(kind: pa.DataType) -> str | None:
    """Return the Spark SQL type of plain values; None for nested values."""
    name = None if pa.types.is_nested(kind) else from_arrow_type(kind).simpleString()
    return name if plain_type(name) else None


@lru_cache(maxsize=_TRANSLATED)
def _arrow_type(kind: str) -> pa.DataType:
    fields = [{"name": "x", "type": _JSON.get(kind, kind), "nullable": True, "metadata": {}}]
    return to_arrow_type(StructType.fromJson({"type": "struct", "fields": fields}).fields[0].dataType, timezone="UTC")
