"""The query of short-lived results: rows beside a view that began and ended between two updates.

Invariant: the files hold ``{ r : r in the view's query over time, no window time in [r._ts, r._exp) }`` for the epochs that
were committed while the view was declared with ``short_lived = "report"`` (update-patterns sheet, 4.4: restore semantics), as far
back as ``keep`` says (:mod:`warehouse.planning.keeping`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.layout.columns import TIMES
from warehouse.storage.duckdb_sql import literal, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["RESTORED_COLUMNS", "restored_query"]

RESTORED_COLUMNS = (
    *((name, "TIMESTAMP WITH TIME ZONE") for name in TIMES),
    ("_epoch", "BIGINT"),
)
"""What stands after the view's own columns: the result's life, and the epoch whose update found it."""


def restored_query(
    own: Sequence[tuple[str, str]], files: Sequence[str], limit: int | None
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the query and its columns (name and DuckDB type); without files it has no rows.

    Parameters
    ----------
    own
        The view's columns as they are today. A result of a former declaration shows null for a column that it lacks.
    files
        Absolute paths.
    limit
        At most so many rows, those of the earliest epochs first; None: all, in no order.

    """
    columns = (*own, *RESTORED_COLUMNS)
    typed = ", ".join(f"NULL::{kind} AS {quoted(name)}" for name, kind in columns)
    names = ", ".join(quoted(name) for name, _ in columns)
    parts = [f"SELECT {typed} WHERE false"]
    if files:
        paths = ", ".join(map(literal, files))
        parts.append(f"SELECT * FROM read_parquet([{paths}], union_by_name = true, hive_partitioning = false)")
    end = "" if limit is None else f" ORDER BY _epoch, _ts, _exp LIMIT {int(limit)}"
    return f"SELECT {names} FROM ({' UNION ALL BY NAME '.join(parts)}){end}", columns
