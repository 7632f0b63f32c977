"""A condition of the user's over one table: one boolean expression without sub-queries, checked before it runs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb

from warehouse.catalog.spelling import nearest
from warehouse.errors import QueryError, UnknownNameError
from warehouse.serving.guard import TOO_DEEP, nodes, query_error, refuse_macro, require_utf8, syntax_tree
from warehouse.storage.duckdb_sql import quoted

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["Condition", "check_boolean", "checked_condition"]

_PLACE = "WHERE (\n{}\n)"
"""The place of a condition in a query; a comment at its end does not reach the parenthesis."""


@dataclass(frozen=True)
class Condition:
    """A condition that was checked, and the table whose columns it names."""

    table: str
    text: str

    def over(self, inner: str, projection: str) -> str:
        """Return the query for the rows of an inner query for which the condition holds."""
        return f"SELECT {projection} FROM ({inner}) AS {quoted(self.table)} {_PLACE.format(self.text)}"


def checked_condition(connection: duckdb.DuckDBPyConnection, text: str) -> frozenset[str]:
    """Return the column names, in lower case, that a condition may mean, if it is one expression without sub-queries.

    The rest of the parsed query must be the same as with the condition `true`: so the text cannot close the parentheses around
    it.

    Raises
    ------
    QueryError
        When the text is not such a condition.

    """
    require_utf8(text)
    try:
        return _columns_of(connection, text)
    except RecursionError:
        raise QueryError(TOO_DEEP) from None


def _columns_of(connection: duckdb.DuckDBPyConnection, text: str) -> frozenset[str]:
    if not text.strip():
        raise QueryError("the condition is empty; allowed: one condition over the table's columns")
    tree, expected = (syntax_tree(connection, _wrapped(condition_text)) for condition_text in (text, "true"))
    condition = tree["statements"][0]["node"].pop("where_clause", None)
    expected["statements"][0]["node"].pop("where_clause")
    if condition is None or _shape(tree) != _shape(expected):
        raise QueryError("not one condition; allowed: one condition over the table's columns, without a sub-query")
    columns: set[str] = set()
    for node in nodes(condition):
        refuse_macro(node)
        if node.get("class") == "SUBQUERY" or "from_table" in node:
            raise QueryError("a sub-query in the condition; use `sql` for queries over several tables")
        if node.get("class") == "PARAMETER":
            raise QueryError("a parameter in the condition; write the value itself")
        if node.get("class") == "COLUMN_REF":
            columns.update(name.lower() for name in node["column_names"])
        if node.get("class") == "STAR":
            raise QueryError("a * in the condition; name the columns")
    return frozenset(columns)


def _wrapped(condition: str) -> str:
    return f"SELECT 1 FROM t {_PLACE.format(condition)}"


def _shape(tree: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a syntax tree without the positions of its parts in the text."""
    if isinstance(tree, dict):
        return {name: _shape(part) for name, part in tree.items() if not name.startswith("query_location")}
    return [_shape(part) for part in tree] if isinstance(tree, list) else tree


def check_boolean(
    sandbox: duckdb.DuckDBPyConnection, condition: Condition, empty: str, columns: Collection[str]
) -> None:
    """Bind a condition over a query without rows, as a value and as a condition.

    Raises
    ------
    QueryError
        When it does not bind or is no boolean.
    UnknownNameError
        When it names a column that does not exist.

    """
    cursor = sandbox.cursor()
    try:
        relation = cursor.sql(condition.over(empty, f"(\n{condition.text}\n) AS condition"))
        kind = str(relation.types[0])
    except duckdb.Error as error:
        raise _unknown_column(error, columns) or query_error(error) from error
    finally:
        cursor.close()
    if kind != "BOOLEAN":
        raise QueryError(f"the condition is a value of type {kind}; allowed: a comparison, true for the rows wanted")


_COLUMN_NOT_FOUND = re.compile(r'Referenced column "([^"]+)" (?:was )?not found')


def _unknown_column(error: duckdb.Error, columns: Collection[str]) -> UnknownNameError | None:
    """Return the error that names an unknown column and the nearest one, if DuckDB's error is about a column."""
    match = _COLUMN_NOT_FOUND.search(str(error))
    return UnknownNameError("column", match[1], list(columns), nearest(match[1], columns)) if match else None
