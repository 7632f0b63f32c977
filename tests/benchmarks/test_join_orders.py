"""Experiment E1 at a small size; the counting loop is checked against the listings, row by row."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from benchmarks.join_orders import (
    ALGORITHMS,
    BUCKETS,
    INTERVAL,
    ORDERS,
    TABLE_5_5,
    count,
    generate,
    main,
    measure,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.join_orders import Row

TICKS = 13
SHORT = tuple(replace(stream, lifetime=lifetime) for stream, lifetime in zip(TABLE_5_5, (12, 10, 25, 14), strict=True))
LIFETIMES = {stream.name: int(stream.lifetime) * TICKS for stream in SHORT}


class Listing:
    """The algorithms of section 3 as they are printed there, over lists of rows, with a count of the rows looked at."""

    def __init__(self, order: str, buckets: int) -> None:
        self.order, self.buckets = order, buckets
        self.state: dict[str, list[tuple[int, int]]] = {name: [] for name in LIFETIMES}
        self.looked_at = 0

    def complete(self, value: int, alive_after: int, todo: str) -> None:
        """Loop over the windows still to probe, depth first, skipping the rows that ended."""
        if not todo:
            return
        for end, other in self.state[todo[0]]:
            if other % self.buckets == value % self.buckets:
                self.looked_at += 1
                if other == value and end > alive_after:
                    self.complete(value, alive_after, todo[1:])

    def insert(self, ts: int, name: str, value: int) -> None:
        """Store a row."""
        self.state[name].append((ts + LIFETIMES[name], value))

    def purge(self, until: int) -> None:
        """Drop the rows that end at `until` or before."""
        self.state = {name: [row for row in rows if row[0] > until] for name, rows in self.state.items()}

    def eager(self, rows: Iterable[Row], *, every: int) -> int:
        """Algorithms 2 (expiry at every tick) and 3."""
        for ts, name, value in rows:
            self.insert(ts, name, value)
            if ts % every == 0:
                self.purge(ts)
            self.complete(value, ts, self.order.replace(name, ""))
        return self.looked_at

    def lazy(self, rows: list[Row], *, restore: bool) -> int:
        """Algorithms 4 and 5."""
        interval = INTERVAL * TICKS
        for now in range(interval, len(rows) + 1, interval):
            for name in "1234":
                new = [row for row in rows if row[1] == name and now - interval < row[0] <= now]
                for ts, _, value in new:
                    self.insert(ts, name, value)
                for value in dict.fromkeys(value for _, _, value in new):
                    first = min(ts for ts, _, other in new if other == value)
                    self.complete(value, first if restore else 0, self.order.replace(name, ""))
            self.purge(now if restore else now + interval)
        return self.looked_at


@pytest.mark.parametrize("structure", BUCKETS)
@pytest.mark.parametrize("order", ORDERS)
def test_counts_are_those_of_the_listings(structure: str, order: str) -> None:
    """Counting by value gives, row for row, the number of rows that loops over stored rows look at, for each algorithm."""
    rows = generate(SHORT, 60, seed=3)
    fresh = {name: Listing(order, BUCKETS[structure]) for name in ALGORITHMS}
    expected = {
        "eager": fresh["eager"].eager(rows, every=1),
        "eager, lazy expiry": fresh["eager, lazy expiry"].eager(rows, every=INTERVAL * TICKS),
        "lazy": fresh["lazy"].lazy(rows, restore=False),
        "lazy, restore": fresh["lazy, restore"].lazy(rows, restore=True),
    }
    assert {name: count(name, SHORT, rows)[structure, order] for name in ALGORITHMS} == expected
    assert len(set(expected.values())) == 4


def test_counting_from_a_tick_leaves_out_what_was_before() -> None:
    """What is counted before and from a tick on adds up."""
    rows = generate(SHORT, 40, seed=4)
    middle = 20 * TICKS
    for name in ALGORITHMS:
        whole, later = count(name, SHORT, rows), count(name, SHORT, rows, counted_from=middle + 1)
        before = count(name, SHORT, rows[:middle])
        assert whole == before + later


def test_generated_rows() -> None:
    """A row each tick, inputs by their rates, values evenly from 1 to the input's number; the same for the same seed."""
    rows = generate(TABLE_5_5, 2000, seed=1)
    assert rows == generate(TABLE_5_5, 2000, seed=1) != generate(TABLE_5_5, 2000, seed=2)
    assert [ts for ts, _, _ in rows] == list(range(1, 2000 * TICKS + 1))
    arrived = Counter(name for _, name, _ in rows)
    for stream in TABLE_5_5:
        assert arrived[stream.name] / 2000 == pytest.approx(stream.rate, rel=0.1)
        assert {value for _, name, value in rows if name == stream.name} == set(range(1, int(stream.values[""]) + 1))


def test_the_model_ranks_orders_as_the_algorithms_do() -> None:
    """All eight variants rank the four orders as predicted, and eager evaluation costs about what is predicted."""
    lines = measure(units=300, runs=6, seed=20130101)
    assert [(line.structure, line.algorithm) for line in lines] == [
        (structure, algorithm) for structure in BUCKETS for algorithm in ALGORITHMS
    ]
    for line in lines:
        assert line.agrees, line
        assert sorted(ORDERS, key=line.counted.__getitem__) == list(ORDERS)
    for line in lines:
        if line.algorithm == "eager":
            for order in ORDERS:
                assert line.counted[order] == pytest.approx(line.predicted[order], rel=0.12), line
    by_name = {(line.structure, line.algorithm): line.counted["2134"] for line in lines}
    for structure in BUCKETS:
        eager, late, lazy, restore = (by_name[structure, name] for name in ALGORITHMS)
        assert lazy < restore < eager < late
    assert lines[0].predicted == {"2134": 16200, "1234": 21000, "2341": 42600, "3412": 135150}


def test_the_command_prints_a_line_for_each_variant() -> None:
    """The module runs by itself and says whether rankings agree."""
    result = CliRunner().invoke(main, ["--units", "20", "--runs", "1"], catch_exceptions=False)
    assert result.exit_code == 0
    lines = [line for line in result.output.splitlines() if line.startswith(("| nested loops", "| hash"))]
    assert len(lines) == 8
    assert all(line.endswith(("| yes |", "| no |")) for line in lines)
    assert "16,200" in lines[0]
