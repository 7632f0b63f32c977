"""The data set of doubly-partitioned-index sheet, section 9.2 to 9.4, run by the procedure of section 3.6."""

from __future__ import annotations

import pytest

from warehouse.layout import deleted_columns, inserted_rows, planned_cells, sub_index
from warehouse.time import slot

from .strategies import plain
from .vectors import ANSWERS, DELTA, GRIDS, PERIODS, ROWS, STATES, UPDATES, Grid, Row

Cells = dict[int, frozenset[int]]


def batch(k0: int, k: int) -> list[Row]:
    """The rows that arrive for the update at slot k, including dead rows."""
    return [row for row in ROWS if k0 < slot(row.loaded_at, 0, DELTA) <= k]


def load_slot(each: Row, k0: int, k: int) -> int:
    """The slot of a row's arrival within the slots that the update moves past."""
    return min(max(slot(each.ts, 0, DELTA), k0 + 1), k)


@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: grid.name)
def test_states(grid: Grid) -> None:
    """Each grid holds the ids of section 9.3 after each update, and plans, reads, writes and changes the listed cells.

    The sheet has no states for `chr 3x2`; there only the live rows are compared.
    """
    layout = plain(
        grid.rows, grid.columns, "chronological" if grid.assignment == "chronological" else "round-robin", PERIODS
    )
    by_id = {row.id: row for row in ROWS}
    cells: Cells = {number: frozenset() for number in range(1, layout.cells + 1)}
    k0 = UPDATES[0] // DELTA - PERIODS
    for step, at in enumerate(UPDATES):
        k = at // DELTA
        planned = set(planned_cells(layout, k0, k))
        added: Cells = dict.fromkeys(cells, frozenset())
        for arrived in batch(k0, k):
            if arrived.exp > at:
                number = sub_index(layout, load_slot(arrived, k0, k), slot(arrived.exp, 0, DELTA))
                added[number] |= {arrived.id}
        after = {
            number: frozenset(id_ for id_ in ids if number not in planned or by_id[id_].exp > at) | added[number]
            for number, ids in cells.items()
        }
        assert frozenset().union(*after.values()) == {row.id for row in ROWS if row.loaded_at <= at < row.exp}
        if grid.name in STATES:
            expected = STATES[grid.name][step]
            assert tuple(tuple(sorted(after[number])) for number in sorted(after)) == expected.cells
            if expected.read is not None:
                rows, columns = inserted_rows(layout, k0, k), deleted_columns(layout, k0, k)
                numbers = [(g * grid.columns + e + 1, g, e) for g in range(grid.rows) for e in range(grid.columns)]
                assert tuple(n for n, g, _ in numbers if g in rows) == expected.inserted
                assert tuple(n for n, _, e in numbers if e in columns) == expected.deleted
                assert tuple(n for n in sorted(cells) if cells[n] != after[n]) == expected.changed
                assert sum(len(cells[n]) for n in planned) == expected.read
                assert sum(len(after[n]) for n in planned) == expected.written
        k0, cells = k, after


def test_answers() -> None:
    """Loaded, expired, dropped and live ids of section 9.4 follow from the data set by the plain filter."""
    previous: set[int] = set()
    for answer in ANSWERS:
        arrived = {row for row in ROWS if row.loaded_at == answer.at}
        live = {row.id for row in ROWS if row.loaded_at <= answer.at < row.exp}
        assert {row.id for row in arrived if row.exp > answer.at} == set(answer.loaded)
        assert {row.id for row in arrived if row.exp <= answer.at} == set(answer.dropped)
        assert previous - live == set(answer.expired)
        assert len(live) == answer.live
        for key, ids in answer.by_key.items():
            assert tuple(sorted(row.id for row in ROWS if row.key == key and row.id in live)) == ids
        previous = live


def test_load_slots() -> None:
    """Rows take the load slots of section 9.2: their own, or the first of the update's slots when late."""
    k0 = 0
    for at in UPDATES:
        k = at // DELTA
        for row in batch(k0, k):
            if row.a is not None:
                assert load_slot(row, k0, k) == row.a, row.id
        k0 = k
