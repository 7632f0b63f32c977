"""What stands in the way of an erasure, what it leaves, and what is overdue: the commands that messages name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.operations.projects import Project, csv, row, stream

from .executed import advised, executes, typed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

_ERASE = "stream-wh erase a --key x --yes"


@executes(
    "is no longer declared, so it cannot be built without them; `stream-wh drop ○` first",
    'view "○" was changed in warehouse.toml; run `stream-wh update` first, which builds it',
    "then take a new one with `stream-wh backup DIR`",
)
def test_views_in_the_way(past: Project, tmp_path: Path) -> None:
    """An undeclared view and a changed view stop the erasure; afterwards a new backup is needed."""
    once = past.views.pop("once")
    past.declare()
    printed = typed(past.directory, _ERASE, code=2)
    typed(past.directory, advised(printed, "is no longer declared, so it cannot be built without them; `stream-wh drop ○` first"))
    past.views["counts"] = {"sql": "SELECT k, count(*) AS n, min(b) AS first FROM a GROUP BY k", "search_key": "k"}
    past.declare()
    printed = typed(past.directory, _ERASE, code=2)
    part = 'view "○" was changed in warehouse.toml; run `stream-wh update` first, which builds it'
    typed(past.directory, advised(printed, part) + " --at 2024-01-01T04:00:00Z")
    printed = typed(past.directory, _ERASE, code=4)
    typed(past.directory, advised(printed, "then take a new one with `stream-wh backup DIR`"), DIR=str(tmp_path / "new"))
    assert once["sql"]


@executes("erase_within allows ○; `○` removes them", "run `○`", "stream-wh erase --expired")
def test_dead_rows_for_too_long(tmp_path: Path, spark: SparkSession) -> None:
    """The dead rows are erased at once."""
    project = Project(tmp_path / "project", spark)
    project.land("1.csv", csv(row("x", 0.5, 1.5), row("y", 0.5, 4)))
    project.update(1)
    project.update(2)
    project.warehouse["retain"] = "0s"
    project.change("a", erase_within="3h")
    printed = typed(project.directory, "stream-wh health", code=4)
    command = advised(printed, "erase_within allows ○; `○` removes them")
    assert advised(command, "stream-wh erase --expired") == command
    assert advised(typed(project.directory, "stream-wh check", code=4), "run `○`") == command
    typed(project.directory, f"{command} --yes")
    printed = typed(project.directory, "stream-wh health", code=4)  # y, which ended after the window time
    command = advised(printed, "erase_within allows ○; `○` removes them")
    assert command == "stream-wh update"
    typed(project.directory, command)
    assert "erase_within" not in typed(project.directory, "stream-wh health", code=0)


@executes("to be rid of it, take it out of warehouse.toml, `stream-wh update` and `stream-wh drop ○`")
def test_an_aggregate_that_still_has_its_part(tmp_path: Path, spark: SparkSession) -> None:
    """The aggregate is no longer declared, and dropped."""
    totals = {"from": "a", "select": {"rows": "count(*)"}, "windows": ["1h"], "keep": "1d"}
    project = Project(tmp_path / "project", spark, {"a": stream()}, aggregates={"totals": totals})
    project.land("1.csv", csv(row("x", 0.5, 4), row("y", 0.5, 4)))
    project.update(1)
    printed = typed(project.directory, _ERASE, code=4)
    part = "to be rid of it, take it out of warehouse.toml, `stream-wh update` and `stream-wh drop ○`"
    command = advised(printed, part)
    project.aggregates.clear()
    project.declare()
    typed(project.directory, "stream-wh update --at 2024-01-01T02:00:00Z")
    typed(project.directory, command)
    assert "totals" not in typed(project.directory, "stream-wh tables")
