"""Chapter 7: the model keeps the order of the schedulers that the sheet found, and claims are judged both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from benchmarks.source import movements
from benchmarks.source.movements import KINDS, SETTINGS, Measured, Setting, claims, main, measure

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.source.schedulers import Kind


@pytest.mark.parametrize(
    ("setting", "stale"),
    [(Setting(1, 10, 40), (0.54, 0.58, 0.52, 0.51)), (Setting(5, 100, 100), (3.62, 4.66, 2.95, 2.52))],
    ids=str,
)
def test_staleness_as_in_the_sheet(setting: Setting, stale: tuple[float, ...]) -> None:
    """Section 9, the model run: Serial, WS, LWS, TTU."""
    measured = [measure(setting, kind, range(3)).staleness for kind in KINDS]
    assert measured == pytest.approx(stale, rel=0.06)


def test_who_is_ended() -> None:
    """Only Algorithm 7, which reads in a fixed order, ends queries; a serial scheduler lets a one-time query wait."""
    setting = Setting(5, 40, 100, mixed=True)
    measured = {kind: measure(setting, kind, range(2)) for kind in KINDS}
    assert [kind for kind in KINDS if measured[kind].aborts] == ["LWS"]
    assert measured["Serial"].response > 2 * measured["TTU"].response


def test_claims_are_judged_both_ways() -> None:
    """All hold for values in the order that the source found; with equal values, no claim that says "more" or "less often"."""
    values: dict[Kind, Measured] = {
        "Serial": Measured(0, 4, 10, 100, 9, 5),
        "WS": Measured(0, 5, 10, 99, 2, 5),
        "LWS": Measured(0, 3, 20, 50, 3, 4),
        "TTU": Measured(0, 2, 10, 98, 2, 3),
    }
    table = {(setting, kind): measured for setting in SETTINGS for kind, measured in values.items()}
    for setting in SETTINGS:
        share = setting.slots * (0.6 if setting.seconds == 1 else 0.2)
        table[setting, "LWS"] = Measured(share, 3, 20, 50, 3, 4)
    assert [claim.text for claim in claims(table) if not claim.holds] == []
    worst = {
        key: Measured(9, 9 if key[1] == "TTU" else 1, 1, 9 if key[1] != "TTU" else 1, 1, 9 if key[1] == "TTU" else 1)
        for key in table
    }
    assert {claim.name for claim in claims(worst) if claim.holds} <= {"E1", "E2", "E3", "E5"}


def test_the_page_names_every_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command writes a page with a line for each claim, and its pictures."""
    monkeypatch.setattr(movements, "SLOTS", (10,))
    done = CliRunner().invoke(main, ["--seeds", "1", "--results", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0
    page = (tmp_path / "movements.md").read_text()
    assert page.count("| holds") + page.count("does not hold here") == 11
    assert len(list(tmp_path.glob("*.png"))) == page.count("![") == 2
