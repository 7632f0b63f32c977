"""``erase_within``: no byte of a dead row is older, in any table; vacuum covers logs and records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalake import DeltaTable

from tests.operations.projects import LATER, Project, at, csv, row, stream
from tests.views.warehouses import view
from warehouse.catalog.declaration import declaration_of
from warehouse.catalog.load import load_catalog
from warehouse.epochs.records import Epoch, Partition, TableState
from warehouse.layout import OVERFLOW_BLOCK, planned_cells, resolve
from warehouse.operations.erasure.overdue import dead_since, overdue
from warehouse.operations.update import UpdateOptions
from warehouse.planning.plan import StreamInput, make_plan
from warehouse.planning.steps import EraseRows
from warehouse.time import DAY, HOUR

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

VIEWS = {
    "counts": view("SELECT k, count(*) AS n FROM a GROUP BY k", erase_within="6h"),
    "pairs": view("SELECT DISTINCT k FROM a", erase_within="6h"),
}


def _hourly(project: Project, hours: range) -> list[float]:
    """Update by the clock, five minutes late, and return the age of the oldest dead row on disk after each, in hours."""
    ages = []
    for hour in hours:
        project.clock = at(hour + 1 / 12)
        lines = (row(f"k{hour}x{number}", hour - 0.4, hour - 0.4 + length) for number, length in enumerate((0.5, 2, 5)))
        content = csv(*lines)
        for name in project.streams:
            project.land(f"{hour}.csv", content, landing=f"landing/{name}", mtime=project.clock - HOUR)
        project.update(hour)
        since = dead_since(project.root)
        ages.append(max([0, *(project.clock - moment for moment in since.values())]) / HOUR)
    return ages


def _planned(directory: Path, partitions: tuple[Partition, ...], *, technique: str = "norebuild") -> list[tuple[int, int]]:
    """Return the partitions that an update to slot 20 rewrites for a bound of 6 h: with retain 1 h, rows may stay for 3 slots."""
    layout = {"technique": technique, "grid": [2, 2]}
    project = Project(directory, None, {"a": stream(erase_within="6h", max_lifetime="8h")}, {"retain": "1h"})
    catalog = load_catalog(project.directory)
    source = catalog.streams[0]
    table = TableState(
        name="a",
        kind="stream",
        path="tables/a",
        table_id="id",
        version=7,
        layout=resolve(periods=8, label="WK", **layout),  # type: ignore[arg-type]
        declaration=declaration_of(source, catalog.root),
        schema_file="",
        partitions=partitions,
    )
    last = Epoch(3, at(19), 19, 18, catalog.anchor, HOUR, at(19), catalog.digest, (table,))
    plan = make_plan(catalog, last, [StreamInput(source, table.layout, ())], slot=20, clock=at(20))
    erased = [step for step in plan.steps if isinstance(step, EraseRows)]
    assert [(step.dead_by, step.keyed, step.base_version) for step in erased] in ([], [(at(20), False, 7)])
    return [cell for step in erased for cell in step.cells]


def _part(cell: int, block: int, first: int | None, last: int, runs: int = 1) -> Partition:
    return Partition(cell, block, runs, runs, 10, 1000, last, first)


def test_an_update_rewrites_what_would_lie_for_too_long(tmp_path: Path) -> None:
    """Rows that ended by slot 18 must be deleted, unless their partition is dropped or merged anyway.

    ::

        slots     13 14 15 16 | 17 18 19 20 | 21 22 23 24      blocks 3, 4, 5 of four slots
        update to 20:  block 4 is past, and dropped
    """
    mixed = _part(1, OVERFLOW_BLOCK, 18, 40)
    assert _planned(tmp_path / "1", (_part(1, 4, 17, 20), _part(1, 5, 21, 24), mixed)) == [(1, OVERFLOW_BLOCK)]
    assert _planned(tmp_path / "2", (_part(1, OVERFLOW_BLOCK, 19, 40),)) == []
    assert _planned(tmp_path / "3", (_part(1, OVERFLOW_BLOCK, None, 40),)) == [(1, OVERFLOW_BLOCK)]
    assert _planned(tmp_path / "4", (_part(1, OVERFLOW_BLOCK, 3, 19),)) == []
    assert _planned(tmp_path / "5", (_part(1, 5, 21, 24),)) == []


def test_a_technique_that_rewrites_is_asked_only_for_the_rest(tmp_path: Path) -> None:
    """Sub-indices that the update rewrites lose their dead rows by that."""
    parts = tuple(_part(cell, 0, 2, 30) for cell in (1, 2, 3, 4))
    cells = {cell for cell, _ in _planned(tmp_path / "project", parts, technique="rebuild")}
    layout = resolve(periods=8, label="WK", technique="rebuild", grid=(2, 2))
    assert cells == {1, 2, 3, 4} - set(planned_cells(layout, 19, 20))
    assert cells


def test_no_dead_row_stays_longer_than_allowed(tmp_path: Path, spark: SparkSession) -> None:
    """In every layout, also for rows that outlive the window, and for tables that existed before the bound.

    Partitions with rows that are dead for too long are rewritten then; a plan tells.
    """
    layouts: dict[str, dict[str, object]] = {"wide": {"grid": [2, 1], "expiry_block": 4}, "rewritten": {"technique": "rebuild"}}
    streams = {name: stream(layout=layout, landing=f"landing/{name}") for name, layout in layouts.items()}
    project = Project(tmp_path / "project", spark, streams, {"retain": "1h"})
    assert max(_hourly(project, range(1, 6))) > 3
    for name in streams:
        project.change(name, erase_within="4h", layout=None)  # what is left out stays as it is
    project.clock = at(6)
    plan, _ = project.updater().plan(UpdateOptions(at=at(6)))
    assert plan is not None
    assert any(isinstance(step, EraseRows) for step in plan.steps)
    assert max(_hourly(project, range(6, 10))[2:]) <= 4
    bounds = dict.fromkeys(streams, 4 * HOUR)
    assert overdue(project.root, bounds, project.clock) == ()
    assert project.keys("wide") == project.keys("rewritten") == "k5x2 k6x2 k7x2 k8x1 k8x2 k9x0 k9x1 k9x2"
    assert min((project.root / "tables/wide/_delta_log").glob("*.json")).name > f"{1:020d}"
    project.clock += 5 * HOUR
    late_tables = overdue(project.root, bounds, project.clock)
    assert {late.table for late in late_tables} == set(streams)
    assert "erase --expired" in late_tables[0].message(project.clock)
    project.updater().erase(None, None)
    assert dead_since(project.root) == {}


def test_views_and_their_state_are_bounded_too(tmp_path: Path, spark: SparkSession) -> None:
    """Keyed tables would otherwise keep dead rows until a change of their bucket."""
    project = Project(tmp_path / "project", spark, {"a": stream()}, {"retain": "1h"}, views=VIEWS)
    _hourly(project, range(1, 3))
    for hour in (3, 4, 6, 8, 9, 10):
        project.clock = at(hour + 1 / 12)
        project.update(hour)
    owners = {state.name: state.owner for state in project.epoch.tables}
    dead = {name: since for name, since in dead_since(project.root).items() if owners[name] in VIEWS}
    assert [name for name, since in dead.items() if project.clock - since > 6 * HOUR] == []


def test_vacuum_leaves_of_logs_and_records_what_readable_epochs_need(tmp_path: Path, spark: SparkSession) -> None:
    """Commits below a checkpoint, retired epochs, old plans and temporary files of a crash are deleted."""
    project = Project(tmp_path / "project", spark, clock=LATER)
    table = project.root / "tables/a"
    for hour in (1, 2, 3):
        project.land(f"{hour}.csv", csv(row("k", hour - 0.5, hour + 3)))
        project.update(hour)
        if hour == 2:
            DeltaTable(table).create_checkpoint()
    before = project.live()
    directory, log = project.root / "epochs", table / "_delta_log"
    (directory / ".x.json.1.tmp").write_text("left by a crash")
    project.clock += 9 * DAY
    assert len(list(log.glob("*.json"))) == 4
    foreseen = project.updater().vacuum(dry_run=True)
    assert len(list(log.glob("*.json"))) == 4
    done = project.updater().vacuum()
    assert (done.epochs, foreseen.epochs) == (2, 2)
    assert done.files >= foreseen.files > 0
    assert sorted(path.name.split(".", 1)[1] for path in directory.iterdir()) == ["epoch.json", "ledger.json", "plan.json"]
    assert min(path.name for path in log.glob("*.json")) == f"{2:020d}.json"
    assert project.live() == before
    project.land("4.csv", csv(row("k4", 3.5, 6)))
    project.update(4)
    assert "k4" in project.keys().split()
    assert project.updater().vacuum().files == 0
