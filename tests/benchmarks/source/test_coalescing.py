"""Eager and lazy coalescing in memory: vectors of the sheet, the same rows either way, and each claim judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from benchmarks.source.coalescing import Eager, Lazy, arrivals, main, measure

if TYPE_CHECKING:
    from pathlib import Path

V2 = ((1, "a"), (5, "a"), (9, "a"), (13, "b"), (7, "b"), (3, "a"), (15, "b"), (11, "b"), (6, "c"), (8, "a"), (16, "b"), (14, "b"))


def test_the_eager_update_is_that_of_the_sheet() -> None:
    """V2 of temporal-coalescing, w = 6: split, merges, extensions to the back, a late first row."""
    eager, lazy = Eager(), Lazy()
    for number, (stamp, value) in enumerate(V2):
        for extent in (eager, lazy):
            if number >= 6:
                extent.drop_oldest()
            extent.insert(stamp, value)
        assert eager.scan() == lazy.scan()
    assert eager.rows == [["a", 9, 11, []], ["b", 11, 16, [13, 14, 15, 16]]]
    assert eager.bytes(24) == 2 * 24 + 4 * 8


@pytest.mark.parametrize(("cp", "oop"), [(0.0, 1.0), (0.5, 0.4), (0.9, 0.0), (1.0, 1.0)])
def test_both_updates_give_the_same_rows(cp: float, oop: float) -> None:
    """Over drawn members, in order and late; both are measured over the same window."""
    drawn = arrivals(cp, oop, 1000)
    assert (drawn == sorted(drawn)) == (oop == 0.0)
    measured = measure(cp, oop, 1000, 200)  # raises where the rows differ
    assert measured.members == 200
    assert (measured.rows == 1) == (cp == 1.0)


def test_the_page_names_every_claim(tmp_path: Path) -> None:
    """The command writes a page with a line for each claim, the queries of DuckDB, and its picture."""
    options = ["--members", "1000", "--window", "100", "--points", "5000", "--results", str(tmp_path)]
    done = CliRunner().invoke(main, options, catch_exceptions=False)
    assert done.exit_code == 0
    page = (tmp_path / "coalescing.md").read_text()
    assert page.count("| holds") + page.count("does not hold here") == 17
    assert "gaps and islands" in page
    assert (tmp_path / "coalescing-costs.png").exists()
