"""Temporal functions at prompts: a query or condition of the user's with plain SQL in place of their calls."""

from __future__ import annotations

import re

from warehouse.errors import QueryError

__all__ = ["without_temporal_functions"]

_PERHAPS = re.compile(r"(?:valid|duration|interval_\w+)\s*\(", re.IGNORECASE)


def without_temporal_functions(text: str) -> str:
    """Return a query, or a condition, that DuckDB understands; one without calls as it is.

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
