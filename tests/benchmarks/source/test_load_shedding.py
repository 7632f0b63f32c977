"""Load shedding: the sweep gives the sheet's values, and each claim of the source is judged by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click.testing import CliRunner

from benchmarks.source.load_shedding import CPS, RATIOS, RECOMPUTED, THETAS, Sweep, claims, main, sweep

if TYPE_CHECKING:
    from pathlib import Path

_AWARE = {0.3: 1.0, 0.5: 0.94, 0.7: 0.81, 0.9: 0.79}


def _sheet() -> Sweep:
    """The sheet's values; the values at theta 10 are of section 9, no other theta matters for a claim."""
    accuracies: Sweep = {}
    for (name, cp), row in RECOMPUTED.items():
        for ratio, share in zip(RATIOS, row, strict=True):
            accuracies |= {(name, cp, ratio, theta): share for theta in THETAS}
    for cp, cals, rand in ((0.1, 0.0, 0.25), (0.3, 0.0, 0.25), (0.5, 0.02, 0.24), (0.7, 0.5, 0.2), (0.9, 0.72, 0.20)):
        accuracies |= {("CALS retained", cp, 0.5, 10): cals, ("RAND", cp, 0.5, 10): rand}
    return accuracies


def test_values_are_those_of_the_sheet() -> None:
    """Few streams of one probability lie near the sheet's means of twenty, and in its order."""
    accuracies = sweep(4, (0.9,), (0,))
    for name in ("CALS", "CALS retained", "RAND"):
        for ratio, share in zip(RATIOS, RECOMPUTED[name, 0.9], strict=True):
            assert abs(accuracies[name, 0.9, ratio, 0] - share) < 0.07
    assert accuracies["CALS", 0.9, 0.5, 0] > accuracies["CALS-V", 0.9, 0.5, 0] > accuracies["RAND", 0.9, 0.5, 0]


def test_claims_are_judged_both_ways() -> None:
    """With the sheet's values two claims of the source do not hold; a changed value changes the verdict of its claim."""
    judged = {words: holds for _, words, holds, _ in claims(_sheet(), _AWARE)}
    assert [words for words, holds in judged.items() if not holds] == [
        "an order of magnitude at cp 0.9, half kept",
        "theta has little influence (half kept)",
    ]
    worse = _sheet() | {("CALS", cp, 0.5, 0): 0.1 for cp in CPS}
    assert not next(holds for _, words, holds, _ in claims(worse, _AWARE) if words.startswith("CALS is above RAND"))
    assert not next(holds for _, words, holds, _ in claims(_sheet(), {0.3: 0.1}) if "repairs" in words)


def test_the_page_names_every_claim(tmp_path: Path) -> None:
    """The command writes a page with a line for each claim, and its pictures."""
    done = CliRunner().invoke(main, ["--streams", "1", "--results", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0
    page = (tmp_path / "load-shedding.md").read_text()
    assert page.count("| holds") + page.count("does not hold here") == 11
    assert len(list(tmp_path.glob("shedding-*.png"))) == page.count("![") == 2
