"""What an update does with the partitions of a former layout: a pure function of what is recorded of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project
from warehouse.catalog.declaration import declaration_of
from warehouse.epochs.records import FormerLayout, Partition, TableState
from warehouse.layout import OVERFLOW_BLOCK, Layout, migrated, resolve
from warehouse.planning.former_layouts import former_cells, remaining_layouts

if TYPE_CHECKING:
    from pathlib import Path

NOREBUILD = resolve(periods=8, label="WK", grid=(2, 4))  # blocks of 2 slots, rows of 4
REBUILD = resolve(periods=8, label="WK", technique="rebuild", grid=(2, 2))


def part(sub_index: int, block: int, low: int | None, high: int, rows: int = 10) -> Partition:
    """Return a partition whose rows end in slots from low to high."""
    return Partition(sub_index, block, 1, 1, rows, 100, high, low)


@pytest.fixture
def plain(tmp_path: Path) -> Project:
    """A project whose declaration is recorded."""
    return Project(tmp_path / "project", None)


def table(project: Project, layout: Layout, *parts: Partition, rows: int = 100, below: float | None = None) -> TableState:
    """Return a table that migrates from a layout, with partitions of it and one of the new."""
    new = migrated(layout, {"grid": (1, 1)}, periods=8, label="WK")
    (source,) = project.updater().catalog.sources
    own = part(new.first_cell, 0, 5, 5)
    former = (FormerLayout(layout, 4, rows, below),)
    recorded = declaration_of(source, project.root)
    return TableState("a", "stream", "tables/a", "id", 3, new, recorded, "", (*parts, own), former=former)


def test_without_a_former_layout_nothing_is_done(plain: Project) -> None:
    """Neither for a table that does not exist yet."""
    assert former_cells(None, 4, 5).leaving == frozenset()
    migrating = table(plain, NOREBUILD)
    assert former_cells(migrating, 4, 5).leaving == frozenset()
    assert remaining_layouts(migrating.former, migrating.partitions) == ()


def test_blocks_that_are_past_leave_unread(plain: Project) -> None:
    """Block 2 ends with slot 6; a partition whose last row has expired leaves before its block ends."""
    parts = (part(1, 2, 5, 6), part(2, 3, 7, 8), part(3, 3, 7, 7))
    cells = former_cells(table(plain, NOREBUILD, *parts), 5, 6)
    assert (cells.gone, cells.aged, cells.moved) == (((1, 2),), (), ())
    assert former_cells(table(plain, NOREBUILD, *parts), 6, 7).gone == ((1, 2), (3, 3))


def test_the_column_of_the_expired_slots_is_rewritten_where_it_was_rewritten_before(plain: Project) -> None:
    """Cells 1 and 3 are column 0, which slots 5, 7, ... visit; one in which nothing has expired stays."""
    parts = (part(1, 0, 5, 9), part(2, 0, 6, 8), part(3, 0, 7, 9), part(4, 0, None, 8))
    migrating = table(plain, REBUILD, *parts)
    assert former_cells(migrating, 4, 5).aged == ((1, 0),)
    assert former_cells(migrating, 5, 6).aged == ((2, 0), (4, 0))
    assert former_cells(migrating, 6, 8).gone == ((2, 0), (4, 0))


def test_overflowing_rows_are_rewritten_when_their_row_would_close(plain: Project) -> None:
    """Column 0 of the staggered layout closes every fourth slot, the rows in turn."""
    rows = (part(1, OVERFLOW_BLOCK, 5, 40), part(5, OVERFLOW_BLOCK, 5, 40), part(1, OVERFLOW_BLOCK + 1, 10**6, 10**6))
    closed = [former_cells(table(plain, NOREBUILD, *rows), k - 1, k).aged for k in range(5, 13)]
    assert sorted(cell for cells in closed for cell in cells) == [(1, OVERFLOW_BLOCK), (5, OVERFLOW_BLOCK)]
    assert [bool(cells) for cells in closed] == [False, False, False, True, False, False, False, True]


@pytest.mark.parametrize(("below", "moves"), [(None, False), (0.2, False), (0.3, True), (1.0, True)])
def test_the_remainder_moves_below_its_share(plain: Project, below: float | None, *, moves: bool) -> None:
    """Of 100 rows 25 are left in partitions that are not past."""
    parts = (part(1, 2, 5, 6, rows=70), part(2, 3, 7, 8, rows=25))
    cells = former_cells(table(plain, NOREBUILD, *parts, below=below), 5, 6)
    assert (cells.gone, cells.moved) == (((1, 2),), ((2, 3),) if moves else ())
