"""``plan --sample``: what would become of waiting rows, by the rules of updates, without writing anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.operations.projects import Project, at, csv, row, stream
from warehouse.cli.samples import samples_report
from warehouse.operations.update import UpdateOptions

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_what_would_become_of_rows(tmp_path: Path, spark: SparkSession) -> None:
    """The counts are the counts of the next update; files left out are named; the sample writes nothing."""
    project = Project(tmp_path, spark, {"a": stream(), "b": stream(landing="landing/b")})
    lines = [row("live", 0.5, 3), row("waits", 2.5, 4), row("dead", 0.1, 0.9), row("back", 0.5, 0.2), "x,noon,y"]
    project.land("1.csv", csv(*lines))
    project.land("2.csv", "k,b,e,zz\n")
    options = UpdateOptions(at=at(1))
    samples = project.updater().sample(options, 1000)
    assert not project.root.exists()
    report = samples_report(samples)
    first, empty = report.record["samples"]
    counts = {name: first[name] for name in ("rows", "typed", "live", "waiting", "dead", "rejected")}
    assert counts == {"rows": 5, "typed": 4, "live": 1, "waiting": 1, "dead": 1, "rejected": 2}
    assert first["reasons"] == {"expires_before_arrival": 1, "mistyped": 1}
    assert [entry["file"] for entry in first["left_out"]] == ["2.csv"]
    assert first["examples"][0] == {
        "key": ["live"], "ts": "2024-01-01T00:30:00Z", "exp": "2024-01-01T03:00:00Z", "fate": "live", "message": None,
    }  # fmt: skip
    assert empty["rows"] == 0
    assert any("back" in line and "the row expires before it arrives" in line for line in report.lines)
    assert [len(sample.rows) for sample in project.updater().sample(options, 2)] == [2, 0]
    project.update(1)
    loaded = project.counts()
    assert (loaded.inserted, loaded.deferred, loaded.dead, loaded.rejected) == (1, 1, 1, 2)
    project.land("3.csv", csv(row("new", 1.5, 3)))
    later = project.updater().sample(UpdateOptions(at=at(2)), 10)
    assert [(sampled.key, sampled.fate) for sampled in later[0].rows] == [(("new",), "live")], "what was loaded is not read again"
