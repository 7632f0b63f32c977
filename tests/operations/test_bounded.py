"""The files below the root do not grow with the number of updates; the tests need no Spark, since no row arrives."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from warehouse.epochs.journal import numbers
from warehouse.epochs.known import known_files

from .projects import Project, at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

UPDATES = 66
PAST = 8
RETAINED = 4


def kinds(root: Path) -> Counter[str]:
    """Count the files below a root by folder and kind: ``epochs/past.json``, ``live/json``, ``live/checkpoint.parquet``."""
    files = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return Counter(f"{path.parts[0]}/{path.name.partition('.')[2]}" for path in files)


def test_files_of_every_kind_stop_growing(tmp_path: Path, set_limits: Callable[..., object]) -> None:
    """Records, plans, ledgers, logs and checkpoints stay few, whatever the number of updates, and without `vacuum`.

    Epochs within `retain` stay readable; the records of older epochs are deleted many at a time.
    """
    set_limits(past_records=PAST)
    project = Project(tmp_path / "project", None, warehouse={"retain": f"{RETAINED - 1}h", "publish": "delta"})
    most: list[Counter[str]] = [Counter(), Counter(), Counter()]
    for hour in range(1, UPDATES + 1):
        project.clock = at(hour)
        project.update(hour)
        third = most[3 * (hour - 1) // UPDATES]
        third |= kinds(project.root)
    first, second, last = most
    assert last == second
    assert last.keys() == first.keys() | {"epochs/ledger.json"}
    records = {kind: last[f"epochs/{kind}.json"] for kind in ("epoch", "plan", "past", "ledger")}
    assert records == {"epoch": RETAINED, "plan": RETAINED, "past": PAST - 1, "ledger": 2}
    assert sum(last.values()) < sum(records.values()) + 40
    assert project.numbers == list(range(UPDATES - RETAINED, UPDATES))


def test_what_retired_epochs_loaded_stays_known(tmp_path: Path, set_limits: Callable[..., object]) -> None:
    """A file that could not be read stays known, and is not tried again, long after its epoch is forgotten."""
    set_limits(past_records=PAST)
    project = Project(tmp_path / "project", None, warehouse={"retain": f"{RETAINED - 1}h"})
    project.land("torn.csv.gz", b"no gzip")
    project.change(files="*")
    for hour in range(1, 2 * PAST):
        project.clock = at(hour)
        report = project.update(hour)
        assert len(report.left_out) == (hour == 1)
    assert numbers(project.root, "past")[0] > 0
    assert set(known_files(project.root, project.epoch)["a"].left_out) == {"torn.csv.gz"}
