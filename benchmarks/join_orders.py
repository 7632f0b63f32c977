"""Experiment E1: does the cost model rank join orders as the four algorithms do? ``python -m benchmarks.join_orders``.

Window-joins sheet, section 9 (Figure 5.2 of the source): the inputs of Table 5.5 with λ_1 = 10; in each tick one input gets
a row, drawn by the rates, with a value drawn evenly from the input's; one unit of model time is Σλ ticks. Four orders
are compared under eager evaluation with eager and with lazy expiration (Algorithms 2 and 3), and under lazy evaluation
without and with restore (Algorithms 4 and 5), each with nested loops and with hash tables of 10 buckets, value modulo 10.

What is measured are rows probed, not seconds: a probe of a window compares every row that is stored in it (or in the
bucket), dead ones that are not dropped yet included. How many these are depends on counts for each value only, so a
window here is counts, and all orders and both structures are counted in one pass over the same rows. Expiration, insertion
and the final test of liveness are outside the model and are not counted. Windows are half-open, one tick is the clock.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import click
import numpy as np

from warehouse.views.costs.join_order import JoinInput, grouped_cost, probe_sequence, probing_cost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from warehouse.views.costs.join_order import Cost, Order

__all__ = ["ALGORITHMS", "BUCKETS", "INTERVAL", "ORDERS", "TABLE_5_5", "Line", "Row", "count", "generate", "measure", "table"]

TABLE_5_5 = tuple(
    JoinInput(name, rate, lifetime=100, distinct=distinct)
    for name, rate, distinct in (("1", 10, 40), ("2", 1, 100), ("3", 1, 8), ("4", 1, 5))
)
ORDERS = ("2134", "1234", "2341", "3412")
"""Best, two that the source names, and the worst of all 24."""
INTERVAL = 10
"""Δ, in units of time."""
BUCKETS = {"nested loops": 1, "hash": 10}

Row: TypeAlias = tuple[int, str, int]
"""A row: tick, input, value."""
Probed: TypeAlias = Counter[tuple[str, str]]
"""Rows probed for each (structure, order)."""


@dataclass
class Window:
    """The stored rows of one input, first in, first out: ends in ticks, values, counts for each bucket, ends for each value."""

    lifetime: int
    ends: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    stored_from: int = 0
    in_bucket: Mapping[str, Counter[int]] = field(default_factory=lambda: {name: Counter() for name in BUCKETS})
    ends_of: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def insert(self, ts: int, value: int) -> None:
        """Store a row."""
        self.ends.append(ts + self.lifetime)
        self.values.append(value)
        self.ends_of[value].append(ts + self.lifetime)
        for structure, buckets in BUCKETS.items():
            self.in_bucket[structure][value % buckets] += 1

    def drop(self, until: int) -> None:
        """Drop the rows that end at `until` or before."""
        while self.stored_from < len(self.ends) and self.ends[self.stored_from] <= until:
            value = self.values[self.stored_from]
            for structure, buckets in BUCKETS.items():
                self.in_bucket[structure][value % buckets] -= 1
            self.stored_from += 1

    def compared(self, value: int, structure: str) -> int:
        """How many rows a probe for a value looks at."""
        return self.in_bucket[structure][value % BUCKETS[structure]]

    def matching(self, value: int, alive_after: int) -> int:
        """How many rows with the value end after an instant; dropped rows end before it."""
        ends = self.ends_of[value]
        return len(ends) - bisect_right(ends, alive_after)


@dataclass
class State:
    """The windows, the probe sequences of each order, and what was probed since `counted_from`."""

    windows: Mapping[str, Window]
    sequences: Mapping[str, Mapping[str, Sequence[str]]]
    counted_from: int
    probed: Probed = field(default_factory=Counter)

    def probe(self, now: int, new: str, value: int, alive_after: int) -> None:
        """Let a row, or a group of rows with one value, probe the other windows in each order."""
        if now < self.counted_from:
            return
        for order, of_input in self.sequences.items():
            combined = 1
            for name in of_input[new]:
                window = self.windows[name]
                for structure in BUCKETS:
                    self.probed[structure, order] += combined * window.compared(value, structure)
                combined *= window.matching(value, alive_after)
                if not combined:
                    break

    def drop(self, until: int) -> None:
        """Drop dead rows everywhere."""
        for window in self.windows.values():
            window.drop(until)


def eager(state: State, rows: Iterable[Row], interval: int, *, lazy_expiration: bool) -> None:
    """Algorithm 2, and Algorithm 3 when rows are dropped only every `interval` ticks."""
    for ts, new, value in rows:
        if not lazy_expiration or ts % interval == 0:
            state.drop(ts)
        state.probe(ts, new, value, alive_after=ts)
        state.windows[new].insert(ts, value)


def lazy(state: State, rows: Sequence[Row], interval: int, *, restore: bool) -> None:
    """Algorithm 4, and the corrected Algorithm 5 with restore: inputs in turn, one probe for the equal values of a batch."""
    for now in range(interval, rows[-1][0] + 1, interval):
        batch = rows[now - interval : now]
        for new in state.windows:
            groups: dict[int, int] = {}
            for ts, name, value in batch:
                if name == new:
                    state.windows[new].insert(ts, value)
                    groups.setdefault(value, ts)
            for value, first in groups.items():
                state.probe(now, new, value, alive_after=first if restore else now)
        state.drop(now if restore else now + interval)


ALGORITHMS: Mapping[str, Callable[[State, Sequence[Row], int], None]] = {
    "eager": partial(eager, lazy_expiration=False),
    "eager, lazy expiry": partial(eager, lazy_expiration=True),
    "lazy": partial(lazy, restore=False),
    "lazy, restore": partial(lazy, restore=True),
}


def generate(inputs: Order, units: int, seed: int) -> list[Row]:
    """Rows of `units` units of time, in ticks from 1: the generator of section 9."""
    rng = np.random.default_rng(seed)
    ticks = units * _ticks(inputs)
    shares = np.array([float(stream.rate) for stream in inputs])
    chosen = rng.choice(len(inputs), size=ticks, p=shares / shares.sum())
    values = rng.integers(1, np.array([int(stream.values[""]) for stream in inputs])[chosen] + 1)
    return [
        (tick, inputs[number].name, value)
        for tick, (number, value) in enumerate(zip(chosen.tolist(), values.tolist(), strict=True), start=1)
    ]


def count(algorithm: str, inputs: Order, rows: Sequence[Row], counted_from: int = 0) -> Probed:
    """Return the rows that an algorithm probes from a tick on, for each structure and each of :data:`ORDERS`."""
    ticks, named = _ticks(inputs), {stream.name: stream for stream in inputs}
    sequences = {
        text: {new: [joined.name for joined in probe_sequence(_order(inputs, text), named[new])] for new in named}
        for text in ORDERS
    }
    windows = {stream.name: Window(int(stream.lifetime * ticks)) for stream in inputs}
    state = State(windows, sequences, counted_from)
    ALGORITHMS[algorithm](state, rows, INTERVAL * ticks)
    return state.probed


@dataclass(frozen=True)
class Line:
    """One line of the result: rows probed per unit of time for each order, as predicted and as counted."""

    algorithm: str
    structure: str
    predicted: Mapping[str, float]
    counted: Mapping[str, float]

    @property
    def agrees(self) -> bool:
        """Whether counting ranks the orders as the model does."""
        return sorted(ORDERS, key=self.predicted.__getitem__) == sorted(ORDERS, key=self.counted.__getitem__)


def measure(units: int, runs: int, seed: int) -> list[Line]:
    """Count `runs` histories of `units` units of time, after the windows have filled, and predict the same.

    Eager evaluation is predicted by the model itself, lazy evaluation by it with grouping.
    """
    inputs, warm_up = TABLE_5_5, max(int(stream.lifetime) for stream in TABLE_5_5)
    probed: dict[str, Probed] = {name: Counter() for name in ALGORITHMS}
    for run in range(runs):
        rows = generate(inputs, warm_up + units, seed + run)
        for name in ALGORITHMS:
            probed[name] += count(name, inputs, rows, counted_from=warm_up * _ticks(inputs) + 1)
    return [
        Line(
            name,
            structure,
            _predicted(probing_cost if name.startswith("eager") else grouped_cost(INTERVAL), buckets),
            {order: probed[name][structure, order] / (units * runs) for order in ORDERS},
        )
        for structure, buckets in BUCKETS.items()
        for name in ALGORITHMS
    ]


def table(lines: Sequence[Line]) -> str:
    """Render the lines in Markdown: the best order's rows per unit of time, the others as multiples of it."""
    head = ["", *("best: predicted", "counted"), *(f"{order}: predicted, counted" for order in ORDERS), "same ranking"]
    rendered = [head, ["---"] * len(head)]
    for line in lines:
        best = [min(figures.values()) for figures in (line.predicted, line.counted)]
        ratios = [f"{line.predicted[order] / best[0]:.2f}, {line.counted[order] / best[1]:.2f}" for order in ORDERS]
        rows = [f"{number:,.0f}" for number in best]
        rendered.append([f"{line.structure}, {line.algorithm}", *rows, *ratios, "yes" if line.agrees else "no"])
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rendered)


@click.command()
@click.option("--units", type=click.IntRange(INTERVAL), default=2000, show_default=True, help="Units of time that are counted.")
@click.option("--runs", type=click.IntRange(1), default=10, show_default=True, help="Histories.")
@click.option("--seed", type=click.IntRange(0), default=20130101, show_default=True, help="Of the first history.")
def main(units: int, runs: int, seed: int) -> None:
    """Print rows probed by join order and algorithm, as predicted and as counted."""
    click.echo(f"Rows probed per unit of time: Table 5.5, Δ = {INTERVAL}, {runs} runs of {units} units, seeds from {seed}\n")
    click.echo(table(measure(units, runs, seed)), nl=False)


def _predicted(cost: Cost, buckets: int) -> dict[str, float]:
    inputs = tuple(replace(stream, buckets=buckets) for stream in TABLE_5_5)
    return {order: float(cost(_order(inputs, order))) for order in ORDERS}


def _order(inputs: Order, text: str) -> Order:
    named = {stream.name: stream for stream in inputs}
    return tuple(named[name] for name in text)


def _ticks(inputs: Order) -> int:
    return int(sum(Fraction(stream.rate) for stream in inputs))


if __name__ == "__main__":
    main()
