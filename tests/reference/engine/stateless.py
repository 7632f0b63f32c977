"""The operators that keep nothing: selection, projection, merge union; a row keeps its ``ts`` and ``exp``.

Weakest operators: the output pattern is that of the input; update-patterns sheet, 2.2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.reference.engine.changes import Change
    from tests.reference.engine.tuples import Value

__all__ = ["projection", "selection", "union"]


def selection(changes: Sequence[Change], condition: Callable[[Value], bool]) -> list[Change]:
    """Keep the rows whose value fulfils a condition, and their negative tuples."""
    return [change for change in changes if condition(change.row.value)]


def projection(changes: Sequence[Change], columns: Callable[[Value], Value]) -> list[Change]:
    """Replace each value by another; duplicates stay."""
    return [replace(change, row=replace(change.row, value=columns(change.row.value))) for change in changes]


def union(*inputs: Sequence[Change]) -> list[Change]:
    """Merge the inputs by time (``UNION ALL``); at one instant the earlier input comes first."""
    return sorted((change for changes in inputs for change in changes), key=lambda change: change.at)
