"""The snippet with which another tool reads a table's live rows: complete, and of the newest epoch each time it runs.

All but one attach ``warehouse.duckdb`` to a connection in memory: a process that connects to the file twice by the same path
gets one and the same database, of the epoch that was newest the first time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, assert_never, get_args

from warehouse.errors import MissingPartError, UsageError
from warehouse.publishing.database import DATABASE
from warehouse.publishing.live.log import live_place
from warehouse.publishing.live_connect import LIVE_TOOLS, live_snippet
from warehouse.publishing.store_connect import store_snippet
from warehouse.storage.duckdb_sql import literal, quoted
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.epochs.records import Epoch, TableState

__all__ = ["TOOLS", "Tool", "snippet", "tool_of", "written_snippet"]

Tool = Literal["duckdb", "dbt", "spark", "pandas", "polars", "metabase"]
TOOLS: tuple[Tool, ...] = get_args(Tool)


def tool_of(name: str) -> Tool:
    """Return the tool of that name.

    Raises
    ------
    UsageError
        When there is none.

    """
    for tool in TOOLS:
        if tool == name:
            return tool
    raise UsageError(f'no snippet for "{name}"; allowed: {", ".join(TOOLS)}')


def written_snippet(tool: Tool, root: Path, state: TableState, epoch: Epoch) -> str:
    """Return the snippet for a table of a warehouse that has the file, or is in an object store.

    Tools that read Delta read the live table, where the table has one that is of the newest epoch.

    Raises
    ------
    MissingPartError
        When it has not.
    UsageError
        When the tool cannot read from a store.

    """
    live = live_place(root.resolve(), state.name, epoch) if tool in LIVE_TOOLS else None
    if live is not None:
        return live_snippet(tool, live)
    if not store_of(root).local_paths:
        return store_snippet(tool, root, state.name)
    place = root.resolve()
    if not (place / DATABASE).exists():
        raise MissingPartError(f"{place / DATABASE} is not there; run `stream-wh update`, or `stream-wh check --repair`")
    return snippet(tool, place, state.name)


def snippet(tool: Tool, root: Path, table: str) -> str:
    """Return what to type, or to put into files, so that a tool reads a table.

    Parameters
    ----------
    tool
        Which one.
    root
        The warehouse's directory, absolute.
    table
        The table's name, which is a plain identifier.

    """
    file = str(root / DATABASE)
    attach = f"ATTACH {literal(file)} AS warehouse (READ_ONLY)"
    query = f"SELECT * FROM warehouse.main.{quoted(table)}"
    match tool:
        case "duckdb":
            return f"{attach};\n{query};\n"
        case "pandas":
            return _python(attach, f"connection.sql({query!r}).df()", "import duckdb  # pip install duckdb pandas")
        case "polars":
            imports = "import duckdb  # pip install duckdb polars\nimport polars"
            return _python(attach, f"polars.DataFrame(connection.sql({query!r}))", imports)
        case "spark":
            return _spark(attach, table)
        case "dbt":
            return _dbt(file, table)
        case "metabase":
            return _metabase(file, table)
        case _:
            assert_never(tool)


def _python(attach: str, rows: str, imports: str) -> str:
    return f"""\
{imports}

with duckdb.connect() as connection:
    connection.execute({attach!r})
    rows = {rows}
print(rows)
"""


def _spark(attach: str, table: str) -> str:
    where = f"SELECT warehouse.main._root() || '/' || path, version, filter FROM warehouse._tables WHERE name = {literal(table)}"
    return f"""\
import duckdb  # pip install duckdb; the session needs Delta Lake
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
with duckdb.connect() as connection:
    connection.execute({attach!r})
    path, version, live = connection.execute({where + " AND failed IS NULL"!r}).fetchone()
rows = spark.read.format("delta").option("versionAsOf", version).load(path).where(live)
rows.show()
"""


def _dbt(file: str, table: str) -> str:
    return f"""\
# pip install dbt-duckdb
# file: profiles.yml
warehouse:
  target: dev
  outputs:
    dev:
      type: duckdb
      path: models.duckdb  # yours: what dbt builds
      attach:
        - path: {_yaml(file)}
          alias: warehouse
          read_only: true
# file: dbt_project.yml
name: reading_the_warehouse
version: "1.0"
profile: warehouse
# file: models/sources.yml
sources:
  - name: warehouse
    database: warehouse
    schema: main
    tables:
      - name: {table}
# file: models/live_{table}.sql
{{{{ config(materialized='table') }}}}
SELECT * FROM {{{{ source('warehouse', '{table}') }}}}
"""


def _yaml(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _metabase(file: str, table: str) -> str:
    return f"""\
Metabase needs the community driver for DuckDB in its plugins directory, and the warehouse on its own disk.
Admin settings > Databases > Add a database:
  Database type                      DuckDB
  Database file                      {file}
  Establish a read-only connection   on
A question in SQL:
  SELECT * FROM main.{quoted(table)}
Metabase keeps connections open, and so their epoch: restart it, or let them time out, to see a newer one.
"""
