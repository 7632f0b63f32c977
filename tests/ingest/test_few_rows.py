"""Updates of few rows, whose plans are cached, read every dialect of text that updates of many rows read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project, csv, row, stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize("encoding", ["windows-1252", "ISO-8859-1", "ISO-8859-15", "Shift_JIS", "UTF-16", "UTF-16LE", "KOI8-R"])
def test_each_encoding_is_read_in_each_update(tmp_path: Path, spark: SparkSession, encoding: str) -> None:
    """The setting that permits an encoding belongs to the table's session, whichever one the thread used last."""
    letter = {"Shift_JIS": "語", "KOI8-R": "ж"}.get(encoding, "ä")
    project = Project(tmp_path, spark, {"a": stream(options={"encoding": encoding}), "z": stream(landing="landing/z")})
    for hour in (1, 2, 3):
        project.land(f"{hour}.csv", csv(row(f"{letter}{hour}", hour - 0.5, 9)).encode(encoding))
        project.land(f"{hour}.csv", csv(row("z", hour - 0.5, 9)), landing="landing/z")
        project.update(hour)
        assert project.keys() == " ".join(f"{letter}{number}" for number in range(1, hour + 1))
    assert (project.counts("a").rejected, project.counts("z").rejected) == (0, 0)
