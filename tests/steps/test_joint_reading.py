"""One Spark job reads few rows of several streams, and each stream gets the rows that it would get alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.operations.projects import Project, row, stream

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

NESTED = {"k": "string", "b": "timestamp", "e": "timestamp", "n": "struct<a: int, b: array<string>>", "d": "decimal(12,3)"}
STREAMS: dict[str, dict[str, object]] = {
    "a": stream(),
    "b": stream(landing="landing/b", format="json", columns=NESTED),
    "c": stream(landing="landing/c", columns={"k": "string", "b": "timestamp", "e": "timestamp", "a": "int"}),
    "z": stream(landing="landing/z", timezone="America/New_York"),
}
"""Streams of other formats and columns, and one that is read with a time zone of its own."""
TIMES = '"b": "2024-01-01T00:30:00Z", "e": "2024-01-01T03:00:00Z"'
FILES = {
    "a": "k,b,e\n" + row("x", 0.5, 3) + "\n" + row("y", 1.5, 3) + "\nno,time,here\n",
    "b": f'{{"k": "x", {TIMES}, "n": {{"a": 1, "b": ["u", null]}}, "d": 1.5}}\n{{"k": "q", {TIMES}}}\nbroken\n',
    "c": "k,b,e,a\n" + row("", 0.5, 3) + ",7\n",
    "z": "k,b,e\nx,2023-12-31 19:30:00,2023-12-31 22:00:00\n",
}


def _loaded(directory: Path, spark: SparkSession, files: dict[str, str]) -> Project:
    directory.mkdir()
    project = Project(directory, spark, {name: dict(keys) for name, keys in STREAMS.items()})
    for name, content in files.items():
        project.land(f"1.{STREAMS[name]['format']}", content, landing=f"landing/{name}")
    project.update(1, allow_dead=True)  # else a first update looks at the rows before it is planned, and takes them from there
    return project


def _held(project: Project) -> dict[str, tuple[object, ...]]:
    contents = {}
    for name in STREAMS:
        rejected = [{**record, "message": ""} for record in project.rejected(name)]
        contents[name] = project.live(name), project.deferred(name), rejected, project.counts(name)
    return contents


def _jobs(project: Project) -> int:
    return sum(step.jobs or 0 for step in project.epoch.seconds)


def test_streams_read_together_hold_what_each_holds_alone(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Live, waiting and rejected rows, and counts, are equal; a stream with another time zone takes a job of its own."""
    together = _loaded(tmp_path / "together", spark, FILES)
    monkeypatch.setattr("warehouse.steps.sources.read_together", lambda _: None)
    alone = _loaded(tmp_path / "alone", spark, FILES)
    assert _held(together) == _held(alone)
    assert (_jobs(together), _jobs(alone)) == (2, 4)
    assert together.live("z")[0]["k"] == "x"


def test_a_file_that_cannot_be_read_takes_no_other_stream_with_it(tmp_path: Path, spark: SparkSession) -> None:
    """The file is left out with its reason; the other streams are loaded."""
    strange = f'{{"k": "x", {TIMES}, "unheard": 1}}\n'
    project = _loaded(tmp_path / "p", spark, {**FILES, "b": strange})
    left_out = {entry.stream: [file.reason for file in entry.left_out] for entry in project.epoch.files if entry.left_out}
    assert left_out == {"b": ["unknown_columns"]}
    assert [project.keys(name) for name in "abcz"] == ["x", "", "None", "x"]
