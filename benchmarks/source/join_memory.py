"""A window join in a memory that cannot keep everything: which pairs each policy delivers, and which it should.

No warehouse: two drawn streams, a tuple each and time unit, joined within a window by a memory of fewer cells (approximate-joins
sheet, 1.3, 2, 5). PROB, LIFE or RAND decide what to keep, with cells for each stream or, as `V`, for both. The best that any
schedule could do is in :mod:`benchmarks.source.join_optimum`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["VALUES", "Correlation", "Policy", "Run", "archive_metric", "exact", "kept", "play", "predicted", "streams", "weather"]

Policy = Literal["PROB", "LIFE", "RAND"]
Correlation = Literal["uncorrelated", "correlated"]
Streams = tuple["Sequence[int]", "Sequence[int]"]
VALUES = 50
_CELLS_OF_THE_GLOBE = 648
"""Values of the weather reports: fields of ten by ten degrees."""
_PERTURBED = 0.2


@dataclass(frozen=True)
class Run:
    """A policy's run: for each stream, the last time at which each tuple took part in the join; the tuples in memory."""

    last: tuple[tuple[int, ...], tuple[int, ...]]
    memory: tuple[tuple[tuple[int, int], ...], ...]

    def held_of_first(self, since: int) -> float:
        """Return the share of the memory that the first stream has, from a time on."""
        tuples_of_streams = Counter(stream for memory in self.memory[since:] for stream, _ in memory)
        return tuples_of_streams[0] / tuples_of_streams.total()


def play(streams_: Streams, window: int, cells: int, policy: Policy, *, variable: bool = False, seed: int = 0) -> Run:
    """Play two streams through a memory of ``cells`` tuples (section 1.3, fast processor).

    Of tuples with equal priority the later stays, then the tuple of the first stream, as PROB and LIFE order them.
    """
    random = Random(seed)  # noqa: S311 - a benchmark draws its data
    length = len(streams_[0])
    odds = [{value: count / length for value, count in Counter(stream).items()} for stream in streams_]
    last = [list(range(length)), list(range(length))]
    stored: list[tuple[int, int]] = []
    memory = []

    def priority(row: tuple[int, int], now: int) -> tuple[float, int, int]:
        stream, arrived = row
        odd = odds[1 - stream].get(streams_[stream][arrived], 0.0)
        return (odd * (arrived + window - 1 - now) if policy == "LIFE" else odd, arrived, -stream)

    for now in range(length):
        for stream, arrived in stored:
            last[stream][arrived] = now
        candidates = [row for row in (*stored, (0, now), (1, now)) if row[1] > now - window + 1]
        parts = [candidates] if variable else [[row for row in candidates if row[0] == stream] for stream in (0, 1)]
        room = cells if variable else cells // 2
        stored = []
        for part in parts:
            if policy == "RAND":
                stored += part if len(part) <= room else random.sample(part, room)
            else:
                stored += sorted(part, key=lambda row: priority(row, now), reverse=True)[:room]
        memory.append(tuple(sorted(stored)))
    return Run((tuple(last[0]), tuple(last[1])), tuple(memory))


def exact(streams_: Streams, window: int) -> list[tuple[int, int]]:
    """Return all pairs: a position in the first stream, and a position in the second stream."""
    positions: dict[int, list[int]] = defaultdict(list)
    for position, value in enumerate(streams_[1]):
        positions[value].append(position)
    return [
        (first, second)
        for first, value in enumerate(streams_[0])
        for second in positions.get(value, ())
        if abs(first - second) < window
    ]


def kept(pairs: Sequence[tuple[int, int]], run: Run) -> list[tuple[int, int]]:
    """Return the pairs that were joined: the older tuple was in memory when the younger arrived."""
    return [
        (first, second)
        for first, second in pairs
        if first == second or (run.last[0][first] >= second if first < second else run.last[1][second] >= first)
    ]


def archive_metric(
    pairs: Sequence[tuple[int, int]], joined: Sequence[tuple[int, int]], arrived: range | None = None
) -> int:
    """Return how many tuples of both streams, of all times or some, are in a pair that is missing (section 2.1)."""
    missing = set(pairs) - set(joined)
    return sum(len({pair[side] for pair in missing if arrived is None or pair[side] in arrived}) for side in (0, 1))


def predicted(streams_: Streams, window: int, cells: int, policy: Literal["PROB", "RAND"], *, variable: bool = False) -> float:
    """Return the share of the exact pairs that a policy is expected to deliver (section 5.2).

    PROB fills the memory with the values of the best odds, as often as a window has them.

    >>> round(predicted(([1, 2] * 50, [1, 2] * 50), 11, 10, "RAND"), 3)
    0.524
    """
    odds = [{value: count / len(stream) for value, count in Counter(stream).items()} for stream in streams_]
    together = sum(odd * odds[1].get(value, 0.0) for value, odd in odds[0].items())
    if policy == "RAND":
        return min(1.0, (cells + 1) / (2 * window - 1))
    own = [(odds[1 - side].get(value, 0.0), (window - 1) * odd, side) for side in (0, 1) for value, odd in odds[side].items()]
    free_cells = [cells, cells] if variable else [cells // 2, cells // 2]
    earned = together
    for gain, tuples, side in sorted(own, reverse=True):
        added = min(free_cells[side], tuples)
        earned += added * gain
        for memory in (0, 1) if variable else (side,):
            free_cells[memory] -= added
    return earned / ((2 * window - 1) * together)


def streams(
    length: int, kind: Correlation, skew: float, seed: int, values: int = VALUES, second_skew: float | None = None
) -> tuple[list[int], list[int]]:
    """Return two streams of values with Zipf's frequencies; correlated: the same values are frequent in both."""
    random = Random(f"{kind} {skew} {seed}")  # noqa: S311 - a benchmark draws its data
    orders = [random.sample(range(values), values) for _ in range(2)]
    if kind == "correlated":
        orders[1] = orders[0]
    skews = (skew, skew if second_skew is None else second_skew)
    first, second = (
        random.choices(order, [1 / rank**own for rank in range(1, values + 1)], k=length)
        for order, own in zip(orders, skews, strict=True)
    )
    return first, second


def weather(length: int, seed: int) -> tuple[list[int], list[int]]:
    """Return a stand-in for the source's weather reports: two years of fields of the globe, nearly as frequent in both."""
    random = Random(f"weather {seed}")  # noqa: S311 - as above
    skew = random.uniform(0.8, 1.2)
    weights = [1 / rank**skew for rank in range(1, _CELLS_OF_THE_GLOBE + 1)]
    later = [weight * random.lognormvariate(0.0, _PERTURBED) for weight in weights]
    first, second = (random.choices(range(_CELLS_OF_THE_GLOBE), odds, k=length) for odds in (weights, later))
    return first, second
