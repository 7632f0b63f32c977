"""Window joins that cannot keep everything, the source's experiments: ``python -m benchmarks.source.join_shedding``.

No warehouse: two drawn streams, a tuple each and time unit, joined within a window by a memory of fewer cells (approximate-joins
sheet, 1.3, 3 to 7). What to keep is decided by PROB, LIFE or RAND, with cells for each stream or, as `V`, for both; beside them
is the best that any schedule could do, by min-cost flow, and the Archive-metric: how many tuples miss a partner.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Literal

import click

from benchmarks.field.page import markdown_table
from benchmarks.machine import machine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Run", "archive_metric", "best", "claims", "exact", "kept", "main", "optimum", "play", "shares", "streams"]

Policy = Literal["PROB", "LIFE", "RAND"]
Correlation = Literal["uncorrelated", "correlated"]
MEMORIES = (0.1, 0.25, 0.5, 1.0, 1.5)
VALUES = 50
_RESULTS = Path(__file__).parents[1] / "results" / "source"
_SHEET: dict[tuple[str, float], tuple[float, ...]] = {
    ("uncorrelated", 0.1): (0.052, 0.275, 0.302, 0.321), ("uncorrelated", 0.25): (0.127, 0.445, 0.488, 0.527),
    ("uncorrelated", 0.5): (0.252, 0.607, 0.661, 0.723), ("uncorrelated", 1.0): (0.505, 0.768, 0.830, 0.902),
    ("uncorrelated", 1.5): (0.750, 0.887, 0.932, 0.987), ("correlated", 0.1): (0.052, 0.140, 0.140, 0.143),
    ("correlated", 0.25): (0.127, 0.335, 0.347, 0.351), ("correlated", 0.5): (0.253, 0.572, 0.650, 0.658),
    ("correlated", 1.0): (0.505, 0.829, 0.895, 0.908), ("correlated", 1.5): (0.749, 0.939, 0.974, 0.986),
}  # fmt: skip
"""The sheet's shares of RAND, LIFE, PROB and OPT (6.3), at a window of 400."""


@dataclass(frozen=True)
class Run:
    """What a policy did: of each stream, the last time at which each tuple took part in the join, and what memory held."""

    last: tuple[tuple[int, ...], tuple[int, ...]]
    memory: tuple[tuple[tuple[int, int], ...], ...]


def play(
    streams_: tuple[Sequence[int], Sequence[int]],
    window: int,
    cells: int,
    policy: Policy,
    *,
    variable: bool = False,
    seed: int = 0,
) -> Run:
    """Play two streams through a memory of so many cells (section 1.3, fast processor).

    Of tuples with equal priority the later one stays, then that of the first stream, as PROB and LIFE order them.
    """
    random = Random(seed)  # noqa: S311 - a benchmark draws its data
    length = len(streams_[0])
    odds = [{value: count / length for value, count in Counter(stream).items()} for stream in streams_]
    last = [list(range(length)), list(range(length))]
    held: list[tuple[int, int]] = []
    memory = []

    def priority(one: tuple[int, int], now: int) -> tuple[float, int, int]:
        stream, arrived = one
        odd = odds[1 - stream].get(streams_[stream][arrived], 0.0)
        return (odd * (arrived + window - 1 - now) if policy == "LIFE" else odd, arrived, -stream)

    for now in range(length):
        for stream, arrived in held:
            last[stream][arrived] = now
        candidates = [one for one in (*held, (0, now), (1, now)) if one[1] > now - window + 1]
        parts = [candidates] if variable else [[one for one in candidates if one[0] == stream] for stream in (0, 1)]
        room = cells if variable else cells // 2
        held = []
        for part in parts:
            if policy == "RAND":
                held += part if len(part) <= room else random.sample(part, room)
            else:
                held += sorted(part, key=lambda one: priority(one, now), reverse=True)[:room]
        memory.append(tuple(sorted(held)))
    return Run((tuple(last[0]), tuple(last[1])), tuple(memory))


def exact(streams_: tuple[Sequence[int], Sequence[int]], window: int) -> list[tuple[int, int]]:
    """Return all pairs (place in the first stream, place in the second one)."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, value in enumerate(streams_[1]):
        places[value].append(place)
    return [
        (one, other) for one, value in enumerate(streams_[0]) for other in places.get(value, ()) if abs(one - other) < window
    ]


def kept(pairs: Sequence[tuple[int, int]], run: Run) -> list[tuple[int, int]]:
    """Return the pairs that were joined: the older tuple was in memory when the younger one came."""
    return [
        (one, other)
        for one, other in pairs
        if one == other or (run.last[0][one] >= other if one < other else run.last[1][other] >= one)
    ]


def archive_metric(pairs: Sequence[tuple[int, int]], joined: Sequence[tuple[int, int]]) -> int:
    """Return how many tuples of both streams are in a pair that is missing (section 2.1)."""
    missing = set(pairs) - set(joined)
    return len({one for one, _ in missing}) + len({other for _, other in missing})


# --- the best ---


def optimum(
    streams_: tuple[Sequence[int], Sequence[int]], window: int, cells: int, *, variable: bool = False, since: int = 0
) -> int:
    """Return the most pairs that any schedule delivers from a time on: a min-cost flow over the small graph of section 4.2.

    A cell goes from time to time, at no cost while what it holds does not matter, or by the partners of one tuple, each a unit of
    profit. The graph's matrix is totally unimodular, so the linear programme's optimum is one of whole cells.
    """
    together = sum(one == other for place, (one, other) in enumerate(zip(*streams_, strict=True)) if place >= since)
    if variable:
        return together + _flow(streams_, window, cells, (0, 1), since)
    room = min(cells // 2, window - 1)
    return together + sum(_flow(streams_, window, room, (stream,), since) for stream in (0, 1))


def _flow(streams_: tuple[Sequence[int], Sequence[int]], window: int, cells: int, of: Sequence[int], since: int) -> int:
    import numpy as np  # noqa: PLC0415 - the extra `bench` has both
    from scipy.optimize import linprog  # noqa: PLC0415 - same
    from scipy.sparse import coo_array  # noqa: PLC0415 - same

    length = len(streams_[0])
    arcs: list[tuple[int, int, int, float]] = [(time, time + 1, cells, 0.0) for time in range(length)]
    nodes = length + 1
    for stream in of:
        places: dict[int, list[int]] = defaultdict(list)
        for place, value in enumerate(streams_[1 - stream]):
            places[value].append(place)
        for arrived, value in enumerate(streams_[stream]):
            before = arrived
            for partner in places.get(value, ()):
                if arrived < partner < arrived + window:
                    arcs += [(before, nodes, 1, -1.0 if partner >= since else 0.0), (nodes, partner, 1, 0.0)]
                    before, nodes = nodes, nodes + 1
    starts, ends, rooms, costs = (np.array(column) for column in zip(*arcs, strict=True))
    places_ = np.arange(len(arcs))
    data = np.concatenate([np.ones(len(arcs)), -np.ones(len(arcs))])
    matrix = coo_array((data, (np.concatenate([starts, ends]), np.concatenate([places_, places_]))), shape=(nodes, len(arcs)))
    supply = np.zeros(nodes)
    supply[0], supply[length] = cells, -cells
    bounds = np.stack([np.zeros(len(arcs)), rooms], axis=1)
    solved = linprog(costs, A_eq=matrix.tocsr(), b_eq=supply, bounds=bounds, method="highs")
    return -round(solved.fun)


def best(components: Sequence[tuple[int, int]], nodes: int) -> tuple[int, tuple[int, ...]]:
    """Return the most results of a static join that keeps so many tuples, and how many of each value (section 3).

    A value's tuples, ``(in one relation, in the other)``, join each with each; kept are as many of one as of the other.

    >>> best([(4, 1), (3, 3), (2, 2)], 10)
    (10, (0, 6, 4))
    """
    table: list[tuple[int, tuple[int, ...]] | None] = [(0, ()), *([None] * nodes)]
    for left, right in components:
        following: list[tuple[int, tuple[int, ...]] | None] = [None] * (nodes + 1)
        for before, held in enumerate(table):
            for taken in range(min(left + right, nodes - before) + 1) if held is not None else ():
                few = min(left, right, taken // 2)
                edges = held[0] + few * min(taken - few, max(left, right))
                known = following[before + taken]
                if known is None or edges > known[0]:
                    following[before + taken] = edges, (*held[1], taken)
        table = following
    return max((found for found in table if found is not None), key=lambda found: found[0])


# --- experiments ---


def streams(length: int, kind: Correlation, skew: float, seed: int, values: int = VALUES) -> tuple[list[int], list[int]]:
    """Return two streams of values with Zipf's frequencies; correlated: the same values are frequent in both."""
    random = Random(f"{kind} {skew} {seed}")  # noqa: S311 - a benchmark draws its data
    weights = [1 / rank**skew for rank in range(1, values + 1)]
    orders = [random.sample(range(values), values) for _ in range(2)]
    if kind == "correlated":
        orders[1] = orders[0]
    first, second = (random.choices(order, weights, k=length) for order in orders)
    return first, second


Shares = dict[tuple[Correlation, float, str], tuple[float, float]]
"""By correlation, memory (of the window) and method: the share of the exact pairs, and of tuples that miss a partner."""


def shares(length: int, window: int, seeds: int, *, with_optimum: bool = True) -> Shares:
    """Return the mean shares over drawn streams, counted after a warm-up of two windows."""
    found: dict[tuple[Correlation, float, str], list[tuple[float, float]]] = defaultdict(list)
    kinds: tuple[Correlation, ...] = ("uncorrelated", "correlated")
    for kind in kinds:
        for seed in range(seeds):
            drawn = streams(length, kind, 1.0, seed)
            pairs = [pair for pair in exact(drawn, window) if max(pair) >= 2 * window]
            policies: tuple[Policy, ...] = ("RAND", "LIFE", "PROB")
            for memory in MEMORIES:
                cells = 2 * round(memory * window / 2)
                for policy in policies:
                    for variable in (False, True):
                        joined = kept(pairs, play(drawn, window, cells, policy, variable=variable, seed=seed))
                        missed = archive_metric(pairs, joined) / (2 * (length - 2 * window))
                        found[kind, memory, policy + "V" * variable].append((len(joined) / len(pairs), missed))
                for variable in (False, True) if with_optimum else ():
                    most = optimum(drawn, window, cells, variable=variable, since=2 * window)
                    found[kind, memory, "OPT" + "V" * variable].append((most / len(pairs), 0.0))
    return {key: (fmean(one for one, _ in each), fmean(other for _, other in each)) for key, each in found.items()}


def claims(found: Shares, window: int) -> list[tuple[str, str, bool, str]]:
    """Return each claim of the source: the figure, its words, whether it holds here, and what was measured."""

    def at(kind: Correlation, memory: float, method: str) -> float:
        return found[kind, memory, method][0]

    kinds: tuple[Correlation, ...] = ("uncorrelated", "correlated")
    cells = [(kind, memory) for kind in kinds for memory in MEMORIES]
    linear = max(abs(at(*cell, "RAND") - (cell[1] * window + 1) / (2 * window - 1)) for cell in cells)
    ordered = sum(at(*c, "RAND") - 0.01 <= at(*c, "LIFE") <= at(*c, "PROB") + 0.01 for c in cells)
    below = sum(at(*c, "PROB") <= at(*c, "OPT") + 1e-9 and at(*c, "OPT") <= at(*c, "OPTV") + 1e-9 for c in cells)
    close = at("correlated", 1.0, "PROB") / at("correlated", 1.0, "OPT")
    apart = [at(*c, "PROBV") / at(*c, "PROB") for c in cells]
    half = [at(kind, 1.0, "PROB") for kind in kinds]
    better = sum(found[(*c, "PROB")][1] <= min(found[(*c, "LIFE")][1], found[(*c, "RAND")][1]) + 0.01 for c in cells)
    return [
        ("3, 4", "RAND is linear in memory", linear < 0.03, f"largest distance from (M+1)/(2w-1): {linear:.3f}"),
        ("3, 4", "RAND <= LIFE <= PROB (to 0.01)", ordered == len(cells), f"{ordered} of {len(cells)} cells"),
        ("3, 4", "PROB <= OPT <= OPTV", below == len(cells), f"{below} of {len(cells)} cells"),
        ("6", "correlated, M = w: PROB is above 96 % of OPT", close >= 0.96, f"{close:.3f}"),
        ("", "variable allocation never gains more than a tenth", max(apart) <= 1.1, f"at most {max(apart):.3f} times"),
        ("4.6", "half of the memory gives 90 % of the pairs", min(half) >= 0.9, ", ".join(f"{each:.3f}" for each in half)),
        ("", "the sheet's: PROB leaves the fewest tuples incomplete", better == len(cells), f"{better} of {len(cells)} cells"),
    ]


@click.command(epilog="Example: python -m benchmarks.source.join_shedding --seeds 3")
@click.option("--length", type=click.IntRange(10), default=1400, show_default=True, help="Tuples of each stream.")
@click.option("--window", type=click.IntRange(4), default=100, show_default=True, help="Time units.")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True, help="Pairs of streams of each kind.")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, help="Where the page and its picture go.")
def main(length: int, window: int, seeds: int, results: Path) -> None:
    """Measure all methods for each memory and correlation, and judge each claim of the source."""
    found = shares(length, window, seeds)
    results.mkdir(parents=True, exist_ok=True)
    page = _page(found, length, window, seeds)
    (results / "join-shedding.md").write_text(page)
    _draw(found, results)
    click.echo(page)


def _page(found: Shares, length: int, window: int, seeds: int) -> str:
    judged = [
        [figure, words, "holds" if holds else "does not hold here", told] for figure, words, holds, told in claims(found, window)
    ]
    methods = ("RAND", "LIFE", "PROB", "PROBV", "OPT", "OPTV")
    rows = [["", "M / w", *methods, "incomplete: PROB", "LIFE", "RAND", "the sheet's RAND, LIFE, PROB, OPT"]]
    for kind, memory, method in found:
        if method == "RAND":
            values = [f"{found[kind, memory, each][0]:.3f}" for each in methods]
            missed = [f"{found[kind, memory, each][1]:.3f}" for each in ("PROB", "LIFE", "RAND")]
            rows.append([kind, str(memory), *values, *missed, " ".join(f"{each:.3f}" for each in _SHEET[kind, memory])])
    made = (
        f"{seeds} pairs of streams of {length} tuples for each kind, {VALUES} values, Zipf 1, a window of {window}, after "
        f"a warm-up of two. {machine()['processor']}. The sheet's values are of a window of 400, of other drawn streams."
    )
    parts = [
        "# Window joins that cannot keep everything: the source's experiments",
        made,
        markdown_table([["figure", "claim", "verdict", "measured"], *judged], numbers=False),
        "![share of the exact pairs by memory](join-shedding.png)",
        "## Share of the exact pairs, and of tuples that miss a partner",
        markdown_table(rows),
    ]
    return "\n\n".join(parts) + "\n"


def _draw(found: Mapping[tuple[Correlation, float, str], tuple[float, float]], results: Path) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra `bench` has it

    kinds: tuple[Correlation, ...] = ("uncorrelated", "correlated")
    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, kind in zip(figure.subplots(1, 2, sharey=True), kinds, strict=True):
        for method in ("RAND", "LIFE", "PROB", "OPT", "OPTV"):
            axes.plot(MEMORIES, [found[kind, memory, method][0] for memory in MEMORIES], marker="o", label=method)
        axes.set(xlabel="memory / window", ylabel="share of the exact pairs", title=kind, ylim=(0, 1))
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(results / "join-shedding.png", dpi=110)


if __name__ == "__main__":
    main()
