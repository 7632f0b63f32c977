"""A plan as one query for DuckDB: what its rows are while nothing expires."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.views.algebra import (
    AntiJoin,
    AsOf,
    BagDifference,
    Changes,
    Distinct,
    Filter,
    Group,
    InternalRows,
    Join,
    Order,
    OuterJoin,
    OutputWindow,
    Project,
    Scan,
    TimeWindow,
    Top,
    UnionAll,
    inputs_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.views.algebra import Node, Operator


def query_of(nodes: Sequence[Node]) -> str:
    """Return a view's nodes as one query with its columns in order."""
    hidden = {node.table: node for node in nodes[:-1]}
    columns = ", ".join(f'"{name}"' for name in nodes[-1].columns)
    return f"SELECT {columns} FROM ({sql_of(nodes[-1].operator, hidden)})"


def sql_of(operator: Operator, hidden: Mapping[str, Node] | None = None) -> str:
    """Return a plan as a query; a scan of a hidden node becomes the node's own query."""
    nodes = hidden or {}
    below = [f"({sql_of(child, nodes)})" for child in inputs_of(operator)]
    match operator:
        case Scan(table=table):
            if table not in nodes:
                return f'SELECT * FROM "{table}"'
            columns = ", ".join(f'"{name}"' for name in nodes[table].columns)
            return f"SELECT {columns} FROM ({sql_of(nodes[table].operator, nodes)})"
        case TimeWindow() | InternalRows() | Changes() | OutputWindow():
            return f"SELECT * FROM {below[0]}"
        case Filter(condition=condition):
            return f"SELECT * FROM {below[0]} WHERE {_duck(condition)}"
        case Project(columns=columns):
            named = ", ".join(f'{_duck(column.sql)} AS "{column.name}"' for column in columns) or "1 AS _nothing"
            return f"SELECT {named} FROM {below[0]}"
        case AsOf():
            return _looked_up(operator, below[0])
        case UnionAll():
            return " UNION ALL BY NAME ".join(f"(SELECT * FROM {query})" for query in below)
        case _:
            return _stateful(operator, below)


def _stateful(operator: Operator, below: Sequence[str]) -> str:
    match operator:
        case Join():
            return _join(operator, below)
        case Distinct():
            return f"SELECT DISTINCT * FROM {below[0]}"
        case Group(keys=keys):
            listed = ", ".join(f'"{key}"' for key in keys)
            values = [f'{_duck(aggregate.sql)} AS "{aggregate.name}"' for aggregate in operator.aggregates]
            return f"SELECT {', '.join([listed] * bool(keys) + values)} FROM {below[0]}" + (f" GROUP BY {listed}" if keys else "")
        case BagDifference():
            return f"SELECT * FROM {below[0]} EXCEPT ALL SELECT * FROM {below[1]}"
        case AntiJoin(on=on):
            equal = " AND ".join(f'l."{left}" = r."{right}"' for left, right in on)
            return f"SELECT * FROM {below[0]} l WHERE NOT EXISTS (SELECT 1 FROM {below[1]} r WHERE {equal})"
        case OuterJoin(on=on, kind=kind, where=where):
            parts = [f'"{left}" = "{right}"' for left, right in on] + ([f"({_duck(where)})"] if where else [])
            return f"SELECT * FROM {below[0]} {kind.upper()} JOIN {below[1]} ON {' AND '.join(parts)}"
        case Top():
            return _top(operator, below[0])
        case _:
            raise TypeError(type(operator).__name__)


def _looked_up(lookup: AsOf, below: str) -> str:
    keys = [f'"{column}" AS _key_{number}' for number, (_, column) in enumerate(lookup.on)]
    added = [f'{_duck(column.sql)} AS "{column.name}"' for column in lookup.columns]
    versions = f'(SELECT {", ".join([*keys, *added])} FROM "{lookup.relation}")'
    equal = " AND ".join(f'i."{column}" = r._key_{number}' for number, (column, _) in enumerate(lookup.on))
    columns = ", ".join(["i.*", *(f'r."{column.name}"' for column in lookup.columns)])
    return f"SELECT {columns} FROM {below} i {'LEFT ' if lookup.outer else ''}JOIN {versions} r ON {equal}"


def _join(join: Join, inputs: Sequence[str]) -> str:
    same = "IS NOT DISTINCT FROM" if join.null_safe else "="
    parts = [f'i{pair.left}."{pair.left_column}" {same} i{pair.right}."{pair.right_column}"' for pair in join.equal]
    parts += [f"({_duck(join.where)})"] if join.where else []
    return f"SELECT * FROM {', '.join(f'{query} i{number}' for number, query in enumerate(inputs))} WHERE {' AND '.join(parts)}"


def _top(top: Top, below: str) -> str:
    partition = ", ".join(f'"{name}"' for name in top.partition)
    order = ", ".join(_term(term) for term in top.order)
    over = f"{f'PARTITION BY {partition} ' if partition else ''}{f'ORDER BY {order}' if order else ''}"
    return f"SELECT * FROM {below} QUALIFY row_number() OVER ({over}) <= {top.limit}"


def _term(order: Order) -> str:
    nulls = "FIRST" if order.nulls_first else "LAST"
    return f'"{order.column}" {"DESC" if order.descending else "ASC"} NULLS {nulls}'


def _duck(sql: str) -> str:
    return sql.replace("`", '"')
