"""The SQL that a user may write: one read-only SELECT over the tables.

DuckDB parses the text (`json_serialize_sql`), and queries are refused by their syntax tree, before anything is bound: a query may
only read known names, and only use table functions that compute from their arguments. The connection that runs the query is
closed off as well (:mod:`warehouse.serving.sandbox`), so each of the two holds alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec

from warehouse.catalog.duck_sql import is_sql_keyword
from warehouse.catalog.spelling import nearest
from warehouse.errors import QueryError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

__all__ = [
    "CATALOG",
    "CATALOG_MACROS",
    "META_TABLES",
    "SYSTEM_SCHEMA",
    "TOO_DEEP",
    "CheckedQuery",
    "checked_query",
    "nodes",
    "query_error",
    "refuse_macro",
    "require_utf8",
    "syntax_tree",
    "without_temporal_functions",
]


META_TABLES = ("_epochs", "_files", "_rejected")
SYSTEM_SCHEMA = "system"
CATALOG = "memory"
"""DuckDB's name of a database in memory; it has a catalog named `system`, so the schema needs this before it."""

_FUNCTIONS = frozenset(
    ("range", "generate_series", "unnest", "repeat", "repeat_row", "json_each", "json_tree", "pg_timezone_names"),
)
CATALOG_MACROS = frozenset(("format_type", "get_block_size", "pg_get_constraintdef", "pg_get_viewdef"))
"""Functions that are macros over the catalog, which DuckDB expands after the text was checked."""

_QUERY_NODES = frozenset(("SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE", "RECURSIVE_CTE_NODE"))
"""The allowed nodes of a query; DuckDB 2.0 also accepts COPY, INSERT, UPDATE and DELETE in a WITH expression."""

_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_INFORMATION = frozenset(("tables", "columns", "schemata"))
_LISTINGS = frozenset(('"tables"', '"databases"', '"schemas"', '"variables"', "__show_tables_expanded"))
_EXPLAIN = re.compile(
    r"(?P<before>(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*)"
    r"(?P<head>EXPLAIN\b(?:\s+ANALYZE\b)?(?:\s*\(\s*(?:ANALYZE|FORMAT)\b[^()]*\))?)(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
TOO_DEEP = "nested too deeply; break it into common table expressions (WITH), or into several queries"
_ALLOWED = "allowed: one SELECT, WITH, VALUES, SHOW TABLES, DESCRIBE, SUMMARIZE or EXPLAIN of these"


@dataclass(frozen=True)
class CheckedQuery:
    """A checked query: its text as it runs, and the tables that it reads.

    It also says whether the query lists tables, and whether it names the schema of tables with system columns.
    """

    sql: str
    tables: frozenset[str]
    meta: frozenset[str]
    lists: bool
    in_system: bool


def checked_query(connection: duckdb.DuckDBPyConnection, text: str, tables: Collection[str]) -> CheckedQuery:
    """Return a query that reads nothing but the warehouse's tables.

    Raises
    ------
    QueryError
        When it is not one read-only statement, or reads something else.
    UnknownNameError
        When it names a table that does not exist.

    """
    require_utf8(text)
    explain = _EXPLAIN.fullmatch(text)
    head, body = (explain["head"] + " ", explain["rest"]) if explain else ("", text)
    body = without_temporal_functions(_single(connection, body))
    tree = syntax_tree(connection, body)
    references = _Found(tables)
    for node, expressions in _scoped(tree):
        references.look(node, expressions)
    if references.before_system:
        body = _with_catalog(connection, tree)
    return CheckedQuery(
        head + body, frozenset(references.tables), frozenset(references.meta), references.lists, references.in_system
    )


def _single(connection: duckdb.DuckDBPyConnection, text: str) -> str:
    """Return the only SELECT of a text, without its end and later text."""
    try:
        statements = connection.extract_statements(text)
    except duckdb.Error as error:
        raise query_error(error) from error
    if len(statements) != 1:
        raise QueryError(f"{len(statements)} statements; {_ALLOWED}")
    statement = statements[0]
    if statement.type != duckdb.StatementType.SELECT:
        raise QueryError(f"{statement.type.name} is not a query; {_ALLOWED}")
    return str(statement.query).strip().rstrip(";")


def syntax_tree(connection: duckdb.DuckDBPyConnection, text: str) -> Any:  # noqa: ANN401 - JSON
    """Return the syntax tree of one SELECT, as DuckDB parses it."""
    try:
        row = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [text]).fetchone()
        tree: Any = msgspec.json.decode(row[0]) if row else {"error": True}
    except duckdb.Error as error:
        raise query_error(error) from error
    except RecursionError:
        raise QueryError(TOO_DEEP) from None
    if tree["error"]:
        raise QueryError(f"cannot be parsed: {tree.get('error_message', 'no statement')}; {_ALLOWED}")
    if len(tree["statements"]) != 1:
        raise QueryError(f"{len(tree['statements'])} statements; {_ALLOWED}")
    return tree


def refuse_macro(node: dict[str, Any]) -> None:
    """Refuse functions of DuckDB's that are queries of its catalog.

    Raises
    ------
    QueryError
        When an object of a syntax tree calls such a function.

    """
    if node.get("class") == "FUNCTION" and _folded(node["function_name"]) in CATALOG_MACROS:
        raise QueryError(f"the function {node['function_name']} is not allowed: it returns facts about the database, not rows")


def require_utf8(text: str) -> None:
    """Refuse text that a shell made from bytes that are not UTF-8.

    Raises
    ------
    QueryError
        When the text has characters that UTF-8 does not.

    """
    if not text.isascii() and any("\ud800" <= sign <= "\udfff" for sign in text):
        raise QueryError("bytes that are not UTF-8 text; convert the query")


def nodes(tree: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - JSON
    """Yield every object of a syntax tree."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            yield node
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)


def _scoped(tree: Any) -> Iterator[tuple[dict[str, Any], frozenset[str]]]:  # noqa: ANN401 - JSON
    """Yield every object of a syntax tree with the names of the visible common table expressions.

    A common table expression is visible in the whole query, in its sub-queries and in later common table expressions; a
    recursive expression is also visible in its own second part.
    """
    pending: list[tuple[Any, frozenset[str]]] = [(tree, frozenset())]
    while pending:
        node, seen = pending.pop()
        if isinstance(node, list):
            pending.extend((child, seen) for child in node)
        if not isinstance(node, dict):
            continue
        children = dict(node)
        for entry in children.pop("cte_map", {"map": ()})["map"]:
            pending.append((entry["value"], seen))
            seen |= {_folded(entry["key"])}
        if node.get("type") in ("RECURSIVE_CTE_NODE", "CTE_NODE") and "cte_name" in node:  # the type of a constant is an object
            pending.append((children.pop("query" if node["type"] == "CTE_NODE" else "left"), seen))
            seen |= {_folded(node["cte_name"])}
        yield node, seen
        pending.extend((child, seen) for child in children.values())


def _folded(name: str) -> str:
    """Return a name as DuckDB compares it: only ASCII letters have two cases."""
    return name.translate(_LOWER)


class _Found:
    """The names that a syntax tree reads."""

    def __init__(self, tables: Collection[str]) -> None:
        self._known = frozenset(tables)
        self.tables: set[str] = set()
        self.meta: set[str] = set()
        self.in_system = False
        self.before_system = False
        """Whether `system` stands somewhere without the catalog before it."""
        self.lists = False

    def look(self, node: dict[str, Any], expressions: Collection[str]) -> None:
        """Record the tables and functions of an object, to which these common table expressions are visible."""
        refuse_macro(node)
        kind = node.get("type")
        if isinstance(kind, str) and kind.endswith("_NODE") and kind not in _QUERY_NODES:
            raise QueryError(f"{kind.split('_')[0]} inside a query; {_ALLOWED}")
        match kind:
            case "BASE_TABLE":
                self._name(node["qualified_name"]["path"], expressions)
            case "SHOW_REF":
                self._listing(node)
            case "TABLE_FUNCTION":
                name = node["function"]["function_name"]
                if name.lower() not in _FUNCTIONS:
                    raise QueryError(f'the table function "{name}" is not allowed; allowed: {", ".join(sorted(_FUNCTIONS))}')
            case _:
                pass

    def _listing(self, node: dict[str, Any]) -> None:
        if node.get("query"):
            return  # DESCRIBE and SUMMARIZE of a table: its name stands in the query
        path = node["qualified_name"]["path"]
        if node["show_type"] == "SHOW":
            self._name(path, frozenset())  # DuckDB resolves no common table expression here
            return
        if node["show_type"] == "SHOW_FROM":
            path = [part for part in path if part]
            if [part.lower() for part in path] not in ([SYSTEM_SCHEMA], ["main"], [CATALOG]):
                raise QueryError(f'no schema "{".".join(path)}"; allowed: main, {SYSTEM_SCHEMA}')
            self.before_system |= path[0].lower() == SYSTEM_SCHEMA
        elif (node["table_name"] or "__show_tables_expanded") not in _LISTINGS:
            raise QueryError(f"cannot show {node['table_name']}; allowed: SHOW TABLES, SHOW ALL TABLES")
        self.lists = True

    def _name(self, path: list[str], expressions: Collection[str]) -> None:
        lower = [_folded(part) for part in path]
        if lower[0] == CATALOG and len(lower) > 1:
            lower = lower[1:]
        match lower:
            case [name]:
                # an expression may have the name of a table: then either may be meant, and the table is made available
                if name not in expressions or name in self._known or name in META_TABLES:
                    self._refer(name)
            case ["main", name]:
                self._refer(name)
            case ["system", name] if name not in META_TABLES:
                self.in_system = True
                self.before_system |= path[0].lower() == SYSTEM_SCHEMA
                self._refer(name)
            case ["information_schema", name] if name in _INFORMATION:
                self.lists = True
            case _:
                raise self._unknown(".".join(path))

    def _refer(self, name: str) -> None:
        if name in META_TABLES:
            self.meta.add(name)
        elif name in self._known:
            self.tables.add(name)
        else:
            raise self._unknown(name)

    def _unknown(self, name: str) -> UnknownNameError:
        tables = sorted(self._known)
        return UnknownNameError("table", name, tables, nearest(name, [*tables, *META_TABLES]))


def _with_catalog(connection: duckdb.DuckDBPyConnection, tree: Any) -> str:  # noqa: ANN401 - JSON
    """Return the text of a query with the catalog before each `system.`, which DuckDB would take for a catalog."""
    for node in nodes(tree):
        if node.get("type") == "SHOW_REF" and node.get("show_type") == "SHOW_FROM":
            return f"SHOW TABLES FROM {CATALOG}.{SYSTEM_SCHEMA}"
        path = node["qualified_name"]["path"] if node.get("type") in ("BASE_TABLE", "SHOW_REF") else []
        if path and path[0].lower() == SYSTEM_SCHEMA:
            path.insert(0, CATALOG)
            node["catalog_name"] = CATALOG
    row = connection.execute("SELECT json_deserialize_sql(?::JSON)", [msgspec.json.encode(tree).decode()]).fetchone()
    return str(row[0]) if row else ""


_NO_BOUND = re.compile(r'"([^"]+)" does not have a column named "(valid_from|valid_to)"')


_NEAR = re.compile(r'syntax error at or near "([^"]+)"')
_BEFORE = re.compile(r"(?:^|[\s,.(])(\w+)[\s,)]*$")
_OPENS = frozenset(
    {"select", "from", "where", "on", "and", "or", "not", "having", "distinct", "all", "using", "when", "then", "else"}
)
"""Words of SQL that stand before a name: they are hardly names themselves."""


def query_error(error: duckdb.Error) -> QueryError:
    """Return DuckDB's error about a query, on one line, as an error of the warehouse."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip() and set(line.strip()) != {"^"}]
    if bound := _NO_BOUND.search(str(error)):
        name = bound[1]
        return QueryError(
            f'"{name}" has no column {bound[2]}, so its rows are no intervals; say between which columns they last, such as '
            f"duration(valid(departed_at, landed_at)) instead of duration({name}); `stream-wh describe {name}` lists its columns"
        )
    near = _NEAR.search(str(error))
    word = None if near is None else _word_before(str(error)) or near[1]
    if word is not None and _may_be_a_name(word):
        lines.append(f'"{word}" is a word of SQL: as the name of a table or column it needs quotes')
    return QueryError("; ".join(lines) + "; correct the query")


def _word_before(error: str) -> str | None:
    """Return the word of SQL before a syntax error.

    DuckDB reads ``full FROM`` as a join and names only ``FROM``; for ``min(at)`` it names only the parenthesis.
    """
    line, _, lines = error.partition("LINE ")[2].partition("\n")
    column = lines.partition("\n")[0].find("^") - len("LINE ")
    word = _BEFORE.search(line[:column]) if column > 0 else None
    return word[1] if word and _may_be_a_name(word[1]) else None


def _may_be_a_name(word: str) -> bool:
    return is_sql_keyword(word) and word.lower() not in _OPENS


# --- temporal functions at prompts: a query or condition of the user's with plain SQL in place of their calls ---

_PERHAPS = re.compile(r"(?:valid|duration|interval_\w+)\s*\(", re.IGNORECASE)


def without_temporal_functions(text: str) -> str:
    """Return a query, or a condition, that DuckDB understands; text without such calls is returned unchanged.

    Raises
    ------
    QueryError
        For wrong arguments.

    """
    if not _PERHAPS.search(text):
        return text
    from warehouse.views.language.faults import RefusedError  # noqa: PLC0415 - the views' language is slow to import
    from warehouse.views.language.temporal_text import for_duckdb  # noqa: PLC0415 - same

    try:
        return for_duckdb(text)
    except RefusedError as error:
        raise QueryError(str(error)) from None
