"""The variants are the techniques of the source: each layout is valid, and cut as its label says."""

from __future__ import annotations

import importlib
import tomllib
from typing import TYPE_CHECKING

import pytest

from benchmarks.source.variants import CLUSTERED, EVERY
from warehouse.layout import resolve

if TYPE_CHECKING:
    from benchmarks.field.roster import Entry
    from warehouse.layout import Layout

PERIODS = 36


def layout_of(entry: Entry) -> Layout:
    """Return the layout that a variant's table gets."""
    module, _, name = entry.spec.partition(":")
    declared = tomllib.loads(getattr(importlib.import_module(module), name).layout)
    grid = declared.pop("grid", None)
    return resolve(periods=PERIODS, label="WK", grid=None if grid is None else tuple(grid), **declared)


@pytest.mark.parametrize("entry", EVERY, ids=lambda entry: entry.name)
def test_a_variant_is_what_its_label_says(entry: Entry) -> None:
    """Waves are n x 1 and 1 x n grids in order of time; REINDEX and Rebuild rewrite, DEL and NoRebuild append unsealed."""
    layout = layout_of(entry)
    assert layout.technique == ("rebuild" if entry.name.startswith(("R", "NoIndex")) else "norebuild")
    assert not layout.seal
    shape = (layout.rows, layout.columns)
    if entry.name[2:5] in ("ins", "exp"):
        n = int(entry.name[5:])
        assert shape == ((n, 1) if "ins" in entry.name else (1, n))
        assert layout.insertion == layout.expiration == "chronological"
    else:
        assert entry.name.removesuffix("chr").endswith(f"{shape[0]}x{shape[1]}")
        assert layout.insertion == layout.expiration == ("chronological" if entry.name.endswith("chr") else "round-robin")


def test_the_source_has_so_many() -> None:
    """Section 8.1: six techniques at n = 1 to 25, the uneven and the chronological grids, no index."""
    assert len(EVERY) == len({entry.name for entry in EVERY}) == 2 + 16 + 8 + 4 + 2 + 1
    assert len(CLUSTERED) == 16
