"""Snippets with which other tools read a table's live rows: each is complete, and reads the newest epoch whenever it runs.

Most snippets attach ``warehouse.duckdb`` to a connection in memory. If a process connected to the file itself, a second
connection by the same path would get the database of the first one, with its epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, assert_never, get_args

from warehouse.errors import MissingPartError, UsageError
from warehouse.publishing.database import DATABASE
from warehouse.publishing.live.log import live_directory
from warehouse.serving.lazy_rows import lazy_error
from warehouse.storage.duckdb_sql import literal, quoted
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.epochs.records import Epoch, TableState

__all__ = ["LIVE_TOOLS", "TOOLS", "Tool", "database_snippet", "live_snippet", "store_snippet", "table_snippet", "tool_of"]

Tool = Literal["duckdb", "dbt", "spark", "pandas", "polars", "metabase"]
TOOLS: tuple[Tool, ...] = get_args(Tool)


# --- a root in an object store, where there is no ``warehouse.duckdb``: through Delta, at the newest epoch ---
#
# Each reads the newest epoch's record, which names the table's version and the last slot, and then the table, both by the package
# ``deltalake`` with credentials and endpoint from the environment. ``_exp_slot > slot`` is the condition ``_exp > window time``
# in integers, so that statistics prune files exactly (DESIGN 4).

_NEEDS = {
    "pandas": "pip install deltalake pyarrow pandas",
    "polars": "pip install deltalake pyarrow polars",
    "spark": "pip install deltalake pyarrow; the session needs Delta Lake and hadoop-aws",
}


def store_snippet(tool: Tool, root: Path, table: str) -> str:
    """Return the snippet by which a tool reads a table under a root in an object store.

    Parameters
    ----------
    tool
        The tool.
    root
        The root, an address of an object store.
    table
        The table's name.

    Raises
    ------
    UsageError
        For tools that read by DuckDB.

    """
    match tool:
        case "pandas":
            return _program(root, table, tool, "", f"{_READ}.to_pandas()")
        case "polars":
            return _program(root, table, tool, "import polars\n", f"polars.from_arrow({_READ})")
        case "spark":
            return _program(root, table, tool, "from pyspark.sql import SparkSession\n", _SPARK)
        case "duckdb" | "dbt" | "metabase":
            raise UsageError(
                f"{tool} opens files in a store by an extension of DuckDB that it downloads, so there is no snippet for it under "
                f"{root}; `stream-wh connect pandas {table}` prints one by deltalake, whose rows DuckDB in Python takes as "
                f"they are, and `stream-wh files {table}` prints the table's files and the filter that every engine needs"
            )
        case _:
            assert_never(tool)


_READ = 'delta.to_pyarrow_dataset().to_table(columns=columns, filter=pyarrow.dataset.field("_exp_slot") > epoch["slot"])'
_SPARK = """\
SparkSession.builder.getOrCreate().read.format("delta").option("versionAsOf", state["version"]) \\
    .load(f"{root}/{state['path']}").where(f"_exp_slot > {epoch['slot']}").select([f"`{each}`" for each in columns])"""


def _program(root: Path, table: str, tool: str, imports: str, rows: str) -> str:
    reads = "" if tool == "spark" else "delta = DeltaTable(f\"{root}/{state['path']}\", version=state[\"version\"])\n"
    table_class = "" if tool == "spark" else "from deltalake import DeltaTable\n"
    return f"""\
# {_NEEDS[tool]}
import json

import pyarrow.dataset
import pyarrow.fs
{imports}{table_class}from deltalake.fs import DeltaStorageHandler

root = {str(root)!r}
store = pyarrow.fs.PyFileSystem(DeltaStorageHandler(root))
found = [each.path for each in store.get_file_info(pyarrow.fs.FileSelector("epochs")) if each.path.endswith(".epoch.json")]
epoch = json.loads(store.open_input_stream(max(found)).read())["body"]
state = next(each for each in epoch["tables"] if each["name"] == {table!r} and not (each.get("view") or {{}}).get("failed"))
columns = [each["name"] for each in state["declaration"]["columns"]]
{reads}rows = {rows}
{"rows.show()" if tool == "spark" else "print(rows)"}
"""


# --- the snippets that read a live table: a Delta table like any other, whose rows are all live ---
# In an object store credentials and endpoint come from the environment.

LIVE_TOOLS = ("pandas", "polars", "spark")
"""The tools that read Delta by themselves."""

_SNIPPETS = {
    "pandas": """\
from deltalake import DeltaTable  # pip install deltalake pyarrow pandas

rows = DeltaTable({directory!r}).to_pandas()
print(rows)
""",
    "polars": """\
import polars  # pip install polars deltalake

rows = polars.read_delta({directory!r})
print(rows)
""",
    "spark": """\
from pyspark.sql import SparkSession  # the session needs Delta Lake

spark = SparkSession.builder.getOrCreate()
rows = spark.read.format("delta").load({directory!r})
rows.show()
""",
}


def live_snippet(tool: str, directory: Path) -> str:
    """Return the snippet by which a tool reads the live table in a directory; the table has `_ts` and `_exp` too."""
    return _SNIPPETS[tool].format(directory=str(directory))


def tool_of(name: str) -> Tool:
    """Return the tool of that name.

    Raises
    ------
    UsageError
        When there is no such tool.

    """
    for tool in TOOLS:
        if tool == name:
            return tool
    raise UsageError(f'no snippet for "{name}"; allowed: {", ".join(TOOLS)}')


def table_snippet(tool: Tool, root: Path, state: TableState, epoch: Epoch) -> str:
    """Return the snippet for a table: of its live table, of ``warehouse.duckdb``, or of its files in an object store.

    Tools that read Delta get the live table if it is at the newest epoch.

    Raises
    ------
    MissingPartError
        When the warehouse has no ``warehouse.duckdb``.
    UsageError
        When the tool cannot read from an object store.

    """
    if epoch.lazy_table(state.name) is not None and (tool == "spark" or not store_of(root).local_paths):
        raise lazy_error(state.name, f"{tool} reads files; DuckDB under a local root makes the rows")
    live = live_directory(root.resolve(), state.name, epoch) if tool in LIVE_TOOLS else None
    if live is not None:
        return live_snippet(tool, live)
    if not store_of(root).local_paths:
        return store_snippet(tool, root, state.name)
    absolute = root.resolve()
    if not (absolute / DATABASE).exists():
        raise MissingPartError(f"{absolute / DATABASE} is not there; run `stream-wh update`, or `stream-wh check --repair`")
    return database_snippet(tool, absolute, state.name)


def database_snippet(tool: Tool, root: Path, table: str) -> str:
    """Return the snippet, or the content of files, by which a tool reads a table.

    Parameters
    ----------
    tool
        The tool.
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
    query = f"SELECT warehouse.main._root() || '/' || path, version, filter FROM warehouse._tables WHERE name = {literal(table)}"
    return f"""\
import duckdb  # pip install duckdb; the session needs Delta Lake
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
with duckdb.connect() as connection:
    connection.execute({attach!r})
    path, version, live = connection.execute({query + " AND failed IS NULL"!r}).fetchone()
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
