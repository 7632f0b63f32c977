"""Small results of several Spark queries, collected by one job: most of the time of a small job is its planning and its start.

The rows of all queries are put together as rows of one table. Columns of one type share their places there, so that it is about
as wide as the widest query.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.pandas.types import to_arrow_schema

from warehouse.catalog.identifiers import quoted
from warehouse.storage.prepared import planned, prepared

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

__all__ = ["Together", "collected", "collected_as_before"]

_QUERY = "_query"
"""The column that says which query a row is of."""


@dataclass(eq=False)
class Together:
    """Results of queries by name; each is collected once, together with its companions.

    ``companions`` returns the queries that are collected with one, by name, itself included.
    """

    companions: Callable[[str], Mapping[str, DataFrame]]
    _found: dict[str, pa.Table] = field(default_factory=dict)

    def of(self, name: str) -> pa.Table:
        """Return the result of a query, and forget it."""
        if name not in self._found:
            queries = self.companions(name)
            self._found |= dict(zip(queries, collected([*queries.values()]), strict=True))
        return self._found.pop(name)

    def release(self) -> None:
        """Forget all results."""
        self._found.clear()


def collected(queries: Sequence[DataFrame]) -> list[pa.Table]:
    """Return the rows of queries of one session, of which one job collects all."""
    if len(queries) == 1:
        return [queries[0].toArrow()]
    return _apart(_united(queries).toArrow(), [query.schema for query in queries])


def collected_as_before(queries: Sequence[DataFrame]) -> list[pa.Table]:
    """Return the same of queries that work row by row, by a plan that is cached (:mod:`warehouse.storage.prepared`).

    Their sessions may differ in settings of writers. Times are of the zone UTC.
    """
    schemas = [query.schema for query in queries]
    tables = _apart(prepared(_united, [planned(query) for query in queries], _united).toArrow(), schemas)
    return [rows.cast(to_arrow_schema(schema, timezone="UTC")) for rows, schema in zip(tables, schemas, strict=True)]


def _united(queries: Sequence[DataFrame]) -> DataFrame:
    """The rows of all queries: rows of one query have null in the columns of the others."""
    schemas = [query.schema for query in queries]
    kinds: dict[tuple[str, int], DataType] = {}
    for schema in schemas:
        kinds |= dict(zip(_places(schema), (column.dataType for column in schema.fields), strict=True))
    parts = []
    for number, (query, schema) in enumerate(zip(queries, schemas, strict=True)):
        column_names = dict(zip(_places(schema), schema.names, strict=True))
        columns = [
            (F.col(quoted(column_names[position])) if position in column_names else F.lit(None).cast(kind)).alias(_name(position))
            for position, kind in kinds.items()
        ]
        parts.append(query.select(F.lit(number).alias(_QUERY), *columns))
    return reduce(DataFrame.unionAll, parts)


def _apart(rows: pa.Table, schemas: Sequence[StructType]) -> list[pa.Table]:
    """The rows of each query, with its columns."""
    tables = []
    for number, schema in enumerate(schemas):
        query_rows = rows.filter(pc.equal(rows[_QUERY], number))
        tables.append(query_rows.select([_name(position) for position in _places(schema)]).rename_columns(schema.names))
    return tables


def _places(schema: StructType) -> list[tuple[str, int]]:
    """The position of each column: its type, and the number of earlier columns of that type."""
    seen: dict[str, int] = {}
    positions = []
    for column in schema.fields:
        kind = column.dataType.simpleString()
        positions.append((kind, seen.get(kind, 0)))
        seen[kind] = seen.get(kind, 0) + 1
    return positions


def _name(position: tuple[str, int]) -> str:
    kind, number = position
    return f"{kind} {number}"
