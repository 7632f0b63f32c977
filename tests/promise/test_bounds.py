"""The bounds of an aggregate hold, whatever the unread rows are, and are exact when all rows were read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from statistics import median as median_of
from typing import Any

import numpy as np
import pytest

from warehouse.promise.bounds import BoundedEstimate, Unread, average, count, median, total


@dataclass(frozen=True)
class Drawn:
    """Files of values, None for a row that is dead or filtered out; how many of them are read; whether rows may be missing."""

    files: list[list[int | None]]
    read: int
    all_counted: bool

    @property
    def values(self) -> list[int]:
        """The values of all rows that count."""
        return [value for file in self.files for value in file if value is not None]

    @property
    def read_values(self) -> list[int]:
        """Those that were read."""
        return [value for file in self.files[: self.read] for value in file if value is not None]

    @property
    def unread(self) -> list[Unread]:
        """Return the footers of the unread files, a little wider than their values."""
        bounds = []
        for file in self.files[self.read :]:
            values = [value for value in file if value is not None] or [0]
            bounds.append(Unread(len(file) if self.all_counted else 0, len(file), min(values) - len(file) % 2, max(values)))
        return bounds

    @property
    def share(self) -> float | None:
        """Which part of the stored rows of read files counts."""
        stored = sum(len(file) for file in self.files[: self.read])
        return len(self.read_values) / stored if stored else None


def drawn(seed: int) -> Drawn:
    """Return files of a few rows with values around a level of each file, some of them read."""
    random = Random(seed)  # noqa: S311 - a test draws its data
    all_counted = random.random() < 0.4
    files: list[list[int | None]] = []
    for _ in range(random.randint(1, 7)):
        level = random.randint(-20, 20)
        rows: list[int | None] = [level + random.randint(-5, 5) for _ in range(random.randint(0, 9))]
        files.append(rows if all_counted else [value if random.random() < 0.7 else None for value in rows])
    return Drawn(files, random.randint(0, len(files)), all_counted)


def holds(found: BoundedEstimate, truth: Any) -> bool:  # noqa: ANN401 - any number
    """Whether bounds hold, and the estimate is within them."""
    for value in (truth, found.value):
        if value is not None and not (found.low is None or found.low <= value):
            return False
        if value is not None and not (found.high is None or value <= found.high):
            return False
    return True


@pytest.mark.parametrize("batch", range(10))
def test_bounds_hold_in_a_thousand_random_queries(batch: int) -> None:
    """Counts, sums, averages and medians of all rows are within the bounds; when all is read they equal the bounds."""
    for seed in range(batch * 100, batch * 100 + 100):
        case = drawn(seed)
        values, read_values, unread = case.values, case.read_values, case.unread
        array = np.sort(np.array(read_values, dtype=np.float64))
        middle = median_of(read_values) if read_values else None
        estimates = {
            "count": (count(len(read_values), unread, case.share), len(values)),
            "sum": (total(Fraction(sum(read_values)), len(read_values), unread, case.share), sum(values) if values else None),
            "avg": (
                average(Fraction(sum(read_values)), len(read_values), unread),
                Fraction(sum(values), len(values)) if values else None,
            ),
            "median": (median(array, middle, unread), median_of(values) if values else None),
        }
        for name, (estimate, truth) in estimates.items():
            assert holds(estimate, truth), (seed, name, estimate, truth)
            if case.read == len(case.files) and values:
                assert estimate == BoundedEstimate(truth, truth, truth), (seed, name)


def test_bounds_of_a_median_are_the_least_and_greatest_points_that_it_may_be() -> None:
    """The bounds equal the bounds of a model that tries each point; infinite values are values, too."""
    for seed in range(300):
        random = Random(seed)  # noqa: S311 - a test draws its data
        infinite = [-math.inf, math.inf] if seed % 3 == 0 else []
        values = sorted(random.choice([*range(-5, 6), *infinite]) for _ in range(random.randrange(8)))
        unread = []
        for _ in range(random.randrange(1, 5)):
            most = random.randrange(4)
            low = random.randrange(-6, 6)
            unread.append(Unread(random.randint(0, most), most, low, low + random.randrange(4)))
        if not any(file.most for file in unread):
            continue
        estimate = median(np.array(values, dtype=np.float64), None, unread)
        mirrored = [Unread(file.least, file.most, -(file.high or 0), 0) for file in unread]
        assert estimate.low == least_median(values, unread)
        assert estimate.high == -least_median([-value for value in values], mirrored)


def least_median(values: list[Any], unread: list[Unread]) -> float:
    """Return the least point with at least as many possible rows at or below it as certain rows above it."""
    nonempty = [file for file in unread if file.most]
    for point in sorted([*values, *(file.low for file in nonempty)]):
        below = sum(value <= point for value in values) + sum(file.most for file in nonempty if file.low <= point)
        above = sum(value > point for value in values) + sum(file.least for file in nonempty if file.low > point)
        if below >= above:
            return float(point)
    raise AssertionError("the greatest point is one")


def test_bounds_are_reached() -> None:
    """No tighter bound holds: the unread rows can be such that the aggregate is the bound."""
    unread = [Unread(0, 2, 1, 9), Unread(1, 3, -4, 5)]
    assert total(10, 2, unread, None) == BoundedEstimate(10, 10 - 12, 10 + 18 + 15)
    low = average(Fraction(10), 2, unread)
    assert (low.low, low.high) == (Fraction(10 - 12, 5), Fraction(10 + 18 + 5, 5))
    assert count(2, unread, None) == BoundedEstimate(5, 3, 7)


def test_half_of_the_rows_leave_the_width_of_the_others() -> None:
    """Without a filter the bounds of a sum differ by at most the unread rows times the column's range."""
    unread = [Unread(10, 10, 0, 7), Unread(20, 20, 3, 5)]
    estimate = total(100, 30, unread, 1.0)
    assert (estimate.low, estimate.high) == (100 + 60, 100 + 70 + 100)
    assert estimate.value == 200


def test_a_file_without_bounds_leaves_the_aggregate_open() -> None:
    """Where a footer says nothing (NaN, a text that was cut), nothing is claimed, but of a file without such rows."""
    assert total(1, 1, [Unread(0, 1)], 1.0) == BoundedEstimate(2, None, None)
    assert average(1, 1, [Unread(0, 1)]).low is None
    assert median(np.array([1.0]), 1.0, [Unread(0, 1)]) == BoundedEstimate(1.0, None, None)
    assert total(1, 1, [Unread(0, 0)], 1.0) == BoundedEstimate(1, 1, 1)
    assert total(1, 1, [Unread(0, 1, 0)], 1.0) == BoundedEstimate(2, 1, None)


def test_nothing_read_gives_what_the_footers_say() -> None:
    """Before the first file the estimate is the middle of the bounds."""
    assert count(0, [Unread(2, 6)], None) == BoundedEstimate(4, 2, 6)
    assert total(0, 0, [Unread(2, 6, 1, 3)], None) == BoundedEstimate(10, 2, 18)
    assert average(0, 0, [Unread(0, 6, 1, 3)]) == BoundedEstimate(2, 1, 3)
    estimate = median(np.array([]), None, [Unread(0, 6, 1, 3)])
    assert estimate.value is not None
    assert math.isclose(estimate.value, 2)
    assert average(0, 0, []) == BoundedEstimate(None, None, None)
