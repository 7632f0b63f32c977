"""A stream's declaration for tests that need no project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from warehouse.catalog.model import Column, Stream

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["stream_at"]


def stream_at(
    landing: Path, *, form: Literal["csv", "json"] = "csv", max_record: int = 16_000_000, max_expansion: int = 200
) -> Stream:
    """Return a stream of key, begin and end whose files are in a directory."""
    return Stream(
        name="a",
        landing=landing,
        files="*",
        format=form,
        options=(),
        timezone="UTC",
        columns=(Column("k", "string"), Column("b", "timestamp"), Column("e", "timestamp")),
        search_key=("k",),
        arrival="b",
        expires="e",
        max_lifetime=None,
        over_lifetime="accept",
        max_ahead=None,
        null_expiry="reject",
        unknown_columns="reject",
        landing_settle=0,
        max_record=max_record,
        max_expansion=max_expansion,
    )
