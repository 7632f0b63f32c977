"""``erase_within``, ``after_load`` and ``move_to``: their consequences, and conflicts with the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.catalog.drift import effective_layout
from warehouse.catalog.retention import dead_updates, derived_retain
from warehouse.layout import how_long_dead
from warehouse.planning.keeping import keep_by_table
from warehouse.time import DAY, HOUR

from .project import loaded, problems

if TYPE_CHECKING:
    from pathlib import Path

WITHIN = "streams.flights.erase_within"


def _fault(directory: Path, changes: dict[str, Any]) -> str:
    (problem,) = problems(directory, changes)
    return str(problem)


def test_retain_follows_from_the_tightest_bound_where_it_is_left_out(tmp_path: Path) -> None:
    """Half of the bound, at most 7 days; a declared value is kept."""
    assert loaded(tmp_path).retain == 7 * DAY
    assert loaded(tmp_path, {WITHIN: "30d"}).retain == 7 * DAY
    assert loaded(tmp_path, {WITHIN: "2d"}).retain == DAY
    assert loaded(tmp_path, {WITHIN: "3h"}).retain == 0
    assert loaded(tmp_path, {WITHIN: "2d", "warehouse.retain": "3h"}).retain == 3 * HOUR


def test_the_expiry_block_of_a_new_table_follows_from_the_bound(tmp_path: Path) -> None:
    """It is as wide as by default where that is narrow enough, else as the bound allows; a table that exists keeps its own."""
    plain = effective_layout(loaded(tmp_path).streams[0], None, HOUR)
    assert (plain.expiry_block, plain.columns) == (6, 4)
    roomy = effective_layout(loaded(tmp_path, {WITHIN: "30d"}).streams[0], None, HOUR)
    assert roomy == plain
    tight = loaded(tmp_path, {WITHIN: "8h"}).streams[0]
    layout = effective_layout(tight, None, HOUR)
    assert (layout.expiry_block, layout.columns) == (2, 12)
    assert effective_layout(tight, plain, HOUR) == plain


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({WITHIN: "8d", "warehouse.retain": "8d"}, ('"8d"', 'at least "8d3h"', 'retain = "8d"')),
        ({WITHIN: "2h"}, ('"2h"', 'at least "3h"', "three intervals")),
        ({WITHIN: "12h", "streams.flights.layout": {"expiry_block": 6}}, ("expiry_block = 6", "at most 4", 'at least "14h"')),
        ({WITHIN: "30d", "warehouse.vacuum": "manual"}, ('vacuum = "manual"', 'vacuum = "auto"')),
        ({WITHIN: "soon"}, ('"soon"', "a duration")),
    ],
    ids=["retain", "interval", "block", "vacuum", "text"],
)
def test_impossible_bounds_are_refused_with_the_numbers(tmp_path: Path, changes: dict[str, Any], told: tuple[str, ...]) -> None:
    """One fault, which names the allowed values."""
    fault = _fault(tmp_path, changes)
    assert "erase_within" in fault
    assert [text for text in told if text not in fault] == []


def test_a_view_that_keeps_what_ended_cannot_be_bounded(tmp_path: Path) -> None:
    """Reported results stay."""
    view = {"sql": "SELECT tailnum FROM flights", "search_key": "tailnum", "short_lived": "report", "erase_within": "30d"}
    assert 'short_lived = "drop"' in _fault(tmp_path, {"views": {"v": view}})
    assert loaded(tmp_path, {"views": {"v": {**view, "short_lived": "drop"}}}).erase_within == {"v": 30 * DAY}


def test_a_relation_has_no_bound(tmp_path: Path) -> None:
    """The message names the remedy."""
    relation = {"landing": "landing/planes", "format": "csv", "search_key": "k", "changed_at": "b", "erase_within": "30d"}
    columns = {"k": "string", "b": "timestamp"}
    assert "stream-wh erase" in _fault(tmp_path, {"relations": {"planes": {**relation, "columns": columns}}})


@given(bound=st.integers(0, 10_000), retain=st.none() | st.integers(0, 5_000), interval=st.integers(1, 400))
def test_a_row_is_gone_within_the_bound(bound: int, retain: int | None, interval: int) -> None:
    """Its slot, L - 1 updates more, retain, the next update and one interval of being late fit; one more update would not."""
    derived = derived_retain(retain, [bound], interval)
    updates = dead_updates(bound, derived, interval)
    if updates >= 1:
        assert updates * interval + derived + interval + interval <= bound
        assert (updates + 1) * interval + derived + interval + interval > bound
    elif retain is None:
        assert bound < 3 * interval


@given(hours=st.integers(3, 400))
def test_the_default_layout_keeps_the_bound_by_itself(hours: int) -> None:
    """Blocks pass in time, so nothing is rewritten for it."""
    from warehouse.layout import resolve  # noqa: PLC0415 - one use

    retain = derived_retain(None, [hours * HOUR], HOUR)
    allowed = dead_updates(hours * HOUR, retain, HOUR)
    for label in ("WK", "WKS", "MON"):
        layout = resolve(periods=24, label=label, widest=allowed)  # type: ignore[arg-type]
        assert how_long_dead(layout) + 1 <= allowed


def test_loaded_files_are_moved_beside_the_landing_or_where_one_says(tmp_path: Path) -> None:
    """Never by default."""
    assert loaded(tmp_path).streams[0].move_to is None
    moved = loaded(tmp_path, {"streams.flights.after_load": "move"}).streams[0]
    assert moved.move_to == tmp_path / "landing" / "loaded" / "flights"
    elsewhere = loaded(tmp_path, {"streams.flights.after_load": "move", "streams.flights.move_to": "done"}).streams[0]
    assert elsewhere.move_to == tmp_path / "done"
    deleted = loaded(tmp_path, {"streams.flights.after_load": "delete"}).streams[0]
    assert (deleted.after_load, deleted.move_to) == ("delete", None)


@pytest.mark.parametrize("place", ["landing/flights/loaded", "landing", "data/loaded", "."])
def test_loaded_files_may_not_come_back_as_new_ones(tmp_path: Path, place: str) -> None:
    """Neither into a landing, nor around one, nor into the root."""
    fault = _fault(tmp_path, {"streams.flights.after_load": "move", "streams.flights.move_to": place})
    assert "move_to" in fault
    assert "apart from root and all landings" in fault


def test_a_place_without_moving_is_a_mistake(tmp_path: Path) -> None:
    """And a word that is not one of the three."""
    assert 'after_load = "move"' in _fault(tmp_path, {"streams.flights.move_to": "done"})
    assert "delete" in _fault(tmp_path, {"streams.flights.after_load": "remove"})


def test_keep_is_that_of_the_table_else_of_the_warehouse(tmp_path: Path) -> None:
    """90 days where nothing says otherwise; a stream, a relation and a view may say so for themselves, or for ever."""
    assert dict(keep_by_table(loaded(tmp_path))) == {"flights": 90 * DAY}
    columns = {"k": "string", "b": "timestamp"}
    relation = {"landing": "landing/planes", "format": "csv", "search_key": "k", "changed_at": "b", "columns": columns}
    view = {"sql": "SELECT tailnum FROM flights", "search_key": "tailnum"}
    changes = {"warehouse.keep": "2w", "relations": {"planes": relation}, "views": {"v": {**view, "keep": "0s"}}}
    assert dict(keep_by_table(loaded(tmp_path, changes))) == {"flights": 14 * DAY, "planes": 14 * DAY, "v": 0}
    everywhere = {"warehouse.keep": "forever", "streams.flights.keep": "1d", "views": {"v": view}}
    assert dict(keep_by_table(loaded(tmp_path, everywhere))) == {"flights": DAY}
    other = {"relations": {"planes": {**relation, "keep": "3d"}}, "streams.flights.keep": "forever"}
    assert dict(keep_by_table(loaded(tmp_path, other))) == {"planes": 3 * DAY}
