from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.layout import OVERFLOW_BLOCK, Layout, column, exp_block, resolve, row, sub_index
from warehouse.time import parse_instant, slot

from .strategies import appended, layouts, plain, rebuilt
from .vectors import (
    CELLS,
    DELTA,
    GRIDS,
    INSTANT_ANCHOR,
    INSTANT_DELTA_US,
    INSTANT_PERIODS,
    INSTANTS,
    PERIODS,
    ROWS,
    UNEVEN_ROWS,
    Cell,
    Instant,
)


@pytest.mark.parametrize("line", CELLS)
def test_slots_and_cells(line: Cell) -> None:
    """Ticks map to the slots and cells of doubly-partitioned-index sheet, section 9.1."""
    a, b = slot(line.ts, 0, DELTA), slot(line.exp, 0, DELTA)
    assert (a, b) == (line.a, line.b)
    assert sub_index(plain(line.rows, line.columns, "round-robin", line.periods), a, b) == line.round_robin
    assert sub_index(plain(line.rows, line.columns, "chronological", line.periods), a, b) == line.chronological


@pytest.mark.parametrize("line", INSTANTS)
def test_instants_and_cells(line: Instant) -> None:
    """Time stamps map to the slots and cells of section 9.1; the last row is dead at its own update."""
    anchor = parse_instant(INSTANT_ANCHOR)
    a, b = (slot(parse_instant(text), anchor, INSTANT_DELTA_US) for text in (line.ts, line.exp))
    assert (a, b) == (line.a, line.b)
    if line.round_robin is None:
        assert b <= a
        return
    assert sub_index(plain(3, 3, "round-robin", INSTANT_PERIODS), a, b) == line.round_robin
    assert sub_index(plain(3, 3, "chronological", INSTANT_PERIODS), a, b) == line.chronological


@pytest.mark.parametrize(("shape", "expected"), UNEVEN_ROWS.items())
def test_uneven_chronological_rows(shape: tuple[int, int], expected: tuple[tuple[int, int], ...]) -> None:
    """Chronological rows are as even as p allows when G does not divide it (9.1)."""
    layout = plain(shape[0], 1, "chronological", shape[1])
    for g, (first, last) in enumerate(expected):
        assert [a for a in range(1, shape[1] + 1) if row(layout, a) == g] == list(range(first, last + 1))


def test_cells_of_the_data_set() -> None:
    """Every row of the data set lies in the cells of section 9.2 in all six grids."""
    for grid_number, grid in enumerate(GRIDS):
        layout = plain(
            grid.rows, grid.columns, "chronological" if grid.assignment == "chronological" else "round-robin", PERIODS
        )
        for member in ROWS:
            if member.a is not None and member.b is not None:
                assert slot(member.exp, 0, DELTA) == member.b
                assert sub_index(layout, member.a, member.b) == member.cells[grid_number], (grid.name, member.id)


def ticks(slots: list[int]) -> list[int]:
    """The ticks of slots of two: slot j is 2j-1 and 2j."""
    return [tick for number in sorted(slots) for tick in (2 * number - 1, 2 * number)]


def span(*ranges: tuple[int, int]) -> list[int]:
    """The ticks of closed ranges."""
    return [tick for first, last in ranges for tick in range(first, last + 1)]


# Figure 2.6: which time stamps each sub-index of the wave index holds after the update at T.
#
#        T=16      T=18            T=20      T=22             T=24
#   I1   1-4       3-4, 17-18      17-20     17-20            17-20
#   I2   5-8       5-8             5-8       7-8, 21-22       21-24
#   I3   9-12      9-12            9-12      9-12             9-12
#   I4   13-16     13-16           13-16     13-16            13-16
FIGURE_2_6 = {
    8: (span((1, 4)), span((5, 8)), span((9, 12)), span((13, 16))),
    9: (span((3, 4), (17, 18)), span((5, 8)), span((9, 12)), span((13, 16))),
    10: (span((17, 20)), span((5, 8)), span((9, 12)), span((13, 16))),
    11: (span((17, 20)), span((7, 8), (21, 22)), span((9, 12)), span((13, 16))),
    12: (span((17, 20)), span((21, 24)), span((9, 12)), span((13, 16))),
}


@pytest.mark.parametrize("k", FIGURE_2_6)
def test_wave_index_of_figure_2_6(k: int) -> None:
    """With equal lifetimes both cuts of the wave index hold the ranges of section 2.2, expirations 16 later."""
    by_insertion, by_expiration = plain(4, 1, "chronological", 8), plain(1, 4, "chronological", 8)
    live = range(k - 7, k + 1)
    for number, expected in enumerate(FIGURE_2_6[k], start=1):
        assert ticks([a for a in live if sub_index(by_insertion, a, a + 8) == number]) == expected
        assert ticks([a for a in live if sub_index(by_expiration, a, a + 8) == number]) == expected


def test_wave_index_changes_one_sub_index() -> None:
    """Two updates change I1, two I2, two I3, two I4, then I1 again (section 2.2)."""
    layout = plain(4, 1, "chronological", 8)
    assert [sub_index(layout, k, k + 8) for k in range(9, 18)] == [1, 1, 2, 2, 3, 3, 4, 4, 1]
    assert [sub_index(layout, k - 8, k) for k in range(9, 18)] == [1, 1, 2, 2, 3, 3, 4, 4, 1]


# Figures 4.1 and 4.2: time stamps of the grid rows and expirations of the grid columns after the updates at 16 and 18.
#
#   row 0  I1 I2        column 0  I1
#   row 1  I3 I4                  I3
FIGURE_4 = {
    ("chronological", 8): (
        (span((1, 8)), span((9, 16))),
        (span((17, 24)), span((25, 32))),
    ),
    ("chronological", 9): (
        (span((3, 8), (17, 18)), span((9, 16))),
        (span((19, 24), (33, 34)), span((25, 32))),
    ),
    ("round-robin", 8): (
        (span((1, 2), (5, 6), (9, 10), (13, 14)), span((3, 4), (7, 8), (11, 12), (15, 16))),
        (span((17, 18), (21, 22), (25, 26), (29, 30)), span((19, 20), (23, 24), (27, 28), (31, 32))),
    ),
    ("round-robin", 9): (
        (span((5, 6), (9, 10), (13, 14), (17, 18)), span((3, 4), (7, 8), (11, 12), (15, 16))),
        (span((21, 22), (25, 26), (29, 30), (33, 34)), span((19, 20), (23, 24), (27, 28), (31, 32))),
    ),
}


@pytest.mark.parametrize(("assignment", "k"), FIGURE_4)
def test_grids_of_figures_4_1_and_4_2(assignment: str, k: int) -> None:
    """The 2x2 grids hold the ranges of section 3.4."""
    layout = plain(2, 2, "chronological" if assignment == "chronological" else "round-robin", 8)
    rows, columns = FIGURE_4[assignment, k]
    for number in range(2):
        assert ticks([a for a in range(k - 7, k + 1) if row(layout, a) == number]) == rows[number]
        assert ticks([b for b in range(k + 1, k + 9) if column(layout, b - 1, b) == number]) == columns[number]


def test_staggered_rows() -> None:
    """A row is F consecutive load slots, and columns start their rows floor(e*F/E) slots apart.

    p = 24, 5 x 4, F = 5; grid rows of load slots 1..25 by column:

        e=0   00000 11111 22222 33333 44444
        e=1   0000 11111 22222 33333 44444 0
        e=2   000 11111 22222 33333 44444 00
        e=3   00 11111 22222 33333 44444 000
    """
    layout = resolve(periods=24, label="WK")
    pictures = ["".join(str(row(layout, a, e)) for a in range(1, 26)) for e in range(4)]
    assert pictures == [
        "0000011111222223333344444",
        "0000111112222233333444440",
        "0001111122222333334444400",
        "0011111222223333344444000",
    ]


def test_block_columns() -> None:
    """An expiry block lies in one column, and consecutive blocks in consecutive columns, before slot 1 as well."""
    layout = resolve(periods=24, label="WK")
    assert [exp_block(layout, b - 1, b) for b in (-6, -5, 0, 1, 6, 7, 24, 25)] == [-2, -1, -1, 0, 0, 1, 3, 4]
    assert [column(layout, b - 1, b) for b in (-6, -5, 0, 1, 6, 7, 24, 25)] == [2, 3, 3, 0, 0, 1, 3, 0]


def test_rows_that_outlive_the_window() -> None:
    """Appended rows with b > a + p lie in column 0, in the overflow block; never-expiring rows in a block a cycle."""
    layout = resolve(periods=24, label="WK")
    assert (column(layout, 7, 31), exp_block(layout, 7, 31)) == (1, 5)
    assert (column(layout, 7, 32), exp_block(layout, 7, 32)) == (0, 2**40)
    assert sub_index(layout, 7, 32) == 5
    assert column(layout, 7, 10**9, never=True) == 0
    blocks = [exp_block(layout, a, 10**9, never=True) - OVERFLOW_BLOCK for a in (1, 25, 26, 50, 51)]
    assert blocks == [1, 1, 2, 2, 3]


def test_rewritten_grids_need_no_overflow() -> None:
    """With rebuild a row of any lifetime lies in the column of its expiration slot, and in block 0."""
    layout = plain(4, 4, "round-robin", 8)
    assert (column(layout, 1, 100), column(layout, 1, 100, never=True)) == (3, 3)
    assert (exp_block(layout, 1, 100), exp_block(layout, 1, 100, never=True)) == (0, 0)


SLOTS = st.integers(-60, 60) | st.integers(-(10**12), 10**12)


@settings(max_examples=100)
@given(layout=layouts(), a=SLOTS, lifetime=st.integers(1, 60), never=st.booleans())
def test_membership_is_one_of_the_cells(layout: Layout, a: int, lifetime: int, *, never: bool) -> None:
    """Every row of any layout has one sub-index within the layout's numbers, and earlier versions only shift it."""
    number = sub_index(layout, a, a + lifetime, never=never)
    assert layout.first_cell <= number <= layout.last_cell
    assert sub_index(replace(layout, base=layout.base + 100), a, a + lifetime, never=never) == number + 100


@settings(max_examples=60)
@given(layout=appended(), a=SLOTS, lifetime=st.integers(1, 20))
def test_a_block_lies_in_one_column(layout: Layout, a: int, lifetime: int) -> None:
    """With block columns, rows of one expiry block within the window share their column."""
    b = a + min(lifetime, layout.periods)
    block = exp_block(layout, a, b)
    assert block * layout.expiry_block < b <= (block + 1) * layout.expiry_block
    if layout.expiration == "blocks":
        assert column(layout, a, b) == block % layout.columns


@settings(max_examples=60)
@given(layout=rebuilt())
def test_parts_are_even(layout: Layout) -> None:
    """Over a whole number of cycles each row of a round-robin or permuted grid has equally many slots."""
    slots = range(-3 * layout.rows + 1, 3 * layout.rows + 1)
    counts = [sum(row(layout, a) == g for a in slots) for g in range(layout.rows)]
    if layout.insertion != "chronological":
        assert counts == [6] * layout.rows
    else:
        lengths = [sum(row(layout, a) == g for a in range(1 - layout.periods, 1)) for g in range(layout.rows)]
        assert max(lengths) - min(lengths) <= 1


def test_live_pairs() -> None:
    """After any update p(p+1)/2 pairs of load and expiration slot can be live, and the cells share them out."""
    for layout, k in product(
        (plain(3, 2, "round-robin", 12), plain(3, 2, "chronological", 12), resolve(periods=12, label="WK")), (0, 12, 31)
    ):
        cells = [sub_index(layout, a, b) for a in range(k - 11, k + 1) for b in range(k + 1, a + 13)]
        assert len(cells) == 12 * 13 // 2
        assert set(cells) <= set(range(1, layout.cells + 1))
