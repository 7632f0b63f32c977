"""The small updates get the same rows whenever they are run, and a declaration that is sound with any number of views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.small import VIEWS, Small
from warehouse.catalog.load import load_catalog
from warehouse.planning.declared_nodes import sound_nodes

if TYPE_CHECKING:
    from pathlib import Path


def test_a_small_update_has_the_same_rows_in_every_run(tmp_path: Path) -> None:
    """A third of the rows in each stream, equal in two directories; all views can be maintained."""
    landed = []
    for name in ("one", "other"):
        small = Small(tmp_path / name, 9, len(VIEWS))
        small.declare()
        small.land(3)
        files = sorted((tmp_path / name / "landing").rglob("*.json"))
        landed.append([file.read_text() for file in files])
    assert landed[0] == landed[1]
    assert [len(text.splitlines()) for text in landed[0]] == [3, 3, 3]
    nodes, refused = sound_nodes(load_catalog(tmp_path / "one"))
    assert refused == {}
    assert len(nodes) >= len(VIEWS)
