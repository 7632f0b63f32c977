"""States of slots merge to what a query over the rows gives: for all windows, groups and late batches, in DuckDB alone."""

from __future__ import annotations

import statistics
from decimal import Decimal
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.aggregates.definition import Definition, Value, Window
from warehouse.aggregates.synopses import Synopsis, assigned, missing, needs
from warehouse.planning.steps import SynopsisRead
from warehouse.steps.local_states import calculable, local_states
from warehouse.steps.merging import merged
from warehouse.storage.duckdb_sql import in_memory

AMOUNT = "decimal(10,2)"
VALUES = (
    Value("n", "rows", "bigint"),
    Value("known", "count", "bigint", "v", "bigint"),
    Value("total", "sum", "bigint", "v", "bigint"),
    Value("paid", "sum", "decimal(20,2)", "amount", AMOUNT),
    Value("low", "min", "bigint", "v", "bigint"),
    Value("high", "max", AMOUNT, "amount", AMOUNT),
    Value("mean", "avg", "double", "v", "bigint"),
    Value("spread", "stddev_samp", "double", "v", "bigint"),
    Value("spread_of_all", "var_pop", "double", "v", "bigint"),
    Value("kinds", "distinct", "bigint", "v", "bigint"),
    Value("p30", "percentile", "double", "v", "bigint", 0.3),
    Value("p", "percentile", "double", "amount", AMOUNT, 1.0),
)
WINDOWS = (Window("1h", 1, 1), Window("3h", 3, 1), Window("7h", 7, 2))
Answers = dict[tuple[object, str, int], dict[str, object]]
Row = tuple[int, str | None, int | None, Decimal | None]
SLOTS = 8
rows = st.tuples(
    st.integers(1, SLOTS),
    st.sampled_from(["a", "B'\"", "", None]),
    st.none() | st.integers(-3, 3) | st.sampled_from([10**15, -(10**15)]),
    st.none() | st.decimals(-1000, 1000, places=2),
)
batches = st.lists(st.lists(rows, max_size=8), max_size=4)


def answered(given_rows: list[list[Row]], groups: tuple[tuple[str, str], ...]) -> Answers:
    """Return each answer by group, length and end: each batch adds its states to the slots of its rows."""
    definition = Definition("s", None, groups, VALUES, WINDOWS, 0, ())
    synopses = missing(needs(definition), ())
    reads = tuple(
        SynopsisRead(str(served.number), synopses[served.number], served.states, served.rows)
        for need in needs(definition)
        for served in assigned(need, synopses)
    )
    due = [(window, end) for window, end in definition.due(0, SLOTS)]
    with in_memory(()) as connection:
        connection.register("due", pa.table({
            "_text": [window.text for window, _ in due], "_first": [end - window.slots + 1 for window, end in due],
            "_end": [end for _, end in due], "_full": [True] * len(due), "_late": [0] * len(due),
        }))  # fmt: skip
        for number, read in enumerate(reads):
            stored(connection, number, read.synopsis, given_rows)
        found = connection.sql(merged(definition, reads, ends="make_timestamptz(_end)", epoch=3)).to_arrow_table().to_pylist()
    keyed = {(row.get("k"), row["window_length"], due_end(row)): row for row in found}
    assert len(keyed) == len(found), "an answer is there once"
    return {key: {value.name: row[value.name] for value in VALUES} for key, row in keyed.items()}


def due_end(row: dict[str, object]) -> int:
    """The slot that a window ends with, which the test writes as microseconds."""
    end = row["window_end"]
    return int(end.timestamp() * 1_000_000 + 0.5)  # type: ignore[attr-defined]


def stored(connection: object, number: int, synopsis: Synopsis, given_rows: list[list[Row]]) -> None:
    """Make the table of a synopsis from batches, as updates would."""
    assert calculable(synopsis)
    parts = []
    for batch in [*given_rows, []]:
        columns = list(zip(*batch, strict=True)) if batch else [(), (), (), ()]
        arrived = pa.table({
            "_fate": pa.array(["dead" if place % 2 else "live" for place in range(len(batch))], pa.string()),
            "_arrival_slot": pa.array(columns[0], pa.int64()),
            "k": pa.array(columns[1], pa.string()),
            "v": pa.array(columns[2], pa.int64()),
            "amount": pa.array(columns[3], pa.decimal128(10, 2)),
        })  # fmt: skip
        connection.register("arrived", arrived)  # type: ignore[attr-defined]
        parts.append(connection.sql(local_states(synopsis, "true")).to_arrow_table())  # type: ignore[attr-defined]
    connection.register(f"synopsis_{number}", pa.concat_tables(parts))  # type: ignore[attr-defined]


def expected(chosen: list[Row]) -> dict[str, object]:
    """What a query over rows gives."""
    values = sorted(row[2] for row in chosen if row[2] is not None)
    amounts = sorted(row[3] for row in chosen if row[3] is not None)
    mean = Fraction(sum(values), len(values)) if values else None
    return {
        "n": len(chosen),
        "known": len(values),
        "total": sum(values) if values else None,
        "paid": sum(amounts) if amounts else None,
        "low": min(values, default=None),
        "high": max(amounts, default=None),
        "mean": None if mean is None else pytest.approx(float(mean), abs=1e-9),
        "spread": pytest.approx(statistics.stdev(values), rel=1e-6, abs=1e-6) if len(values) > 1 else None,
        "spread_of_all": pytest.approx(statistics.pvariance(values), rel=1e-6, abs=1e-6) if values else None,
        "kinds": len(set(values)),
        "p30": None if not values else pytest.approx(between(values, 0.3), rel=1e-12, abs=1e-9),
        "p": None if not amounts else pytest.approx(float(amounts[-1])),
    }


def between(values: list[int], share: float) -> float:
    """The percentile between the two values around its place."""
    place = (len(values) - 1) * share
    low = int(place)
    high = min(low + 1, len(values) - 1)
    return (1 - (place - low)) * values[low] + (place - low) * values[high]


@settings(deadline=None, max_examples=15)
@given(batches)
def test_answers_are_those_of_a_query(given_rows: list[list[Row]]) -> None:
    """By group; and without groups one for every end, also of no row."""
    every = [row for batch in given_rows for row in batch]
    by_group, whole = {}, {}
    for window in WINDOWS:
        for end in range(1, SLOTS + 1):
            if end % window.every == 0:
                within = [row for row in every if end - window.slots < row[0] <= end]
                whole[None, window.text, end] = expected(within)
                for group in {row[1] for row in within}:
                    by_group[group, window.text, end] = expected([row for row in within if row[1] == group])
    assert answered(given_rows, (("k", "string"),)) == by_group
    assert answered(given_rows, ()) == whole


def test_a_sum_that_overflows_is_null_and_so_is_each_that_it_is_part_of() -> None:
    """In its slot and group, and in no other."""
    most = 2**63 - 1
    found = answered([[(1, "a", most, None), (1, "a", most, None), (2, "a", 1, None), (1, "b", 2, None)]], (("k", "string"),))
    totals = {(group, end): row["total"] for (group, text, end), row in found.items() if text == "1h"}
    assert totals == {("a", 1): None, ("a", 2): 1, ("b", 1): 2}
    assert found["a", "3h", 2]["total"] is None
    assert found["a", "3h", 4]["total"] == 1
