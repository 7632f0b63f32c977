"""Coalesced tables with a budget: members are shed, the ledger lists them, and each verb changes both together.

The rows and updates equal :mod:`.test_coalesced`; tables without a budget have the exact rows.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from warehouse.checking.check import check
from warehouse.cli.main import stream_wh
from warehouse.coalescing.accuracy import accuracy
from warehouse.coalescing.definition import LEDGER, STAMPS
from warehouse.coalescing.runs import Run
from warehouse.epochs.points import Point
from warehouse.errors import LowAccuracyError
from warehouse.limits import limited, limits
from warehouse.operations.migrate import MigrationRequest
from warehouse.operations.update import UpdateOptions
from warehouse.serving import Reader
from warehouse.serving.statement import select
from warehouse.serving.table_status import accuracies
from warehouse.time import HOUR

from .projects import Project, StoppedError, at, stop_at
from .test_coalesced import declared, land

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SHED = {"shed_values": "by_value", "shed_rising": "rising", "shed_truth": "truth", "shed_newest": "newest"}
"""Tables with a budget, and those like them without one."""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Return the project after the updates up to 3, with the file of 5: tables with and without a budget, and a view."""
    project = declared(tmp_path_factory.mktemp("shed"), spark)
    budgets: dict[str, dict[str, Any]] = {
        "shed_values": {"budget": {"rows": 5}},
        "shed_rising": {"budget": {"keep": 0.7}, "shed": "random"},
        "shed_truth": {"budget": {"rows": 3}, "shed": "cals-i"},
        "shed_newest": {"budget": {"accuracy": 0.5}},
    }
    for name, budget in budgets.items():
        project.coalesced[name] = {**project.coalesced[SHED[name]], **budget}
    project.views = {"on_top": {"sql": "SELECT k, v, members FROM shed_values WHERE members > 0", "search_key": "k"}}
    project.declare()
    for hour in (1, 2, 3):
        land(project, hour)
        with limited(driver_rows=0 if hour == 2 else limits().driver_rows):
            project.update(hour)
    land(project, 5)
    return project


def stored(project: Project, name: str) -> list[dict[str, Any]]:
    """Return the rows of a table with its state, by group and start."""
    with Reader.open(project.root) as reader:
        pin, state = reader.pin, reader.pin.state(name)
        tau = pin.epoch.window_time
        columns = ["k", "valid_from", "valid_to", "members", "open", STAMPS, *([LEDGER] if name in SHED else [])]
        text = select(pin.live_source(state, tau), columns)
        rows = reader.connection.sql(text).to_arrow_table().to_pylist()
    return sorted(rows, key=lambda row: (row["k"] or "", row["valid_from"]))


def shed_in(row: dict[str, Any]) -> set[tuple[str | None, int]]:
    """Return the members that a row's ledger lists as shed, by group."""
    return {(row["k"], stamp) for entry in row[LEDGER] or () for stamp in entry["shed"]}


def shed_stamps(project: Project, name: str) -> set[tuple[str | None, int]]:
    """Return the members that a table's ledger lists as shed, by group."""
    return {stamp for row in stored(project, name) for stamp in shed_in(row)}


def runs_of(project: Project, name: str) -> list[Run]:
    """Return the exact rows of the table without a budget, with the shed members of the other's ledger."""
    stamps, runs = shed_stamps(project, name), []
    for row in stored(project, SHED[name]):
        numbers = frozenset(number for number, stamp in enumerate(row[STAMPS]) if (row["k"], stamp) in stamps)
        end = int(row["valid_to"].timestamp() * 10**6)
        runs.append(Run(row["k"], None, tuple(row[STAMPS]), end, numbers, row["open"]))
    assert sum(len(run.shed) for run in runs) == len(stamps)
    return runs


def verify(project: Project) -> dict[str, float]:
    """Compare each shed table with the exact one beside it; return the accuracies."""
    assert list(check(project.root).findings) == []
    for name in SHED:
        runs = runs_of(project, name)
        pieces = sorted((run.group or "", piece.start, piece.end) for run in runs for piece in run.fragments)
        rows = [(row["k"] or "", row["valid_from"], row["valid_to"]) for row in stored(project, name)]
        assert [(k, *(int(time.timestamp() * 10**6) for time in times)) for k, *times in rows] == pieces, name
        for length in (0, HOUR // 2, 2 * HOUR):
            with Reader.open(project.root) as reader:
                share = accuracies(reader, length)[name]
                assert reader.scan(name).accuracy(length) == share
            assert share == pytest.approx(accuracy(runs, length).share), (name, length)
    with Reader.open(project.root) as reader:
        return accuracies(reader)


def test_each_epoch_is_exact_but_for_what_went(begun: Project, tmp_path: Path) -> None:
    """With every way to compare, every method, by the driver and Spark; later updates shed more."""
    project = begun.copy(tmp_path / "copy")
    assert min(verify(project).values()) < 1
    project.update(5)
    shares = verify(project)
    assert {name: shares[name] < 1 for name in SHED} == dict.fromkeys(SHED, True)
    assert shares["shed_newest"] >= 0.5
    assert sum(row["members"] for row in stored(project, "shed_values")) <= 5
    land(project, 6)
    project.update(6)
    verify(project)


def test_answers_say_what_they_stand_on(begun: Project) -> None:
    """Answers of the table, of SQL and of views above give the accuracy; less than required is an error."""
    with Reader.open(begun.root) as reader:
        share = accuracies(reader)["shed_values"]
        for answer in (
            reader.scan("shed_values"), reader.scan("shed_values", where="members > 1"), reader.probe("shed_values", ["p"]),
            reader.sql("SELECT count(*) FROM shed_values"), reader.scan("on_top"), reader.changes("shed_values", since=1),
        ):  # fmt: skip
            assert answer.shed == ("shed_values",)
            assert answer.arrow().schema.metadata[b"stream_wh.accuracy"] == repr(share).encode()
            assert answer.accuracy() == share < 1
            with pytest.raises(LowAccuracyError, match=r'table "shed_values" has an accuracy of 0\.'):
                answer.accuracy(minimum=share + 0.01)
        exact = reader.scan("by_value")
        assert exact.accuracy() is None
        assert b"stream_wh.accuracy" not in exact.arrow().schema.metadata


def test_commands_tell_the_accuracy(begun: Project) -> None:
    """They exit with 4 below the required accuracy; status shows it for each table, explain shows the shed members."""
    with Reader.open(begun.root) as reader:
        share, long = (accuracies(reader, length)["shed_values"] for length in (0, 2 * HOUR))

    def told(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(stream_wh, ["-C", str(begun.directory), *words], standalone_mode=False)
        return result.return_value, result.output

    for words in (["scan", "shed_values"], ["probe", "shed_values", "p"], ["sql", "SELECT k FROM shed_values"]):
        code, text = told(*words)
        assert (code, f"members of shed_values were shed: accuracy {share:.4f}" in text) == (0, True), text
        code, text = told(*words, "--at-least", "2h")
        assert f"accuracy {long:.4f} for rows of at least 2h" in text
        with pytest.raises(LowAccuracyError):
            CliRunner().invoke(
                stream_wh, ["-C", str(begun.directory), *words, "--minimum-accuracy", "0.99"], catch_exceptions=False
            )
    listed = CliRunner().invoke(stream_wh, ["-C", str(begun.directory), "status", "-o", "json"]).stdout
    assert {row["table"]: row["accuracy"] for row in json.loads(listed)}["shed_values"] == pytest.approx(share)
    assert told("status", "--minimum-accuracy", "0.99")[0] == 4
    code, text = told("explain", "shed_values")
    assert f"accuracy: {share:.4f}" in text
    assert "is exceeded" not in text
    assert "stands on members that were shed, of shed_values" in told("explain", "on_top")[1]


@pytest.mark.parametrize("point", [Point.STAGED, Point.STEP_COMMITTED])
def test_a_killed_update_sheds_the_same(point: Point, begun: Project, tmp_path: Path) -> None:
    """Also with random shedding."""
    project, other = (begun.copy(tmp_path / name) for name in ("copy", "other"))
    other.update(5)
    plan, _ = project.updater().plan(UpdateOptions(at=at(5)))
    assert plan is not None
    number = next(index for index, step in enumerate(plan.steps) if step.stream == "shed_rising")
    with pytest.raises(StoppedError):
        project.update(5, observer=stop_at(point, number))
    project.update(5)
    for name in SHED:
        assert stored(project, name) == stored(other, name)


def test_going_back_takes_the_ledger_back(begun: Project, tmp_path: Path) -> None:
    """A rollback restores that epoch's ledger; a restatement sheds again; another update interval changes nothing."""
    project = begun.copy(tmp_path / "copy")
    before = {name: stored(project, name) for name in SHED}
    project.update(5)
    stamps = {name: shed_stamps(project, name) for name in SHED}
    project.updater().rollback(2)
    verify(project)
    for name in SHED:
        assert shed_stamps(project, name) <= stamps[name] | {stamp for row in before[name] for stamp in shed_in(row)}
    assert any(shed_stamps(project, name) != stamps[name] for name in SHED)
    project.updater().restate("a", since="first")
    verify(project)
    project = begun.copy(tmp_path / "again")
    project.warehouse["update_interval"] = "30m"
    project.declare()
    project.updater().migrate(None, MigrationRequest())
    assert {name: stored(project, name) for name in SHED} == before
    verify(project)


def test_erased_groups_leave_the_ledger(begun: Project, tmp_path: Path) -> None:
    """Stamps and accuracy cover the remaining groups."""
    project = begun.copy(tmp_path / "copy")
    project.updater().erase("a", ["p"])
    assert {row["k"] for row in stored(project, "shed_values")} == {None, "q"}
    verify(project)
    project.update(5)
    verify(project)


def test_a_budget_comes_and_goes(begun: Project, tmp_path: Path) -> None:
    """A new budget sheds stored members; without it all members are back, since the ledger has them."""
    project = begun.copy(tmp_path / "copy")
    project.coalesced["by_value"]["budget"] = {"rows": 4}
    for name in SHED:
        project.coalesced[name].pop("budget")
        project.coalesced[name].pop("shed", None)
    project.declare()
    project.update(5)
    exact = {name: stored(project, like) for name, like in SHED.items() if like != "by_value"}
    for name, rows in exact.items():
        assert [{**row, LEDGER: None} for row in rows] == stored(project, name)
    assert sum(row["members"] for row in stored(project, "by_value")) == 4
    with Reader.open(project.root) as reader:
        assert list(accuracies(reader)) == ["by_value"]
    assert list(check(project.root).findings) == []


def test_a_table_that_is_no_longer_declared_is_sound(begun: Project, tmp_path: Path) -> None:
    """Its rows expire, and the ledger stays as the last update wrote it."""
    project = begun.copy(tmp_path / "copy")
    for name in SHED:
        del project.coalesced[name]
    project.views.clear()
    project.declare()
    for hour in (5, 6, 7):
        project.update(hour)
        assert list(check(project.root).findings) == []
