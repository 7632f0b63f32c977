"""The cost model and the exact selection of eager tables (temporal-coalescing sheet, sections 10 to 12: V12, V13, Table 5)."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.coalescing import selection
from warehouse.coalescing.costs import Atomic, Sizes, Weights, costs, prices
from warehouse.coalescing.selection import Storage, cost_of, select

ATOMIC = Atomic(read=1, insert=1, delete=1, merge=18, split=6, detach=2, coalesce=9)
SIZES = Sizes(stamp=8, eager=24, lazy=40)
C, P = (0, 1, 0, 1, 1, 0), (0, 0, 1, 0, 0, 0)
V12 = {
    3: (56, 120, 26, 3, 2.3333, 12), 4: (64, 160, 44, 4, 2.6667, 22), 5: (64, 160, 64, 6, 2.6667, 22),
    6: (64, 160, 66, 8, 2.6667, 22),
}  # fmt: skip
TABLE_5 = [
    ((0.1, 0.1), (3.380, 6.334, 3.380), (False,) * 6),
    ((0.8, 0.8), (10.940, 7.272, 7.272), (True,) * 6),
    ((0.5, 0.1), (5.540, 6.774, 5.490), (True,) * 3 + (False,) * 3),
    ((0.8, 0.1), (7.160, 7.104, 5.820), (True,) * 3 + (False,) * 3),
]
"""cp of Q1 to Q3 and of Q4 to Q6; all lazy, all eager, the optimum; which are eager."""
_COST = st.integers(0, 40).map(lambda tenths: tenths / 10)


@pytest.mark.parametrize("k", V12)
def test_costs_of_the_sheet(k: int) -> None:
    """V12: memory, updates and scans after k members."""
    result = costs(C[:k], P[:k], 4, SIZES, ATOMIC)
    shown = (
        result.memory_eager, result.memory_lazy, result.update_eager, result.update_lazy, result.scan_eager, result.scan_lazy,
    )  # fmt: skip
    assert shown == pytest.approx(V12[k], abs=5e-5)


def test_prices_of_the_sheet() -> None:
    """V12: normalised costs with the weights of both experiments."""
    result = costs(C, P, 4, SIZES, ATOMIC)
    assert (result.memory_max, result.update_max, result.scan_max) == (160, 112, 40)
    for scan, expected in ((1.0, (1.0560, 0.5500, 1.0714)), (2.0, (1.1226, 1.1000, 1.0714))):
        price = prices(result, Weights(scan=scan))
        assert (price.eager, price.scan, price.shared) == pytest.approx(expected, abs=5e-5)


def test_selections_of_the_sheet() -> None:
    """V13: the shared extent decides; if it did not count, a mixed choice would be kept where it is wrong."""
    e, s = (0.90, 1.10, 1.30, 2.00), (1.20, 1.15, 1.10, 1.70)
    for shared, cost, eager in ((0.3, 5.10, (True, True, False, False)), (0.6, 5.30, (True,) * 4)):
        result = select(e, s, shared)
        assert result is not None
        assert (result.cost, result.eager) == (pytest.approx(cost), eager)
    assert cost_of((True,) * 4, e, s, 0.3) == pytest.approx(5.30)
    assert cost_of((False,) * 4, e, s, 0.3) == pytest.approx(5.45)


@pytest.mark.parametrize(("cps", "expected", "eager"), TABLE_5)
def test_table_5_by_the_calibrated_regression(
    cps: tuple[float, float], expected: tuple[float, float, float], eager: tuple[bool, ...]
) -> None:
    """All four selections of the source's Table 5 have the costs of the sheet's section 12."""
    e, s = [], []
    for number, size in enumerate((24, 24, 24, 32, 32, 40)):
        cp = cps[number >= 3]
        row = cp * 8 + (1 - cp) * size
        e.append(row / 40 + ((1 - cp) * 2 + cp * 20) / 20 + 2 * (row / size) / 10)
        s.append(2 * (1 + 9 * cp) / 10)
    result = select(e, s, 1.1)
    assert result is not None
    shown = (cost_of((False,) * 6, e, s, 1.1), cost_of((True,) * 6, e, s, 1.1), result.cost)
    assert shown == pytest.approx(expected, abs=6e-4)
    assert result.eager == eager


@settings(deadline=None)
@given(st.lists(st.tuples(_COST, _COST, st.integers(0, 9)), max_size=6), _COST, st.integers(0, 9), st.integers(0, 40))
def test_the_selection_is_the_best_of_all(tables: list[tuple[float, float, int]], shared: float, own: int, limit: int) -> None:
    """No choice costs less, with or without a limit of storage, by enumeration and by bounds."""
    e, s, sizes = ([table[index] for table in tables] for index in range(3))
    choices = list(product((False, True), repeat=len(tables)))
    best = select(e, s, shared)
    assert best is not None
    assert best.cost == pytest.approx(min(cost_of(flags, e, s, shared) for flags in choices))
    fitting = [
        cost_of(flags, e, s, shared)
        for flags in choices
        if sum(size for x, size in zip(flags, sizes, strict=True) if x) + (0 if all(flags) else own) <= limit
    ]
    storage = Storage(sizes, own, limit)
    enumerated = select(e, s, shared, storage)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "LARGEST", -1)
        bounded = select(e, s, shared, storage)
    for choice in (enumerated, bounded):
        assert (choice is None) == (not fitting)
        assert choice is None or choice.cost == pytest.approx(min(fitting))
