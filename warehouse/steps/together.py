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

from warehouse.catalog.identifiers import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

__all__ = ["Together", "collected"]

_QUERY = "_query"


@dataclass(eq=False)
class Together:
    """Results of queries by name, each collected once, with those that go with it.

    ``beside`` gives the queries that are collected with one, by name, itself among them.
    """

    beside: Callable[[str], Mapping[str, DataFrame]]
    _found: dict[str, pa.Table] = field(default_factory=dict)

    def of(self, name: str) -> pa.Table:
        """Return the result of a query, which is forgotten here."""
        if name not in self._found:
            queries = self.beside(name)
            self._found |= dict(zip(queries, collected([*queries.values()]), strict=True))
        return self._found.pop(name)

    def release(self) -> None:
        """Forget all results."""
        self._found.clear()


def collected(queries: Sequence[DataFrame]) -> list[pa.Table]:
    """Return the rows of queries of one session, of which one job collects all."""
    if len(queries) == 1:
        return [queries[0].toArrow()]
    schemas = [query.schema for query in queries]
    kinds: dict[tuple[str, int], DataType] = {}
    for schema in schemas:
        kinds |= dict(zip(_places(schema), (each.dataType for each in schema.fields), strict=True))
    names = {place: f"_{number}" for number, place in enumerate(kinds)}
    parts = []
    for number, (query, schema) in enumerate(zip(queries, schemas, strict=True)):
        own = dict(zip(_places(schema), schema.names, strict=True))
        columns = [
            (F.col(quoted(own[place])) if place in own else F.lit(None).cast(kind)).alias(names[place])
            for place, kind in kinds.items()
        ]
        parts.append(query.select(F.lit(number).alias(_QUERY), *columns))
    every = reduce(DataFrame.unionAll, parts).toArrow()
    tables = []
    for number, schema in enumerate(schemas):
        rows = every.filter(pc.equal(every[_QUERY], number))
        tables.append(rows.select([names[place] for place in _places(schema)]).rename_columns(schema.names))
    return tables


def _places(schema: StructType) -> list[tuple[str, int]]:
    """The place of each column: its type, and how many of that type came before."""
    seen: dict[str, int] = {}
    places = []
    for each in schema.fields:
        kind = each.dataType.simpleString()
        places.append((kind, seen.get(kind, 0)))
        seen[kind] = seen.get(kind, 0) + 1
    return places
