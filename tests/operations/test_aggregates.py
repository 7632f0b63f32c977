"""Aggregates over windows of arrivals: each answer equals a query over all rows that had arrived by its epoch.

Updates at 1, 2, 3, 6 and 7; files by the update that loads them, rows as (group, value, arrival, end)::

    hour   0.....1.....2.....3.....4.....5.....6.....7
    1        x x                                         one dies at once, one lives on
    2        L     x     D                               L is late by one slot, D waits for slot 3
    3                    x
    6                          x     x     x             a catch-up over slots 4, 5 and 6
    7        L                                   x       L is late by six slots
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from warehouse.checking.check import check
from warehouse.epochs.points import Point
from warehouse.errors import ChangedDeclarationError
from warehouse.operations.update import UpdateOptions
from warehouse.planning.steps import ReplaceTable
from warehouse.serving import Reader
from warehouse.serving.aggregate_explanation import explained_aggregate
from warehouse.time import to_datetime, to_micros

from .projects import ANCHOR, Project, StoppedError, at, csv, stop_at, stream, text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

HOUR = 3_600_000_000
Row = tuple[str, int | None, float, float]
ROWS: dict[int, list[Row]] = {
    1: [("a", 5, 0.2, 0.4), ("b", None, 0.3, 5), ("a", 7, 0.5, 3)],
    2: [("a", 1, 0.9, 2.5), ("b", 4, 1.5, 2.5), ("", 3, 1.6, 1.6), ("a", 50, 2.5, 4)],
    3: [("b", 8, 2.2, 2.8)],
    6: [("a", 2, 3.3, 3.4), ("a", 2, 4.4, 9), ("b", 6, 5.5, 9)],
    7: [("a", 9, 0.8, 9), ("b", -3, 6.5, 8)],
}
SELECT = {
    "n": "count(*)", "known": "count(v)", "total": "sum(v)", "low": "min(v)", "high": "max(v)", "mean": "avg(v)",
    "spread": "stddev(v)", "kinds": "count(DISTINCT v)", "middle": "median(v)", "p90": "percentile(v, 0.9)",
}  # fmt: skip


def declared(directory: Path, spark: SparkSession, **changes: object) -> Project:
    """Return a stream of groups and values, and two aggregates of it."""
    columns = {"k": "string", "v": "int", "b": "timestamp", "e": "timestamp"}
    streams = {"a": stream(columns=columns, max_lifetime="8h")}
    grouped = {"from": "a", "group_by": ["k"], "select": SELECT, "windows": ["1h", "3h", "6h"], "every": ["1h", "1h", "2h"]}
    every = {"from": "a", "where": "v > 3", "select": {"n": "count(*)", "high": "max(v)"}, "windows": ["2h"], "keep": "8h"}
    aggregates = {"grouped": {**grouped, "keep": "8h", **changes}, "every": every}
    return Project(directory, spark, streams, aggregates=aggregates)


def land(project: Project, hour: int) -> None:
    """Put the rows of an hour into a file."""
    lines = (f"{k},{'' if v is None else v},{text(begins)},{text(ends)}" for k, v, begins, ends in ROWS[hour])
    project.land(f"{hour}.csv", csv(*lines, header="k,v,b,e"))


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Return the project after the updates up to 3, with the files of 6."""
    project = declared(tmp_path_factory.mktemp("begun"), spark)
    for hour in (1, 2, 3):
        land(project, hour)
        project.update(hour)
    land(project, 6)
    return project


@pytest.fixture(scope="module")
def moved(begun: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Return a copy of that project after all updates."""
    project = begun.copy(tmp_path_factory.mktemp("aggregates") / "copy")
    for hour in (6, 7):
        land(project, hour)
        project.update(hour)
    return project


def arrived(hours: int, first: int, end: int) -> list[Row]:
    """Return the rows in slots ``first .. end`` that updates up to an hour had loaded."""
    loaded = [row for hour, rows in ROWS.items() if hour <= hours for row in rows]
    return [row for row in loaded if first <= math.ceil(row[2]) <= end]


def expected(rows: list[Row]) -> dict[str, object]:
    """Return the values that a query gives of these rows."""
    values = sorted(row[1] for row in rows if row[1] is not None)
    position = (len(values) - 1) * 0.9
    low, high = math.floor(position), math.ceil(position)
    return {
        "n": len(rows),
        "known": len(values),
        "total": sum(values) if values else None,
        "low": min(values, default=None),
        "high": max(values, default=None),
        "mean": pytest.approx(statistics.mean(values)) if values else None,
        "spread": pytest.approx(statistics.stdev(values)) if len(values) > 1 else None,
        "kinds": len(set(values)),
        "middle": statistics.median(values) if values else None,
        "p90": pytest.approx(values[low] + (values[high] - values[low]) * (position - low)) if values else None,
    }


def _options(hours: float) -> UpdateOptions:
    return UpdateOptions(at=at(hours))


def answers(project: Project, table: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return every stored answer, by group, length and end."""
    return {
        (row.get("k"), row["window_length"], (to_micros(row["window_end"]) - ANCHOR) // HOUR): row
        for row in project.stored(table)
    }


def test_answers_are_those_of_a_query_over_all_that_had_arrived(moved: Project) -> None:
    """For every due window and group: dead-on-arrival and late rows count, deferred rows count in their slot."""
    answered = answers(moved, "grouped")
    by_query = {}
    for hour, before in zip(ROWS, (0, *ROWS), strict=False):
        for end in range(before + 1, hour + 1):
            for text_, slots, every in (("1h", 1, 1), ("3h", 3, 1), ("6h", 6, 2)):
                if end % every == 0:
                    rows = arrived(hour, end - slots + 1, end)
                    for group in {row[0] or None for row in rows}:
                        by_query[group, text_, end] = expected([row for row in rows if (row[0] or None) == group])
    assert {key: {name: row[name] for name in SELECT} for key, row in answered.items()} == by_query


def test_an_answer_says_what_it_knows(moved: Project) -> None:
    """Its epoch, and whether the synopses cover its whole window: the window before the first row is not covered."""
    answered = answers(moved, "grouped")
    assert {key[2]: row["epoch"] for key, row in answered.items()} == {1: 0, 2: 1, 3: 2, 4: 3, 5: 3, 6: 3, 7: 4}
    assert {key[1:]: row["full"] for key, row in answered.items()} == {
        key[1:]: key[2] >= int(key[1][0]) for key in answered
    }
    assert all(row["late"] == 0 for row in answered.values())
    row = answered["b", "3h", 6]
    assert (to_micros(row["_ts"]), to_micros(row["_exp"])) == (at(6), at(14))


def test_without_groups_each_end_has_one_row(moved: Project) -> None:
    """Also if no row arrived; ``where`` selects rows."""
    answered = answers(moved, "every")
    assert sorted(answered) == [(None, "2h", end) for end in range(1, 8)]
    loaded = dict.fromkeys((1,), 1) | {2: 2, 3: 3, 4: 6, 5: 6, 6: 6, 7: 7}
    for (_, _, end), row in answered.items():
        values = [value for _, value, *_ in arrived(loaded[end], end - 1, end) if value is not None and value > 3]
        assert (row["n"], row["high"]) == (len(values), max(values, default=None)), end


def test_check_finds_nothing(moved: Project) -> None:
    """Synopses and answers satisfy the rules of every table."""
    assert list(check(moved.root).findings) == []


def test_answers_of_the_past_and_their_changes_are_read_as_those_of_other_tables(moved: Project) -> None:
    """``as_of`` gives the answers live at that time; ``changes`` gives new answers and answers whose `keep` ended."""
    with Reader.open(moved.root, as_of=at(3)) as reader:
        rows = reader.scan("grouped").arrow().to_pylist()
    keys = {(row["k"], row["window_length"], (to_micros(row["window_end"]) - ANCHOR) // HOUR) for row in rows}
    assert len(rows) == len(keys)
    assert keys == {key for key in answers(moved, "grouped") if key[2] <= 3}
    with Reader.open(moved.root) as reader:
        changed = reader.changes("grouped", since=2).arrow().to_pylist()
    inserted = [row for row in changed if row["_change_type"] == "insert"]
    assert {row["epoch"] for row in inserted} == {3, 4}
    assert len(inserted) == len(changed) == sum(row["epoch"] > 2 for row in moved.stored("grouped"))


def plain(found: dict[tuple[Any, ...], dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return answers without the columns of their position in files."""
    columns = ("sub_index", "exp_block")
    return {key: {name: value for name, value in row.items() if name not in columns} for key, row in found.items()}


@pytest.mark.parametrize("kind", ["a", "synopsis", "grouped"])
def test_a_killed_update_is_finished_once(kind: str, begun: Project, moved: Project, tmp_path: Path) -> None:
    """After the commit of the stream, a synopsis or an answer: the result equals an undisturbed update."""
    project = begun.copy(tmp_path / "copy")
    plan, _ = project.updater().plan(_options(6))
    assert plan is not None
    number = next(index for index, step in enumerate(plan.steps) if kind in step.stream)
    with pytest.raises(StoppedError):
        project.update(6, observer=stop_at(Point.STEP_COMMITTED, number))
    project.update(6)
    for table in ("grouped", "every"):
        until = {key: row for key, row in answers(moved, table).items() if key[2] <= 6}
        assert plain(answers(project, table)) == plain(until)


def test_a_file_that_goes_before_its_synopsis_is_written_leaves_its_slots_partial(begun: Project, tmp_path: Path) -> None:
    """The stream has the rows, the synopses do not: no window that may miss them is called full."""
    project = begun.copy(tmp_path / "copy")
    plan, _ = project.updater().plan(_options(6))
    assert plan is not None
    number = next(index for index, step in enumerate(plan.steps) if step.stream == "a")
    with pytest.raises(StoppedError):
        project.update(6, observer=stop_at(Point.STEP_COMMITTED, number))
    (project.directory / "landing/a/6.csv").unlink()
    project.update(6)
    assert {row["v"] for row in project.stored() if row["b"] == to_datetime(at(5.5))} == {6}
    land(project, 7)
    project.update(7)
    project.update(8)
    counts = {key[2]: (row["n"], row["full"]) for key, row in answers(project, "every").items() if key[2] > 3}
    assert counts == {4: (2, False), 5: (0, False), 6: (0, False), 7: (0, False), 8: (0, True)}
    assert [finding for finding in check(project.root).findings if finding.severity == "fault"] == []


def test_going_back_takes_synopses_and_answers_along(begun: Project, moved: Project, tmp_path: Path) -> None:
    """A rollback answers due ends again without the removed rows; after they are loaded again everything is as before."""
    project = begun.copy(tmp_path / "copy")
    project.updater().rollback(1)
    assert {row["n"] for key, row in answers(begun, "every").items() if key[2] == 3} == {3}
    assert {row["n"] for key, row in answers(project, "every").items() if key[2] == 3} == {2}
    project.update(6)
    answered = answers(project, "grouped")
    assert {key: row["n"] for key, row in answered.items() if key[2] > 3} == {
        key: row["n"] for key, row in answers(moved, "grouped").items() if 3 < key[2] <= 6
    }
    assert list(check(project.root).findings) == []


def test_a_restatement_gives_each_row_to_its_synopsis_once(begun: Project, moved: Project, tmp_path: Path) -> None:
    """Of all files, and of some: earlier answers stay, the next answers are right."""
    project = begun.copy(tmp_path / "copy")
    before = plain(answers(project, "grouped"))
    project.updater().restate("a", since=at(1))
    project.updater().restate("a", since="first")
    assert plain(answers(project, "grouped")) == before
    project.update(6)
    answered, undisturbed = answers(project, "grouped"), answers(moved, "grouped")
    assert {key: (row["n"], row["full"]) for key, row in answered.items()} == {
        key: (row["n"], row["full"]) for key, row in undisturbed.items() if key[2] <= 6
    }


@pytest.mark.parametrize("there", [True, False])
def test_an_aggregate_of_a_stream_that_is_there_begins_with_its_history(begun: Project, tmp_path: Path, *, there: bool) -> None:
    """Landing files, while they are there, tell of rows that died at once; a longer window takes along what is there.

    Windows are full once they begin after its first update.
    """
    project = begun.copy(tmp_path / "copy")
    if not there:
        (project.directory / "landing/a/3.csv").unlink()
    project.aggregates["new"] = {"from": "a", "select": {"n": "count(*)", "low": "min(v)"}, "windows": ["3h"], "keep": "8h"}
    project.declare()
    project.update(6)
    answered = answers(project, "new")
    assert {key[2]: (row["n"], row["full"]) for key, row in answered.items()} == {6: (3, False)}
    synopses = [state.name for state in project.epoch.tables if state.synopsis is not None]
    project.aggregates["new"]["windows"] = ["1h", "3h", "5h"]
    project.declare()
    land(project, 7)
    project.update(7)
    answered = answers(project, "new")
    assert {key[1:]: (row["n"], row["full"]) for key, row in answered.items() if key[2] == 7} == {
        ("1h", 7): (1, True), ("3h", 7): (3, False), ("5h", 7): (6 if there else 5, False),
    }  # fmt: skip
    assert [state.name for state in project.epoch.tables if state.synopsis is not None] == synopses
    assert list(check(project.root).findings) == []


def test_an_archive_has_the_history_of_rows_that_expired(tmp_path: Path, spark: SparkSession) -> None:
    """Without landing files, the archive gives expired rows; only rows that were dead on arrival are missing."""
    project = declared(tmp_path, spark)
    project.aggregates = {}
    project.change("a", on_expiry="archive")
    for hour in (1, 2, 3):
        land(project, hour)
        project.update(hour)
    for file in (project.directory / "landing/a").iterdir():
        file.unlink()
    declaration = {"from": "a", "group_by": ["k"], "select": {"n": "count(*)", "high": "max(v)"}, "windows": ["7h"], "keep": "8h"}
    project.aggregates["new"] = declaration
    project.declare()
    land(project, 6)
    project.update(6)
    archived = [row for hour in (1, 2, 3) for row in ROWS[hour] if row[3] > (3 if row[2] > 2 else hour)]
    rows = [*archived, *ROWS[6]]
    assert len(rows) == sum(len(ROWS[hour]) for hour in (1, 2, 3, 6)) - 3
    expected = {key: [row[1] for row in rows if row[0] == key] for key in "ab"}
    newest = [row for row in project.stored("new") if to_micros(row["window_end"]) == at(6)]
    assert {row["k"]: (row["n"], row["high"], row["full"]) for row in newest} == {
        key: (len(values), max(value for value in values if value is not None), False) for key, values in expected.items()
    }
    assert list(check(project.root).findings) == []


def test_what_no_aggregate_reads_is_dropped_with_the_last_that_did(begun: Project, tmp_path: Path) -> None:
    """Its synopses are dropped; its answers stay frozen until they are dropped. Other columns are refused with the reason."""
    project = begun.copy(tmp_path / "copy")
    project.aggregates["grouped"]["select"] = {"n": "count(*)"}
    project.declare()
    with pytest.raises(ChangedDeclarationError, match="an answer stays as it was given"):
        project.update(6)
    del project.aggregates["grouped"]
    project.declare()
    report = project.update(6)
    assert any('"grouped" is no longer declared' in warning for warning in report.warnings)
    left = [state.synopsis.synopsis.where for state in project.epoch.tables if state.synopsis is not None]
    assert left == ["v > 3"]
    project.updater().drop("grouped")
    assert project.epoch.table("grouped") is None


def test_what_a_dropped_aggregate_alone_used_leaves_shared_synopses(tmp_path: Path, spark: SparkSession) -> None:
    """Its extremes and the hours of its window leave with the next update; until then an erasure's receipt names them."""
    project = declared(tmp_path, spark)
    counts, extremes = {"n": "count(*)", "total": "sum(v)"}, {"low": "min(v)", "high": "max(v)"}
    project.aggregates = {
        f"{name}_{over}": {"from": "a", "over": over, "select": select, "windows": [window], "keep": "8h"}
        for over in ("arrivals", "live")
        for name, select, window in (("kept", counts, "1h"), ("gone", extremes, "6h"))
    }
    project.declare()
    for hour in (1, 2):
        land(project, hour)
        project.update(hour)
    synopses = [state for state in project.epoch.tables if state.synopsis is not None]
    assert [len(project.stored(state.name)[0].keys() & {"_sum_v", "_min_v", "_max_v"}) for state in synopses] == [3, 3]
    del project.aggregates["gone_arrivals"], project.aggregates["gone_live"]
    project.declare()
    _, receipt = project.updater().erase("a", ["b"])
    assert receipt is not None
    assert 'min(v), max(v) of rows of "a" are left of an aggregate that is not declared any more' in receipt.beyond_reach
    land(project, 3)
    plan, _ = project.updater().plan(UpdateOptions(at=at(3)))
    assert plan is not None
    emptied = next(number for number, step in enumerate(plan.steps) if isinstance(step, ReplaceTable))
    with pytest.raises(StoppedError):
        project.update(3, observer=stop_at(Point.STEP_COMMITTED, emptied))
    assert {entry.severity for entry in check(project.root).findings} == {"note"}, "the epoch's tables have the columns of before"
    project.update(3)
    left = [state for state in project.epoch.tables if state.synopsis is not None]
    assert [(state.name, state.synopsis.slots) for state in left if state.synopsis] == [(state.name, 1) for state in synopses]
    for state in left:
        assert not any({"_min_v", "_max_v"} & row.keys() for row in project.stored(state.name))
    land(project, 6)
    for name in ("kept_arrivals", "kept_live"):
        project.aggregates[name]["windows"] = ["1h", "3h"]
    project.declare()
    project.update(6)
    answered = {key[1:]: (row["n"], row["full"]) for key, row in answers(project, "kept_arrivals").items() if key[2] > 2}
    assert answered == {
        ("1h", 3): (2, True), ("1h", 4): (1, True), ("1h", 5): (1, True), ("1h", 6): (1, True),
        ("3h", 4): (5, False), ("3h", 5): (4, False), ("3h", 6): (3, True),
    }  # fmt: skip
    assert "left of an aggregate" not in str(project.updater().erase("a", ["b"]))
    assert list(check(project.root).findings) == []


def test_groups_of_an_erased_key_go_with_its_rows(begun: Project, tmp_path: Path) -> None:
    """From synopses and answers; the receipt names the aggregates whose numbers still include the rows."""
    project = begun.copy(tmp_path / "copy")
    _, receipt = project.updater().erase("a", ["a"])
    assert receipt is not None
    assert 'the aggregate "every" is not grouped by the key' in receipt.beyond_reach
    assert {key[0] for key in answers(project, "grouped")} == {"b", None}
    for state in project.epoch.tables:
        if state.synopsis is not None and state.synopsis.synopsis.group_by:
            assert "a" not in {row["k"] for row in project.stored(state.name)}


def test_explain_tells_what_is_read_and_shared(moved: Project) -> None:
    """The synopses, their contents, their other readers, and when windows are due next."""
    catalog = moved.updater().catalog
    explanation = explained_aggregate(catalog, "grouped", moved.epoch)
    assert explanation is not None
    first, counted = explanation.synopses
    assert (first.table, first.counted, first.shared_with, first.slots) == ("a.synopsis0_0", None, (), 6)
    assert {"sum(v)", "min(v)", "max(v)", "m2(v)"} < set(first.states)
    assert (counted.counted, counted.full_from) == ("v", ANCHOR)
    assert [(window.length, window.slots, window.next_due) for window in explanation.windows] == [
        ("1h", 1, at(8)), ("3h", 3, at(8)), ("6h", 6, at(8)),
    ]  # fmt: skip
    rows = sum(synopsis.rows or 0 for synopsis in explanation.synopses)
    assert (
        0
        < (explanation.windows[0].rows or 0)
        < (explanation.windows[1].rows or 0)
        < (explanation.windows[2].rows or 0)
        == rows
    )
    moved.aggregates["more"] = {"from": "a", "group_by": "k", "select": {"n": "count(*)"}, "windows": ["12h"], "keep": "1d"}
    moved.declare()
    explanation = explained_aggregate(moved.updater().catalog, "more", None)
    del moved.aggregates["more"]
    moved.declare()
    assert explanation is not None
    assert [(synopsis.table, synopsis.shared_with, synopsis.slots) for synopsis in explanation.synopses] == [
        (None, ("grouped",), 12)
    ]


def test_files_that_are_left_for_another_epoch_are_waited_for(
    tmp_path: Path, spark: SparkSession, moved: Project, set_limits: Callable[..., None]
) -> None:
    """An end is answered after all files of its slot are loaded, which may take several epochs."""
    project = declared(tmp_path, spark)
    land(project, 1)
    project.update(1)
    for hour in (2, 3, 6):
        land(project, hour)
    set_limits(files_per_plan=1)
    assert len(project.update(6).epochs) == 3
    answered, undisturbed = answers(project, "every"), answers(moved, "every")
    assert {key: row["n"] for key, row in answered.items() if key[2] >= 5} == {
        key: row["n"] for key, row in undisturbed.items() if key[2] in (5, 6)
    }
    assert {row["epoch"] for key, row in answered.items() if key[2] > 1} == {3}
    assert [answered[None, "2h", end]["full"] for end in (2, 5, 6)] == [False, False, True]


def test_due_answers_wait_while_their_stream_stands_still(begun: Project, moved: Project, tmp_path: Path) -> None:
    """Outsiders changed the stream: after the change is taken back, all due ends are answered with all rows."""
    project = begun.copy(tmp_path / "copy")
    DeltaTable(str(project.root / "tables" / "a")).delete("k = 'b'")
    project.update(6)
    assert max(key[2] for key in answers(project, "every")) == 3
    assert all(state.declared for state in project.epoch.tables)
    project.updater().undo_foreign()
    land(project, 7)
    project.update(7)
    answered, undisturbed = answers(project, "every"), answers(moved, "every")
    assert {key: row["n"] for key, row in answered.items()} == {key: row["n"] for key, row in undisturbed.items()}
    assert list(check(project.root).findings) == []


def test_answers_that_stood_still_say_what_they_miss(begun: Project, moved: Project, tmp_path: Path) -> None:
    """Outsiders changed the answers, and the stream continued: no window whose slots have left is full."""
    project = begun.copy(tmp_path / "copy")
    DeltaTable(str(project.root / "tables" / "every")).delete("n = 3")
    project.update(6)
    assert max(key[2] for key in answers(project, "every")) == 3
    project.updater().undo_foreign()
    land(project, 7)
    project.update(7)
    answered, undisturbed = answers(project, "every"), answers(moved, "every")
    assert {key[2]: row["full"] for key, row in answered.items() if key[2] > 3} == {4: False, 5: False, 6: True, 7: True}
    whole = {key: row["n"] for key, row in answered.items() if row["full"]}
    assert whole == {key: undisturbed[key]["n"] for key in whole}


def test_a_group_whose_expression_fails_is_null_and_not_full(begun: Project, tmp_path: Path) -> None:
    """Rows for which it fails count in no value; other groups do not change."""
    project = begun.copy(tmp_path / "copy")
    grouped = {"from": "a", "group_by": ["CAST(100 / (v + 3) AS int) AS part"], "select": {"n": "count(*)"}, "keep": "8h"}
    project.aggregates["parts"] = {**grouped, "windows": ["1h"], "search_key": "window_end"}
    project.declare()
    project.update(6)
    project.land("7.csv", csv(*(f"a,{v},{text(6.5)},{text(8)}" for v in (-3, 7, 7)), header="k,v,b,e"))
    project.update(7)
    answered = {row["part"]: row for row in project.stored("parts") if to_micros(row["window_end"]) == at(7)}
    assert {part: (row["n"], row["full"]) for part, row in answered.items()} == {None: (0, False), 10: (2, True)}
