"""An update on a disk that fails, at some of the moments of ``python -m tests.soak.faults``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .faults import Trial, with_checkpoints

if TYPE_CHECKING:
    from pathlib import Path

    from tests.operations.projects import Project


@pytest.fixture(scope="module")
def trial(expiring: Project, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    """The update in which the first rows expire, with checkpoints."""
    directory = tmp_path_factory.mktemp("trial")
    return Trial(with_checkpoints(expiring.copy(directory / "begun")), 3, directory)


def _one_of_each(paths: list[Path]) -> dict[str, Path]:
    """Return a file of each kind, by its name without numbers."""
    return {path.name.lstrip("0123456789") if path.name[0].isdigit() else path.suffix or path.name: path for path in paths}


def test_a_loss_of_power_loses_nothing_that_an_update_made(trial: Trial) -> None:
    """The disk may lose anything that was not synced: the next update completes the one before."""
    trial.lose_power(trial.moments[1::7], ["any"])
    assert trial.wrong == []
    assert trial.counts["power lost: the next update completed"] > 3


def test_a_sync_that_fails_is_made_good(trial: Trial) -> None:
    """The update fails with an error, and the next update completes it."""
    trial.fail_syncs(range(2, len(trial.syncs), 11))
    assert trial.wrong == []
    assert trial.counts["sync failed: the next update completed"] > 3


def test_damage_is_named_and_mended(trial: Trial) -> None:
    """For damaged data, entries and records: whatever readers give, `check` names the damage, and all rows can be restored."""
    kinds = _one_of_each(trial.files)
    trial.damage([kinds[name] for name in (".parquet", ".json", ".epoch.json")], ["cut"])
    assert trial.wrong == []
    assert sum(count for outcome, count in trial.counts.items() if "named by check" in outcome) == 3


def test_the_trial_finds_other_rows(trial: Trial) -> None:
    """A trial that could not find other rows would prove nothing."""
    rows = trial.rows
    trial.rows = {}
    trial.fail_syncs([0])
    assert trial.wrong.pop().endswith("other rows")
    trial.rows = rows
