"""Defaults beside others: each variant differs in what its title says, and the page compares it with the defaults."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from benchmarks.field import defaults
from benchmarks.field.defaults import VARIANTS, defaults_page
from benchmarks.field.job import Job
from benchmarks.field.roster import OURS
from warehouse.layout import resolve
from warehouse.storage.writer import key_settings

from .test_page import JOB, recorded

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.field.roster import Entry

KEY = [("k", "string")]
DEFAULT = resolve(periods=Job().periods, label="WK")


@pytest.mark.parametrize("entry", VARIANTS, ids=lambda entry: entry.name)
def test_a_variant_differs_in_one_thing(entry: Entry) -> None:
    """Either in how files are written, and only while it writes, or in its layout."""
    kind = getattr(defaults, entry.spec.partition(":")[2])
    declared = tomllib.loads(kind.layout)
    grid = declared.pop("grid", None)
    layout = resolve(periods=Job().periods, label="WK", grid=None if grid is None else tuple(grid), **declared)
    usual = key_settings(KEY)
    with defaults._other(kind.constants):
        written = key_settings(KEY)
    assert key_settings(KEY) == usual
    assert (written != usual) != (layout != DEFAULT)
    if entry.title.startswith("row groups"):
        assert f"{int(written['parquet.block.row.count.limit']):,}" in entry.title
    elif entry.title.startswith("grid"):
        assert entry.title == f"grid of {layout.rows} x {layout.columns}"
    elif entry.title.startswith("expiry blocks"):
        assert entry.title == f"expiry blocks of {layout.expiry_block} slots, {layout.columns} columns"


def test_the_page_has_ratios_to_the_defaults(tmp_path: Path) -> None:
    """And the reason why a variant has no ratio."""
    first, second, third = (entry.name for entry in VARIANTS[:3])
    results = recorded(tmp_path / "d.jsonl", {OURS: [2.0, 2.0, 2.0], first: [3.0, 3.0, 3.0], second: [1.0, 1.0, 1.0]})
    results.add("failed", third, slot=38, reason="no such size", missing=False)
    lines = defaults_page(JOB, results).splitlines()
    assert any(line.startswith(f"| {VARIANTS[0].title}") and "x 1.50" in line for line in lines)
    assert any(line.startswith(f"| {VARIANTS[1].title}") and "x 0.50" in line for line in lines)
    assert f"* {VARIANTS[2].title}: no such size" in lines
