"""Cell sizes under fluctuating rates: the table of the doubly-partitioned-index sheet, section 7.

The sheet does not say how it was computed; this way gives its numbers: expected sizes under model C at the given rates
with p = 36; after each of 360 updates the standard deviation of the cell sizes over their mean; the root mean square of
that. The columns with random draws are single draws there and are compared more loosely or averaged here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from math import sqrt
from random import Random
from statistics import fmean as mean
from statistics import pvariance

import pytest

from warehouse.layout import Layout, row
from warehouse.layout.assignment import expiration_column
from warehouse.layout.oracle import expected_sizes, uniform_weights

from .strategies import AXES, plain

P = 36
FIRST, LAST = 3 * P + 1, 13 * P
WEIGHTS = [float(weight) for weight in uniform_weights(P)]
Part = Callable[[int], int]


def sizes_of(rows: Part, columns: Part, side: int, rate: Callable[[int], float]) -> Iterator[list[float]]:
    """The expected sizes of all cells after each of the updates FIRST..LAST, kept up to date from slot to slot."""
    cells = [[0.0] * side for _ in range(side)]
    for k in range(1, LAST + 1):
        entered, expired = cells[rows(k)], columns(k)
        for lifetime, weight in enumerate(WEIGHTS, start=1):
            entered[columns(k + lifetime)] += rate(k) * weight
        for lifetime, weight in enumerate(WEIGHTS[: k - 1], start=1):
            cells[rows(k - lifetime)][expired] -= rate(k - lifetime) * weight
        if k >= FIRST:
            yield [size for row_ in cells for size in row_]


def variation(rows: Part, columns: Part, side: int, rate: Callable[[int], float]) -> float:
    """The root mean square over the updates of the coefficient of variation of the cell sizes."""
    return sqrt(mean(pvariance(sizes) / mean(sizes) ** 2 for sizes in sizes_of(rows, columns, side, rate)))


def of_layout(layout: Layout, rate: Callable[[int], float]) -> float:
    """The variation of a layout."""
    return variation(cache(lambda a: row(layout, a)), cache(lambda b: expiration_column(layout, b)), layout.rows, rate)


def of_random_parts(side: int, rate: Callable[[int], float], seed: int) -> float:
    """The variation when each slot draws its row and each expiration slot its column independently."""
    random = Random(seed)  # noqa: S311 - a simulation
    return variation(cache(lambda _: random.randrange(side)), cache(lambda _: random.randrange(side)), side, rate)


def uniform_rate(seed: int) -> Callable[[int], float]:
    """An independent rate in 1..4 for each slot."""
    random = Random(seed)  # noqa: S311 - a simulation
    return cache(lambda _: random.uniform(1, 4))


# rate: (round-robin, block permutation with seed 0, independent random, chronological) for 2x2, 3x3, 4x4, 5x5
TABLE = {
    "constant": (
        (0.04, 0.06, 0.31, 0.41),
        (0.07, 0.09, 0.42, 0.61),
        (0.10, 0.13, 0.53, 0.71),
        (0.12, 0.16, 0.54, 0.77),
    ),
    "1, 4": ((0.60, 0.20, 0.37, 0.41), (0.08, 0.20, 0.45, 0.61), (0.61, 0.25, 0.61, 0.72), (0.15, 0.29, 0.59, 0.78)),
    "4, 1, 1, 1": (
        (0.43, 0.17, 0.33, 0.41),
        (0.10, 0.24, 0.49, 0.61),
        (0.75, 0.31, 0.59, 0.72),
        (0.19, 0.35, 0.63, 0.79),
    ),
    "uniform 1..4": (
        (0.06, 0.09, 0.31, 0.41),
        (0.11, 0.13, 0.42, 0.62),
        (0.14, 0.16, 0.53, 0.72),
        (0.19, 0.20, 0.56, 0.79),
    ),
    "burst": ((0.05, 0.10, 0.33, 0.48), (0.09, 0.15, 0.49, 0.73), (0.16, 0.21, 0.61, 0.88), (0.18, 0.25, 0.57, 1.01)),
}
RATES: dict[str, Callable[[int], float]] = {
    "constant": lambda _: 1,
    "1, 4": lambda a: 1 if a % 2 else 4,
    "4, 1, 1, 1": lambda a: 4 if a % 4 == 1 else 1,
    "burst": lambda a: 4 if a % 36 < 6 else 1,
}


@pytest.mark.parametrize("side", [2, 3, 4, 5])
@pytest.mark.parametrize("name", RATES)
def test_regular_rates(name: str, side: int) -> None:
    """Round-robin, block permutation and chronological sizes vary as in section 7, within 0.02."""
    expected = TABLE[name][side - 2]
    for assignment, value in zip(
        ("round-robin", "permuted", "chronological"), (*expected[:2], expected[3]), strict=True
    ):
        (axis,) = (name_of_axis for name_of_axis in AXES if name_of_axis == assignment)
        assert of_layout(plain(side, side, axis, P), RATES[name]) == pytest.approx(value, abs=0.02), assignment


@pytest.mark.parametrize("side", [2, 3, 4, 5])
def test_irregular_rates(side: int) -> None:
    """Rates drawn from 1..4 give the sizes of section 7 within 0.02, averaged over a few draws."""
    expected = TABLE["uniform 1..4"][side - 2]
    for axis, value in zip(("round-robin", "permuted", "chronological"), (*expected[:2], expected[3]), strict=True):
        (assignment,) = (name_of_axis for name_of_axis in AXES if name_of_axis == axis)
        layout = plain(side, side, assignment, P)
        deviations = [of_layout(layout, uniform_rate(seed)) for seed in range(4)]
        assert (sum(deviation**2 for deviation in deviations) / 4) ** 0.5 == pytest.approx(value, abs=0.02), axis


@pytest.mark.parametrize("side", [2, 3, 4, 5])
def test_random_parts_are_never_good(side: int) -> None:
    """Independent random rows and columns vary about as in section 7 (one draw there), more than block permutation."""
    for name, rate in RATES.items():
        _, permuted, independent, _ = TABLE[name][side - 2]
        deviations = [of_random_parts(side, rate, seed) for seed in range(2)]
        assert sum(deviations) / 2 == pytest.approx(independent, rel=0.25)
        assert min(deviations) > permuted


def test_the_model_is_the_size_oracle() -> None:
    """The sizes kept up to date from slot to slot are the sizes of the size oracle."""
    layout, rate = plain(3, 3, "permuted", P), RATES["burst"]
    sizes_of_updates = sizes_of(partial(row, layout), partial(expiration_column, layout), 3, rate)
    for k, sizes in zip(range(FIRST, FIRST + 4), sizes_of_updates, strict=False):
        assert sizes == pytest.approx(list(expected_sizes(layout, k, WEIGHTS, rate).values()))
