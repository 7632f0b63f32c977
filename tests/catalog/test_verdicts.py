"""What each changed key of the file means: free, from now on, migrate, rebuild or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from warehouse.catalog.types import widens
from warehouse.catalog.verdicts import Verdict, declared_keys, verdicts

from .project import loaded
from .test_drift import LAYOUT, STREAM, recorded

if TYPE_CHECKING:
    from pathlib import Path


def judged(directory: Path, changes: dict[str, Any], before: dict[str, Any] | None = None) -> tuple[Verdict, ...]:
    """Return the verdicts on changed keys of the good file."""
    catalog = loaded(directory, before)
    return verdicts(loaded(directory, {**(before or {}), **changes}), recorded(catalog), catalog.keys)


@pytest.mark.parametrize(
    ("changes", "verdict", "why"),
    [
        ({"warehouse.retain": "1d"}, "free", "in force at once"),
        ({"spark": {"spark.driver.memory": "1g"}}, "free", "in force at once"),
        ({"warehouse.keep": "1d"}, "free", "the next update removes what is older"),
        ({f"{STREAM}.keep": "forever"}, "free", "the next update removes what is older"),
        ({"warehouse.publish": "delta"}, "free", "the next update makes live/NAME"),
        ({f"{STREAM}.publish": "off"}, "free", "stays as it is for `retain`"),
        ({"warehouse.target_file_size": "64MB"}, "from now on", "files written from now on"),
        ({"warehouse.update_interval": "30m"}, "rebuild", "`stream-wh migrate --rebuild`"),
        ({"warehouse.anchor": "2013-01-02"}, "rebuild", "`stream-wh migrate --rebuild`"),
        ({f"{STREAM}.files": "*.csv"}, "free", "in force at once"),
        ({f"{STREAM}.arrival": "coalesce(departed_at, landed_at)"}, "from now on", "`stream-wh restate flights`"),
        ({f"{STREAM}.max_lifetime": "2d"}, "from now on", "p stays until a migration of flights"),
        ({f"{STREAM}.search_key": ["tailnum", "ttl"]}, "rebuild", "`stream-wh migrate flights --rebuild`"),
        ({f"{STREAM}.columns.more": "int"}, "from now on", "rows loaded before have null"),
        ({f"{STREAM}.columns.keep": "int"}, "from now on", "rows loaded before have null"),
        ({f"{STREAM}.columns.publish": "int"}, "from now on", "rows loaded before have null"),
        ({f"{STREAM}.columns.ttl": "bigint"}, "rebuild", "`stream-wh migrate flights --rebuild`"),
        ({f"{STREAM}.columns.ttl": "smallint"}, "refused", "`stream-wh restate flights --since first`"),
        ({f"{STREAM}.columns.ttl": None}, "refused", "`stream-wh migrate flights --rename ttl=NEW`"),
        ({f"{STREAM}.columns.ttl": "integer"}, "free", "it means the same"),
        ({f"{LAYOUT}.grid": [6, 4]}, "migrate", "`stream-wh migrate flights`, --rebuild or --side-by-side"),
        ({f"{LAYOUT}.seed": 1}, "migrate", "`stream-wh migrate flights`"),
        ({f"{LAYOUT}.seal": False}, "free", "with the next update"),
        ({f"{LAYOUT}.grid": [5, 4]}, "free", "the table is as it says"),
        ({"views.later": {"sql": "SELECT 1", "search_key": "a"}}, "free", "the next update creates it"),
    ],
)
def test_each_key_has_its_verdict(tmp_path: Path, changes: dict[str, Any], verdict: str, why: str) -> None:
    """With both values, and with the remedy; updates stop for what tables cannot follow by themselves."""
    (change,) = judged(tmp_path, changes)
    assert (change.verdict, change.stops) == (verdict, verdict in ("migrate", "rebuild", "refused"))
    assert why in change.why
    assert change.key in (*changes, "views.later")


REPORTS = {"short_lived": "report"}
BUDGET = {"budget": {"pairs": 10}}


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({}, BUDGET, ["free"]),
        (BUDGET, {"budget": {"rows": 9, "prefer": "asc"}}, ["free"]),
        (BUDGET, {}, ["free"]),
        (BUDGET | REPORTS, {"budget": {"pairs": 11}} | REPORTS, ["free"]),
        ({}, REPORTS, ["from now on"]),
        (BUDGET, BUDGET | REPORTS, ["rebuild"]),
        (BUDGET | REPORTS, BUDGET, ["rebuild"]),
        (REPORTS, BUDGET | REPORTS, ["rebuild"]),
        (BUDGET | REPORTS, REPORTS, ["rebuild"]),
        (REPORTS, BUDGET, ["free", "from now on"]),
    ],
)
def test_a_budget_changes_freely(tmp_path: Path, before: dict[str, Any], now: dict[str, Any], expected: list[str]) -> None:
    """But a view sets aside rows that end only if it reports them and has a budget: if that changes, it is built again."""
    sections = [{"views.each": {"sql": "SELECT 1", "search_key": "a", **keys}} for keys in (before, now)]
    changes = judged(tmp_path, sections[1], sections[0])
    assert [change.verdict for change in changes] == expected
    assert not any(change.stops for change in changes)


def test_a_view_is_built_anew_and_stops_nothing(tmp_path: Path) -> None:
    """The next update builds it; a changed report of short-lived results holds for new results."""
    before = {"views.each": {"sql": "SELECT 1", "search_key": "a"}}
    changes = judged(tmp_path, {"views.each": {"sql": "SELECT 2", "search_key": "a", "short_lived": "report"}}, before)
    assert [(change.key, change.verdict, change.stops) for change in changes] == [
        ("views.each.short_lived", "from now on", False),
        ("views.each.sql", "rebuild", False),
    ]
    with_view = loaded(tmp_path, before)
    (removal,) = verdicts(loaded(tmp_path), recorded(with_view), with_view.keys)
    assert (removal.verdict, "`stream-wh drop each`" in removal.why) == ("free", True)


def test_a_coalesced_table_is_built_anew_and_stops_nothing(tmp_path: Path) -> None:
    """Its next update builds it from the files that still exist."""
    before = {"coalesced.each": {"from": "flights", "group_by": "tailnum", "values": "ttl", "window": "1d"}}
    changed = {"coalesced.each": {"from": "flights", "group_by": "tailnum", "values": "ttl", "window": "2d"}}
    (change,) = judged(tmp_path, changed, before)
    assert (change.key, change.verdict, change.stops) == ("coalesced.each.window", "rebuild", False)
    assert "landing files that are still there" in change.why


def test_nothing_changed(tmp_path: Path) -> None:
    """The same file has no verdicts."""
    assert judged(tmp_path, {}) == ()


def test_without_the_keys_of_before_only_what_tables_cannot_follow_is_told(tmp_path: Path) -> None:
    """An epoch of an earlier version recorded no keys."""
    epoch = recorded(loaded(tmp_path))
    changes = verdicts(loaded(tmp_path, {f"{LAYOUT}.grid": [6, 4], "warehouse.retain": "1d"}), epoch, ())
    (only,) = changes
    assert (only.key, only.before, only.now, only.verdict) == (f"{LAYOUT}.grid", "[5, 4]", "[6, 4]", "migrate")


def test_keys_are_recorded_without_secrets() -> None:
    """Of settings of Spark there is a digest of all, of long values the beginning and a digest."""
    keys = dict(declared_keys({"spark": {"spark.password": "hunter2"}, "views": {"v": {"sql": "x" * 1000, "search_key": "k"}}}))
    assert "hunter2" not in str(keys)
    assert keys["spark"].startswith("sha256 ")
    assert len(keys["views.v.sql"]) < 200


@pytest.mark.parametrize(
    ("old", "new", "fits"),
    [
        ("tinyint", "int", True),
        ("int", "double", True),
        ("int", "float", False),
        ("float", "double", True),
        ("decimal(10,2)", "decimal(12,2)", True),
        ("decimal(10,2)", "decimal(12,4)", True),
        ("decimal(10,2)", "decimal(11,3)", True),
        ("decimal(10,2)", "decimal(10,3)", False),
        ("bigint", "decimal(19,0)", True),
        ("bigint", "decimal(20,2)", False),
        ("date", "timestamp", False),
        ("string", "binary", False),
        ("array<int>", "array<bigint>", False),
    ],
)
def test_which_types_hold_all_values_of_another(old: str, new: str, *, fits: bool) -> None:
    """Exactly: no value is rounded or lost; a type is not wider than itself."""
    assert widens(old, new) is fits
    assert not widens(old, old)
