"""Rows in the driver, with the methods of Spark's frames that pipelines use: one definition of a pipeline is run by either.

Nothing is computed before :meth:`DriverRows.toArrow`, which asks DuckDB once. Whatever the driver would not compute as Spark does
raises :class:`~warehouse.views.language.driver_sql.LeftToSparkError`; the caller then gives the same pipeline Spark's frames.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import StructType
from sqlglot import exp

from warehouse.catalog.duck_sql import quoted
from warehouse.storage.lookup import query_in_driver
from warehouse.views.language.dialect import expression_of
from warehouse.views.language.driver_sql import LeftToSparkError, exactly_grouped, plain_type, translated
from warehouse.views.language.faults import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame

    from warehouse.views.language.driver_sql import Translated

__all__ = ["DriverRows", "Frame"]

_ORDERED = re.compile(r"(?:`(?P<quoted>[^`]+)`|(?P<plain>\w+))(?: (?P<way>ASC|DESC))?(?: NULLS (?P<nulls>FIRST|LAST))?")
_JSON = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}
_TRANSLATED = 4096
"""Expressions and types whose translations are kept: more than the views of a large project have."""
_Kinds: TypeAlias = "tuple[tuple[str, str | None], ...]"
"""The names of columns in lower case, with their Spark SQL types; None: a column that is only passed on."""


@dataclass(frozen=True)
class DriverRows:
    """Rows that DuckDB computes.

    ``query`` is SQL over ``tables``; ``types`` are the types of its columns, in order.
    """

    query: str
    types: Mapping[str, pa.DataType]
    tables: Mapping[str, pa.Table] = field(repr=False)

    @classmethod
    def of(cls, rows: pa.Table) -> DriverRows:
        """Return the rows of a table, whose types are as Spark gives them to Arrow."""
        name = f"rows_{id(rows)}"
        own = dict(zip(rows.column_names, rows.schema.types, strict=True))
        return cls(f"SELECT * FROM {name}", _distinct(own, rows.num_columns), {name: rows})

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
            When the driver does not compute one.

        """
        shown: list[str] = []
        types: list[tuple[str, pa.DataType]] = []
        for each in expressions:
            if each == "*":
                shown += map(quoted, self.types)
                types += self.types.items()
                continue
            name, column, found = _named(each, self._kinds)
            shown.append(f"{found.sql} AS {quoted(name)}")
            types.append((name, self._type(column) if column else _arrow_type(str(found.kind))))
        return DriverRows(f"SELECT {', '.join(shown)} FROM ({self.query})", _distinct(dict(types), len(types)), self.tables)

    def where(self, condition: str) -> DriverRows:
        """Return the rows for which a condition is true.

        Raises
        ------
        LeftToSparkError
            When the driver does not compute it.

        """
        return DriverRows(f"SELECT * FROM ({self.query}) WHERE {self.condition(condition)}", self.types, self.tables)

    def condition(self, sql: str) -> str:
        """Return a condition of Spark SQL over the columns as DuckDB's.

        Raises
        ------
        LeftToSparkError
            When the driver does not compute it.

        """
        found = _translated(sql, self._kinds)
        if found.kind != "boolean":
            raise LeftToSparkError(f"{sql} is no condition")
        return found.sql

    def unionByName(self, other: DriverRows) -> DriverRows:  # noqa: N802 - as Spark calls it
        """Return the rows of both, which have the same columns.

        Raises
        ------
        LeftToSparkError
            When types differ, which Spark would make alike.

        """
        there = {name.lower(): (name, kind) for name, kind in other.types.items()}
        if {name.lower(): kind for name, kind in self.types.items()} != {name: kind for name, (_, kind) in there.items()}:
            raise LeftToSparkError("the inputs of a UNION ALL have columns of different types")
        same = ", ".join(f"{quoted(there[name.lower()][0])} AS {quoted(name)}" for name in self.types)
        query = f"SELECT * FROM ({self.query}) UNION ALL SELECT {same} FROM ({other.query})"
        return DriverRows(query, self.types, {**self.tables, **other.tables})

    def join(self, other: DriverRows, condition: str, how: str) -> DriverRows:
        """Return pairs of rows for which a condition is true; ``how`` is a kind of join as Spark calls it.

        Raises
        ------
        LeftToSparkError
            When the driver does not compute the condition, or names are not different.

        """
        types = _distinct({**self.types, **other.types}, len(self.types) + len(other.types))
        word = how.removeprefix("left_")
        both = DriverRows(f"({self.query}) AS l {word} JOIN ({other.query}) AS r", types, {**self.tables, **other.tables})
        shown = types if word == how else self.types
        return DriverRows(f"SELECT * FROM {both.query} ON {both.condition(condition)}", shown, both.tables)

    def numbered(self, partition: Sequence[str], order: Sequence[str], name: str) -> DriverRows:
        """Return the rows with their number, from 1, in an order of their own within each partition.

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
        terms = [f"{quoted(column)} {way}" for column, way in map(_term, order)]
        if any(not exactly_grouped(kinds[column.lower()]) for column in (*partition, *(_term(each)[0] for each in order))):
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
        found = [(_translated(sql, self._kinds, aggregates=True), name) for sql, name in aggregates]
        shown = [*map(quoted, keys), *(f"{value.sql} AS {quoted(name)}" for value, name in found)]
        types = [*((name, self._type(name)) for name in keys), *((name, _arrow_type(str(value.kind))) for value, name in found)]
        by = f" GROUP BY {', '.join(map(quoted, keys))}" if keys else ""
        query = f"SELECT {', '.join(shown)} FROM ({self.query}){by}"
        return DriverRows(query, _distinct(dict(types), len(types)), self.tables)

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
        rows = query_in_driver(self.query, self.tables)
        if rows is None:
            raise LeftToSparkError("DuckDB did not compute the rows")
        return rows.rename_columns(self.columns).cast(pa.schema(list(self.types.items())))

    def _type(self, column: str) -> pa.DataType:
        return next(kind for name, kind in self.types.items() if name.lower() == column.lower())

    @cached_property
    def _kinds(self) -> _Kinds:
        return tuple((name.lower(), _spark_type(kind)) for name, kind in self.types.items())


Frame = TypeVar("Frame", "DataFrame", DriverRows)
"""Rows that Spark computes, or the driver."""


# A process updates a warehouse again and again: the expressions of its views are translated once.


@lru_cache(maxsize=_TRANSLATED)
def _translated(sql: str, kinds: _Kinds, *, aggregates: bool = False) -> Translated:
    return translated(sql, dict(kinds), aggregates=aggregates)


@lru_cache(maxsize=_TRANSLATED)
def _named(sql: str, kinds: _Kinds) -> tuple[str, str | None, Translated]:
    """The name of an expression, the column that it is, if it is one, and the expression as DuckDB's."""
    try:
        node = expression_of(sql)
    except RefusedError as error:
        raise LeftToSparkError(str(error)) from None
    inner, name = (node.this, node.alias) if isinstance(node, exp.Alias) else (node, _name(node))
    found = translated(inner, dict(kinds))
    column = inner.name if isinstance(inner, exp.Column) else None
    if column is None and found.kind is None:
        raise LeftToSparkError("the driver passes on columns of nested types only")
    return name, column, found


def _term(sql: str) -> tuple[str, str]:
    """The column of a term of an order, and its direction, in which nulls are where Spark has them."""
    found = _ORDERED.fullmatch(sql)
    if found is None:
        raise LeftToSparkError(f"the driver does not order by {sql}")
    nulls = found["nulls"] or ("LAST" if found["way"] == "DESC" else "FIRST")
    return found["quoted"] or found["plain"], f"{found['way'] or 'ASC'} NULLS {nulls}"


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
    """The Spark SQL type of plain values; None for nested ones."""
    found = None if pa.types.is_nested(kind) else from_arrow_type(kind).simpleString()
    return found if plain_type(found) else None


@lru_cache(maxsize=_TRANSLATED)
def _arrow_type(kind: str) -> pa.DataType:
    fields = [{"name": "x", "type": _JSON.get(kind, kind), "nullable": True, "metadata": {}}]
    return to_arrow_type(StructType.fromJson({"type": "struct", "fields": fields}).fields[0].dataType, timezone="UTC")
