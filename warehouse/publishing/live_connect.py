"""The snippets that read a live table: a Delta table like any other, whose rows are all live.

In an object store credentials and endpoint come from the environment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["LIVE_TOOLS", "live_snippet"]

LIVE_TOOLS = ("pandas", "polars", "spark")
"""The tools that read Delta by themselves."""

_SNIPPETS = {
    "pandas": """\
from deltalake import DeltaTable  # pip install deltalake pyarrow pandas

rows = DeltaTable({place!r}).to_pandas()
print(rows)
""",
    "polars": """\
import polars  # pip install polars deltalake

rows = polars.read_delta({place!r})
print(rows)
""",
    "spark": """\
from pyspark.sql import SparkSession  # the session needs Delta Lake

spark = SparkSession.builder.getOrCreate()
rows = spark.read.format("delta").load({place!r})
rows.show()
""",
}


def live_snippet(tool: str, place: Path) -> str:
    """Return what to type so that one of the tools reads the live table in a directory; it has `_ts` and `_exp` too."""
    return _SNIPPETS[tool].format(place=str(place))
