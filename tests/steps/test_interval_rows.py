"""Longer intervals in the driver: windows made of intervals equal windows made of slots, also with late rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warehouse.steps.interval_rows as module
from warehouse.aggregates.intervals import cover
from warehouse.aggregates.synopses import LEVEL, WIDE, ColumnState, Synopsis
from warehouse.planning.following import SynopsisRead
from warehouse.steps.interval_rows import interval_rows
from warehouse.steps.window_run import WindowBounds, WindowRun

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from warehouse.aggregates.intervals import Piece

SLOTS, LEVELS = 8, 3
STATES = (
    ColumnState("count", "v", "bigint"), ColumnState("sum", "v", WIDE), ColumnState("min", "v", "bigint"),
    ColumnState("mean", "v", "double"), ColumnState("m2", "v", "double"),
)  # fmt: skip
SYNOPSIS = Synopsis("s", None, (("k", "string"),), None, STATES, levels=LEVELS)
KINDS = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string(), WIDE: pa.decimal128(29, 0)}
SCHEMA = pa.schema([(name, KINDS[kind]) for name, kind in SYNOPSIS.columns])
Row = tuple[int, str | None, int]
"""Slot, group, value."""
moves = st.lists(
    st.tuples(
        st.integers(1, 4),
        st.lists(st.tuples(st.integers(-9, 1), st.sampled_from(["a", None]), st.integers(-3, 9)), max_size=6),
    ),
    min_size=1,
    max_size=7,
)


def stated(rows: list[Row]) -> pa.Table:
    """Return the rows of slots that a batch adds."""
    groups: dict[tuple[int, str | None], list[int]] = {}
    for slot, group, value in rows:
        groups.setdefault((slot, group), []).append(value)
    states = []
    for (slot, group), values in groups.items():
        mean = sum(values) / len(values)
        own = {"_count_v": len(values), "_sum_v": sum(values), "_min_v": min(values), "_mean_v": mean}
        squares = sum((value - mean) ** 2 for value in values)
        states.append({
            "_arrived": slot, LEVEL: 0, "k": group, "_rows": len(values), "_failed": 0, "_m2_v": squares, **own,
        })  # fmt: skip
    return pa.Table.from_pylist(states, SCHEMA)


def gained(stored: pa.Table, batch: pa.Table, before: int | None, through: int) -> pa.Table:
    """Return the table after an update."""

    def known(connection: duckdb.DuckDBPyConnection) -> str:
        connection.register("known", stored)
        return "SELECT * FROM known"

    longer = interval_rows(
        SYNOPSIS, batch, known, slots=SLOTS, before=before, through=through, session=lambda: pytest.fail("no sketch")
    )
    parts = [stored, batch] if longer is None else [stored, batch, longer.select(SCHEMA.names).cast(SCHEMA)]
    return pa.concat_tables(parts)


def merged(stored: pa.Table, now: int, levels: int) -> dict[tuple[int, str | None], tuple[float, ...]]:
    """Return the values of the windows of all lengths that end now, by their length and group."""
    run = WindowRun(lambda connection, _: _registered(connection, stored), lambda _: SYNOPSIS, pieces=_pieces(now, levels))
    windows = [WindowBounds(now - length + 1, now, now, 0, 0) for length in range(1, SLOTS + 1)]
    run.prepare([SynopsisRead("s", SYNOPSIS, STATES, rows=True)], [windows])
    rows = run.connection.sql("SELECT * FROM synopsis_0").to_arrow_table().to_pylist()
    run.close()
    names = ("_rows", *(state.name for state in STATES))
    return {(row["_place"] + 1, row["k"]): tuple(float(row[name]) for name in names) for row in rows}


def _registered(connection: duckdb.DuckDBPyConnection, stored: pa.Table) -> str:
    connection.register("known", stored)
    return "SELECT * FROM known"


def _pieces(now: int, levels: int) -> Any:  # noqa: ANN401 - a function of a run
    def found(_: str, window: WindowBounds) -> Iterator[Piece]:
        return cover(window.first, window.end, levels, now - SLOTS)

    return found


@settings(deadline=None, max_examples=40)
@given(moves)
def test_windows_of_intervals_are_those_of_slots(given_moves: list[tuple[int, list[Row]]]) -> None:
    """After each update; updates pass several slots, and rows are late or ahead."""
    stored, before, now = SCHEMA.empty_table(), None, 0
    for slots, offsets in given_moves:
        now += slots
        batch = stated([(now + offset, group, value) for offset, group, value in offsets if now + offset > now - SLOTS])
        stored = gained(stored, batch, before, now)
        before = now
        of_intervals, of_slots = merged(stored, now, LEVELS), merged(stored, now, 0)
        assert of_intervals == {key: pytest.approx(values, abs=1e-9) for key, values in of_slots.items()}


def test_sums_of_intervals_never_overflow() -> None:
    """The sums of four of eight slots do not fit into a `bigint`, and the sum of all eight does."""
    stored, before, most = SCHEMA.empty_table(), None, 2**63 - 1
    for now in range(1, 9):
        stored, before = gained(stored, stated([(now, "a", most if now < 5 else -most)] * 2), before, now), now
    sums = {(row[LEVEL], row["_arrived"]): int(row["_sum_v"]) for row in stored.to_pylist()}
    assert (sums[2, 4], sums[2, 8], sums[3, 8]) == (8 * most, -8 * most, 0)
    run = WindowRun(lambda connection, _: _registered(connection, stored), lambda _: SYNOPSIS, pieces=_pieces(8, LEVELS))
    windows = [WindowBounds(8 - length + 1, 8, 8, 0, 0) for length in (8, 6, 4)]
    run.prepare([SynopsisRead("s", SYNOPSIS, STATES, rows=True)], [windows])
    answers = run.connection.sql("SELECT CAST(_sum_v AS VARCHAR) FROM synopsis_0 ORDER BY _place").fetchall()
    run.close()
    assert answers == [("0",), (str(-4 * most),), (str(-8 * most),)]


@pytest.mark.parametrize("at_once", [1, module.AT_ONCE])
def test_a_complete_interval_is_one_row_and_a_late_batch_adds_one_to_each(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight slots: 15 rows of a group; a row late by five slots adds one row to its slot and to each of two intervals."""
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    stored, before = SCHEMA.empty_table(), None
    for now in range(1, 9):
        stored, before = gained(stored, stated([(now, "a", now)]), before, now), now
    assert sorted(stored[LEVEL].to_pylist()) == [0] * 8 + [1] * 4 + [2] * 2 + [3]
    later = gained(stored, stated([(4, "a", 1), (9, "a", 1)]), 8, 9)
    added = later.slice(stored.num_rows).to_pylist()
    assert sorted((row[LEVEL], row["_arrived"], row["_sum_v"]) for row in added) == [
        (0, 4, 1), (0, 9, 1), (1, 4, 1),
    ], "those that begin with the first slot have ended: no window reaches it"  # fmt: skip
    same = gained(stored, stated([(4, "a", 1)]), 8, 8).slice(stored.num_rows).to_pylist()
    assert sorted((row[LEVEL], row["_arrived"]) for row in same) == [(0, 4), (1, 4), (2, 4), (3, 8)]
