from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.layout import Layout, accessed, deleted_columns, inserted_rows, planned_cells, resolve, row
from warehouse.layout.assignment import expiration_column

from .strategies import AXES, layouts, plain

# Section 3.4: what the updates of slots 9.. insert into, delete from and leave alone in the 2x2 grids.
#
#       column 0  column 1
#   row 0   I1       I2
#   row 1   I3       I4
FIRST = ({1, 2}, {1, 3}, {4})
SECOND = ({3, 4}, {2, 4}, {1})
UPDATES_3_4 = {
    "chronological": [FIRST] * 4 + [SECOND] * 4 + [FIRST],
    "round-robin": [FIRST, SECOND] * 4 + [FIRST],
}


@pytest.mark.parametrize("assignment", UPDATES_3_4)
def test_updates_of_the_figures(assignment: str) -> None:
    """The updates at 18 to 34 insert into, delete from and leave alone the cells of section 3.4."""
    layout = plain(2, 2, "chronological" if assignment == "chronological" else "round-robin", 8)
    for k, (inserted, deleted, untouched) in enumerate(UPDATES_3_4[assignment], start=9):
        (g,), (e,) = inserted_rows(layout, k - 1, k), deleted_columns(layout, k - 1, k)
        assert {2 * g + 1, 2 * g + 2} == inserted
        assert {e + 1, e + 3} == deleted
        assert set(planned_cells(layout, k - 1, k)) == {1, 2, 3, 4} - untouched


@settings(max_examples=150)
@given(layout=layouts(), k0=st.integers(-50, 50), slots=st.integers(-2, 90))
def test_planned_cells_are_those_of_the_slots(layout: Layout, k0: int, slots: int) -> None:
    """The planned cells are exactly the cells to whose row or column a slot of the range maps, in any layout."""
    k = k0 + slots
    moved = range(k0 + 1, k + 1)
    rows = {(row(layout, j, e), e) for j in moved for e in range(layout.columns)}
    columns = {expiration_column(layout, j) for j in moved}
    assert inserted_rows(layout, k0, k) == {g for g, _ in rows}
    assert deleted_columns(layout, k0, k) == columns
    assert planned_cells(layout, k0, k) == tuple(
        layout.base + g * layout.columns + e + 1
        for g, e in product(range(layout.rows), range(layout.columns))
        if (g, e) in rows or e in columns
    )


@pytest.mark.parametrize("assignment", AXES)
def test_no_sub_index_twice_in_a_row(assignment: str) -> None:
    """Round-robin gives no row and no column two successive slots; chronological does."""
    layout = plain(4, 4, "round-robin" if assignment == "round-robin" else "chronological", 36)
    repeats = sum(inserted_rows(layout, k - 1, k) == inserted_rows(layout, k, k + 1) for k in range(36))
    assert repeats == (0 if assignment == "round-robin" else 32)


def test_accessed_of_several_slots() -> None:
    """A 4x4 grid accesses 7, 12, 15, 16 sub-indices for 1 to 4 slots (5.3)."""
    assert [accessed(4, 4, slots) for slots in range(1, 5)] == [7, 12, 15, 16]


@settings(max_examples=50)
@given(rows=st.integers(1, 6), columns=st.integers(1, 6), slots=st.integers(0, 8), k0=st.integers(-20, 20))
def test_accessed_is_the_number_of_planned_cells(rows: int, columns: int, slots: int, k0: int) -> None:
    """The closed form counts the planned cells of a round-robin grid."""
    layout = plain(rows, columns, "round-robin", 12)
    assert accessed(rows, columns, slots) == len(planned_cells(layout, k0, k0 + slots))


def test_huge_ranges_are_fast() -> None:
    """Catching up a trillion slots touches everything and costs no more than a cycle."""
    for layout in (resolve(periods=24, label="WK"), *(plain(5, 5, axis, 36) for axis in AXES)):
        assert planned_cells(layout, 3, 10**12) == tuple(range(1, layout.cells + 1))
