from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.layout import Layout, sub_index
from warehouse.layout.oracle import expected_size, expected_sizes, lifetime_weights, uniform_weights

from .strategies import layouts, plain


def sizes(layout: Layout, k: int) -> list[int]:
    """The sizes of all cells under model W."""
    return [int(expected_size(layout, g, e, k, "W")) for g in range(layout.rows) for e in range(layout.columns)]


def test_sizes_of_the_figures() -> None:
    """Expected sizes of the 2x2 grids are the sizes of section 3.4, in units of u."""
    chronological, round_robin = plain(2, 2, "chronological", 8), plain(2, 2, "round-robin", 8)
    assert [sizes(chronological, k) for k in (8, 9, 10, 12)] == [
        [10, 0, 16, 10],
        [10, 4, 12, 10],
        [10, 8, 8, 10],
        [10, 16, 0, 10],
    ]
    assert [sizes(round_robin, k) for k in (8, 9, 10, 11)] == [[10, 6, 10, 10], [10, 10, 6, 10]] * 2


@settings(max_examples=50)
@given(layout=layouts(), k=st.integers(-30, 30))
def test_all_cells_hold_the_window(layout: Layout, k: int) -> None:
    """In any layout the cells together hold p(p+1)/2 pairs (model W) or p^2/2 (model C)."""
    p = layout.periods
    assert sum(expected_sizes(layout, k, uniform_weights(p, "W")).values()) == p * (p + 1) // 2
    assert sum(expected_sizes(layout, k, uniform_weights(p, "C")).values()) == Fraction(p * p, 2)


def test_weights_of_uniform_lifetimes() -> None:
    """The general weights of continuous uniform lifetimes are the weights of model C."""
    weights = lifetime_weights(lambda x: x * x / 16 if x <= 8 else 4 + (x - 8), 8)
    assert weights == pytest.approx([float(weight) for weight in uniform_weights(8, "C")])


def test_rates_scale_load_slots() -> None:
    """A load slot with twice the rows counts twice."""
    layout = plain(2, 1, "round-robin", 4)
    constant = expected_sizes(layout, 4, uniform_weights(4, "W"))
    doubled = expected_sizes(layout, 4, uniform_weights(4, "W"), lambda a: 2 if a % 2 else 1)
    assert doubled == {1: 2 * constant[1], 2: constant[2]}


def test_random_rows_agree() -> None:
    """Random rows fill the cells of a 2x2 grid as the oracle says, within sampling noise (4 standard deviations)."""
    random, layout, rate, k = Random(7), plain(2, 2, "round-robin", 8), 4000, 8  # noqa: S311 - a simulation
    counts = dict.fromkeys(range(1, 5), 0)
    for a in range(1, 9):
        for _ in range(rate):
            b = -int(-(a - random.random() + 8 * random.random()) // 1)
            if b > k:
                counts[sub_index(layout, a, b)] += 1
    for number, expected in expected_sizes(layout, k, uniform_weights(8)).items():
        rows = float(expected) * rate / 8
        assert abs(counts[number] - rows) < 4 * rows**0.5
