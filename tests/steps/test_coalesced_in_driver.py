"""Tables that the driver makes of few points: it rewrites the groups whose rows the edge of the window cuts."""

from __future__ import annotations

import pyarrow as pa

from warehouse.catalog.declaration import ColumnRecord
from warehouse.coalescing.definition import CoalescedDefinition
from warehouse.layout import keyed_layout
from warehouse.steps.coalesced_in_driver import DriverReplacement, no_stored_rows, points_of, points_of_collected
from warehouse.time import HOUR
from warehouse.views.maintenance.input_facts import Move

NEWEST = CoalescedDefinition("s", (("g", "string"),), (("v", "int"),), ("g",), rows=2)
COLUMNS = [ColumnRecord(name, kind) for name, kind in (*NEWEST.columns, *NEWEST.state)]


def replaced(stored: pa.Table, points: list[tuple[str | None, int, int]], hours: int) -> DriverReplacement:
    """Return the table moved to an hour with points: group, hour, value."""
    instants = pa.array([hour * HOUR for _, hour, _ in points], pa.int64()).cast(pa.timestamp("us", "UTC"))
    arrived = pa.table({
        "g": pa.array([group for group, _, _ in points], pa.string()),
        "v": pa.array([value for _, _, value in points], pa.int32()),
        "_ts": instants,
        "_fate": pa.array(["live"] * len(points)),
    })  # fmt: skip
    move = Move(
        k0=hours - 1, k=hours, before=(hours - 1) * HOUR, now=hours * HOUR, anchor=0, interval=HOUR, first=not stored.num_rows
    )
    return DriverReplacement(NEWEST, keyed_layout(8), move, stored, arrived)


def test_the_row_of_a_null_group_leaves_with_its_last_point() -> None:
    """Null is the least of the groups with one stamp, so its point leaves a window of rows first.

    hour     1      2        the two newest
    null     x               leaves at 2
    a        x               stays
    b               x
    """
    nothing = no_stored_rows(COLUMNS)
    first = replaced(nothing, [(None, 1, 5), ("a", 1, 5)], 1).replacement.rows
    assert isinstance(first, pa.Table)
    missing = [field for field in nothing.schema if field.name not in first.column_names]
    for field in missing:
        first = first.append_column(field, pa.nulls(first.num_rows, field.type))
    stored = first.select(nothing.column_names).cast(nothing.schema)
    bucket = {row["g"]: row["sub_index"] for row in stored.to_pylist()}
    second = replaced(stored, [("b", 2, 5)], 2).replacement
    assert isinstance(second.rows, pa.Table)
    assert {row["g"] for row in second.rows.to_pylist()} == {"b"}
    assert bucket[None] in second.sizes
    assert bucket["a"] not in second.sizes


def test_points_of_columns_that_were_kept_are_those_of_the_rows() -> None:
    """Dead and live points, but no deferred or rejected ones; their instants may be in another zone."""
    instants = pa.array([HOUR, 2 * HOUR, 3 * HOUR, None], pa.int64())
    rows = {
        "g": pa.array(["a", None, "b", "c"], pa.string()),
        "v": pa.array([1, None, 2, 3], pa.int32()),
        "_ts": instants.cast(pa.timestamp("us", "Europe/Berlin")),
        "_fate": pa.array(["live", "dead", "deferred", "null_arrival"]),
    }
    nothing, arrived = no_stored_rows(COLUMNS), pa.table(rows)
    collected, plain = points_of_collected(NEWEST, nothing, arrived), points_of(NEWEST, nothing, arrived)
    assert collected.schema.equals(plain.schema)
    assert collected.to_pylist() == plain.to_pylist() == [
        {"g": "a", "v": 1, "_at": HOUR}, {"g": None, "v": None, "_at": 2 * HOUR},
    ]  # fmt: skip
