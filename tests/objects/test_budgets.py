"""Views under a budget in a store: results made in time, results completed later, set-aside results, and no key summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.operations.budgets import bag, declared, land, ledger
from warehouse.limits import limited
from warehouse.serving import Reader
from warehouse.storage.companion_files import SUMMARY

if TYPE_CHECKING:
    from tests.objects.server import StoreProject


def test_a_part_and_its_completion_are_the_exact_view(project: StoreProject) -> None:
    """As on a disk. A key summary would cost a request for each file, so none is written; probes find the same rows."""
    declared(project, 3)
    project.views = {name: project.views[name] for name in ("exact", "some")}
    for view in project.views.values():
        view["short_lived"] = "report"
    project.declare()
    with limited(summary_share=50.0):
        land(project, "1", "pppppq", "pq", 0.5, 3.5)
        land(project, "0", "p", "q", 0.5, 1.5)
        for slot in (1, 2):
            project.update(slot)
    assert bag(project, "some") <= bag(project, "exact")
    assert (ledger(project).made, ledger(project).complete) == (3, False)
    owed = project.epoch.table("some.owed")
    assert owed is not None
    assert sum(part.rows for part in owed.partitions) > 0
    project.updater().complete("some")
    assert bag(project, "some") == bag(project, "exact")
    with Reader.open(project.root) as reader:
        assert len(reader.probe("a", ["p"]).all()) == 5
        reported = reader.restored("some").arrow().to_pylist()
        assert reported
        assert all(row["_owed"] for row in reported)
    assert not list(project.root.rglob(f"*{SUMMARY}"))
