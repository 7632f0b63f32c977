"""Aggregates of live rows and of frequent items, and updates that have too little time for answers, on one small warehouse.

Updates at 1, 2 and 5; rows as (item, arrival, end); the last update catches up over three slots::

    hour   0.....1.....2.....3.....4.....5
    1        a a b c                          of which one a ends in slot 2, the b in slot 4
    2        A     b c                        A is late
    5                    a b b   b  c         one b arrives and ends between two ends
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from warehouse.checking.check import check
from warehouse.cli.status import status
from warehouse.epochs.points import Point
from warehouse.operations.update import UpdateOptions
from warehouse.project import Warehouse
from warehouse.time import to_micros
from warehouse.units import counted

from .projects import ANCHOR, Project, StoppedError, at, csv, stop_at, stream, text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

HOUR = 3_600_000_000
Row = tuple[str, float, float]
ROWS: dict[int, list[Row]] = {
    1: [("a", 0.2, 1.5), ("a", 0.3, 9), ("b", 0.4, 3.5), ("c", 0.5, 9)],
    2: [("a", 0.7, 2.5), ("b", 1.5, 9), ("c", 1.7, 3.0)],
    5: [("a", 2.5, 9), ("b", 2.6, 3.4), ("b", 2.7, 9), ("b", 3.3, 4.6), ("c", 4.5, 9)],
}


def declared(directory: Path, spark: SparkSession, **warehouse: object) -> Project:
    """Return a stream of items, and aggregates of each kind: by DuckDB, and with a condition by Spark."""
    keep = {"windows": ["1h", "3h"], "keep": "8h"}
    counts = {"n": "count(*)", "first": "min(k)", "kinds": "count(DISTINCT k)"}
    above, top = {"item": "k", "above": 0.3, "k": 4}, {"item": "k", "top": 1, "k": 2}
    aggregates: dict[str, dict[str, object]] = {
        "living": {"from": "a", "over": "live", "select": counts, **keep},
        "living_spark": {"from": "a", "over": "live", "where": "k < 'z'", "select": counts, **keep},
        "often": {"from": "a", "frequent": above, **keep},
        "often_spark": {"from": "a", "where": "k < 'z'", "frequent": above, **keep},
        "top_living": {"from": "a", "over": "live", "frequent": top, **keep},
        "top_counted": {"from": "a", "over": "live", "frequent": {**top, "exact": True}, **keep},
    }
    return Project(directory, spark, {"a": stream(max_lifetime="9h")}, warehouse=dict(warehouse), aggregates=aggregates)


def land(project: Project, hour: int) -> None:
    """Put the rows of an hour into a file."""
    project.land(f"{hour}.csv", csv(*(f"{k},{text(begins)},{text(ends)}" for k, begins, ends in ROWS[hour]), header="k,b,e"))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Return the project after the updates up to 2, with the file of 5."""
    project = declared(tmp_path_factory.mktemp("begun"), spark)
    for hour in (1, 2):
        land(project, hour)
        project.update(hour)
    land(project, 5)
    return project


@pytest.fixture(scope="module")
def moved(begun: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of that project after all updates."""
    project = begun.copy(tmp_path_factory.mktemp("kinds") / "copy")
    project.update(5)
    return project


def items(length: int, end: int, loaded: int, *, live: bool = False) -> Counter[str]:
    """Return the items of a window, of the rows that were loaded by an hour."""
    rows = [row for hour, batch in ROWS.items() if hour <= loaded for row in batch]
    return Counter(k for k, begins, ends in rows if end - length < math.ceil(begins) <= end and (not live or ends > end))


def answers(project: Project, table: str) -> dict[tuple[int, int], list[dict[str, Any]]]:
    """Return every stored answer, by length and end."""
    by_window: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for row in project.stored(table):
        end = (to_micros(row["window_end"]) - ANCHOR) // HOUR
        by_window.setdefault((int(row["window_length"][0]), end), []).append(row)
    return by_window


WINDOWS = [(length, end, min(hour for hour in ROWS if hour >= end)) for length in (1, 3) for end in range(1, 6)]
"""Length and end of each window, and by which update it is answered."""


@pytest.mark.parametrize("table", ["living", "living_spark"])
def test_live_rows_are_those_that_live_on_at_the_end_of_the_window(table: str, moved: Project) -> None:
    """Also at ends that a catch-up passes, with rows that came and ended in between; each answer is complete."""
    by_window = answers(moved, table)
    for length, end, loaded in WINDOWS:
        counts = items(length, end, loaded, live=True)
        (row,) = by_window[length, end]
        assert (row["n"], row["first"], row["kinds"]) == (counts.total(), min(counts, default=None), len(counts)), (length, end)
        assert row["full"], (length, end)


@pytest.mark.parametrize("table", ["often", "often_spark"])
def test_frequent_items_are_within_their_bounds(table: str, moved: Project) -> None:
    """Lists are long enough here to be exact; a late batch has its own list, which the next answers count."""
    by_window = answers(moved, table)
    for length, end, loaded in WINDOWS:
        counts = items(length, end, loaded)
        above = {item: (count, count) for item, count in counts.items() if count > 0.3 * counts.total()}
        rows = by_window.get((length, end), [])
        assert {row["item"]: (row["at_least"], row["at_most"]) for row in rows} == above, (length, end)
        assert all(row["certain"] and row["complete"] for row in rows)
        assert all(row["full"] == (end >= length) for row in rows)


def test_the_top_of_the_live_rows(moved: Project) -> None:
    """From lists of two items with bounds; exact counts if all rows are stored."""
    bounded, counted = answers(moved, "top_living"), answers(moved, "top_counted")
    exact = 0
    for length, end, loaded in WINDOWS:
        counts = items(length, end, loaded, live=True)
        most = max(counts.values(), default=0)
        lists, rows = bounded.get((length, end), []), counted.get((length, end), [])
        for row in [*lists, *rows]:
            assert row["at_least"] <= counts[row["item"]] <= row["at_most"], (length, end)
            assert not row["certain"] or counts[row["item"]] == most, (length, end)
        if end == loaded and lists and all(row["complete"] for row in lists):
            exact += 1
            top_items = {item: (most, most) for item, count in counts.items() if count == most}
            assert {row["item"]: (row["at_least"], row["at_most"]) for row in rows} == top_items, (length, end)
    assert exact > 2


def test_check_finds_nothing_and_keys_are_items(moved: Project) -> None:
    """Synopses and answers hold what every table does."""
    assert list(check(moved.root).findings) == []
    state = moved.epoch.table("often")
    assert state is not None
    assert state.declaration.search_key == ("item",)


def plain(project: Project, table: str) -> set[str]:
    """Return answers without the columns of their position in files."""
    return {repr({name: row[name] for name in row if name not in ("sub_index", "exp_block")}) for row in project.stored(table)}


@pytest.mark.parametrize("kind", ["synopsis0_2", "synopsis0_4", "top_counted"])
def test_a_killed_update_is_finished_once(kind: str, begun: Project, moved: Project, tmp_path: Path) -> None:
    """After the commit of lists or of answers: the result equals an undisturbed update."""
    project = begun.copy(tmp_path / "copy")
    plan, _ = project.updater().plan(UpdateOptions(at=at(5)))
    assert plan is not None
    number = next(index for index, step in enumerate(plan.steps) if kind in step.stream)
    with pytest.raises(StoppedError):
        project.update(5, observer=stop_at(Point.STEP_COMMITTED, number))
    project.update(5)
    for table in project.aggregates:
        assert plain(project, table) == plain(moved, table), table


def test_lists_and_live_rows_go_back_and_are_loaded_again(begun: Project, tmp_path: Path) -> None:
    """After a rollback, and a restatement of all files, the next answers equal a query over the rows."""
    project = begun.copy(tmp_path / "copy")
    project.updater().rollback(0)
    project.updater().restate("a", since="first")
    project.update(5)
    live, often = answers(project, "living")[3, 5], answers(project, "often")[1, 5]
    assert [row["n"] for row in live] == [items(3, 5, 5, live=True).total()]
    assert {row["item"]: row["at_most"] for row in often} == {"c": 1}
    assert list(check(project.root).findings) == []


def test_an_erased_item_is_on_no_list_and_in_no_answer(begun: Project, tmp_path: Path) -> None:
    """In counts and in lists; the receipt names the aggregates whose numbers still include it."""
    project = begun.copy(tmp_path / "copy")
    _, receipt = project.updater().erase("a", ["b"])
    assert receipt is not None
    beyond_reach = receipt.beyond_reach
    assert '"living"' in beyond_reach
    assert '"often"' not in beyond_reach
    for state in project.epoch.tables:
        column = "item" if state.answers else "_value"
        assert "b" not in {row.get(column) for row in project.stored(state.name)}, state.name
    assert list(check(project.root).findings) == []


def waiting(project: Project) -> dict[str, int]:
    """Return how many answers of each aggregate wait."""
    return {state.name: len(state.answers.waiting) for state in project.epoch.tables if state.answers is not None}


def test_an_update_without_time_gives_the_newest_answers_first(tmp_path: Path, spark: SparkSession) -> None:
    """One round for each update: later answers say how late they are, and know the rows known by then."""
    project = declared(tmp_path, spark, aggregate_time="1us")
    for name in ("living_spark", "often", "often_spark", "top_counted"):
        del project.aggregates[name]
    project.declare()
    for hour in ROWS:
        land(project, hour)
        project.update(hour)
    assert sum(waiting(project).values()) > 2
    lateness_is_shown(project)
    assert (1, 5) in answers(project, "living") or (1, 5) in answers(project, "top_living"), "the newest end is first"
    for hour in range(6, 9):
        project.update(hour)
    del project.warehouse["aggregate_time"]
    project.declare()
    project.update(9)
    assert not any(waiting(project).values())
    by_window, hours = answers(project, "living"), (1, 2, 5, 6, 7, 8, 9)
    assert by_window.keys() == {(length, end) for length in (1, 3) for end in range(1, 10)}
    for (length, end), (row,) in by_window.items():
        loaded, due = hours[row["epoch"]], min(hour for hour in hours if hour >= end)
        assert row["n"] == items(length, end, loaded, live=True).total(), (length, end)
        assert row["late"] == hours.index(loaded) - hours.index(due), (length, end)
        assert row["full"], (length, end)
    assert max(row["late"] for (row,) in by_window.values()) > 1
    assert list(check(project.root).findings) == []


def lateness_is_shown(project: Project) -> None:
    """Check that `status`, the metrics and the report show the number of waiting answers, and since when."""
    states = {state.name: state.answers for state in project.epoch.tables if state.answers is not None}
    late = {name: state for name, state in states.items() if state.late}
    assert late, "some answer waits since an earlier update"
    warehouse = Warehouse(project.directory, project.root)
    warnings, page = status(project.directory, verbose=False, expanded=False).warnings, warehouse.report()
    metrics = warehouse.metrics().decode()
    assert {concern.table for concern in warehouse.health().concerns if concern.kind == "answers_late"} == late.keys()
    for name, state in late.items():
        since = f"the first for {counted(state.late, 'update')}"
        waited = f"{counted(len(state.waiting), 'answer')} waited since the updates had no time for more, {since}"
        assert waited in page
        assert any(name in line and waited in line for line in warnings), warnings
    for name, state in states.items():
        assert f'stream_wh_answers_waiting{{table="{name}"}} {len(state.waiting)}.0' in metrics
        assert f'stream_wh_answers_late_updates{{table="{name}"}} {state.late}.0' in metrics


def test_an_answer_without_rows_is_given_and_waits_no_longer(tmp_path: Path, spark: SparkSession) -> None:
    """Nothing arrived in its window: with enough time no answer waits, and none is late."""
    project = declared(tmp_path, spark, aggregate_time="1h")
    project.aggregates = {"often": project.aggregates["often"]}
    project.declare()
    land(project, 1)
    for hour in (1, 5, 6):
        project.update(hour)
        assert waiting(project) == {"often": 0}
    assert answers(project, "often").keys() == {(1, 1), (3, 1), (3, 2), (3, 3)}
    assert list(check(project.root).findings) == []
