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
        names_above = []
        for equals in self.columns:
            names = [name for column in equals if (name := name_above(chain, column)) is not None]
            if not names:
                return None
            names_above.append(names[0])
        return tuple(names_above)


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


def _paired(on: Sequence[tuple[str, str]], side: int) -> ChangedKey:
    """Return the key of the columns of one side; for a column that equals several columns, the first pair is enough."""
    pairs = {pair[side]: pair for pair in reversed(on)}
    first_pairs = [pair for pair in on if pairs[pair[side]] == pair]
    by = (tuple(left for left, _ in first_pairs), tuple(right for _, right in first_pairs))
    return ChangedKey(tuple((pair[side],) for pair in first_pairs), by)


def _common(join: Join) -> ChangedKey | None:
    """Return the columns on which all inputs of a join agree."""
    classes: list[set[tuple[int, str]]] = []
    for equality in join.equal:
        pair = {(equality.left, equality.left_column), (equality.right, equality.right_column)}
        joined_classes = [equals for equals in classes if equals & pair]
        classes = [equals for equals in classes if not equals & pair] + [pair.union(*joined_classes)]
    in_all_inputs = [equals for equals in classes if {number for number, _ in equals} == set(range(len(join.inputs)))]
    if not in_all_inputs:
        return None
    ordered = [sorted(equals) for equals in in_all_inputs]
    by = tuple(
        tuple(next(name for owner, name in equals if owner == number) for equals in ordered) for number in range(len(join.inputs))
    )
    return ChangedKey(tuple(tuple(name for _, name in equals) for equals in ordered), by)
