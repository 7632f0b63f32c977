"""Finds rows in memory by the values of some columns and by their times, by Arrow: for few rows faster than a database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = ["EqualRows", "distinct_keys", "equal_rows", "group_numbers", "have_key", "is_exact", "overlapping"]

_AT_ONCE = 1_000_000
"""Pairs that are in memory at once."""


def is_exact(kind: pa.DataType) -> bool:
    """Whether equal values of a type have the same bytes, so that every engine agrees on which are equal."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_signed_integer(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal128(kind)
    )


def have_key(columns: Sequence[pa.ChunkedArray], keys: Sequence[pa.ChunkedArray]) -> pa.Array | pa.ChunkedArray:
    """Return whether each row has the values of one of the keys; nulls equal nulls.

    Parameters
    ----------
    columns, keys
        The columns of the rows and the columns of the keys, in the same order and of the same exact types.

    Examples
    --------
    >>> have_key([pa.chunked_array([["a", None, "b"]])], [pa.chunked_array([["b", None]])]).to_pylist()
    [False, True, True]
    >>> rows = pa.table({"a": ["x", "x", None], "b": [1, 2, 1]})
    >>> have_key(rows.columns, pa.table({"a": ["x", None], "b": [2, 1]}).columns).to_pylist()
    [False, True, True]

    """
    if len(columns) == 1:
        return pc.is_in(columns[0], value_set=keys[0].combine_chunks())
    count = len(columns[0])
    numbers = _numbers_of_both(columns, keys)
    return pa.array(np.isin(numbers[:count], numbers[count:]))


def distinct_keys(columns: Sequence[pa.ChunkedArray], *, nulls: bool) -> pa.Table:
    """Return the distinct rows of some columns, with or without rows that have a null.

    Examples
    --------
    >>> distinct_keys([pa.chunked_array([["a", None, "a"]])], nulls=False).to_pylist()
    [{'key_0': 'a'}]

    """
    names = [f"key_{number}" for number in range(len(columns))]  # a column may be asked for twice
    values = pa.table(dict(zip(names, columns, strict=True))).group_by(names).aggregate([]).select(names)
    return values if nulls else values.drop_null()


def group_numbers(columns: Sequence[pa.ChunkedArray]) -> NDArray[np.int64]:
    """Return a number for each row, the same one for rows with the same values; nulls equal nulls.

    Parameters
    ----------
    columns
        Columns of exact types, at least one.

    Examples
    --------
    >>> group_numbers(pa.table({"a": ["x", "y", "x", None, None], "b": [1, 1, 1, 2, 2]}).columns).tolist()
    [0, 1, 0, 2, 2]

    """
    numbers: Any = None
    for column in columns:
        encoded = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
        own = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        if numbers is None:
            numbers = own
            continue
        # both factors are at most the number of rows, so that the product stays below 2**63
        _, numbers = np.unique(numbers * len(encoded.dictionary) + own, return_inverse=True)
    return np.asarray(numbers, np.int64)


@dataclass(frozen=True)
class EqualRows:
    """Of each row of one table the rows of another with the same values: ``order[first : first + count]``."""

    order: NDArray[np.int64]
    first: NDArray[np.int64]
    count: NDArray[np.int64]

    @property
    def pairs(self) -> int:
        """How many pairs of equal rows there are."""
        return int(self.count.sum())

    def parts(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the row numbers of the pairs in both tables, a bounded number of pairs at a time."""
        ends = np.cumsum(self.count)
        start, done = 0, 0
        while start < len(ends):
            stop = max(start + 1, int(np.searchsorted(ends, done + _AT_ONCE, side="right")))
            count = self.count[start:stop]
            begins = np.cumsum(count) - count
            within = np.arange(int(count.sum())) - np.repeat(begins, count)
            yield np.repeat(np.arange(start, stop), count), self.order[np.repeat(self.first[start:stop], count) + within]
            start, done = stop, int(ends[stop - 1])


def equal_rows(left: Sequence[pa.ChunkedArray], right: Sequence[pa.ChunkedArray], *, nulls: bool) -> EqualRows:
    """Return which rows of two tables have the same values.

    Parameters
    ----------
    left, right
        Columns in the same order and of the same exact types, at least one.
    nulls
        Whether nulls equal nulls.

    Examples
    --------
    >>> equal = equal_rows([pa.chunked_array([["a", None, "b"]])], [pa.chunked_array([["b", "b", None]])], nulls=True)
    >>> equal.pairs, [[rows.tolist() for rows in part] for part in equal.parts()]
    (3, [[[1, 2, 2], [2, 0, 1]]])

    """
    count = len(left[0])
    numbers = _numbers_of_both(left, right)
    right_rows = np.arange(len(numbers) - count)
    if not nulls:
        right_rows = right_rows[_complete(right)]
    order = right_rows[np.argsort(numbers[count:][right_rows], kind="stable")]
    right_numbers = numbers[count:][order]
    first, last = (np.searchsorted(right_numbers, numbers[:count], side=side) for side in ("left", "right"))
    return EqualRows(order, first, last - first)


def overlapping(
    equal: EqualRows, left: Sequence[NDArray[np.int64]], right: Sequence[NDArray[np.int64]], *, most: int
) -> list[NDArray[np.int64]] | None:
    """Return the pairs of equal rows whose lives overlap, with their common life; None if there are more than ``most`` pairs.

    Parameters
    ----------
    equal
        The pairs.
    left, right
        When the rows of each table begin and when they end, then further times at which they leave.
    most
        The most pairs to return.

    Returns
    -------
    list
        The row numbers in the left and in the right table, then the times of each pair: the later begin, and the earlier ends.

    Examples
    --------
    >>> equal = equal_rows([pa.chunked_array([["a", "a"]])], [pa.chunked_array([["a"]])], nulls=False)
    >>> lives = [np.array([0, 5]), np.array([4, 9])], [np.array([3]), np.array([5])]
    >>> [values.tolist() for values in overlapping(equal, *lives, most=9)], overlapping(equal, *lives, most=0)
    ([[0], [0], [3], [4]], None)

    """
    pairs: list[tuple[NDArray[np.int64], ...]] = []
    count = 0
    for left_rows, right_rows in equal.parts():
        begins = np.maximum(left[0][left_rows], right[0][right_rows])
        ends = [
            np.minimum(left_times[left_rows], right_times[right_rows])
            for left_times, right_times in zip(left[1:], right[1:], strict=True)
        ]
        meet = begins < ends[0]
        pairs.append(tuple(values[meet] for values in (left_rows, right_rows, begins, *ends)))
        count += int(meet.sum())
        if count > most:
            return None
    return [np.concatenate(parts) for parts in zip(*pairs, strict=True)] or [np.array([], np.int64)] * (2 + len(left))


def _numbers_of_both(above: Sequence[pa.ChunkedArray], below: Sequence[pa.ChunkedArray]) -> NDArray[np.int64]:
    """The numbers of the rows of a table, then the numbers of the rows of another one."""
    both = (pa.chunked_array([*upper.chunks, *lower.chunks], upper.type) for upper, lower in zip(above, below, strict=True))
    return group_numbers([*both])


def _complete(columns: Sequence[pa.ChunkedArray]) -> NDArray[np.bool_]:
    """Whether each row has no null."""
    return np.asarray(np.logical_and.reduce([column.is_valid().to_numpy() for column in columns]))
