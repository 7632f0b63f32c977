"""Finds the files that can have the rows of a read: a pure function of a snapshot's statistics.

A file with a matching row is never pruned. Bounds are not values (DESIGN 4): timestamps were cut to milliseconds (the snapshot
reader has widened them), string bounds are prefixes, so both ends are compared as prefixes, and a null or missing bound prunes
nothing. For expiry only the largest ``_exp_slot`` counts: exact integers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from warehouse.storage.snapshot import BOUND_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.storage.snapshot import Bounds, DataFile, Snapshot

__all__ = ["All", "KeyRange", "Keys", "NullKey", "Pruned", "Selection", "all_live", "any_live", "may_hold", "prune"]

Key: TypeAlias = "tuple[Any, ...]"

_FEW = 4


@dataclass(frozen=True)
class All:
    """Every row."""


@dataclass(frozen=True)
class Keys:
    """Rows whose search key begins with one of these: tuples of values, ascending, distinct, nulls first.

    A part of ``None`` is a null.
    """

    keys: tuple[Key, ...]


@dataclass(frozen=True)
class KeyRange:
    """Rows whose search key is in ``[low, high)``, compared part by part; an end may be a prefix or open."""

    low: Key | None
    high: Key | None


@dataclass(frozen=True)
class NullKey:
    """Rows of which a part of the search key is null."""


Selection: TypeAlias = "All | Keys | KeyRange | NullKey"


@dataclass(frozen=True)
class Pruned:
    """The remaining files of a snapshot, and the number of files that each rule pruned."""

    files: tuple[DataFile, ...]
    considered: int
    expired: int
    out_of_bounds: int


def prune(snapshot: Snapshot, search_key: Sequence[str], selection: Selection, slot: int) -> Pruned:
    """Return the files that can hold live rows of a selection.

    Parameters
    ----------
    snapshot
        The table's files, with bounds of the key columns and of ``_exp_slot``.
    search_key
        The key columns.
    selection
        The requested rows; timestamps as microseconds.
    slot
        The last slot at or before the reading time: a row with ``_exp_slot`` at or before it is dead.

    """
    live = [file for file in snapshot.files if any_live(file, slot)]
    candidates = tuple(file for file in live if may_hold(file, search_key, selection))
    return Pruned(candidates, len(snapshot.files), len(snapshot.files) - len(live), len(live) - len(candidates))


def any_live(file: DataFile, slot: int) -> bool:
    """Whether a file can hold a row that is live after a slot."""
    last = file.max_exp_slot
    return last is None or last > slot


def all_live(file: DataFile, slot: int) -> bool:
    """Whether all rows of a file are surely live: each expires in a later slot than the reading time's.

    ``slot`` is the slot of the reading time itself, rounded up.
    """
    first = file.min_exp_slot
    return first is not None and first > slot


def may_hold(file: DataFile, search_key: Sequence[str], selection: Selection) -> bool:
    """Whether a file can hold a row of a selection, dead or alive."""
    match selection:
        case All():
            return True
        case NullKey():
            return any(file.of(column).nulls != 0 for column in search_key)
        case KeyRange(low, high):
            return _range_may_hold(file, search_key[0], low, high)
        case Keys(keys):
            return _keys_may_hold(file, search_key, keys)
        case _:
            assert_never(selection)


def _range_may_hold(file: DataFile, column: str, low: Key | None, high: Key | None) -> bool:
    bounds = file.of(column)
    if _only_nulls(file, bounds):
        return False  # no range begins with a null
    if low is not None and _above(low[0], bounds):
        return False
    if high is None or bounds.low is None:
        return True
    return bool(bounds.low < high[0] if len(high) == 1 else bounds.low <= high[0])


def _keys_may_hold(file: DataFile, search_key: Sequence[str], keys: tuple[Key, ...]) -> bool:
    """Whether a file may have one of many keys; only keys whose first part is within the file's bounds are checked.

    Nulls come first.
    """
    if len(keys) <= _FEW:
        return any(_key_may_be_in(file, search_key, key) for key in keys)
    first = file.of(search_key[0])
    nulls = bisect_left(keys, 1, key=_is_value)
    start, end = nulls, len(keys)
    if first.low is not None:
        start = bisect_left(keys, first.low, lo=nulls, key=_first_part)
    if first.high is not None:
        high = _certain_prefix(first.high)
        cut = len(high) if isinstance(high, str) else None
        end = bisect_right(keys, high, lo=nulls, key=lambda key: key[0] if cut is None else key[0][:cut])
    candidates = (*keys[:nulls], *keys[start:end])
    return any(_key_may_be_in(file, search_key, key) for key in candidates)


def _is_value(key: Key) -> int:
    return int(key[0] is not None)


def _first_part(key: Key) -> Any:  # noqa: ANN401 - any comparable value
    return key[0]


def _key_may_be_in(file: DataFile, search_key: Sequence[str], key: Key) -> bool:
    for column, part in zip(search_key, key, strict=False):
        bounds = file.of(column)
        if part is None:
            if bounds.nulls == 0:
                return False
        elif _only_nulls(file, bounds) or _above(part, bounds) or (bounds.low is not None and part < bounds.low):
            return False
    return True


def _above(value: Any, bounds: Bounds) -> bool:  # noqa: ANN401 - any comparable value
    """Whether a value is above every value of a file: for strings, above all that begin with the bound."""
    if bounds.high is None:
        return False
    high = _certain_prefix(bounds.high)
    return bool((value[: len(high)] if isinstance(value, str) else value) > high)


def _certain_prefix(high: Any) -> Any:  # noqa: ANN401 - any comparable value
    """Return the part of an upper bound that surely comes from a value.

    A writer ends a cut string with a character of its choice, such as U+007F, which sorts below most letters of the world.
    """
    return high[:BOUND_LENGTH] if isinstance(high, str) else high


def _only_nulls(file: DataFile, bounds: Bounds) -> bool:
    return file.rows is not None and bounds.nulls == file.rows
