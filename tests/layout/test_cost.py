from __future__ import annotations

from fractions import Fraction
from math import exp, gcd
from typing import TYPE_CHECKING

import pytest

from benchmarks.source.cost import (
    Prices,
    best_grid,
    best_side,
    buckets_hit,
    equal_lifetimes_update,
    grid_update,
    rebuild_price,
    shares,
    threshold,
    total_price,
    uniform_flow,
    wave_price,
    whole_slot_share,
)
from warehouse.layout import deleted_columns, inserted_rows, planned_cells
from warehouse.layout.advice.decision import accessed_share
from warehouse.layout.oracle import expected_sizes, lifetime_weights, uniform_weights

from .strategies import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from warehouse.layout import Layout
from warehouse.layout.oracle import Model


@pytest.mark.parametrize(
    ("n", "grid", "accessed", "fraction"),
    [
        (4, (2, 2), 3, 0.7500),
        (6, (3, 2), 4, 0.6667),
        (9, (3, 3), 5, 0.5556),
        (16, (4, 4), 7, 0.4375),
        (25, (5, 5), 9, 0.3600),
        (36, (6, 6), 11, 0.3056),
        (7, (7, 1), 7, 1.0),
    ],
)
def test_best_grid(n: int, grid: tuple[int, int], accessed: int, fraction: float) -> None:
    """The factors closest to the root access the fewest sub-indices, as in section 5.1."""
    assert best_grid(n) == grid
    assert grid_update(*grid, 100).accessed == accessed
    assert float(accessed_share(*grid)) == pytest.approx(fraction, abs=5e-5)


def test_other_grids_access_more() -> None:
    """2x8 and 8x2 access 9 of 16, a wave index all of its sub-indices (5.1)."""
    assert [accessed_share(2, 8), accessed_share(8, 2)] == [Fraction(9, 16)] * 2
    assert [accessed_share(9, 1), accessed_share(1, 9)] == [1, 1]


def union_shares(
    layout: Layout, updates: range, weights: tuple[Fraction, ...] | tuple[float, ...]
) -> list[tuple[float, float]]:
    """Share of the live rows in the planned cells before and after each update."""
    pairs = []
    for k in updates:
        planned = planned_cells(layout, k - 1, k)
        before, after = expected_sizes(layout, k - 1, weights), expected_sizes(layout, k, weights)
        pairs.append(
            (
                float(sum(before[cell] for cell in planned) / sum(before.values())),
                float(sum(after[cell] for cell in planned) / sum(after.values())),
            )
        )
    return pairs


@pytest.mark.parametrize(("rows", "columns", "periods"), [(2, 2, 8), (4, 4, 16), (3, 2, 12), (2, 6, 12)])
def test_shares_of_round_robin(rows: int, columns: int, periods: int) -> None:
    """Row, column, shared cell and union hold the shares of section 5.2 at every update."""
    layout, expected = plain(rows, columns, "round-robin", periods), shares(rows, columns, periods)
    weights = uniform_weights(periods, "C")
    total = Fraction(periods**2, 2)
    for k in range(periods, periods + 6):
        (g,), (e,) = inserted_rows(layout, k - 1, k), deleted_columns(layout, k - 1, k)
        row_cells = {g * columns + column + 1 for column in range(columns)}
        column_cells = {row * columns + e + 1 for row in range(rows)}
        before, after = expected_sizes(layout, k - 1, weights), expected_sizes(layout, k, weights)
        for cells, share in (
            (row_cells, expected.row),
            (column_cells, expected.column),
            (row_cells & column_cells, expected.shared),
            (row_cells | column_cells, expected.union),
        ):
            assert sum(before[cell] for cell in cells) / total == share.before
            assert sum(after[cell] for cell in cells) / total == share.after


@pytest.mark.parametrize(("side", "periods"), [(2, 8), (3, 12), (4, 16)])
def test_square_chronological_grids_read_as_much(side: int, periods: int) -> None:
    """With G = E a chronological grid reads the same at every update: rows do not favour round-robin (5.2)."""
    pairs = union_shares(plain(side, side, "chronological", periods), range(1, periods + 1), uniform_weights(periods))
    assert sum(pairs, ()) == pytest.approx((float(accessed_share(side, side)),) * 2 * periods)


@pytest.mark.parametrize(
    ("rows", "columns", "periods", "least", "most"),
    [(3, 2, 12, 0.44, 0.89), (4, 3, 12, 0.25, 0.75), (2, 8, 16, 0.375, 0.75)],
)
def test_other_chronological_grids_swing(rows: int, columns: int, periods: int, least: float, most: float) -> None:
    """With G and E unequal the union of a chronological grid swings about the same mean (5.2)."""
    layout = plain(rows, columns, "chronological", periods)
    unions = [before for before, _ in union_shares(layout, range(1, periods + 1), uniform_weights(periods))]
    assert sum(unions) / periods == pytest.approx(float(accessed_share(rows, columns)))
    assert (min(unions), max(unions)) == pytest.approx((least, most), abs=0.006)


@pytest.mark.parametrize(("rows", "columns", "periods"), [(2, 2, 8), (3, 2, 12), (4, 2, 16), (6, 4, 24)])
def test_union_under_whole_slots(rows: int, columns: int, periods: int) -> None:
    """Model W has the union share of section 5.2 at every round-robin update, and for G = E with chronological too."""
    expected = float(whole_slot_share(rows, columns, periods))
    assert expected == pytest.approx(
        (rows + columns - (periods + gcd(rows, columns)) / (periods + 1)) / (rows * columns)
    )
    weights = uniform_weights(periods, "W")
    updates = range(periods, periods + 4)
    pairs = union_shares(plain(rows, columns, "round-robin", periods), updates, weights)
    assert [before for before, _ in pairs] == pytest.approx([expected] * 4)
    if rows == columns:
        pairs = union_shares(plain(rows, columns, "chronological", periods), updates, weights)
        assert [before for before, _ in pairs] == pytest.approx([expected] * 4)


def integrated(slope_until: float, width: float, periods: float) -> Callable[[float], float]:
    """H of lifetimes uniform on (slope_until, slope_until + width], as shares of S."""
    start, length = slope_until * periods, width * periods

    def integral(x: float) -> float:
        over = x - start
        if over <= 0:
            return 0.0
        if length and over <= length:
            return over * over / (2 * length)
        return over - length / 2

    return integral


def exponential(mean: float, periods: float) -> Callable[[float], float]:
    """H of exponential lifetimes, cut at S."""
    scale = 1 - exp(-periods / mean)

    def integral(x: float) -> float:
        inside = min(max(x, 0.0), periods)
        return (inside - mean * (1 - exp(-inside / mean))) / scale + max(0.0, x - periods)

    return integral


SHORT, LONG = integrated(0, 1 / 20, 36), integrated(0.9, 0.1, 36)
LIFETIMES: dict[str, tuple[Callable[[float], float], dict[int, tuple[float, float]]]] = {
    "uniform": (integrated(0, 1, 36), {2: (0.750, 0.750), 4: (0.438, 0.438), 6: (0.306, 0.306)}),
    "exponential": (exponential(3.6, 36), {2: (0.755, 0.994), 4: (0.462, 0.918), 6: (0.351, 0.811)}),
    "overestimated": (integrated(0, 1 / 4, 36), {2: (0.753, 1.000), 4: (0.432, 1.000), 6: (0.333, 0.889)}),
    "bimodal": (
        lambda x: 0.8 * SHORT(x) + 0.2 * LONG(x),
        {2: (0.769, 0.571), 4: (0.485, 0.333), 6: (0.349, 0.254)},
    ),
    "equal": (integrated(1, 0, 36), {2: (0.500, 0.500), 4: (0.250, 0.250), 6: (0.167, 0.167)}),
}


@pytest.mark.parametrize("name", LIFETIMES)
def test_other_lifetimes(name: str) -> None:
    """Off uniform lifetimes the union shares at p = 36 are the shares of section 5.2, at every update."""
    integral, expected = LIFETIMES[name]
    weights = lifetime_weights(integral, 36)
    for side, (round_robin, chronological) in expected.items():
        for assignment, share in (("round-robin", round_robin), ("chronological", chronological)):
            layout = plain(side, side, "chronological" if assignment == "chronological" else "round-robin", 36)
            unions = [before for before, _ in union_shares(layout, range(41, 44), weights)]
            assert unions == pytest.approx([share] * 3, abs=0.001), (side, assignment)


@pytest.mark.parametrize(("side", "periods"), [(2, 8), (3, 12), (4, 16), (4, 36)])
def test_largest_cells(side: int, periods: int) -> None:
    """The largest touched cell is 1 + m/p means with round-robin, 1.5 on average with chronological assignments.

    The largest cell of all is 2.0 on average there, from n = 9 on (5.2).
    """
    weights, mean = uniform_weights(periods), Fraction(periods**2, 2 * side**2)

    def largest(layout: Layout, k: int) -> tuple[Fraction, Fraction]:
        sizes = {cell: Fraction(size) for cell, size in expected_sizes(layout, k - 1, weights).items()}
        return max(sizes[cell] for cell in planned_cells(layout, k - 1, k)) / mean, max(sizes.values()) / mean

    for k in range(periods, periods + 3):
        assert largest(plain(side, side, "round-robin", periods), k)[0] == 1 + Fraction(side, periods)
    sizes = [largest(plain(side, side, "chronological", periods), k) for k in range(1, periods + 1)]
    assert float(sum(touched for touched, _ in sizes) / periods) == pytest.approx(1.5, abs=0.01)
    if side >= 3:
        assert sum(overall for _, overall in sizes) / periods == 2


@pytest.mark.parametrize(("model", "live", "inserted"), [("C", 4, Fraction(15, 16)), ("W", Fraction(9, 2), 1)])
def test_flow(model: Model, live: Fraction, inserted: Fraction) -> None:
    """A constant rate stores λp/2 rows and inserts and deletes λ(1 - 1/(2p)) in model C; λ(p+1)/2 and λ in model W."""
    weights = uniform_weights(8, model)
    assert sum(weights) / 8 == inserted
    assert sum(expected_sizes(plain(1, 1, "round-robin", 8), 0, weights).values()) / Fraction(8) == live
    if model == "C":
        flow = uniform_flow(1, 8)
        assert (flow.live, flow.inserted, flow.dead_on_arrival) == (live, inserted, Fraction(1, 16))
        assert flow.inserted == 2 * flow.live / 8 * (1 - Fraction(1, 16))


@pytest.mark.parametrize(
    ("rows", "columns", "expected"),
    [
        (1, 1, (1, 1, 1, 1)),
        (9, 1, (9, 1, 9, 1)),
        (1, 9, (9, 9, 1, 1)),
        (4, 4, (7, 4, 4, Fraction(7, 16))),
        (2, 8, (9, 8, 2, Fraction(9, 16))),
    ],
)
def test_cost_by_technique(rows: int, columns: int, expected: tuple[int, int, int, Fraction]) -> None:
    """Single index, wave indices and grids have one formula, and it gives the lines of section 5.3."""
    cost = grid_update(rows, columns, 1)
    assert (cost.accessed, cost.inserted_into, cost.deleted_from, cost.rows) == expected
    layout = plain(rows, columns, "round-robin", 36)
    planned = planned_cells(layout, 9, 10)
    assert len(planned) == cost.accessed
    assert len(inserted_rows(layout, 9, 10)) * columns == cost.inserted_into
    assert len(deleted_columns(layout, 9, 10)) * rows == cost.deleted_from


def test_cost_of_equal_lifetimes() -> None:
    """A wave index of equal lifetimes accesses one sub-index and reads N/n rows (5.3)."""
    cost = equal_lifetimes_update(4, 100)
    assert (cost.accessed, cost.inserted_into, cost.deleted_from, cost.rows) == (1, 1, 1, Fraction(25))


def test_buckets_hit() -> None:
    """Deletions hit nearly all buckets when many rows expire for each, one a row when few do (5.3, section 4)."""
    assert buckets_hit(4, 100, 3.2, 49 * 400) / (4 * 100 * 3.2) == pytest.approx(1, abs=1e-5)
    assert buckets_hit(4, 100, 3.5, 4.9 * 400) / (4 * 100 * 3.5) == pytest.approx(0.75, abs=0.01)
    assert buckets_hit(1, 100, 3.4, 1) == pytest.approx(1, abs=0.002)


def test_thresholds() -> None:
    """Without queries the best side changes at the values of H = cN/a of section 5.4, for large H near H(x-1) = x^3."""
    assert [round(float(threshold(side)), 1) for side in range(1, 8)] == [8.0, 10.3, 16.9, 25.8, 36.7, 49.7, 64.7]
    for side in range(1, 8):
        change = float(threshold(side))
        assert best_side(Prices(access=1, row=1), change - 0.01) == side
        assert best_side(Prices(access=1, row=1), change + 0.01) == side + 1
    assert best_side(Prices(access=2, row=0.5), 4 * 20) == 4
    assert best_side(Prices(access=1, row=1), 40**3 / 39, sides=range(1, 99)) == 40


def test_prices_agree_with_the_source() -> None:
    """At H = 210 R-ins25 is 2.8 times as dear as Rebuild5x5, and queries move the best side down (5.4)."""
    prices = Prices(access=1, row=1, query=0.5)
    assert wave_price(prices, 210, 25) / rebuild_price(prices, 210, 5) == pytest.approx(2.8, abs=0.03)
    assert wave_price(prices, 210, 25) == 235
    assert rebuild_price(prices, 210, 5) == pytest.approx(9 + 75.6)
    assert total_price(prices, 210, 5, queries=2) == pytest.approx(9 + 75.6 + 25)
    assert best_side(prices, 210, queries=10) < best_side(prices, 210)
