"""The judgement: which facts are a concern, how bad, and what helps."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from warehouse.health import KINDS, Arrivals, Facts, Health, Running, Shares, TableFacts, Thresholds, judge
from warehouse.time import DAY, HOUR, MINUTE, parse_instant

NOON = parse_instant("2026-03-01T12:00:00Z")
WELL = Facts(
    now=NOON + 10 * MINUTE,
    epoch=7,
    window_time=NOON,
    committed_at=NOON + MINUTE,
    update_interval=HOUR,
    tables=(TableFacts("cars", "stream"),),
    disk_free=10**12,
)
FACTS: dict[str, tuple[str, Facts]] = {}


def of(kind: str, level: str, facts: Facts) -> None:
    """Add a case."""
    FACTS[kind] = (level, facts)


def cars(**changes: Any) -> Facts:  # noqa: ANN401 - any field of a table's facts
    """Return facts of which those of one table differ."""
    return replace(WELL, tables=(replace(WELL.tables[0], **changes),))


of("ahead", "broken", replace(WELL, now=NOON - HOUR - 1))
of("changed", "attention", cars(changed=("a.csv", "b.csv")))
of("dead_on_arrival", "attention", cars(last=Arrivals(1, rows=100, on_time=100, dead=6)))
of("differs", "broken", cars(differs="differed from its query"))
of("disk", "attention", replace(WELL, disk_free=10**6))
of("erasure_overdue", "broken", cars(erasure_overdue="holds dead rows"))
of("landing", "broken", replace(WELL, listing="no such directory"))
of("answers_late", "attention", cars(answers_waiting=3, answers_late=2))
of("late", "attention", cars(last=Arrivals(1, rows=100, on_time=100, late=51)))
of("layout", "attention", replace(WELL, layouts=(("cars", "its layout no longer fits"),)))
of("lost", "attention", cars(last=Arrivals(1, rows=100, lost=1)))
of("outsiders", "attention", replace(WELL, outsiders=('table "cars" was changed from outside',)))
of("over_budget", "attention", cars(over_budget=2))
of("lapsed", "attention", cars(lapsed=2))
of("overdue", "attention", replace(WELL, now=NOON + 2 * HOUR + 1))
of("rejected", "attention", cars(last=Arrivals(1, rows=100, rejected=2)))
of("stale", "attention", cars(stale="its newest row is old"))
of("standing_still", "broken", cars(standing_still="its query fails"))
of("undeclared", "attention", cars(declared=False))
of("unfinished", "attention", replace(WELL, planned=NOON))
of("unreadable", "attention", cars(unreadable=(("a.csv", "no header"),)))
of("vanished", "attention", cars(vanished=3))


def kinds(health: Health) -> list[str]:
    """Return the kinds of the concerns."""
    return [concern.kind for concern in health.concerns]


def test_nothing_is_said_of_a_warehouse_that_is_well() -> None:
    """One update an hour, ten minutes ago."""
    assert judge(WELL) == Health("ok", ())


def test_every_kind_of_concern_has_a_case_here() -> None:
    """A kind that no fact leads to would be a promise of the configuration only."""
    assert set(FACTS) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fact_is_its_concern_alone_and_can_be_ignored(kind: Any) -> None:  # noqa: ANN401 - one of the kinds
    """Each fact changes the level, names the problem, and does not count if it is ignored."""
    level, facts = FACTS[kind]
    health = judge(facts)
    assert kinds(health) == [kind]
    assert health.level == level
    assert health.headline == f"{level}: 1 thing needs a person"
    assert judge(facts, Thresholds(ignore=(kind,))) == Health("ok", ())


def test_the_worst_comes_first_and_gives_the_level() -> None:
    """A view that stands still is worse than a late file."""
    tables = (TableFacts("v", "view", standing_still="it fails"), TableFacts("s", "stream", vanished=1))
    facts = replace(WELL, now=NOON + DAY, tables=tables)
    health = judge(facts)
    assert health.level == "broken"
    assert kinds(health) == ["standing_still", "overdue", "vanished"]
    assert health.headline == "broken: 3 things need a person"


@pytest.mark.parametrize(
    ("kind", "at_the_bound"),
    [
        ("rejected", Arrivals(1, rows=100, rejected=1)),
        ("dead_on_arrival", Arrivals(1, rows=100, on_time=100, dead=5)),
        ("late", Arrivals(1, rows=100, on_time=100, late=50)),
    ],
)
def test_a_share_counts_from_above_its_threshold(kind: str, at_the_bound: Arrivals) -> None:
    """What is at the threshold is well; above it, in the last update or in the last day, it is not."""
    names = {"rejected": "rejected", "dead_on_arrival": "dead", "late": "late"}
    above = replace(at_the_bound, **{names[kind]: getattr(at_the_bound, names[kind]) + 1})
    assert judge(cars(last=at_the_bound, day=at_the_bound)).level == "ok"
    in_the_day = judge(cars(day=replace(above, updates=24)))
    assert kinds(in_the_day) == [kind]
    assert "the newest 24 updates within a day" in in_the_day.concerns[0].text
    both = judge(cars(last=above, day=above))
    assert kinds(both) == [kind]
    assert "the last update" in both.concerns[0].text


@pytest.mark.parametrize("kind", ["rejected", "dead_on_arrival", "late"])
def test_a_table_has_shares_of_its_own(kind: str) -> None:
    """A table of short-lived rows may allow dead arrivals; for another table the same share is a concern."""
    arrived = Arrivals(1, rows=100, on_time=100, rejected=60, dead=60, late=60)
    facts = replace(WELL, tables=tuple(TableFacts(name, "stream", last=arrived) for name in ("cars", "trucks")))
    allowed = Thresholds(tables=(("cars", Shares(1.0, 1.0, 1.0)), ("trucks", replace(Shares(1.0, 1.0, 1.0), **{kind: 0.59}))))
    assert [(concern.kind, concern.table) for concern in judge(facts, allowed).concerns] == [(kind, "trucks")]
    assert {concern.table for concern in judge(facts).concerns} == {"cars", "trucks"}


def test_no_update_of_a_replayed_past_is_overdue() -> None:
    """Rows of 2013 that are loaded today lie thousands of days behind; nobody waits for the next hour of 2013."""
    past = replace(WELL, window_time=parse_instant("2013-01-01T12:00:00Z"), now=NOON + 30 * DAY)
    assert judge(replace(past, replayed=True)).level == "ok"
    assert kinds(judge(past)) == ["overdue"]
    assert kinds(judge(replace(WELL, now=NOON + 30 * DAY))) == ["overdue"]


def test_overdue_follows_the_threshold_and_points_at_an_update_that_runs() -> None:
    """Three hours allowed: four hours after noon nothing is wrong yet."""
    allowed = Thresholds(overdue=3 * HOUR)
    assert judge(replace(WELL, now=NOON + 4 * HOUR), allowed).level == "ok"
    late = replace(WELL, now=NOON + 4 * HOUR + 1)
    assert judge(late, allowed).concerns[0].command == "stream-wh update"
    at_work = judge(replace(late, running=Running("process 7 on here", NOON, "epoch 8, step 1: load cars")), allowed)
    assert at_work.concerns[0].command is None
    assert at_work.notes == ("an update is running since 2026-03-01T12:00:00Z, by process 7 on here: epoch 8, step 1: load cars",)


def test_an_update_that_is_at_work_is_not_unfinished() -> None:
    """Its plan is there before its epoch."""
    assert judge(replace(WELL, planned=NOON, running=Running("process 7 on here"))).level == "ok"


def test_a_disk_too_small_for_the_next_update_is_broken() -> None:
    """Twice what the last one wrote is wanted, once is needed."""
    assert judge(replace(WELL, disk_free=4 * 10**9, written=3 * 10**9)).level == "attention"
    assert judge(replace(WELL, disk_free=2 * 10**9, written=3 * 10**9)).level == "broken"
    assert judge(replace(WELL, disk_free=4 * 10**9, written=3 * 10**9), Thresholds(disk_free=10**9)).level == "ok"
    assert judge(replace(WELL, disk_free=None)).level == "ok"


def test_a_command_for_a_path_with_spaces_can_be_pasted() -> None:
    """The shell takes the path as one word."""
    health = judge(cars(changed=("my file.csv",)))
    assert health.concerns[0].command == "stream-wh reload 'my file.csv'"


def test_files_are_named_and_the_rest_counted() -> None:
    """A thousand broken files do not give a thousand lines."""
    health = judge(cars(unreadable=tuple((f"{number}.csv", "no header") for number in range(1000))))
    assert health.concerns[0].text == (
        "1000 landing files could not be loaded: 0.csv: no header; 1.csv: no header; 2.csv: no header; and 997 more"
    )
