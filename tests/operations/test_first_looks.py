"""A first update classifies its waiting rows before it is planned; the plan takes them instead of reading the files again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from warehouse.epochs.points import Moment, Point
from warehouse.errors import EmptyFirstRunError
from warehouse.ingest import batch_source
from warehouse.operations.window_times import UpdateOptions
from warehouse.planning import first_run

from .projects import Project, at, csv, row, stream

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from pyspark.sql import SparkSession

LINES = csv(row("live", 0.5, 4), row("waits", 2.5, 4), row("dead", 0.2, 0.6), row("bad", 0.5, "?"), "short")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the streams whose files were read, in order."""
    names: list[str] = []
    plain = batch_source.read_records

    def counted(session: Any, of: Any, groups: Any) -> Any:  # noqa: ANN401 - passed on
        names.append(of.name)
        return plain(session, of, groups)

    monkeypatch.setattr(batch_source, "read_records", counted)
    return names


def two_streams(directory: Path, spark: SparkSession) -> Project:
    """Return a project of two streams with live, waiting, dead and invalid rows."""
    project = Project(directory, spark, {"a": stream(), "b": stream(landing="landing/b")})
    for name in "ab":
        project.land("1.csv", LINES, landing=f"landing/{name}")
    return project


def test_few_rows_are_read_once(tmp_path: Path, spark: SparkSession, reads: list[str]) -> None:
    """The epoch equals that of an update that reads after planning; the next update reads only new files."""
    project, other = (two_streams(tmp_path / name, spark) for name in ("looks", "does_not"))
    project.update(1)
    assert sorted(reads) == ["a", "b"]
    other.update(1, allow_dead=True)
    for name in "ab":
        assert project.keys(name) == "live"
        assert [project.counts(name).dead, project.counts(name).deferred, project.counts(name).rejected] == [1, 1, 2]
        assert project.picture(name) == other.picture(name)
    reads.clear()
    project.land("2.csv", csv(row("next", 1.5, 4)))
    project.update(2)
    assert (reads, project.keys()) == (["a"], "live next")


def test_a_file_that_changes_after_it_was_looked_at_is_left_out(project: Project, reads: list[str]) -> None:
    """The rows of its former content do not get into the table."""
    path = project.land("1.csv", csv(row("former", 0.5, 4)))
    project.land("2.csv", csv(row("stays", 0.5, 4)))

    def observe(moment: Moment) -> None:
        if moment.point == Point.PLANNED:
            path.write_text(csv(row("another", 0.5, 4)))

    report = project.update(1, observer=observe)
    assert [entry.file.path for _, entry in report.left_out] == ["1.csv"]
    assert project.keys() == "stays"
    assert reads == ["a", "a"]


def test_rows_ahead_of_the_clock_are_judged_by_the_clock_of_the_plan(
    project: Project, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that is too far ahead when the files are classified may not be so when the update is planned."""
    project.change(max_ahead="1h", max_lifetime="9h")
    project.land("1.csv", csv(row("near", 0.5, 9), row("ahead", 2.5, 5)))
    project.clock = at(1)
    plain = first_run.refuse_empty

    def slow(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - passed on
        result = plain(*arguments, **options)
        project.clock = at(2)
        return result

    monkeypatch.setattr(first_run, "refuse_empty", slow)
    project.update(1)
    assert reads == ["a", "a"]
    assert (project.keys(), [record["k"] for record in project.deferred()], project.rejected()) == ("near", ["ahead"], [])


def test_an_update_of_a_later_table_reads_it_once(project: Project, reads: list[str]) -> None:
    """Only a stream without a table is classified before planning."""
    project.land("1.csv", csv(row("a", 0.5, 4)))
    project.update(1)
    project.change("b", **stream(landing="landing/b"))
    project.land("2.csv", csv(row("c", 1.5, 4)))
    project.land("1.csv", csv(row("b", 1.5, 4)), landing="landing/b")
    project.update(2)
    assert (sorted(reads), project.keys(), project.keys("b")) == (["a", "a", "b"], "a c", "b")


def test_a_refused_update_hands_nothing_on(project: Project, reads: list[str]) -> None:
    """A later update of the same process reads the files again."""
    path = project.land("1.csv", csv(row("dead", 0.2, 0.6)))
    verbs = project.updater()
    with pytest.raises(EmptyFirstRunError):
        verbs.update(UpdateOptions(at=at(1)))
    path.write_text(csv(row("live", 0.2, 4.6)))
    verbs.update(UpdateOptions(at=at(1)))
    assert (reads, project.keys()) == (["a", "a"], "live")
