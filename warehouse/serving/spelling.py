"""The nearest valid spelling of a name, looked for only when an error is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["nearest"]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was most likely meant, or nothing."""
    from warehouse.catalog import spelling  # noqa: PLC0415 - difflib is not needed by a read that succeeds

    return spelling.nearest(word, known)
