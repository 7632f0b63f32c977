"""Finds the columns that decide which rows of a keyed node can change: rows with the same values as a changed input row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.views.algebra import AntiJoin, BagDifference, Join, OuterJoin, Top
from warehouse.views.language.chains import name_above

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warehouse.views.algebra import Filter, Operator, Project

__all__ = ["ChangedKey", "changed_key"]


@dataclass(frozen=True)
class ChangedKey:
    """Columns of an operator's rows, each with the columns that equal it, and the columns of each input that equal them."""

    columns: tuple[tuple[str, ...], ...]
    by: tuple[tuple[str, ...], ...]

    def stored(self, chain: Sequence[Filter | Project]) -> tuple[str, ...] | None:
        """Return the columns' names above filters and projections, outermost first; None if one is lost."""
        found = []
        for equals in self.columns:
            names = [name for each in equals if (name := name_above(chain, each)) is not None]
            if not names:
                return None
            found.append(names[0])
        return tuple(found)


def changed_key(operator: Operator, columns_of: Callable[[Operator], tuple[str, ...]]) -> ChangedKey | None:
    """Return the key of an operator whose rows leave early; None if the whole answer must be recomputed."""
    match operator:
        case BagDifference(left=left):
            columns = columns_of(left)
            return ChangedKey(tuple((column,) for column in columns), (columns, columns))
        case AntiJoin(on=on):
            return _paired(on, 0)
        case OuterJoin(kind="left", on=on):
            return _paired(on, 0)
        case OuterJoin(kind="right", on=on):
            return _paired(on, 1)
        case Top(partition=partition) if partition:
            return ChangedKey(tuple((column,) for column in partition), (partition,))
        case Join():
            return _common(operator)
        case _:
            return None


def _paired(on: Sequence[tuple[str, str]], kept: int) -> ChangedKey:
    """Return the key of the kept columns; for a column that equals several columns, the first pair is enough."""
    pairs = {pair[kept]: pair for pair in reversed(on)}
    chosen = [pair for pair in on if pairs[pair[kept]] == pair]
    by = (tuple(left for left, _ in chosen), tuple(right for _, right in chosen))
    return ChangedKey(tuple((pair[kept],) for pair in chosen), by)


def _common(join: Join) -> ChangedKey | None:
    """Return the columns on which all inputs of a join agree."""
    classes: list[set[tuple[int, str]]] = []
    for each in join.equal:
        pair = {(each.left, each.left_column), (each.right, each.right_column)}
        touched = [one for one in classes if one & pair]
        classes = [one for one in classes if not one & pair] + [pair.union(*touched)]
    whole = [one for one in classes if {number for number, _ in one} == set(range(len(join.inputs)))]
    if not whole:
        return None
    ordered = [sorted(one) for one in whole]
    by = tuple(
        tuple(next(name for owner, name in one if owner == number) for one in ordered) for number in range(len(join.inputs))
    )
    return ChangedKey(tuple(tuple(name for _, name in one) for one in ordered), by)
