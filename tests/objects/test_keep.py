"""``keep`` in a store: whole objects of rejected rows are deleted, by the ages that epochs record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.operations.projects import csv, row
from warehouse.checking.check import check
from warehouse.operations.unneeded_files import GRACE
from warehouse.time import HOUR

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.objects.server import StoreProject


def test_rejected_rows_leave(project: StoreProject) -> None:
    """After `keep` the newest epoch has no rejected row; the objects are deleted after `retain`."""
    project.warehouse |= {"keep": "4h", "retain": "2h"}
    project.declare()
    for hour in (1, 2):
        project.land(f"{hour}.csv", csv(row("fine", hour - 0.5, hour + 2), f"bad{hour},,"))
        project.clock += HOUR
        project.update(hour)
    for hour, rows in ((3, 1), (4, 0), (8, 0)):
        project.clock += 7 * HOUR // 2 if hour == 3 else 2 * HOUR
        project.update(hour)
        assert len(project.rejected()) == rows
    project.clock += GRACE
    project.updater().vacuum()
    files = [path for path in (project.root / "rejected" / "a").rglob("*.parquet") if "_delta_log" not in path.parts]
    assert files == []
    assert check(project.root).findings == ()


def test_updates_cut_logs_now_and_then(project: StoreProject, set_limits: Callable[..., object]) -> None:
    """In a store each file of a log costs a request, so only one update in `past_records` epochs cuts the logs."""
    set_limits(checkpoint_interval=1, past_records=4)
    project.warehouse |= {"retain": "1h"}
    project.declare()
    for hour in (1, 2):
        project.land(f"{hour}.csv", csv(row("fine", hour - 0.5, hour + 9)))
        project.clock += HOUR
        project.update(hour)
    project.spark = None
    begins = []
    for hour in (3, 4, 5):
        project.clock += 2 * HOUR
        project.update(hour)
        log = project.root / "tables" / "a" / "_delta_log"
        begins.append(min(int(path.stem) for path in log.glob("*.json")))
    assert begins[0] == begins[1] == 0 < begins[2]
    assert check(project.root).findings == ()
