"""Coalesced tables in a store: rows, ledgers and accuracies equal those under a local root."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.operations.drawn_coalesced import DrawnPoints, declare
from warehouse.serving import Reader

if TYPE_CHECKING:
    from tests.objects.server import StoreProject


def test_rows_are_those_of_the_model(project: StoreProject) -> None:
    """After late points and a catch-up, also for a lazy table; an erased group leaves with its ledger."""
    declare(project)
    project.coalesced["made"] = {**project.coalesced["by_value"], "how": "lazy"}
    project.change(expires="ts + INTERVAL 9 HOURS")
    drawn = DrawnPoints(project, random.Random(5))  # noqa: S311 - points of a test
    for slots in (1, 2):
        drawn.update(slots)
    drawn.require_equal()
    with Reader.open(project.root) as reader:
        made, stored = (sorted(map(repr, reader.scan(name).all())) for name in ("made", "by_value"))
    assert made == stored != []
    _, receipt = project.updater().erase("a", ["p"])
    assert receipt is not None
    with Reader.open(project.root) as reader:
        for name in project.coalesced:
            assert "p" not in {row["k"] for row in reader.scan(name).arrow().to_pylist()}
