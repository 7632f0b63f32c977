"""Claims are judged by the measured figures, both ways, and say when a figure is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.field.job import Job
from benchmarks.field.results import Results
from benchmarks.source.claims import CLAIMS, Claim, Experiment
from benchmarks.source.page import page
from benchmarks.source.variants import CLUSTERED, EVERY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOB = Job(rows=1_000, keys=100, updates=1)
FACTS = {"machine": {"processor": "a", "cores": 2, "memory": "b", "system": "c"}, "versions": {}, "load": 0.0, "started": "now"}
NAMES = {"small": EVERY, "rates": CLUSTERED, "large": CLUSTERED}
SLOWER = {"small": 1.0, "rates": 1.1, "large": 10.0}


def parts(name: str) -> int:
    """Return n of a variant."""
    digits = "".join(character if character.isdigit() else " " for character in name).split()
    return int(digits[0]) * (int(digits[1]) if len(digits) > 1 else 1)


def as_the_source_says(experiment: str, name: str) -> dict[str, float]:
    """Return seconds of update, probe and scan, and bytes, in the order that the source found."""
    n = parts(name)
    side = n**0.5
    if ("Rebuild" in name or "NoIndex" in name) and "2x8" not in name and "8x2" not in name:
        update = (2 * side - 1) / n + (0.0 if experiment == "large" else 0.01 * max(0, n - 16))
    else:
        update = 1.0 + 0.01 * n
    update += {"2x8": -0.55, "8x2": -0.65}.get(name[-3:], 0.0)
    factor = 1.0
    for word, by in (("chr", 1.15), ("exp", 1.2), ("NoRebuild", 0.96), ("D-", 0.97), ("NoIndex", 0.8)):
        factor *= by if word in name else 1.0
    wave = "ins" in name or "exp" in name
    probe = (0.001 + 0.00002 * n) * (1.02 if wave else 1.0) * (1.01 if "NoRebuild" in name or "D-" in name else 1.0)
    if name in ("Rebuild2x8", "Rebuild8x2"):
        probe = 0.001 + 0.00002 * 16
    slower = SLOWER[experiment] * (1.1 if wave and experiment == "rates" else 1.0)
    stored = 1.3 if "NoRebuild" in name or "D-" in name else 1.0
    return {
        "update": update * factor * slower,
        "probe": 0.3 if "NoIndex" in name else probe,
        "scan": 0.3 + 0.001 * n,
        "bytes": 117_000 * stored * (1 + 0.001 * n),
    }


def recorded(place: Path, told: Callable[[str, str], dict[str, float]]) -> dict[str, Experiment]:
    """Return experiments in which every variant made one update with the times that ``told`` returns."""
    experiments = {}
    for experiment, entries in NAMES.items():
        results = Results(place / f"{experiment}.jsonl", JOB, FACTS)
        for entry in entries:
            values = told(experiment, entry.name)
            results.add(
                "done",
                entry.name,
                slot=37,
                load=values["update"],
                expire=0.0,
                tidy=0.0,
                written=1,
                landed=10,
                live=900,
                stored=1000,
                bytes=values["bytes"],
                files=3,
                scan=values["scan"],
                aggregate=0.1,
                probes={kind: [[values["probe"]]] for kind in ("few", "many", "absent")},
            )
        experiments[experiment] = Experiment(JOB, results)
    return experiments


def turned(experiment: str, name: str) -> dict[str, float]:
    """Return figures in the opposite of the source's order."""
    return {quantity: 1 / value for quantity, value in as_the_source_says(experiment, name).items()}


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_a_claim_is_judged_both_ways(tmp_path: Path, claim: Claim) -> None:
    """Numbers in the source's order make it hold, numbers in the opposite order do not; both are reported."""
    (tmp_path / "as").mkdir()
    verdict, measured = claim.verdict(recorded(tmp_path / "as", as_the_source_says))
    assert verdict == "holds", measured
    assert any(character.isdigit() for character in measured)
    (tmp_path / "turned").mkdir()
    assert claim.verdict(recorded(tmp_path / "turned", turned))[0] == "does not hold here"


def test_what_was_not_measured_is_said(tmp_path: Path) -> None:
    """Without an experiment, or a variant of it, there is no verdict; the page says so and why others failed."""
    experiments = recorded(tmp_path, turned)
    del experiments["large"]
    verdicts = {claim.name: claim.verdict(experiments)[0] for claim in CLAIMS}
    assert verdicts["C10"] == verdicts["C11"] == "not measured"
    experiments["small"].results.add("again", "Rebuild4x4")
    experiments["small"].results.add("failed", "Rebuild4x4", slot=37, reason="no more eels", missing=False)
    assert CLAIMS[0].verdict(experiments) == ("not measured", "Rebuild4x4 did not run")
    text = page(experiments, NAMES, None, 12)
    assert all(f"| {claim.name} " in text for claim in CLAIMS)
    assert "Rebuild4x4: no more eels" in text
    assert CLAIMS[1].otherwise in text
