"""Damage that is repaired without a decision, and damage that is left to a person."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from warehouse.checking.check import check
from warehouse.epochs.journal import epoch_path, plan_path, record_path
from warehouse.errors import RecordDamagedError

if TYPE_CHECKING:
    from pathlib import Path

    from .projects import Project


@pytest.fixture
def copy(history: Project, tmp_path: Path) -> Project:
    """Return a copy of the project for one test."""
    return history.copy(tmp_path / "project")


def test_a_truncated_newest_epoch_is_made_again(copy: Project) -> None:
    """From its plan and the commits in the tables' logs, with the same content."""
    before = {table: copy.picture(table) for table in ("a", "b", "counts", "once", "named", "r")}
    path = epoch_path(copy.root, 2)
    path.write_bytes(path.read_bytes()[:500])
    assert {finding.code for finding in check(copy.root).faults} == {"epoch_damaged"}
    done = copy.updater().repair()
    assert "set the damaged record of epoch 2 aside" in done[0]
    assert "finished the update to epoch 2" in done
    assert {table: copy.picture(table) for table in before} == before
    assert {finding.code for finding in check(copy.root).findings} == {"set_aside"}
    copy.spark = None
    assert copy.updater().repair() == (f"removed epochs/{path.name}.damaged",)
    assert check(copy.root).findings == ()


def test_an_older_epoch_or_one_without_a_plan_is_left_alone(copy: Project) -> None:
    """Nothing is guessed: the damaged record stays in place."""
    copy.spark = None
    path = epoch_path(copy.root, 2)
    path.write_bytes(b"{}")
    plan_path(copy.root, 2).unlink()
    with pytest.raises(RecordDamagedError):
        copy.updater().repair()
    assert path.read_bytes() == b"{}"
    assert {finding.repair for finding in check(copy.root).faults} == {""}


def test_left_overs_old_plans_and_lost_schema_files_are_mended_without_spark(copy: Project) -> None:
    """Afterwards the check finds nothing."""
    copy.spark = None
    state = copy.epoch.table("named")
    assert state is not None
    (copy.root / state.schema_file).write_bytes(b"PAR1")
    for number in (1, 2):
        plan = record_path(copy.root, number, "plan")
        plan.write_bytes(plan.read_bytes()[:-9])
    (copy.root / "epochs/.half.tmp").touch()
    strange = copy.root / "tables/a/strange.parquet"
    strange.touch()
    os.utime(strange, (0, 0))
    assert len(check(copy.root).findings) == 5
    done = copy.updater().repair()
    assert len(done) == 5, done
    assert check(copy.root).findings == ()
    assert copy.updater().repair() == ()
