"""The parts of a query with a time limit: counts, sums, averages and medians by group over one table.

Its text is parsed into DuckDB's own syntax tree, as for partial results (:mod:`warehouse.serving.aggregation`), so that every
expression has the same meaning as in any other query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from warehouse.errors import QueryError
from warehouse.serving.aggregation import NeedsRowsError, QuerySplitter
from warehouse.serving.guard import syntax_tree

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import duckdb

__all__ = ["QueryColumn", "QueryParts", "parts_of_query"]

Node = dict[str, Any]
_ALLOWED = (
    "a query within a time has count, sum, avg or median of one table's rows, WHERE and GROUP BY, and nothing else; leave "
    "the time out, or out of the query what is more"
)
_KINDS: Mapping[str, Literal["count", "sum", "avg", "median"]] = {
    "count_star": "count", "count": "count", "sum": "sum", "avg": "avg", "median": "median",
}  # fmt: skip


@dataclass(frozen=True)
class QueryColumn:
    """A column of the answer: a group, by its number, or an aggregate of an argument; ``column`` if the argument is a column."""

    kind: Literal["group", "count", "sum", "avg", "median"]
    group: int = -1
    argument: str | None = None
    column: str | None = None


@dataclass(frozen=True)
class QueryParts:
    """The parts of a query.

    Attributes
    ----------
    table, alias
        The table, and its name in the query.
    groups
        The expressions of its groups.
    group_columns
        The column of each group; None: the group is another expression.
    items
        The columns of its answer.
    where
        Its condition; None if it has none.
    equal
        Columns that its condition compares with ``=``, each with the constant as SQL.
    nothing_more
        Whether the condition has no other part.

    """

    table: str
    alias: str
    groups: tuple[str, ...]
    group_columns: tuple[str | None, ...]
    items: tuple[QueryColumn, ...]
    where: str | None
    equal: Mapping[str, str]
    nothing_more: bool

    @property
    def arguments(self) -> dict[str, str | None]:
        """The arguments of aggregates, with the columns that they are."""
        return {item.argument: item.column for item in self.items if item.argument is not None}


def parts_of_query(
    connection: duckdb.DuckDBPyConnection, query: str, columns: Collection[str], stable: Collection[str]
) -> QueryParts:
    """Return the parts of a checked query of one table.

    Parameters
    ----------
    connection
        A connection that parses the query.
    query
        One SELECT.
    columns
        The names of the table's columns.
    stable
        The scalar functions that always give the same result for the same arguments.

    Raises
    ------
    QueryError
        When it has other parts.

    """
    try:
        return _PartsOfQuery(connection, syntax_tree(connection, query), frozenset(map(str.lower, columns)), stable).parts()
    except NeedsRowsError:
        raise QueryError(_ALLOWED) from None


@dataclass
class _PartsOfQuery(QuerySplitter):
    def parts(self) -> QueryParts:
        """Return the parts of the query."""
        node = self.tree["statements"][0]["node"]
        table, alias = self._named(node)
        items = node["select_list"]
        if node["modifiers"] or node["having"] is not None:
            raise NeedsRowsError
        groups = [item for item in items if self._folded(item) and not self._is_aggregate(item)]
        self._group(node, items)
        columns: list[str | None] = [None] * len(self.groups)
        for group in groups:
            name = self.groups.get(self._folded(group))
            if name is None:
                raise NeedsRowsError
            columns[int(name[2:])] = self._plain_column(group)
        where = node["where_clause"]
        if where is not None:
            self._plain(where)
        equal, nothing_more = self._equalities(where)
        return QueryParts(
            table,
            alias,
            tuple(self.states[name] for name in self.groups.values()),
            tuple(columns),
            tuple(self._item(item) for item in items),
            None if where is None else self._sql(where),
            equal,
            nothing_more,
        )

    def _check(self, node: Node) -> None:
        if node["class"] != "TYPE":  # of a cast
            super()._check(node)

    @staticmethod
    def _is_aggregate(node: Node) -> bool:
        return node["class"] == "FUNCTION" and node["function_name"] in _KINDS and not node["is_operator"]

    def _aggregates(self, node: Node) -> bool:
        return self._is_aggregate(node) or super()._aggregates(node)

    def _plain_column(self, node: Node) -> str | None:
        """Return the column if an expression is a column; None if its first name may mean the table, or if it is a field."""
        is_column = node["class"] == "COLUMN_REF" and self._column(node) in self.columns
        return self._column(node) if is_column and self._column(node) == node["column_names"][-1].lower() else None

    def _item(self, node: Node) -> QueryColumn:
        if not self._is_aggregate(node):
            return QueryColumn("group", int(self.groups[self._folded(node)][2:]))
        arguments = [child["expression"] for child in node["arguments"]]
        needs_rows = node["distinct"] or node["order_bys"]["orders"] or node["schema"] or node["filter"]
        if needs_rows or len(arguments) != (node["function_name"] != "count_star"):
            raise NeedsRowsError
        kind = _KINDS[node["function_name"]]
        if not arguments:
            return QueryColumn(kind)
        self._plain(arguments[0])
        return QueryColumn(kind, argument=self._sql(arguments[0]), column=self._plain_column(arguments[0]))

    def _equalities(self, where: Node | None) -> tuple[dict[str, str], bool]:
        """Return the columns that a condition demands to be equal to constants, and whether it demands nothing else."""
        if where is None:
            return {}, True
        terms = where["children"] if where.get("type") == "CONJUNCTION_AND" else [where]
        equal: dict[str, str] = {}
        for term in terms:
            sides = (term["left"], term["right"]) if term.get("type") == "COMPARE_EQUAL" else ()
            column = next((name for side in sides if (name := self._plain_column(side))), None)
            constant = next((side for side in sides if side["class"] == "CONSTANT"), None)
            if column is not None and constant is not None and column not in equal:
                equal[column] = self._sql(constant)
        return equal, len(equal) == len(terms)
