"""The data set of the doubly-partitioned-index sheet (9.2 to 9.4) through the real warehouse, a tick as a minute."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.layout.vectors import ANSWERS, DELTA, GRIDS, MAX_LIFETIME, ROWS, STATES, UPDATES, Grid
from tests.operations.projects import counts_of
from warehouse.layout import planned_cells
from warehouse.storage.snapshot import read_snapshot
from warehouse.testing import Model, Row, Rules, bag
from warehouse.time import MINUTE, parse_instant

from .placement import check_placement
from .project import Layouts, stored_files

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.epochs.records import Epoch

# tick     0  2 .. 16  18  20  22  24  26  28  30
# slot     0  1     8   9  10  11  12  13  14  15
# update        build   *   *   *   *   *       *     (28 is skipped)
ANCHOR = parse_instant("2013-06-01T00:00:00Z")
RULES = Rules(anchor=ANCHOR, interval=DELTA * MINUTE, max_lifetime=MAX_LIFETIME * MINUTE)
_NAMES = {grid.name: grid.name.replace(" ", "_").replace("-", "_") for grid in GRIDS}
REBUILT = {f"rebuild_{_NAMES[grid.name]}": grid for grid in GRIDS if grid.name in STATES}
APPENDED = {f"append_{_NAMES[grid.name]}": grid for grid in GRIDS if grid.name not in ("rr 2x2", "chr 2x2", "rr 3x2")}
"""Rebuild and REINDEX on the five grids of 9.3; DEL on both wave indices, NoRebuild on the sixth grid of 9.2."""


@dataclass(frozen=True)
class Sheet:
    """The warehouse after the last update, and the epoch of each."""

    project: Layouts
    model: Model
    epochs: dict[int, Epoch]


def at(tick: int) -> int:
    """Return the instant of a tick."""
    return ANCHOR + tick * MINUTE


@pytest.fixture(scope="module")
def sheet(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Sheet:
    """Run the data set once over all techniques."""
    layouts = {
        name: {
            "technique": "rebuild" if name in REBUILT else "norebuild",
            "grid": (grid.rows, grid.columns),
            "insertion": grid.assignment,
            "expiration": grid.assignment,
        }
        for name, grid in (REBUILT | APPENDED).items()
    }
    directory: Path = tmp_path_factory.mktemp("sheet")
    project, model = Layouts(directory, RULES, layouts, spark), Model(RULES)
    epochs = {}
    for tick in UPDATES:
        rows = [Row(at(row.ts), at(row.exp), row.key, row.id) for row in ROWS if row.loaded_at == tick]
        project.land(rows)
        model.arrive(*rows)
        model.update(at(tick))
        (epochs[tick],) = project.update(at(tick)).epochs
    return Sheet(project, model, epochs)


def ids_by_cell(sheet: Sheet, stream: str, tick: int) -> dict[int, set[int]]:
    """Return the live ids of each cell at an update, from the files."""
    ids: dict[int, set[int]] = {}
    for file in stored_files(sheet.project.warehouse.root, sheet.epochs[tick], stream):
        ids.setdefault(file.sub_index, set()).update(row["v"] for row in file.live(at(tick)))
    return ids


def rows_in(epoch: Epoch, stream: str, cells: tuple[int, ...]) -> int:
    """Return how many rows lie in cells at an epoch."""
    table = epoch.table(stream)
    assert table is not None
    return sum(part.rows for part in table.partitions if part.sub_index in cells)


@pytest.mark.parametrize("stream", REBUILT | APPENDED)
def test_every_technique_answers_as_the_sheet(sheet: Sheet, stream: str) -> None:
    """After each update, scans and probes return the live ids of 9.4, in all and of each key."""
    for answer in ANSWERS:
        rows = sheet.project.scan(stream, as_of=at(answer.at))
        assert rows == bag(sheet.model.scan(as_of=at(answer.at)))
        assert len(rows) == answer.live
        for key, ids in answer.by_key.items():
            probed = sheet.project.probe(stream, [key], as_of=at(answer.at))
            assert sorted(value for _, value, _, _ in probed) == list(ids), (answer.at, key)


@pytest.mark.parametrize("stream", REBUILT | APPENDED)
def test_every_technique_counts_as_the_sheet(sheet: Sheet, stream: str) -> None:
    """The rows loaded and dropped at load equal 9.4; a rebuilt table removes the rows that 9.4 lists as expired."""
    for answer in ANSWERS:
        counts = counts_of(sheet.epochs[answer.at], stream)
        assert (counts.inserted, counts.dead) == (len(answer.loaded), len(answer.dropped)), answer.at
        assert counts.late == (1 if answer.at == 22 else 0)
        if stream in REBUILT:
            assert counts.expired == len(answer.expired), answer.at


@pytest.mark.parametrize(("stream", "grid"), (REBUILT | APPENDED).items())
def test_every_row_is_in_its_cell(sheet: Sheet, stream: str, grid: Grid) -> None:
    """After each update each cell holds the ids of 9.3, and each row the cell of 9.2."""
    by_id = {row.id: row for row in ROWS}
    for step, tick in enumerate(UPDATES):
        ids_of_cells = ids_by_cell(sheet, stream, tick)
        for cell, ids in ids_of_cells.items():
            assert {by_id[row_id].cells[GRIDS.index(grid)] for row_id in ids} <= {cell}
        if grid.name in STATES:
            expected = STATES[grid.name][step].cells
            assert {cell: ids for cell, ids in ids_of_cells.items() if ids} == {
                cell: set(ids) for cell, ids in enumerate(expected, 1) if ids
            }, tick
        table = sheet.epochs[tick].table(stream)
        assert table is not None
        files = stored_files(sheet.project.warehouse.root, sheet.epochs[tick], stream)
        check_placement(files, table.layout, sheet.epochs[tick], sheet.model.state(at(tick)).live)


@pytest.mark.parametrize(("stream", "grid"), REBUILT.items())
def test_rebuilding_costs_what_the_sheet_says(sheet: Sheet, stream: str, grid: Grid) -> None:
    """Planned and changed cells, rows read and rows written equal 9.3 at each update after the build."""
    for before, tick, state in zip(UPDATES, UPDATES[1:], STATES.get(grid.name, ())[1:], strict=False):
        epoch, counts = sheet.epochs[tick], counts_of(sheet.epochs[tick], stream)
        table = epoch.table(stream)
        assert table is not None
        planned = planned_cells(table.layout, before // DELTA, tick // DELTA)
        assert set(planned) == {*state.inserted, *state.deleted}
        assert counts.planned == len(planned), tick
        assert counts.changed == len(state.changed), tick
        assert counts.rewritten == state.read, tick
        assert counts.rewritten - counts.expired + counts.inserted == state.written, tick
        assert rows_in(sheet.epochs[before], stream, planned) == state.read
        assert rows_in(epoch, stream, planned) == state.written


@pytest.mark.parametrize("stream", REBUILT)
def test_cells_that_are_not_planned_keep_their_files(sheet: Sheet, stream: str) -> None:
    """An update does not change the files of cells that are not in its plan."""
    for before, tick in pairwise(UPDATES):
        old, new = sheet.epochs[before].table(stream), sheet.epochs[tick].table(stream)
        assert old is not None
        assert new is not None
        planned = planned_cells(new.layout, before // DELTA, tick // DELTA)
        files = [
            {
                file.path
                for file in read_snapshot(sheet.project.warehouse.root, table.path, table.version, ()).files
                if file.sub_index not in planned
            }
            for table in (old, new)
        ]
        assert files[0] == files[1], tick
