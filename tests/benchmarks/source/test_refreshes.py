"""Chapter 8: the model's techniques keep the order that the sheet found, and claims are judged both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from benchmarks.source.refreshes import LOADS, SIZES, TECHNIQUES, Outcome, claims, main, measure

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("technique", "refreshes"), [("No-S", 4.2), ("CS", 4.7), ("AS", 48)])
def test_overload_as_in_the_sheet(technique: str, refreshes: float) -> None:
    """Section 9, the model run at 3000/s with 240 queries: refreshes an update."""
    assert measure(LOADS[1], 30, technique, range(3), 300).refreshes == pytest.approx(refreshes, rel=0.05)


def test_claims_are_judged_both_ways() -> None:
    """All claims hold for values in the order that the source found; with equal values for all, no strict claim."""
    low = {"No-S": 1.0, "CS": 2.0, "CS + late": 3.0, "CS + late-pending": 3.0, "HS": 9.0, "H-LS": 9.0, "H-LP": 10.0, "AS": 30.0}
    high = low | {"HS": 3.0, "H-LS": 4.0, "H-LP": 8.0, "AS": 2.5, "CS": 1.0, "CS + late": 1.5, "CS + late-pending": 1.5}
    late = {
        "No-S": 90.0,
        "CS": 40.0,
        "HS": 1.0,
        "H-LS": 0.9,
        "H-LP": 0.5,
        "AS": 60.0,
        "CS + late": 20.0,
        "CS + late-pending": 20.0,
    }
    rates = {LOADS[0].name: low, LOADS[1].name: high}
    table = {
        (load, size, name): Outcome(rates[load][name] * size, 1, late[name], 10 if name.startswith("H") else 20)
        for load in rates
        for size in SIZES
        for name in TECHNIQUES
    }
    assert [claim.text for claim in claims(table) if not claim.holds] == []
    equal = dict.fromkeys(table, Outcome(1, 1, 0, 20))
    failed = {claim.name for claim in claims(equal) if not claim.holds}
    assert failed == {"M2", "M3", "M4", "M5"}


def test_the_page_names_every_claim(tmp_path: Path) -> None:
    """The command writes a page with a line for each claim, and its pictures."""
    done = CliRunner().invoke(main, ["--seeds", "1", "--updates", "20", "--results", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0
    page = (tmp_path / "refreshes.md").read_text()
    assert page.count("| holds") + page.count("does not hold here") == 15
    assert len(list(tmp_path.glob("*.png"))) == page.count("![") == 2
