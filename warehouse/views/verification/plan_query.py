"""Writes a plan as a query that Spark reads, to compare the references of its nodes with the references of the view's text.

Windows are left out, also in the text: they choose rows and have no names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.catalog.identifiers import quoted
from warehouse.views.algebra import (
    AntiJoin,
    AsOf,
    BagDifference,
    Distinct,
    Filter,
    Group,
    Join,
    OuterJoin,
    Project,
    Scan,
    Top,
    UnionAll,
    inputs_of,
)
from warehouse.views.language.columns import columns_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from warehouse.views.algebra import Node, Operator, Order

__all__ = ["outer_lookups", "query_of", "written"]

_RANK = "#rank"
_KEY = "#key."


def query_of(nodes: Sequence[Node], tables: Mapping[str, tuple[str, ...]]) -> str:
    """Return one query for all nodes of a view, its own node the last; ``tables`` has the columns of the other tables."""
    columns = {**tables, **{node.table: node.columns for node in nodes}}
    *hidden, own = nodes
    return (
        f"SELECT {_listed(own.columns)} FROM ({written(own.operator, columns, {node.table: node.operator for node in hidden})})"
    )


def outer_lookups(nodes: Sequence[Node]) -> dict[str, tuple[str, ...]]:
    """Return the relations of the outer lookups of a view's nodes, with the columns of their keys."""
    return {
        operator.relation: tuple(key for _, key in operator.on)
        for node in nodes
        for operator in _every(node.operator)
        if isinstance(operator, AsOf) and operator.outer
    }


def _every(operator: Operator) -> Iterator[Operator]:
    yield operator
    for input_operator in inputs_of(operator):
        yield from _every(input_operator)


def written(operator: Operator, tables: Mapping[str, tuple[str, ...]], below: Mapping[str, Operator]) -> str:
    """Return the query of an operator.

    Parameters
    ----------
    operator
        A plan.
    tables
        The columns of the tables that it scans.
    below
        The plans of tables of its own view; they replace the tables.

    Examples
    --------
    >>> from warehouse.views.algebra import Filter, Scan
    >>> written(Filter(Scan("v.1"), "`k` > 1"), {"a": ("k",), "v.1": ("k",)}, {"v.1": Scan("a")})
    'SELECT * FROM (SELECT `k` FROM (SELECT `k` FROM `a`)) WHERE `k` > 1'

    """
    if isinstance(operator, Scan):
        source = f"({written(below[operator.table], tables, below)})" if operator.table in below else quoted(operator.table)
        return f"SELECT {_listed(tables[operator.table])} FROM {source}"
    inputs = [f"({written(input_operator, tables, below)})" for input_operator in inputs_of(operator)]
    return _over(operator, inputs, columns_of(operator, tables))


def _over(operator: Operator, inputs: list[str], columns: tuple[str, ...]) -> str:
    """Return the query of an operator over the queries of its inputs."""
    match operator:
        case Filter():
            return f"SELECT * FROM {inputs[0]} WHERE {operator.condition}"
        case Project():
            computed = ", ".join(f"{column.sql} AS {quoted(column.name)}" for column in operator.columns)
            return f"SELECT {computed or '1'} FROM {inputs[0]}"
        case AsOf():
            return _looked_up(operator, inputs[0], columns)
        case UnionAll():
            return " UNION ALL ".join(f"SELECT * FROM {query}" for query in inputs)
        case BagDifference():
            return f"SELECT * FROM {inputs[0]} EXCEPT ALL SELECT * FROM {inputs[1]}"
        case Distinct():
            return f"SELECT DISTINCT * FROM {inputs[0]}"
        case Join():
            return _joined(operator, inputs, columns)
        case AntiJoin():
            on = _all_hold(f"l.{quoted(left)} = r.{quoted(right)}" for left, right in operator.on)
            return f"SELECT * FROM {inputs[0]} AS l LEFT ANTI JOIN {inputs[1]} AS r ON {on}"
        case OuterJoin():
            on = _all_hold([*(f"{quoted(left)} = {quoted(right)}" for left, right in operator.on), *_given(operator.where)])
            return f"SELECT * FROM {inputs[0]} {operator.kind.upper()} JOIN {inputs[1]} ON {on}"
        case Group():
            return _grouped(operator, inputs[0])
        case Top() if operator.order:
            return _first(operator, inputs[0], columns)
        case _:
            return f"SELECT * FROM {inputs[0]}"


def _grouped(group: Group, source: str) -> str:
    calls = [f"{aggregate.sql} AS {quoted(aggregate.name)}" for aggregate in group.aggregates]
    keys = f" GROUP BY {_listed(group.keys)}" if group.keys else ""
    return f"SELECT {', '.join([*map(quoted, group.keys), *calls])} FROM {source}{keys}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names)) or "1"


def _all_hold(conditions: Iterable[str]) -> str:
    return " AND ".join(f"({condition})" for condition in conditions) or "true"


def _given(condition: str | None) -> tuple[str, ...]:
    return () if condition is None else (condition,)


def _looked_up(operator: AsOf, source: str, columns: tuple[str, ...]) -> str:
    keys = [f"{quoted(key)} AS {quoted(_KEY + key)}" for _, key in operator.on]
    added = ", ".join([*keys, *(f"{column.sql} AS {quoted(column.name)}" for column in operator.columns)])
    on = _all_hold(f"{quoted(column)} = {quoted(_KEY + key)}" for column, key in operator.on)
    kind = "LEFT" if operator.outer else "INNER"
    return f"SELECT {_listed(columns)} FROM {source} {kind} JOIN (SELECT {added} FROM {quoted(operator.relation)}) ON {on}"


def _joined(join: Join, inputs: list[str], columns: tuple[str, ...]) -> str:
    if _is_intersection(join):
        return _intersection(join, inputs, columns)
    sign = "<=>" if join.null_safe else "="
    equal = [f"{quoted(equality.left_column)} {sign} {quoted(equality.right_column)}" for equality in join.equal]
    return f"SELECT * FROM {' CROSS JOIN '.join(inputs)} WHERE {_all_hold([*equal, *_given(join.where)])}"


def _intersection(join: Join, inputs: list[str], columns: tuple[str, ...]) -> str:
    """Return an INTERSECT, which has one column for two equal ones; the columns of the join name both."""
    left_of = {equality.right_column: equality.left_column for equality in join.equal}
    intersection = f"SELECT {_listed(left_of.values())} FROM {inputs[0]} INTERSECT SELECT {_listed(left_of)} FROM {inputs[1]}"
    return f"SELECT {', '.join(f'{quoted(left_of.get(name, name))} AS {quoted(name)}' for name in columns)} FROM ({intersection})"


def _is_intersection(join: Join) -> bool:
    return join.null_safe and all(equality.right_column.startswith("#2.") for equality in join.equal)


def _first(top: Top, source: str, columns: tuple[str, ...]) -> str:
    partition = f"PARTITION BY {_listed(top.partition)} " if top.partition else ""
    rank = f"row_number() OVER ({partition}ORDER BY {', '.join(map(_term, top.order))}) AS {quoted(_RANK)}"
    return f"SELECT {_listed(columns)} FROM (SELECT *, {rank} FROM {source}) WHERE {quoted(_RANK)} <= {top.limit}"


def _term(order: Order) -> str:
    nulls = "FIRST" if order.nulls_first else "LAST"
    return f"{quoted(order.column)} {'DESC' if order.descending else 'ASC'} NULLS {nulls}"
