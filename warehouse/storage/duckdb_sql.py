"""DuckDB: a database in memory, names and texts in its SQL.

Settings are global: a cursor does not inherit the settings of its parent's session (*measured*: it takes the machine's time
zone).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from warehouse.catalog.duck_sql import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["in_memory", "listed", "literal", "quoted"]


def in_memory(settings: Iterable[str]) -> duckdb.DuckDBPyConnection:
    """Return a connection to a new database in memory: UTC, rows in any order, no extensions from outside.

    ``settings`` are further settings, each ``name = value``.
    """
    connection = duckdb.connect(
        ":memory:",
        config={
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,  # or a query reads Python variables
        },
    )
    all_settings = ("TimeZone = 'UTC'", "preserve_insertion_order = false", *settings)
    connection.execute("; ".join(f"SET GLOBAL {setting}" for setting in all_settings))
    return connection


def listed(texts: Iterable[str]) -> str:
    """Return a list of string literals."""
    return f"[{', '.join(map(literal, texts))}]"
