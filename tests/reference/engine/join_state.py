"""The window of one join input as a list of rows, or as hash buckets of such lists, and the probing of several in turn.

Every row that a probe looks at is counted: an attribute comparison of the cost model (window-joins sheet, section 8). One
bucket is the nested-loop join.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.reference.engine.tuples import Key, Row, first

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

__all__ = ["JoinState", "complete", "probe_order", "states"]


class JoinState:
    """The stored rows of one input; ``probed`` counts the rows that probes looked at.

    Parameters
    ----------
    key
        The join attribute.
    buckets
        Number of hash buckets, at least 1; a probe looks at all rows of one bucket.

    """

    def __init__(self, key: Key = first, buckets: int = 1) -> None:
        self.key = key
        self.buckets: list[list[Row]] = [[] for _ in range(buckets)]
        self.probed = 0

    def insert(self, row: Row) -> None:
        """Store a row."""
        self._bucket(self.key(row.value)).append(row)

    def remove(self, row: Row) -> None:
        """Remove one row equal to this one.

        Raises
        ------
        ValueError
            When there is none.

        """
        self._bucket(self.key(row.value)).remove(row)

    def drop(self, dead: Callable[[Row], bool]) -> None:
        """Remove every row that is dead."""
        self.buckets = [[row for row in bucket if not dead(row)] for bucket in self.buckets]

    def matching(self, key: Hashable) -> Iterator[Row]:
        """The rows of a key, in the order of insertion; none for a null key."""
        if key is None:
            return
        for row in tuple(self._bucket(key)):
            self.probed += 1
            if self.key(row.value) == key:
                yield row

    def rows(self) -> list[Row]:
        """All stored rows."""
        return [row for bucket in self.buckets for row in bucket]

    def _bucket(self, key: Hashable) -> list[Row]:
        return self.buckets[hash(key) % len(self.buckets)]


def states(inputs: int, keys: Sequence[Key] | None, buckets: int) -> list[JoinState]:
    """One empty state for each input; without ``keys`` the first column is compared."""
    return [JoinState(first if keys is None else keys[i], buckets) for i in range(inputs)]


def probe_order(i: int, order: Sequence[int]) -> tuple[int, ...]:
    """The inputs that a new row of input ``i`` probes: the global order without ``i`` (window-joins sheet, section 3).

    >>> probe_order(1, (0, 1, 2))
    (0, 2)
    """
    return tuple(j for j in order if j != i)


def complete(
    windows: Sequence[JoinState],
    parts: Mapping[int, Row],
    key: Hashable,
    todo: Sequence[int],
    wanted: Callable[[Row], bool],
) -> Iterator[dict[int, Row]]:
    """All ways to add one row of each input in ``todo``, depth first, nothing materialised (3.1).

    Parameters
    ----------
    windows
        The stored rows of each input.
    parts
        The rows chosen so far, by number of input.
    key
        The common join value.
    todo
        The inputs still to probe, in order.
    wanted
        Which of the matching rows go on.

    """
    if not todo:
        yield dict(parts)
        return
    for row in windows[todo[0]].matching(key):
        if wanted(row):
            yield from complete(windows, {**parts, todo[0]: row}, key, todo[1:], wanted)
