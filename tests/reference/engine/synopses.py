"""Synopses of a stream from which the aggregate of a window is put together: running, interval, basic interval.

Time is cut into periods of equal length s; a probe at the end of a period asks for the last n of them, n <= b (window of
length ``n * s``). What each stores (update-patterns sheet, 1.5, A21):

* running: ``f`` of everything up to each of the last b + 1 period ends; for subtractable aggregates;
* interval: b intervals of one period, b/2 of two, .. one of b: 2b - 1, aligned to multiples of their length; for
  distributive aggregates, or holistic ones with frequency counts (``Counter``) as parts;
* basic interval: the b short intervals only.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BasicIntervalSynopsis", "IntervalSynopsis", "RunningSynopsis"]


class RunningSynopsis:
    """Running totals.

    Parameters
    ----------
    periods
        b, the longest window in periods.

    """

    def __init__(self, periods: int) -> None:
        self._totals: deque[Any] = deque([0] * (periods + 1), maxlen=periods + 1)

    @property
    def stored(self) -> int:
        """How many values are kept: b + 1."""
        return len(self._totals)

    def add(self, part: Any) -> None:  # noqa: ANN401 - any number
        """End a period; ``part`` is the sum or count of its rows."""
        self._totals.append(self._totals[-1] + part)

    def probe(self, n: int) -> Any:  # noqa: ANN401 - any number
        """The aggregate of the last n periods, 0 to b.

        >>> synopsis = RunningSynopsis(4)
        >>> for part in (3, 1, 4, 1, 5):
        ...     synopsis.add(part)
        >>> [synopsis.probe(n) for n in range(5)]
        [0, 5, 6, 10, 11]
        """
        return self._totals[-1] - self._totals[-1 - n]


class IntervalSynopsis:
    """Intervals of 1, 2, 4, .. b periods.

    Parameters
    ----------
    periods
        b, the longest window in periods; a power of 2.
    merge
        The aggregate of two disjoint parts.

    Raises
    ------
    ValueError
        When ``periods`` is not a power of 2.

    """

    def __init__(self, periods: int, merge: Callable[[Any, Any], Any]) -> None:
        if periods < 1 or periods & (periods - 1):
            raise ValueError(f"{periods} is not a power of 2")
        self._periods, self._merge = periods, merge
        self._ended = 0
        self._parts: dict[tuple[int, int], Any] = {}

    @property
    def stored(self) -> int:
        """How many intervals are kept: 2b - 1 once enough periods have ended."""
        return len(self._parts)

    def add(self, part: Any) -> None:  # noqa: ANN401 - any aggregate
        """End a period with the aggregate of its rows; complete the longer intervals that end with it.

        An interval is known by its length and the number of its first period.
        """
        self._parts[1, self._ended] = part
        self._ended += 1
        length = 2
        while length <= self._periods and self._ended % length == 0:
            start, half = self._ended - length, length // 2
            self._parts[length, start] = self._merge(self._parts[half, start], self._parts[half, start + half])
            length *= 2
        for size, start in list(self._parts):
            if start < (self._ended // size) * size - self._periods:
                del self._parts[size, start]

    def cover(self, n: int) -> list[tuple[int, int]]:
        """The disjoint intervals, as (length, first period), that make up the last n periods: the longest that fits first.

        At most about 2 log2(b) of them, since the window need not be aligned.
        """
        start, pieces = max(self._ended - n, 0), []
        while start < self._ended:
            size = max(size for size, first in self._parts if first == start and start + size <= self._ended)
            pieces.append((size, start))
            start += size
        return pieces

    def probe(self, n: int) -> Any:  # noqa: ANN401 - any aggregate
        """The aggregate of the last n periods, 1 to b; ``None`` before the first period has ended.

        >>> synopsis = IntervalSynopsis(4, max)
        >>> for part in (3, 1, 4, 1, 5, 9, 2):
        ...     synopsis.add(part)
        >>> synopsis.stored, synopsis.cover(4), synopsis.probe(4), synopsis.probe(1)
        (7, [(1, 3), (2, 4), (1, 6)], 9, 2)
        """
        result = None
        for number, piece in enumerate(self.cover(n)):
            result = self._merge(result, self._parts[piece]) if number else self._parts[piece]
        return result


class BasicIntervalSynopsis:
    """Intervals of one period.

    Parameters
    ----------
    periods
        b, the longest window in periods.
    merge
        The aggregate of two disjoint parts.

    """

    def __init__(self, periods: int, merge: Callable[[Any, Any], Any]) -> None:
        self._merge = merge
        self._parts: deque[Any] = deque(maxlen=periods)

    @property
    def stored(self) -> int:
        """How many intervals are kept: b once enough periods have ended."""
        return len(self._parts)

    def add(self, part: Any) -> None:  # noqa: ANN401 - any aggregate
        """End a period with the aggregate of its rows."""
        self._parts.append(part)

    def probe(self, n: int) -> Any:  # noqa: ANN401 - any aggregate
        """The aggregate of the last n periods, 1 to b; ``None`` before the first period has ended."""
        result = None
        for number, part in enumerate(list(self._parts)[-n:]):
            result = self._merge(result, part) if number else part
        return result
