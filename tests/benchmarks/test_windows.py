"""The rows of window aggregates are the same in every run, their declarations are sound, and synopses are shared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.windows import Traffic, instant, twenty
from warehouse.aggregates.sharing import missing
from warehouse.aggregates.synopses import needs
from warehouse.catalog.load import load_catalog

if TYPE_CHECKING:
    from pathlib import Path


def test_twenty_aggregates_share_a_synopsis_for_each_of_their_groups(tmp_path: Path) -> None:
    """Three windows each; of the rows of an hour all arrive in it, equal in two directories."""
    landed = []
    for name in ("one", "other"):
        traffic = Traffic(tmp_path / name, 50, twenty()).declare()
        landed.append([path.read_bytes() for path in traffic.land(3)])
    assert landed[0] == landed[1]
    catalog = load_catalog(tmp_path / "one")
    assert [len(table.definition.windows) for table in catalog.aggregates] == [3] * 20
    assert len(missing([need for table in catalog.aggregates for need in needs(table.definition)], ())) == 4
    assert instant(1) - instant(0) == catalog.update_interval
