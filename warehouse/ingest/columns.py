"""Whether a landing file's columns can be matched with the declared ones, by name and ignoring case."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warehouse.catalog.model import Stream

__all__ = ["header_problem"]


def header_problem(stream: Stream, names: tuple[str, ...]) -> tuple[str, str] | None:
    """Return (reason, message) when a file's column names cannot be matched with the declaration, else nothing."""
    lower = [name.lower() for name in names]
    declared = {column.name.lower() for column in stream.columns}
    doubled = sorted({name for name in lower if lower.count(name) > 1})
    if doubled:
        return "header", f"its columns {', '.join(doubled)} occur twice"
    strange = [name for name in names if name.lower() not in declared]
    if strange and stream.unknown_columns == "reject":
        return "unknown_columns", (
            f"it has undeclared columns {', '.join(strange)}; declare them, or set unknown_columns = \"ignore\" or \"add\""
        )
    missing = [name for name in stream.search_key if name.lower() not in lower]
    if missing:
        return "header", f"its header has no {', '.join(missing)}, of the search key"
    return None
