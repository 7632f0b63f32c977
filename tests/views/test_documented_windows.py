"""The examples of docs/views.md about what windows drop and what a restated relation changes, executed as they stand there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.operations.histories import RELATION
from tests.operations.projects import Project, at, csv, row, stream, text
from warehouse.project import Warehouse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[2] / "docs" / "views.md").read_text()


def _table(first: str) -> list[list[str]]:
    """The cells of the table whose head begins with a word, without the head."""
    lines = PAGE[PAGE.index(f"| {first} |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def _hour(clock: str) -> float:
    hours, minutes = clock.split(":")
    return int(hours) + int(minutes) / 60


def _rows(column: int) -> str:
    return csv(*(row(cells[0], *(_hour(clock) for clock in cells[column].split(" to "))) for cells in _table("key")))


@pytest.mark.parametrize("interval", ["1h", "30m"])
def test_what_windows_drop(tmp_path: Path, spark: SparkSession, interval: str) -> None:
    """The views have the table's keys at each hour; one of them reports results that came and went between two updates."""
    declared: dict[str, Any] = tomllib.loads(re.findall(r"^```text\n(\[views.both\].*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0])
    streams = {"a": stream(), "c": stream(landing="landing/c")}
    project = Project(tmp_path, spark, streams, {"update_interval": interval}, views=declared["views"])
    for column, name in ((1, "a"), (2, "c")):
        project.land("1.csv", _rows(column), landing=f"landing/{name}")
    keys_of: dict[str, list[str]] = {name: [] for name in declared["views"]}
    for hour in (1, 1.5, 2, 3, 4, 5):
        if hour == 1.5 and interval == "1h":
            continue
        project.update(hour)
        if hour != 1.5:
            for name, keys in keys_of.items():
                keys.append(project.keys(name))
    assert keys_of == {cells[1]: cells[2:] for cells in _table("update every") if cells[0] == interval}
    with Warehouse.open(project.directory) as warehouse:
        assert [result["k"] for result in warehouse.restored("both").arrow().to_pylist()] == (["y"] if interval == "1h" else [])


def test_what_a_restated_relation_changes(tmp_path: Path, spark: SparkSession) -> None:
    """After each step the rows of 0:30 and 1:30 have the names in the table."""
    views: dict[str, dict[str, object]] = {
        "seen": {"sql": "SELECT a.k, a.b, r.name FROM a JOIN r ON r.k = a.k", "search_key": "k"},
        "now": {"sql": "SELECT a.k, a.b, t.name FROM a JOIN t ON t.k = a.k", "search_key": "k"},
    }
    for view in views.values():
        assert str(view["sql"]) in PAGE
    relations = {"r": dict(RELATION), "t": {**RELATION, "landing": "landing/t", "retroactive": True}}
    project = Project(tmp_path, spark, {"a": stream()}, views=views, relations=relations)
    project.land("1.csv", csv(row("x", 0.5, 5), row("x", 1.5, 5)))
    steps = _table("step")
    for number, (step, *expected) in enumerate(steps, 1):
        hour = re.fullmatch(r"update at (\d):00(?:, with (\w) from (\d+:\d+))?", step)
        for name in relations:
            if hour is None:
                project.updater().restate(name)
            elif hour[2]:
                change = f"k,c,name\nx,{text(_hour(hour[3]))},{hour[2]}\n"
                project.land(f"{number}.csv", change, landing=f"landing/{name}")
        if hour is not None:
            project.update(int(hour[1]))
        names = [_name(project, view, arrival) for view in views for arrival in (0.5, 1.5)]
        assert (step, names) == (step, expected)


def _name(project: Project, view: str, hour: float) -> str:
    return "".join(result["name"] for result in project.live(view) if result["b"].timestamp() * 1_000_000 == at(hour))


@pytest.mark.parametrize(("interval", "expected"), [("1h", ["x", "x z", "x z"]), ("30m", ["x", "y z", "y z"])])
def test_the_last_results_are_those_that_updates_found(
    tmp_path: Path, spark: SparkSession, interval: str, expected: list[str]
) -> None:
    """With `output_window = 2`, results between two updates take no place; found results stay, by their own time."""
    views = {"last": {"sql": "SELECT a.k FROM a JOIN c ON a.k = c.k", "search_key": "k", "output_window": 2}}
    streams = {"a": stream(), "c": stream(landing="landing/c")}
    project = Project(tmp_path, spark, streams, {"update_interval": interval}, views=views)
    lives = (("x", 0.3, 2.5), ("y", 1.2, 1.7), ("z", 1.6, 3.8))
    for name in ("a", "c"):
        project.land("1.csv", csv(*(row(*life) for life in lives)), landing=f"landing/{name}")
    keys = []
    for hour in (1, 1.5, 2, 3):
        if hour == 1.5 and interval == "1h":
            continue
        project.update(hour)
        if hour != 1.5:
            keys.append(project.keys("last"))
    assert keys == expected


def test_a_row_window_may_begin_empty(tmp_path: Path, spark: SparkSession) -> None:
    """The first update of a warehouse may have nothing to join."""
    views = {"last": {"sql": "SELECT a.k FROM a JOIN c ON a.k = c.k", "search_key": "k", "output_window": 2}}
    project = Project(tmp_path, spark, {"a": stream(), "c": stream(landing="landing/c")}, views=views)
    project.land("1.csv", csv(row("x", 0.3, 9)))
    project.update(1)
    project.land("2.csv", csv(row("x", 1.3, 9)), landing="landing/c")
    project.update(2)
    assert project.keys("last") == "x"
