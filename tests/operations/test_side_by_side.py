"""Migrating side by side: new rows go to the new layout, old ones expire where they are, and the old layout vanishes.

A window of p = 6 slots; update 8 is the last before the migration::

    k = 2   3   4   5   6   7   8 | 9   10  11  12  13  14
        old rows ................ | ........................   gone at 14 = 8 + p, or moved before
                                  | new rows ...............
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.soak.arrivals import soaked
from tests.soak.witness import Witness, expected
from warehouse import Warehouse
from warehouse.catalog.model import LayoutSpec
from warehouse.checking.check import check
from warehouse.epochs.points import Moment, Point
from warehouse.errors import UsageError
from warehouse.layout import remaining_share
from warehouse.operations.migrate import MigrationReport, MigrationRequest
from warehouse.serving.table_status import status

from .projects import Project, StoppedError, at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.epochs.records import TableState

P = 6
BEGUN = 8


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Callable[[str], Witness]:
    """Return a warehouse after eight updates of one technique, with its model; each is made once."""
    made: dict[str, Witness] = {}

    def of(technique: str) -> Witness:
        if technique not in made:
            project = soaked(tmp_path_factory.mktemp(technique) / "project", spark, viewed=False)
            project.warehouse["retain"] = "2d"
            if technique != "norebuild":
                project.streams["rows"] = {**project.streams["rows"], "layout": {"technique": technique}}
            project.declare()
            witness = Witness(project)
            for _ in range(BEGUN):
                moved(witness)
            project.streams["rows"].pop("layout", None)
            project.declare()
            made[technique] = witness
        return made[technique]

    return of


def moved(witness: Witness, observer: Any = None) -> None:  # noqa: ANN401 - an observer, if there is one
    """Land the rows of the next slot, update, and check that readers see the model's rows."""
    slot = witness.land()
    witness.project.clock = at(slot)
    witness.project.update(slot, **({} if observer is None else {"observer": observer}))
    witness.check()


def copied(witness: Witness, directory: Path) -> Witness:
    """Return a copy of the witness for one test, with its history."""
    project = witness.project.copy(directory / "project")
    copy = Witness(project, witness.seed, witness.slot)
    copy.model.states.extend(witness.model.states)
    copy.model.landed.extend(witness.model.landed)
    return copy


def side_by_side(witness: Witness, *, move_below: float | None = None, **keys: Any) -> MigrationReport:  # noqa: ANN401 - of the layout
    """Migrate side by side."""
    request = MigrationRequest(LayoutSpec(**keys), side_by_side=True, move_below=move_below)
    report = witness.project.updater().migrate("rows", request)
    witness.check()
    return report


def state(project: Project) -> TableState:
    """Return the state of the table at the newest epoch."""
    table_state = project.epoch.table("rows")
    assert table_state is not None
    return table_state


def old_rows(project: Project) -> int:
    """Return the live rows in former layouts, counted in the files."""
    return sum(1 for row in project.live("rows") if any(former.holds(row["sub_index"]) for former in state(project).former))


@pytest.mark.parametrize(
    ("before", "keys"),
    [
        pytest.param("norebuild", {"technique": "rebuild"}, marks=pytest.mark.long),
        ("rebuild", {"technique": "norebuild"}),
    ],
    ids=["to-rebuild", "to-norebuild"],
)
def test_the_old_layout_only_expires_and_vanishes(
    begun: Callable[[str], Witness], tmp_path: Path, before: str, keys: dict[str, Any]
) -> None:
    """Every answer equals the model's, old cells get no row, and `status` shows and predicts the remaining rows."""
    witness = copied(begun(before), tmp_path)
    project = witness.project
    spark, project.spark = project.spark, None  # nothing is written now
    report = side_by_side(witness, **keys)
    project.spark = spark
    assert (report.side_by_side, report.epoch) == (True, project.epoch)
    (former,) = state(project).former
    assert (former.rows, former.since) == (old_rows(project), BEGUN)
    assert state(project).layout.first_cell == former.layout.last_cell + 1
    left = former.rows
    for step in range(1, P + 1):
        moved(witness)
        assert check(project.root).findings == ()
        now = old_rows(project)
        assert now <= left
        left = now
        with Warehouse.open(project.directory) as warehouse, warehouse.reader() as reader:
            (stands,) = status(reader, retain=0)
        if state(project).former:
            (shown,) = stands.former
            assert (shown.rows, shown.predicted) == (now, remaining_share(step, P))
            assert shown.share == now / former.rows
            loads = [row["_load_slot"] for row in project.stored("rows") if former.holds(row["sub_index"])]
            assert max(loads, default=0) <= BEGUN
        else:
            assert stands.former == ()
    overflow = [row for row in project.live("rows") if former.holds(row["sub_index"])]
    assert all(row["_exp_slot"] > row["_load_slot"] + P for row in overflow), "what outlives the window may outlive the migration"
    for _ in range(3):
        moved(witness)
    assert state(project).former == ()
    assert check(project.root).findings == ()


def test_the_remainder_moves_once_it_is_small(begun: Callable[[str], Witness], tmp_path: Path) -> None:
    """An update stopped at any point of the move is completed; the threshold can be changed meanwhile."""
    witness = copied(begun("norebuild"), tmp_path)
    project = witness.project
    side_by_side(witness, technique="rebuild", move_below=0.01)
    moved(witness)
    (former,) = state(project).former
    assert old_rows(project) > 0.2 * former.rows
    side_by_side(witness, move_below=1.0)
    assert [layout.move_below for layout in state(project).former] == [1.0]
    seen: list[tuple[Point, int]] = []

    def once(moment: Moment) -> None:
        if (moment.point, moment.step) not in seen:
            seen.append((moment.point, moment.step))
            raise StoppedError

    slot = witness.land()
    project.clock = at(slot)
    for _ in range(30):
        try:
            project.update(slot, observer=once)
        except StoppedError:
            witness.check()
            continue
        break
    witness.check()
    assert (Point.STEP_COMMITTED, 0) in seen
    assert state(project).former == ()
    assert project.counts("rows").rewritten > 0
    before, after = (expected(model_state.live) for model_state in witness.model.states[-2:])
    with Warehouse.open(project.directory) as warehouse:
        kinds = warehouse.changes("rows", since=project.epoch.number - 1).arrow().column("_change_type").to_pylist()
    assert (kinds.count("insert"), kinds.count("expire")) == ((after - before).total(), (before - after).total())
    assert "delete" not in kinds, "a row that only moved has not changed"
    assert check(project.root).findings == ()
    moved(witness)
    assert check(project.root).findings == ()


def test_a_third_layout_while_two_are_there_and_writing_all_anew(begun: Callable[[str], Witness], tmp_path: Path) -> None:
    """A layout may follow before the first is empty; `--rebuild` merges them into one."""
    witness = copied(begun("norebuild"), tmp_path)
    project = witness.project
    side_by_side(witness, grid=(2, 2))
    moved(witness)
    side_by_side(witness, technique="rebuild")
    moved(witness)
    assert len(state(project).former) == 2
    assert len({row["sub_index"] for row in project.live("rows")} & set(range(state(project).layout.first_cell))) > 0
    assert check(project.root).findings == ()
    project.updater().migrate("rows", MigrationRequest())
    witness.check()
    layout = state(project).layout
    assert (state(project).former, layout.technique) == ((), "rebuild")
    assert {layout.first_cell <= row["sub_index"] <= layout.last_cell for row in project.stored("rows")} == {True}
    assert check(project.root).findings == ()
    moved(witness)


def test_what_old_rows_cannot_follow_where_they_are(begun: Callable[[str], Witness], tmp_path: Path) -> None:
    """Only the layout may change side by side."""
    witness = copied(begun("norebuild"), tmp_path)
    witness.project.spark = None
    witness.project.change("rows", search_key="v")
    with pytest.raises(UsageError, match=r"streams.rows.search_key changed too.*migrate with --rebuild"):
        side_by_side(witness, grid=(2, 2))
