"""The snippets for a root in an object store, where there is no ``warehouse.duckdb``: through Delta, at the newest epoch.

Each reads the newest epoch's record, which names the table's version and the last slot, and then the table, both by the
package ``deltalake`` with credentials and endpoint from the environment. ``_exp_slot > slot`` is what ``_exp > window time``
is, in integers, so that statistics prune files exactly (DESIGN 4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, assert_never

from warehouse.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["store_snippet"]

_NEEDS = {
    "pandas": "pip install deltalake pyarrow pandas",
    "polars": "pip install deltalake pyarrow polars",
    "spark": "pip install deltalake pyarrow; the session needs Delta Lake and hadoop-aws",
}


def store_snippet(
    tool: Literal["duckdb", "dbt", "spark", "pandas", "polars", "metabase"], root: Path, table: str
) -> str:
    """Return what to type so that a tool reads a table under a root in a store.

    Parameters
    ----------
    tool
        Which one.
    root
        The root.
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
