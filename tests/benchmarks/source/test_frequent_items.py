"""Chapter 6: the measures are as in the sheet's table, and each claim is judged by them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from benchmarks.source.frequent_items import LENGTHS, SUB_WINDOWS, Quality, claims, main, measure

if TYPE_CHECKING:
    from pathlib import Path


def test_measures_are_those_of_the_sheet() -> None:
    """Section 7, b = 500, k = 3, 5, 7: delta, items above it, items reported, pairs, error."""
    by_k = measure(100_000, 500, (3, 5, 7), range(3))
    assert [round(100 * by_k[k].delta, 1) for k in (3, 5, 7)] == [6.1, 3.4, 2.3]
    assert [(by_k[k].above, by_k[k].reported, by_k[k].pairs) for k in (3, 5, 7)] == [(2, 2, 600), (4, 4, 1000), (6, 6, 1400)]
    assert [round(100 * by_k[k].error, 1) for k in (3, 5, 7)] == pytest.approx([0.0, 0.8, 2.4], abs=0.1)


def test_claims_are_judged_both_ways() -> None:
    """All claims hold for values as the source describes them; a worse value turns its claim."""
    grid = {
        (b, k): Quality(
            delta=0.06 - k / 500 - b / 1e5, above=2 + k / 3, reported=2 + k / 3, found=1.0, pairs=100_000 / b * k, error=0.01 / k
        )
        for b in SUB_WINDOWS
        for k in LENGTHS
    }
    assert all(holds for _, _, holds, _ in claims(grid))
    for name, letter in {"delta": "a", "above": "b", "reported": "c", "found": "d", "pairs": "e", "error": "f"}.items():
        worse = 0.0 if name in {"found", "reported", "above"} else 1e9
        bent = grid | {(20, 10): replace(grid[20, 10], **{name: worse})}
        assert {failed for failed, _, holds, _ in claims(bent) if not holds} == {letter}


def test_the_page_names_every_claim(tmp_path: Path) -> None:
    """The command writes a page with a line for each claim, and its pictures."""
    done = CliRunner().invoke(main, ["--rows", "5000", "--trials", "1", "--results", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0
    page = (tmp_path / "frequent-items.md").read_text()
    assert page.count("| holds") + page.count("does not hold here") == 11
    assert len(list(tmp_path.glob("frequent-*.png"))) == page.count("![") == 4
