"""Aggregates over views against brute force: two selections together give the view the rows of its stream."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING

import pytest

from warehouse.checking.check import check
from warehouse.epochs.points import Point
from warehouse.errors import UsageError
from warehouse.operations.migration import MigrationRequest
from warehouse.operations.update import UpdateOptions
from warehouse.time import HOUR, to_micros

from .drawn_aggregates import Drawn, declare, require_sound
from .projects import ANCHOR, Project, StoppedError, at, csv, stop_at, stream, text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

STOPS = (Point.STEP_READY, Point.STEP_COMMITTED)
PARTS = "SELECT k, v FROM a WHERE v < 3 UNION ALL SELECT k, v FROM below WHERE v >= 3"


def over_view(directory: Path, spark: SparkSession) -> Project:
    """Return a view over the stream, a view of it, and an aggregate of each kind over that."""
    project = Project(directory, spark)
    project.views = {
        "below": {"sql": "SELECT k, v FROM a", "search_key": "k", "short_lived": "report"},
        "rows": {"sql": PARTS, "search_key": "k", "short_lived": "report"},
        "top": {"sql": "SELECT k, window_end, n FROM arrived WHERE n > 1", "search_key": "k"},
    }
    return declare(project, over="rows")


def require_top(project: Project) -> None:
    """Compare the view of answers with the answers."""
    shown = sorted((row["k"], row["window_end"], row["n"]) for row in project.live("top"))
    assert shown == sorted((row["k"], row["window_end"], row["n"]) for row in project.live("arrived") if row["n"] > 1)


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.long] if seed else []) for seed in range(6)])
def test_full_answers_equal_brute_force(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    """Late rows and rows that lived between two updates count; after rollbacks and restatements no answer is called full."""
    draw = random.Random(seed)  # noqa: S311 - rows of a test
    drawn = Drawn(over_view(tmp_path, spark), draw)
    drawn.update(draw.randrange(1, 3))
    drawn.update(12)
    drawn.update(draw.randrange(4, 11))
    assert require_sound(drawn) > 40
    require_top(drawn.project)
    ways = ["one", "each", "back", "again"]
    draw.shuffle(ways)
    for way in ways:
        match way:
            case "one":
                drawn.update(1)
            case "each":
                drawn.update(draw.randrange(2, 4), each=True)
            case "back":
                drawn.back()
            case _:
                drawn.again()
    drawn.update(14)
    before = require_sound(drawn)
    drawn.update(3)
    assert require_sound(drawn) > before
    require_top(drawn.project)
    assert list(check(drawn.project.root).findings) == []


@pytest.mark.parametrize("part", [pytest.param(part, marks=[pytest.mark.long] if part else []) for part in range(6)])
def test_a_stop_at_each_step_leaves_every_answer_once(part: int, tmp_path: Path, spark: SparkSession) -> None:
    """Before and after a step's commit; the finishing update finds the rows that lived between two updates again."""
    drawn = Drawn(over_view(tmp_path, spark), random.Random(part))  # noqa: S311 - rows of a test
    drawn.update(1)
    drawn.update(1)
    for number in range(3):
        drawn.killed(drawn.draw.randrange(1, 6), STOPS[(part + number) % 2], (part + 6 * number) / 18)
        require_sound(drawn)
    assert require_sound(drawn) > 20
    require_top(drawn.project)
    assert list(check(drawn.project.root).findings) == []


PAIRS = "SELECT a.k, a.v, b.v AS w, a.b AS at, b.b AS bt FROM a JOIN b ON a.k = b.k"
COLUMNS = {"k": "string", "v": "int", "b": "timestamp", "e": "timestamp"}
SELECTED = {"n": "count(*)", "high": "max(w)"}


def joined(directory: Path, spark: SparkSession, **keys: object) -> Project:
    """Return two streams, their join, and the arrivals of the join by key."""
    streams = {name: stream(landing=f"landing/{name}", columns=COLUMNS, max_lifetime="3h") for name in ("a", "b")}
    views: dict[str, dict[str, object]] = {"pairs": {"sql": PAIRS, "search_key": "k", "short_lived": "report"}}
    common = {"from": "pairs", "group_by": ["k"], "select": SELECTED, "keep": "200h"}
    windows = {"windows": ["1h", "3h"], "every": ["1h", "1h"]}
    aggregates: dict[str, dict[str, object]] = {"met": {**common, **windows, **keys}}
    if not keys:
        lengths = {"windows": [["1h", "3h"], ["3h", "2h"]], "over": "live"}
        aggregates["paired"] = {**common, **lengths, "select": {**SELECTED, "kinds": "count(DISTINCT w)"}}  # type: ignore[dict-item]
    return Project(directory, spark, streams, views=views, aggregates=aggregates)


def land(project: Project, draw: random.Random, since: float, until: float) -> None:
    """Land a file in each landing directory, with rows that arrive between two instants."""
    for name in ("a", "b"):
        rows = [(draw.choice("xy"), draw.randrange(10**6), draw.uniform(since, until), draw.uniform(0.1, 2.5)) for _ in range(5)]
        rows.append(("x", draw.randrange(10**6), until - 0.2, 1.0))
        lines = (f"{k},{v},{text(begins)},{text(begins + lives)}" for k, v, begins, lives in rows)
        project.land(f"{until}.csv", csv(*lines, header="k,v,b,e"), landing=f"landing/{name}")


def results(project: Project) -> set[tuple[object, ...]]:
    """Return every result that the view ever had, whether an epoch had it or not."""
    rows = [row for number in project.numbers for row in project.live("pairs", number)]
    all_rows = (*rows, *project._side("restored", "pairs", None))
    return {tuple(row[name] for name in ("k", "v", "w", "_ts", "_exp", "at", "bt")) for row in all_rows}


def met(project: Project, table: str = "met") -> dict[tuple[str, int, str], tuple[int, int]]:
    """Return the full answers, by length, end (hours) and key."""
    return {
        (row["window_length"], (to_micros(row["window_end"]) - ANCHOR) // HOUR, row["k"]): (row["n"], row["high"])
        for row in project.stored(table)
        if row["full"]
    }


def require_paired(project: Project, ends: Iterable[int]) -> int:
    """Compare the answers with a length for each part with a query over all results; return their number."""
    all_results = [(row[0], row[2], *map(hour, row[3:])) for row in results(project)]
    answers = {
        (row["window_length"], hour(row["window_end"]), row["k"]): (row["n"], row["high"], row["kinds"], row["full"])
        for row in project.stored("paired")
    }
    expected = {}
    for length, (left, right), end in product(("1h, 3h", "3h, 2h"), ((1, 3), (3, 2)), ends):
        for key in "xy" if length == f"{left}h, {right}h" else "":
            own = [row for row in all_results if row[0] == key and row[3] > end and end - left < row[4] <= end]
            values = [row[1] for row in own if end - right < row[5] <= end]
            if values:
                expected[length, end, key] = len(values), max(values), len(set(values)), True  # type: ignore[type-var]
    assert {key: value for key, value in answers.items() if key[1] in ends} == expected
    return len(expected)


def hour(instant: object) -> float:
    """Return hours since the anchor."""
    return (to_micros(instant) - ANCHOR) / HOUR  # type: ignore[arg-type]


def test_a_join_counts_each_result_once_when_it_arrives(tmp_path: Path, spark: SparkSession) -> None:
    """A result arrives with the later of its parts; results that nobody could see count too."""
    project, draw = joined(tmp_path, spark), random.Random(3)  # noqa: S311 - rows of a test
    often = {"item": "k", "above": 0.1, "exact": True}
    project.aggregates["often"] = {"from": "pairs", "over": "live", "frequent": often, "windows": ["3h"], "keep": "9h"}
    project.declare()
    now = 0
    for slots in (1, 2, 5, 1):
        land(project, draw, now + 0.01, now + slots)
        now += slots
        project.update(now)
    expected: dict[tuple[str, int, str], tuple[int, int]] = {}
    joined_rows = results(project)
    for length, slots in (("1h", 1), ("3h", 3)):
        for end in range(1 + slots, now + 1):
            for key in "xy":
                counted_rows = [
                    row
                    for row in joined_rows
                    if row[0] == key and end - slots < (to_micros(row[3]) - ANCHOR) / HOUR <= end  # type: ignore[arg-type]
                ]
                if counted_rows:
                    expected[length, end, key] = len(counted_rows), max(row[2] for row in counted_rows)  # type: ignore[type-var]
    assert len(expected) > 15
    assert met(project) == expected
    assert require_paired(project, range(2, now + 1)) > 15
    live = Counter(row["k"] for row in project.live("pairs") if (to_micros(row["_ts"]) - ANCHOR) / HOUR > now - 3)
    counted = {row["item"]: row["at_least"] for row in project.stored("often") if to_micros(row["window_end"]) == at(now)}
    assert counted == {key: count for key, count in live.items() if count > 0.1 * live.total()}
    land(project, draw, now - 2.5, now + 1)  # late parts meet those that live
    project.update(now + 1)
    require_paired(project, [now + 1])
    assert list(check(project.root).findings) == []


def paired(directory: Path, spark: SparkSession) -> Project:
    """Return aggregates whose windows all have a length for each part; one of them is due less often."""
    project = joined(directory, spark)
    del project.aggregates["met"]
    project.aggregates["rare"] = {**project.aggregates["paired"], "every": "2h"}
    project.declare()
    return project


def require_rare(project: Project) -> None:
    """Require that the answers that are due less often are a part of the others."""
    names = ("window_length", "window_end", "k", "n", "high", "kinds", "epoch")
    rare, often = ({tuple(row[name] for name in names) for row in project.stored(table)} for table in ("rare", "paired"))
    assert rare == {row for row in often if hour(row[1]) % 2 == 0}


def test_windows_of_both_parts_after_going_back_and_loading_again(tmp_path: Path, spark: SparkSession) -> None:
    """A rollback, restatements of either input, and late rows: each answer counts each live result once."""
    project, draw = paired(tmp_path, spark), random.Random(5)  # noqa: S311 - rows of a test
    for now in (1, 2, 3):
        land(project, draw, now - 0.99, now)
        project.update(now)
    project.updater().rollback(1)
    land(project, draw, 2.51, 4)
    project.update(4)
    assert require_paired(project, [4]) > 1
    project.updater().restate("a", since="first")
    project.updater().restate("b", since=at(3))
    land(project, draw, 3.01, 5)
    project.update(5)
    assert require_paired(project, [5]) > 1
    require_rare(project)
    assert list(check(project.root).findings) == []


@pytest.mark.parametrize("part", [pytest.param(part, marks=[pytest.mark.long] if part else []) for part in range(8)])
def test_a_stop_at_each_step_leaves_answers_about_both_parts_once(part: int, tmp_path: Path, spark: SparkSession) -> None:
    """Before and after the commits of streams, of the view, of synopses and of answers."""
    project, draw = paired(tmp_path, spark), random.Random(part)  # noqa: S311 - rows of a test
    land(project, draw, 0.01, 2)
    project.update(2)
    for number, now in enumerate((3, 5)):
        land(project, draw, now - 1.99, now)
        plan, _ = project.updater().plan(UpdateOptions(at=at(now)))
        assert plan is not None
        with suppress(StoppedError):  # a step without rows makes no commit
            project.update(now, observer=stop_at(STOPS[part % 2], (part // 2 + 4 * number) * len(plan.steps) // 8))
        project.update(now)
        require_paired(project, range(3, now + 1))
    assert require_paired(project, range(3, 6)) > 4
    require_rare(project)
    assert list(check(project.root).findings) == []


def test_a_view_that_is_rebuilt_is_not_counted_twice(tmp_path: Path, spark: SparkSession) -> None:
    """Rows that are live when a changed view is built were counted already; windows that reach back to it are not full."""
    project, draw = joined(tmp_path, spark), random.Random(5)  # noqa: S311 - rows of a test
    project.aggregates["alive"] = {**project.aggregates["met"], "over": "live"}
    project.declare()
    for now in (1, 2, 3):
        land(project, draw, now - 0.99, now)
        project.update(now)
    before = sum(row["n"] for row in project.stored("met") if row["window_length"] == "1h")
    project.views["pairs"]["sql"] = PAIRS + " WHERE b.v < 10000000"
    project.declare()
    project.update(4)
    answers = [row for row in project.stored("met") if to_micros(row["window_end"]) == at(4) and row["window_length"] == "3h"]
    assert {row["full"] for row in answers} == {False}
    assert sum(row["n"] for row in project.stored("met") if row["window_length"] == "1h") == before
    live = [row for row in project.stored("alive") if to_micros(row["window_end"]) == at(4) and row["window_length"] == "3h"]
    assert sum(row["n"] for row in live) == sum(to_micros(row["_ts"]) > at(1) for row in project.live("pairs"))
    assert all(row["full"] for row in live)
    land(project, draw, 4.01, 5)
    project.update(5)
    newest = [row for row in project.stored("met") if to_micros(row["window_end"]) == at(5)]
    assert {row["window_length"]: row["full"] for row in newest} == {"1h": True, "3h": False}
    require_paired(project, [4, 5])
    assert list(check(project.root).findings) == []


def test_limited_time_does_not_answer_before_the_view_has_moved(tmp_path: Path, spark: SparkSession) -> None:
    """An aggregate of the stream is answered before views move; aggregates of views wait for the views' rows."""
    common = {"group_by": ["k"], "select": {"n": "count(*)"}, "windows": ["1h"], "keep": "9h"}
    project = Project(tmp_path, spark, {"a": stream(columns=COLUMNS, max_lifetime="3h")}, warehouse={"aggregate_time": "1h"})
    project.views = {"rows": {"sql": "SELECT k, v FROM a", "search_key": "k", "short_lived": "report"}}
    project.aggregates = {"own": {"from": "a", **common}, "above": {"from": "rows", **common}}
    project.declare()
    draw = random.Random(7)  # noqa: S311 - rows of a test
    for now in (1, 2, 3):
        land(project, draw, now - 0.99, now)
        project.update(now)
    own, above = (
        {(row["k"], hour(row["window_end"])): (row["n"], row["late"]) for row in project.stored(name) if row["full"]}
        for name in ("own", "above")
    )
    assert {end for _, end in above} == {2, 3}
    assert above == {key: value for key, value in own.items() if key[1] > 1}


def test_where_the_view_stands_still_due_ends_wait(tmp_path: Path, spark: SparkSession) -> None:
    """Its query fails for a row; after it is built, all passed ends are answered, and no answer counts a row twice."""
    project, draw = joined(tmp_path, spark), random.Random(7)  # noqa: S311 - rows of a test
    project.views["pairs"]["sql"] = "SELECT a.k, a.v, b.v AS w, 1 / (a.v - 77) AS never FROM a JOIN b ON a.k = b.k"
    del project.aggregates["paired"]
    project.declare()
    for now in (1, 2):
        land(project, draw, now - 0.99, now)
        project.update(now)
    before = met(project)
    lines = [f"x,77,{text(2.5)},{text(3.9)}"]
    project.land("bad.csv", csv(*lines, header="k,v,b,e"))
    land(project, draw, 2.01, 3)
    project.update(3)
    state = project.epoch.table("pairs")
    assert state is not None
    assert state.view is not None
    assert state.view.failed
    assert met(project) == before
    answers = project.epoch.table("met")
    assert answers is not None
    assert answers.declared
    assert answers.answers is not None
    assert answers.answers.through == 2
    assert list(check(project.root).findings) == []
    project.update(4)
    project.update(5)
    ends = {(row["window_length"], (to_micros(row["window_end"]) - ANCHOR) // HOUR) for row in project.stored("met")}
    assert ("3h", 3) in ends
    assert ("3h", 4) in ends
    assert all(not row["full"] for row in project.stored("met") if to_micros(row["window_end"]) == at(4))
    assert list(check(project.root).findings) == []


def test_erasing_tells_what_an_aggregate_over_a_view_still_has(tmp_path: Path, spark: SparkSession) -> None:
    """Groups may show the key, so such an aggregate goes first; counts and sums stay, and the receipt says so."""
    project, draw = joined(tmp_path, spark), random.Random(9)  # noqa: S311 - rows of a test
    project.aggregates["all"] = {"from": "pairs", "select": {"n": "count(*)"}, "windows": ["3h"], "keep": "9h"}
    project.declare()
    for now in (1, 2):
        land(project, draw, now - 0.99, now)
        project.update(now)
    with pytest.raises(UsageError, match=r'"met" over the view "pairs" shows groups .* `stream-wh drop met`, then erase'):
        project.updater().erase("a", ["x"])
    del project.aggregates["met"], project.aggregates["paired"]
    project.declare()
    project.updater().drop("met")
    project.updater().drop("paired")
    with pytest.raises(UsageError, match=r'left of an aggregate over the view "pairs" .* `stream-wh update` removes them'):
        project.updater().erase("a", ["x"])
    project.update(3)
    receipt = project.updater().erase("a", ["x"])
    assert '"all" over the view "pairs" still has' in str(receipt)
    assert {row["k"] for row in project.live("pairs")} <= {"y"}
    project.update(4)
    assert list(check(project.root).findings) == []


def test_a_coarser_grid_keeps_what_they_know(tmp_path: Path, spark: SparkSession) -> None:
    """Slots of a view's synopses merge as a stream's slots do."""
    project, draw = joined(tmp_path, spark, windows=["2h", "4h"], every="2h"), random.Random(11)  # noqa: S311 - rows of a test
    lengths = {"windows": [["2h", "4h"], "2h"], "every": "2h", "over": "live"}
    project.aggregates["alive"] = {**project.aggregates["met"], **lengths}
    project.declare()
    for now in (2, 4, 6):
        land(project, draw, now - 1.99, now)
        project.update(now)
    project.warehouse["update_interval"] = "2h"
    project.declare()
    project.updater().migrate(None, MigrationRequest())
    land(project, draw, 6.01, 8)
    project.update(8)
    joined_rows = results(project)
    newest = {key: value for key, value in met(project).items() if key[1] == 8}
    for (length, end, key), (n, _) in newest.items():
        slots = int(length.removesuffix("h"))
        assert n == sum(row[0] == key and end - slots < (to_micros(row[3]) - ANCHOR) / HOUR <= end for row in joined_rows)  # type: ignore[arg-type]
    assert {length for length, _, _ in newest} == {"2h", "4h"}
    alive = {key: n for key, (n, _) in met(project, "alive").items() if key[1] == 8}
    assert {length for length, _, _ in alive} == {"2h", "2h, 4h"}
    for (length, end, key), n in alive.items():
        left, right = (2, 4) if "," in length else (9, 9)
        times = [list(map(hour, row[3:])) for row in joined_rows if row[0] == key]
        assert n == sum(begins > end - 2 and ends > end and end - left < a and end - right < b for begins, ends, a, b in times)
    assert list(check(project.root).findings) == []


def test_what_a_view_got_by_a_migration_is_counted_once(tmp_path: Path, spark: SparkSession) -> None:
    """A migration builds a failed view and adds to no synopsis: the next update adds the rows that synopses lack."""
    project, draw = joined(tmp_path, spark), random.Random(13)  # noqa: S311 - rows of a test
    project.views["pairs"]["sql"] = "SELECT a.k, a.v, b.v AS w, 1 / (a.v - 77) AS never FROM a JOIN b ON a.k = b.k"
    del project.aggregates["paired"]
    project.declare()
    for now in (1, 2):
        land(project, draw, now - 0.99, now)
        project.update(now)
    project.land("bad.csv", csv(f"x,77,{text(2.5)},{text(3.9)}", header="k,v,b,e"))
    land(project, draw, 2.01, 3)
    project.update(3)
    project.views["pairs"]["sql"] = PAIRS + " WHERE a.v <> 77"
    project.change("a", columns={**COLUMNS, "v": "bigint"})
    project.updater().migrate("a", MigrationRequest())
    state = project.epoch.table("pairs")
    assert state is not None
    assert state.view is not None
    assert state.view.failed is None
    arrived = Counter(row["k"] for row in project.live("pairs") if to_micros(row["_ts"]) > at(2))
    assert arrived.total() > 2
    land(project, draw, 3.01, 4)
    project.update(4)
    third = [row for row in project.stored("met") if row["window_length"] == "1h" and to_micros(row["window_end"]) == at(3)]
    assert {row["k"]: (row["n"], row["full"]) for row in third} == {key: (count, False) for key, count in arrived.items()}
    land(project, draw, 4.01, 5)
    project.update(5)
    newest = [row for row in project.stored("met") if to_micros(row["window_end"]) == at(5)]
    assert {row["window_length"]: row["full"] for row in newest} == {"1h": True, "3h": False}
