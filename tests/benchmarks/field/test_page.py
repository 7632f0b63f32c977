"""The page tells medians with their spread, ratios, who is missing and why, and how each was set up."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from benchmarks.field import derive
from benchmarks.field.figures import QUANTITIES, beside, spread
from benchmarks.field.growth import growth_page
from benchmarks.field.job import Job
from benchmarks.field.page import page, save_page
from benchmarks.field.results import Results, pack
from benchmarks.field.roster import HOT, OURS, ROSTER

if TYPE_CHECKING:
    from pathlib import Path

JOB = Job(rows=1_000, keys=100, updates=3)
FACTS = {"machine": {"processor": "a", "cores": 2, "memory": "b", "system": "c"}, "versions": {}, "load": 0.0, "started": "now"}
UPDATE = QUANTITIES[0]


def recorded(path: Path, times: dict[str, list[float]]) -> Results:
    """Return results in which contenders took these times for their updates, and constant figures otherwise."""
    results = Results(path, JOB, FACTS)
    for name, seconds in times.items():
        for slot, duration in zip(JOB.slots, seconds, strict=False):
            line = {"load": duration, "expire": 0.0, "tidy": 0.0, "written": 2600, "landed": 10, "live": 9, "stored": 10}
            more = {"bytes": 1170, "files": 3, "scan": duration, "aggregate": duration}
            probes = {"few": [[duration, 9.0]], "many": [[duration]], "absent": [[duration]]}
            results.add("done", name, slot=slot, probes=probes, **line, **more)
    return results


def test_figures_are_medians_and_ratios_of_the_same_updates(tmp_path: Path) -> None:
    """A contender that made fewer updates is compared over these."""
    results = recorded(tmp_path / "r.jsonl", {OURS: [1.0, 2.0, 4.0], "duckdb": [3.0, 4.0]})
    ours, other = spread(results, OURS, UPDATE, JOB), beside(results, "duckdb", OURS, UPDATE, JOB)
    assert ours is not None
    assert (ours.low, ours.median, ours.high) == (1.5, 2.0, 3.0)
    assert other is not None
    assert other.value == 3.5 / 1.5
    assert (other.low, other.high) == (2.25, 2.75)
    spreads = {quantity.name: spread(results, OURS, quantity, JOB) for quantity in QUANTITIES}
    medians = {name: measured.median for name, measured in spreads.items() if measured is not None}
    assert medians["written"] == 2600 / (10 * 130)
    assert medians["space"] == 1170 / (9 * 130)
    assert medians["dead"] == pytest.approx(1170 * 0.1 / 1e6)
    assert medians["few"] == 2000.0


def test_the_page_is_honest(tmp_path: Path) -> None:
    """It has failures with their reasons, says who beats us at everything, and how each was set up."""
    times = {OURS: [2.0, 2.0, 2.0], HOT: [4.0, 4.0, 4.0], "duckdb": [1.0, 1.0, 1.0]}
    results = recorded(tmp_path / "r.jsonl", times)
    results.add("failed", "sqlite", slot=38, reason="served the dead", missing=False)
    results.add("failed", "postgres", slot=36, reason="no elephant", missing=True)
    text = page(JOB, results, ROSTER)
    assert "failed at update 38: served the dead" in text
    assert "not run: no elephant" in text
    assert re.search(r"space at once: from files +\| holds +\| nobody", text)  # equal space is not better
    assert re.search(r"two columns within 3 times of a DuckDB table: from files +\| holds +\| 0.5 times ours \(duckdb\)", text)
    assert re.search(r"the same: in memory +\| does not hold +\| 0.25 times ours \(duckdb\)", text)
    assert re.search(r"faster than every wave index +\| not measured +\| from 1,000,000 live rows on", text)
    assert all(f"**{entry.title}.** " in text for entry in ROSTER)
    assert "0.5 (0.5 to 0.5)" in text


def test_a_page_is_made_again_from_packed_lines(tmp_path: Path) -> None:
    """The job, the commit and all figures come from the lines; of two sizes it tells where contenders cross."""
    pytest.importorskip("matplotlib", reason="the extra bench draws the plots")
    texts = []
    for rows, other in ((1_000, 1.0), (100_000, 4.0)):
        directory = tmp_path / str(rows)
        directory.mkdir()
        job = replace(JOB, rows=rows)
        results = Results(directory / "field.jsonl", job, {**FACTS, "commit": "abc1234"})
        for name, seconds in ((OURS, 2.0), ("duckdb", other)):
            for slot in job.slots:
                line = {"load": seconds, "expire": 0.0, "tidy": 0.0, "written": 2600, "landed": 10, "live": 9, "stored": 10}
                probes = {"few": [[1.0, 9.0]], "many": [[1.0]], "absent": [[1.0]]}
                results.add("done", name, slot=slot, probes=probes, bytes=9, files=3, scan=1.0, aggregate=1.0, **line)
        texts.append(save_page(job, results, ROSTER, directory).read_text())
        pack(results.path)
        (directory / "README.md").unlink()
        results.path.unlink()
    result = CliRunner().invoke(derive.main, [str(tmp_path / "1000"), str(tmp_path / "100000")])
    assert result.exit_code == 0, result.output
    assert [(tmp_path / name / "README.md").read_text() for name in ("1000", "100000")] == texts
    assert "commit abc1234" in texts[0]
    assert re.search(r"duckdb +\| +1 \| +4 \| +10,000", (tmp_path / "by-rows.md").read_text())


def test_plots_are_pictures(tmp_path: Path) -> None:
    """Every plot that the page shows is a PNG beside it."""
    pytest.importorskip("matplotlib", reason="the extra bench draws the plots")
    results = recorded(tmp_path / "r.jsonl", {OURS: [1.0, 2.0, 4.0], "duckdb": [3.0, 4.0, 5.0]})
    shown = save_page(JOB, results, ROSTER, tmp_path).read_text()
    pictures = list(tmp_path.glob("*.png"))
    assert len(pictures) > 5
    for picture in pictures:
        assert f"]({picture.name})" in shown
        assert picture.read_bytes().startswith(b"\x89PNG")


def test_growth_compares_tenths(tmp_path: Path) -> None:
    """A quantity that grows fails the target, a constant quantity holds it; a run that is too short has no table."""
    job = replace(JOB, updates=40)
    results = Results(tmp_path / "g.jsonl", job, FACTS)
    assert "medians" not in growth_page(job, results)
    for number, slot in enumerate(job.slots):
        counted = {"opening": 0.01, "log_files": 3, "log_bytes": 10, "records": 5, "record_bytes": 20}
        line = {"load": 1.0 + number, "expire": 0.0, "scan": 1.0, "bytes": 9, "files": 3, "live": 9, "landed": 10}
        results.add("done", OURS, slot=slot, probes={"few": [[1.0]]}, counted=counted, **line)
    lines = growth_page(job, results).splitlines()
    (update,) = (line for line in lines if line.startswith("| update"))
    (opening,) = (line for line in lines if line.startswith("| opening"))
    assert "5.92" in update  # medians of updates 37 to 40 and 5 to 8
    assert "does not hold" in update
    assert "1.00" in opening
    assert "≤ 1.5: holds" in opening
