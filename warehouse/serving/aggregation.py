"""Splits a query of aggregates over one table in two: partial results of each data file, and their combination.

Counts, sums, averages, minima and maxima of a file's rows, by group and expiration slot, never change, since files do not.
:mod:`warehouse.serving.partial_results` answers a query from them if it needs nothing else. Both queries are made from DuckDB's
own syntax tree of the user's query, so that every expression keeps its meaning.

Source: the synopsis of basic intervals (`shared-aggregates`), with data files for intervals; window-concurrency sheet, 8.1.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from warehouse.serving.guard import nodes, syntax_tree
from warehouse.storage.duckdb_sql import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import duckdb

__all__ = ["EXP_SLOT", "FILE", "Aggregation", "NeedsRowsError", "QuerySplitter", "aggregation_of"]

Node = dict[str, Any]

FILE, EXP_SLOT = "_file", "_exp_slot"
"""The columns of partial results that name their file and slot; no column of a user begins with an underscore."""

_AGGREGATES = frozenset(("count_star", "count", "sum", "min", "max", "avg"))
_CLASSES = frozenset(("COLUMN_REF", "CONSTANT", "FUNCTION", "COMPARISON", "CONJUNCTION", "OPERATOR", "CASE", "CAST", "BETWEEN"))
_PLACES = ("query_location", "query_location_length")


class NeedsRowsError(Exception):
    """Partial results are not enough for the query: it must run over the rows."""


@dataclass(frozen=True)
class Aggregation:
    """The two halves of a query.

    Attributes
    ----------
    table
        The table's name.
    alias
        Its name in the query.
    states
        The expressions of a file's partial results, by their columns' names: groups, then states.
    where
        The query's condition; None if it has no condition.
    averaged
        Expressions whose values must have a type for which the combined averages equal DuckDB's exactly.
    combined
        The syntax tree of the query over partial results, whose table is named :attr:`table`.

    """

    table: str
    alias: str
    states: Mapping[str, str]
    where: str | None
    averaged: tuple[str, ...]
    combined: Node

    def partial(self, rows: str) -> str:
        """Return the query of partial results; ``rows`` is a query whose columns include :data:`FILE` and :data:`EXP_SLOT`."""
        states = "".join(f", {text} AS {name}" for name, text in self.states.items())
        where = f" WHERE {self.where}" if self.where else ""
        return f"SELECT {FILE}, {EXP_SLOT}{states} FROM ({rows}) AS {quoted(self.alias)}{where} GROUP BY ALL"

    def whole(self, connection: duckdb.DuckDBPyConnection, relation: str, names: Sequence[str]) -> str:
        """Return the query over a relation of partial results; its columns get these names."""
        tree = copy.deepcopy(self.combined)
        node = tree["statements"][0]["node"]
        for item, name in zip(node["select_list"], names, strict=True):
            item["alias"] = name
        source = node["from_table"]
        source["table_name"], source["alias"] = relation, self.alias
        source["qualified_name"] = {"path": [relation]}
        return _text(connection, tree)


def aggregation_of(
    connection: duckdb.DuckDBPyConnection, query: str, columns: Collection[str], stable: Collection[str]
) -> Aggregation | None:
    """Return the halves of a checked query; None if partial results are not enough for its answer.

    Parameters
    ----------
    connection
        A connection that parses the query.
    query
        One SELECT that reads one table.
    columns
        The names of the table's columns.
    stable
        The scalar functions that always give the same result for the same arguments.

    """
    tree = syntax_tree(connection, query)
    try:
        return QuerySplitter(connection, tree, frozenset(map(str.lower, columns)), stable).aggregation()
    except NeedsRowsError:
        return None


@dataclass
class QuerySplitter:
    """Splits a query into its groups, states and conditions."""

    connection: duckdb.DuckDBPyConnection
    tree: Node
    columns: frozenset[str]
    stable: Collection[str]
    groups: dict[bytes, str] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    averaged: list[str] = field(default_factory=list)
    names: dict[bytes, Node] = field(default_factory=dict)

    def aggregation(self) -> Aggregation:
        """Return the halves."""
        node = self.tree["statements"][0]["node"]
        table, alias = self._named(node)
        items = node["select_list"]
        if any(modifier["type"] == "DISTINCT_MODIFIER" for modifier in node["modifiers"]):
            raise NeedsRowsError
        if any(name.startswith("_") for name in self._aliases):  # as the columns of partial results do
            raise NeedsRowsError
        self._group(node, items)
        where = node["where_clause"]
        if where is not None:
            self._plain(where)
        condition = None if where is None else self._sql(where)
        node["select_list"] = [self._combined(item) for item in items]
        node["having"] = None if node["having"] is None else self._combined(node["having"])
        for modifier in node["modifiers"]:
            for order in modifier.get("orders", ()):
                if order["expression"]["class"] != "STAR" and not self._names_alias(order["expression"]):
                    order["expression"] = self._combined(order["expression"])
        node["where_clause"] = None
        node["group_expressions"] = [self._parsed(name) for name in self.groups.values()]
        node["group_sets"] = [list(range(len(self.groups)))] if self.groups else []
        node["aggregate_handling"] = "STANDARD_HANDLING"
        return Aggregation(table, alias, self.states, condition, tuple(self.averaged), self.tree)

    def _named(self, node: Node) -> tuple[str, str]:
        """Return the table and its alias, and record the aliases of items; an alias that hides another column is refused."""
        table, alias = self._table(node)
        self._qualifier = alias.lower()
        self._aliases = {item["alias"].lower(): item for item in node["select_list"] if item["alias"]}
        if any(name in self.columns and not self._is_column(item, name) for name, item in self._aliases.items()):
            raise NeedsRowsError
        return table, alias

    @staticmethod
    def _table(node: Node) -> tuple[str, str]:
        source = node.get("from_table", {})
        plain = (
            node["type"] == "SELECT_NODE" and source.get("type") == "BASE_TABLE" and len(source["qualified_name"]["path"]) == 1
        )
        needs_rows = plain and (
            node["cte_map"]["map"] or node.get("sample") or node.get("qualify") or source["sample"] or source["at_clause"]
            or source["column_name_alias"]
        )  # fmt: skip
        if not plain or needs_rows:
            raise NeedsRowsError
        return source["table_name"], source["alias"] or source["table_name"]

    def _group(self, node: Node, items: Sequence[Node]) -> None:
        """Name the groups. GROUP BY ALL groups by the items without aggregates; numbers and aliases mean items."""
        if node["aggregate_handling"] == "FORCE_AGGREGATES":
            groups = [item for item in items if not self._aggregates(item)]
        elif len(node["group_sets"]) > 1:
            raise NeedsRowsError
        else:
            groups = [self._resolved(group, items) for group in node["group_expressions"]]
        if not groups and not any(self._aggregates(item) for item in items):
            raise NeedsRowsError  # no query of aggregates
        for group in groups:
            self._plain(group)
            name = self.groups.setdefault(self._folded(group), f"_g{len(self.groups)}")
            self.states[name] = self._sql(group)

    def _resolved(self, group: Node, items: Sequence[Node]) -> Node:
        if group["class"] == "CONSTANT":
            text = group.get("literal", {}).get("text", "") if isinstance(group.get("literal"), dict) else ""
            if not text.isdecimal() or not 1 <= int(text) <= len(items):
                raise NeedsRowsError
            return items[int(text) - 1]
        name = self._single_name(group)
        return self._aliases[name] if name is not None and name not in self.columns and name in self._aliases else group

    def _combined(self, node: Node) -> Node:
        """Return an expression over partial results: groups and aggregates are replaced by their columns."""
        name = self.groups.get(self._folded(node))
        if name is not None:
            return {**self._parsed(name), "alias": node["alias"]}
        if node.get("class") == "FUNCTION" and node["function_name"] in _AGGREGATES and not node["is_operator"]:
            return {**self._parsed(self._aggregate(node)), "alias": node["alias"]}
        self._check(node)
        if node["class"] == "COLUMN_REF" and not self._names_alias(node):
            raise NeedsRowsError
        return {key: self._below(value) for key, value in node.items()}

    def _below(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(value, dict):
            return self._combined(value) if "class" in value else {key: self._below(child) for key, child in value.items()}
        return [self._below(child) for child in value] if isinstance(value, list) else value

    def _aggregate(self, node: Node) -> str:
        """Return the expression that combines an aggregate's partial results."""
        arguments = [child["expression"] for child in node["arguments"]]
        if (
            node["distinct"]
            or node["order_bys"]["orders"]
            or node["schema"]
            or len(arguments) != (node["function_name"] != "count_star")
        ):
            raise NeedsRowsError
        for expression in (*arguments, *([node["filter"]] if node["filter"] else [])):
            self._plain(expression)
        unnamed = {**node, "alias": ""}
        match node["function_name"]:
            case "avg":
                self.averaged.append(self._sql(arguments[0]))
                total, count = self._state({**unnamed, **_named("sum")}), self._state({**unnamed, **_named("count")})
                return f"(CAST(sum({total}) AS DOUBLE) / nullif(sum({count}), 0))"
            case "count" | "count_star":
                return f"CAST(coalesce(sum({self._state(unnamed)}), 0) AS BIGINT)"
            case name:
                return f"{name}({self._state(unnamed)})"

    def _state(self, node: Node) -> str:
        text = self._sql(node)
        for name, state in self.states.items():
            if state == text and name.startswith("_s"):
                return name
        name = f"_s{len(self.states)}"
        self.states[name] = text
        return name

    def _plain(self, node: Node) -> None:
        """Refuse an expression that uses more than the row's own columns, or whose value depends on the time."""
        for part in nodes(node):
            if "class" in part:
                self._check(part)
                if part["class"] == "COLUMN_REF" and self._column(part) not in self.columns:
                    raise NeedsRowsError

    def _check(self, node: Node) -> None:
        if node["class"] not in _CLASSES or (node["class"] == "FUNCTION" and not self._is_stable(node)):
            raise NeedsRowsError

    def _is_stable(self, node: Node) -> bool:
        return node["function_name"] in self.stable and node["function_name"] not in _AGGREGATES and not node["schema"]

    def _aggregates(self, node: Node) -> bool:
        return any(part.get("class") == "FUNCTION" and part["function_name"] in _AGGREGATES for part in nodes(node))

    def _column(self, node: Node) -> str:
        """Return the column that a reference begins with, without the table's name before it."""
        names: list[str] = [name.lower() for name in node["column_names"]]
        return names[1] if len(names) > 1 and names[0] == self._qualifier and names[0] not in self.columns else names[0]

    @staticmethod
    def _single_name(node: Node) -> str | None:
        return node["column_names"][0].lower() if node["class"] == "COLUMN_REF" and len(node["column_names"]) == 1 else None

    def _is_column(self, item: Node, name: str) -> bool:
        return item["class"] == "COLUMN_REF" and self._column(item) == name and len(item["column_names"]) <= 2  # noqa: PLR2004

    def _names_alias(self, node: Node) -> bool:
        name = self._single_name(node)
        return name is not None and name in self._aliases

    def _folded(self, node: Any) -> bytes:  # noqa: ANN401 - JSON
        return msgspec.json.encode(self._bare(node))

    def _bare(self, node: Any) -> Any:  # noqa: ANN401 - JSON
        """Return an expression without its name and its positions in the text, so that equal expressions are recognised."""
        if isinstance(node, list):
            return [self._bare(item) for item in node]
        if not isinstance(node, dict):
            return node
        bare = {key: self._bare(value) for key, value in node.items() if key not in (*_PLACES, "alias")}
        if node.get("class") == "COLUMN_REF":
            names = [name.lower() for name in node["column_names"]]
            bare["column_names"] = names[1:] if len(names) > 1 and self._column(node) == names[1] else names
        return bare

    def _parsed(self, expression: str) -> Node:
        item: Node = syntax_tree(self.connection, f"SELECT {expression}")["statements"][0]["node"]["select_list"][0]
        return item

    def _sql(self, node: Node) -> str:
        tree = syntax_tree(self.connection, "SELECT 1")
        tree["statements"][0]["node"]["select_list"] = [{**node, "alias": ""}]
        return _text(self.connection, tree).removeprefix("SELECT ")


def _named(function: str) -> Node:
    return {"function_name": function, "qualified_name": {"path": [function]}}


def _text(connection: duckdb.DuckDBPyConnection, tree: Node) -> str:
    query = "SELECT json_deserialize_sql(?::JSON)"
    ((text,),) = connection.execute(query, [msgspec.json.encode(tree).decode()]).fetchall()
    return str(text)
