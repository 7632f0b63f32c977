"""Merged states of slots equal a query over the rows: for all windows, groups and late batches, in DuckDB alone."""

from __future__ import annotations

import statistics
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.aggregates.definition import AggregateDefinition, Value, Window
from warehouse.aggregates.sharing import assigned, missing
from warehouse.aggregates.synopses import WIDE, Synopsis, counts_values, needs
from warehouse.steps.local_states import local_states, same_in_both_engines
from warehouse.steps.merging import merged

from .windowed import bounds_of, due_table, reads_of, run_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.aggregates.definition import Over
    from warehouse.aggregates.predicates import Kind

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
    definition = AggregateDefinition("s", None, groups, VALUES, WINDOWS, 0, ())
    return answers_of(definition, missing(needs(definition), ()), given_rows)


def fitting(total: int) -> int | None:
    """Return a sum of `bigint` as answers have it: None if it does not fit."""
    return total if -(2**63) <= total < 2**63 else None


def answers_of(
    definition: AggregateDefinition,
    synopses: Sequence[Synopsis],
    given_rows: list[list[Row]],
    kinds: Mapping[str, Kind] | None = None,
) -> Answers:
    """Return each answer from existing synopses."""
    reads = reads_of(definition, synopses, kinds)
    due = [(window, end) for window, end in definition.due(0, SLOTS)]
    asked = [(window, end) for window in WINDOWS for end in range(1, SLOTS + 1, 2)]
    run = run_of(synopses, lambda connection, number: stored(connection, synopses[number], given_rows), asked)
    run.connection.register("due", due_table(due))
    run.prepare(reads, [bounds_of(due)] * len(reads))
    query = merged(definition, reads, ends="make_timestamptz(_end)", epoch=3)
    merged_rows = run.connection.sql(query).to_arrow_table().to_pylist()
    assert run.passes == len({table for read in reads for table in read.tables}), "one pass over each synopsis"
    run.close()
    keyed = {(row.get("k"), row["window_length"], due_end(row)): row for row in merged_rows}
    assert len(keyed) == len(merged_rows), "an answer is there once"
    return {key: {value.name: row[value.name] for value in definition.values} for key, row in keyed.items()}


def due_end(row: dict[str, object]) -> int:
    """Return the slot at which a window ends, which the test writes as microseconds."""
    end = row["window_end"]
    return int(end.timestamp() * 1_000_000 + 0.5)  # type: ignore[attr-defined]


def stored(connection: object, synopsis: Synopsis, given_rows: list[list[Row]]) -> pa.Table:
    """Return the table of a synopsis from batches, as updates would make it."""
    where, synopsis = synopsis.where or "true", replace(synopsis, where=None)
    assert same_in_both_engines(synopsis)
    parts = []
    for batch in [*given_rows, []]:
        columns = list(zip(*batch, strict=True)) if batch else [(), (), (), ()]
        arrived = pa.table({
            "_fate": pa.array(["dead" if position % 2 else "live" for position in range(len(batch))], pa.string()),
            "_arrival_slot": pa.array(columns[0], pa.int64()),
            "k": pa.array(columns[1], pa.string()),
            "v": pa.array(columns[2], pa.int64()),
            "amount": pa.array(columns[3], pa.decimal128(10, 2)),
        })  # fmt: skip
        connection.register("every", arrived)  # type: ignore[attr-defined]
        connection.register("arrived", connection.sql(f"SELECT * FROM every WHERE {where}").to_arrow_table())  # type: ignore[attr-defined]
        parts.append(connection.sql(local_states(synopsis, "true", until="99")).to_arrow_table())  # type: ignore[attr-defined]
    return pa.concat_tables(parts)


def expected(chosen: list[Row]) -> dict[str, object]:
    """Return the values that a query over the rows gives."""
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
    """Return the percentile, interpolated between the two values around its position."""
    position = (len(values) - 1) * share
    low = int(position)
    high = min(low + 1, len(values) - 1)
    return (1 - (position - low)) * values[low] + (position - low) * values[high]


@settings(deadline=None, max_examples=15)
@given(batches)
def test_answers_are_those_of_a_query(given_rows: list[list[Row]]) -> None:
    """For each group; without groups there is one answer for every end, also of no row."""
    all_rows = [row for batch in given_rows for row in batch]
    by_group, whole = {}, {}
    for window in WINDOWS:
        for end in range(1, SLOTS + 1):
            if end % window.every == 0:
                within = [row for row in all_rows if end - window.slots < row[0] <= end]
                whole[None, window.text, end] = expected(within)
                for group in {row[1] for row in within}:
                    by_group[group, window.text, end] = expected([row for row in within if row[1] == group])
    assert answered(given_rows, (("k", "string"),)) == by_group
    assert answered(given_rows, ()) == whole


LEAST, MOST = -(2**63), 2**63 - 1


extremes = st.tuples(st.integers(1, SLOTS), st.sampled_from([LEAST, LEAST + 1, -1, 0, 7, MOST]))


@settings(deadline=None, max_examples=15)
@given(st.lists(st.lists(extremes, max_size=6), max_size=4), st.sampled_from(["arrivals", "live"]))
def test_sums_of_the_largest_numbers_are_those_of_a_query(given_rows: list[list[tuple[int, int]]], over: Over) -> None:
    """A sum that does not fit its type is null, whatever the sums of slots and batches; an average always fits."""
    chosen = tuple(value for value in VALUES if value.name in ("n", "total", "mean"))
    definition = AggregateDefinition("s", None, (("k", "string"),), chosen, WINDOWS, 0, (), over=over)
    batched: list[list[Row]] = [[(slot, "a", value, None) for slot, value in batch] for batch in given_rows]
    expected = {}
    for window, end in definition.due(0, SLOTS):
        values = [value for batch in given_rows for slot, value in batch if end - window.slots < slot <= end]
        if values:
            mean = float(Fraction(sum(values), len(values)))
            expected["a", window.text, end] = {
                "n": len(values), "total": fitting(sum(values)), "mean": pytest.approx(mean, rel=1e-15),
            }  # fmt: skip
    assert answers_of(definition, missing(needs(definition), ()), batched) == expected


def test_synopses_of_older_versions_serve_sums_of_bigint_and_are_not_subtracted() -> None:
    """They lose a slot's overflow: an answer may be null, and a difference of two answers would be wrong."""
    kinds: dict[str, Kind] = {"v": "number", "k": "text"}
    wide, less, difference = (
        AggregateDefinition("s", where, (), (VALUES[2],), WINDOWS, 0, ()) for where in ("v IN (1, 2)", "v = 2", "v = 1")
    )
    new = [*missing(needs(wide), (), kinds), *missing(needs(less), (), kinds)]
    assert [state.type for state in new[0].states] == ["bigint", WIDE]
    old = [replace(synopsis, states=tuple(replace(state, type="bigint") for state in synopsis.states)) for synopsis in new]
    assert (missing(needs(wide), old, kinds), missing(needs(less), old, kinds)) == ((), ())
    assert len(missing(needs(difference), old, kinds)) == 1
    plain = AggregateDefinition("s", None, (), (VALUES[2],), WINDOWS, 0, ())
    (own,) = missing(needs(plain), ())
    before = replace(own, states=tuple(replace(state, type="bigint") for state in own.states))
    given_rows: list[list[Row]] = [[(1, "a", MOST, None), (1, "a", MOST, None), (2, "a", 1, None)]]
    totals = {end: row["total"] for (_, text, end), row in answers_of(plain, [before], given_rows).items() if text == "1h"}
    assert totals == {1: None, 2: 1, **dict.fromkeys(range(3, SLOTS + 1))}


@pytest.mark.parametrize(
    ("column", "type_", "values", "total"),
    [
        ("double", "double", [float("inf"), 1.0], float("inf")),
        ("double", "double", [1e308, 1e308], float("inf")),
        ("double", "double", [0.25, 0.5], 0.75),
        ("decimal(38,0)", "decimal(38,0)", [9 * 10**37, 9 * 10**37], None),
        ("decimal(38,0)", "decimal(38,0)", [6 * 10**37, 6 * 10**37], None),
        ("decimal(38,0)", "decimal(38,0)", [6 * 10**37, 1], 6 * 10**37 + 1),
        ("decimal(38,0)", "decimal(38,0)", [10**38 - 1, 0], 10**38 - 1),
        ("decimal(38,0)", "decimal(38,0)", [10**38 - 2, 1], 10**38 - 1),
        ("decimal(38,0)", "decimal(38,0)", [-(10**38) + 1, 0], -(10**38) + 1),
        ("decimal(38,0)", "decimal(38,0)", [10**38 - 1, 1], None),
        ("decimal(38,0)", "decimal(38,0)", [10**38 - 1, 10**38 - 1], None),
    ],
)
def test_sums_at_the_end_of_a_range(column: str, type_: str, values: list[float], total: float | None) -> None:
    """An infinite sum stays infinite, and an overflowing sum of decimals is null: it does not end the run of the others."""
    definition = AggregateDefinition("s", None, (), (Value("total", "sum", type_, "v", column),), WINDOWS, 0, ())
    (synopsis,) = missing(needs(definition), ())
    kind = pa.float64() if column == "double" else pa.decimal128(38, 0)
    given_rows = pa.table({
        "_arrived": [1, 2], "_rows": [1, 1], "_failed": [0, 0], "_count_v": [1, 1],
        "_sum_v": pa.array([value if column == "double" else Decimal(value) for value in values], kind),
    })  # fmt: skip
    due = [(WINDOWS[1], 2)]
    run = run_of([synopsis], lambda *_: given_rows)
    reads = reads_of(definition, [synopsis])
    run.prepare(reads, [bounds_of(due)])
    run.connection.register("due", due_table(due))
    query = merged(definition, reads, ends="make_timestamptz(_end)", epoch=1)
    assert run.connection.sql(f"SELECT total FROM ({query})").fetchall() == [(total,)]


def test_what_merges_with_counts_comes_from_one_synopsis() -> None:
    """Sums and deviations of a column bring counts of the same rows, even if another aggregate has counted the values before."""
    counted = AggregateDefinition("s", None, (), (Value("known", "count", "bigint", "v", "bigint"),), WINDOWS, 0, ())
    existing = missing(needs(counted), ())
    of_v = tuple(value for value in VALUES if value.column == "v" and value.share is None)
    both = AggregateDefinition("s", None, (), of_v, WINDOWS, 0, ())
    synopses = (*existing, *missing(needs(both), existing))
    row = answers_of(both, synopses, [[(1, "a", 5, None), (1, "a", 7, None)]])[None, "1h", 1]
    spread = pytest.approx(2**0.5)
    assert row == {"known": 2, "total": 12, "low": 5, "mean": 6.0, "spread": spread, "spread_of_all": 1.0, "kinds": 2}


CONDITIONS = (
    "v = 1", "v = 2", "v < 0", "k = 'a'", "v = 1 OR v = 2", "v < 0 OR v = 2 OR v = 1", "v = 1 OR k = 'a'", "v IN (1, 2)",
)  # fmt: skip
COVERED = (
    tuple(value for value in VALUES if not counts_values(value)),
    tuple(value for value in VALUES if value.function in ("min", "max")),
    (Value("n", "rows", "bigint"),),
    tuple(value for value in VALUES if counts_values(value)),
)


@settings(deadline=None, max_examples=25)
@given(
    batches,
    st.lists(st.tuples(st.sampled_from(CONDITIONS), st.sampled_from(COVERED)), min_size=1, max_size=6),
    st.sampled_from([(), (("k", "string"),)]),
)
def test_covers_answer_as_synopses_of_their_own(
    given_rows: list[list[Row]], asked: list[tuple[str, tuple[Value, ...]]], groups: tuple[tuple[str, str], ...]
) -> None:
    """With any sequence of conditions and values, where earlier conditions cover some of the later ones."""
    kinds: dict[str, Kind] = {"v": "number", "k": "text"}
    definitions = [AggregateDefinition("s", where, groups, values, WINDOWS, 0, ()) for where, values in asked]
    existing: tuple[Synopsis, ...] = ()
    for definition in definitions:
        existing = (*existing, *missing(needs(definition), existing, kinds))
    assert len(existing) <= sum(len(needs(definition)) for definition in definitions)
    for definition in definitions:
        alone = missing(needs(definition), ())
        actual, of_own_synopses = (
            answers_of(definition, *arguments) for arguments in ((existing, given_rows, kinds), (alone, given_rows))
        )
        near = {key: {name: about(value) for name, value in row.items()} for key, row in of_own_synopses.items()}
        assert actual == near


def about(value: object) -> object:
    """Allow for rounding: deviations are merged in another order."""
    return pytest.approx(value, rel=1e-6, abs=1e-6) if isinstance(value, float) else value


def test_a_cover_saves_a_synopsis_and_repeats_only_what_may_repeat() -> None:
    """The sheet's Q1 to Q6: conditions of few atoms come first, in any order of asking; extremes of overlapping rows."""
    kinds: dict[str, Kind] = {"v": "number", "k": "text"}
    count, most = VALUES[0], VALUES[5]

    def made(*pairs: tuple[str, Value]) -> list[str | None]:
        definitions = [AggregateDefinition("s", where, (), (value,), WINDOWS, 0, ()) for where, value in pairs]
        return [new.where for new in missing([need for wide in definitions for need in needs(wide)], (), kinds)]

    assert made(("v = 1 OR v = 2", count), ("v = 2", count), ("v = 1", count)) == ["v = 2", "v = 1"]
    assert made(("v = 1 OR k = 'a'", most), ("k = 'a'", most), ("v = 1", most)) == ["k = 'a'", "v = 1"]
    assert len(made(("v = 1 OR k = 'a'", count), ("k = 'a'", count), ("v = 1", count))) == 3
    assert len(made(("v = 1 OR v = 2", count), ("v = 2", most), ("v = 1", most))) == 2, "every synopsis counts rows"
    assert len(made(("v = 1 OR v = 2", most), ("v = 2", most), ("v = 1", count))) == 3
    counted = [value for value in VALUES if counts_values(value) and value.column == "v"]
    assert len(made(("v = 1 OR v = 2", counted[0]), ("v = 2", counted[0]), ("v = 1", counted[1]))) == 4, "counts of values add up"
    assert len(made(("v = 1 OR k = 'a'", counted[0]), ("k = 'a'", counted[0]), ("v = 1", counted[0]))) == 5, "rows that overlap"


ADDED = tuple(value for value in VALUES if value.name in ("n", "known", "paid", "kinds", "p30"))
"""Values that can be taken away from others. The column `v` may be of 64 bits, so a sum of it may overflow in a wider slot."""


@settings(deadline=None, max_examples=15)
@given(batches, st.sampled_from([(), (("k", "string"),)]))
def test_differences_answer_as_synopses_of_their_own(given_rows: list[list[Row]], groups: tuple[tuple[str, str], ...]) -> None:
    """The sheet's Q1 = Q3 - Q2: no synopsis is made, groups that vanish have no row, and sums of nothing are null."""
    kinds: dict[str, Kind] = {"v": "number", "k": "text"}
    wide, less, difference = (
        AggregateDefinition("s", where, groups, ADDED, WINDOWS, 0, ())
        for where in ("v IN (1, 2, -1)", "v = 2 OR v = -1", "v = 1")
    )
    existing = (*missing(needs(wide), (), kinds), *missing(needs(less), (), kinds))
    assert missing(needs(difference), existing, kinds) == ()
    alone = missing(needs(difference), ())
    actual, of_own_synopsis = answers_of(difference, existing, given_rows, kinds), answers_of(difference, alone, given_rows)
    assert actual == {key: {name: about(value) for name, value in row.items()} for key, row in of_own_synopsis.items()}


def test_what_is_not_taken_away() -> None:
    """Extremes, deviations, sums of doubles and sums that may overflow in more rows need synopses of their own."""
    kinds: dict[str, Kind] = {"v": "number", "k": "text"}
    double = Value("d", "sum", "double", "x", "double")
    small = Value("i", "sum", "bigint", "y", "int")
    large = Value("l", "sum", "decimal(38,0)", "z", "decimal(29,0)")
    subtracted = (VALUES[0], VALUES[2], VALUES[3], small)
    for value, own in (
        *((candidate, 0) for candidate in subtracted),
        *((candidate, 1) for candidate in (large, VALUES[4], VALUES[7], double)),
    ):
        wide, less, difference = (
            AggregateDefinition("s", where, (), (value,), WINDOWS, 0, ()) for where in ("v IN (1, 2)", "v = 2", "v = 1")
        )
        existing = (*missing(needs(wide), (), kinds), *missing(needs(less), (), kinds))
        assert len(missing(needs(difference), existing, kinds)) == own, value


def test_a_cover_that_knows_more_is_preferred() -> None:
    """An own synopsis that another value needed later does not replace the longer history of a cover; a longer one does."""
    kinds: dict[str, Kind] = {"v": "number", "k": "text"}
    first, second, both = (
        AggregateDefinition("s", where, (), VALUES[:1], WINDOWS, 0, ()) for where in ("v = 1", "v = 2", "v IN (1, 2)")
    )
    parts = missing([need for aggregate in (first, second) for need in needs(aggregate)], (), kinds)
    existing = (*parts, *missing(needs(replace(both, values=(VALUES[4],))), parts, kinds))
    (need,) = needs(both)

    def read(*spans: tuple[int, int]) -> list[int]:
        return [served.number for served in assigned(need, existing, kinds, spans)]

    assert len(existing) == 3
    assert read((1, 7), (2, 9), (5, 7)) == [0, 1]
    assert read((1, 7), (5, 9), (5, 7)) == read((1, 7), (2, 6), (5, 7)) == [2]


def test_one_run_for_aggregates_that_share() -> None:
    """CS1, CS2, CS6, CS7 and CS8: the first aggregate merges the windows of all, and no other reads the rows again."""
    kinds: dict[str, Kind] = {"v": "number", "k": "text"}
    first, second, both = (
        AggregateDefinition("s", where, (), VALUES[:1], WINDOWS, 0, ()) for where in ("v = 1", "v = 2", "v IN (1, 2)")
    )
    synopses = missing([need for aggregate in (first, second, both) for need in needs(aggregate)], (), kinds)
    assert len(synopses) == 2
    given_rows: list[list[Row]] = [[(slot, "a", slot % 3, None) for slot in range(1, SLOTS + 1)]]
    short, long = [(WINDOWS[0], 6), (WINDOWS[2], 6)], [(WINDOWS[1], 6), (WINDOWS[2], 6), (WINDOWS[2], 4)]
    run = run_of(synopses, lambda connection, number: stored(connection, synopses[number], given_rows), [*short, *long])
    answers = []
    for definition, due in ((first, short), (second, long), (both, long), (first, long)):
        reads = reads_of(definition, synopses, kinds)
        run.connection.register("due", due_table(due))
        run.prepare(reads, [bounds_of(due)] * len(reads))
        query = merged(definition, reads, ends="make_timestamptz(_end)", epoch=3)
        answer = run.connection.sql(f"{query} ORDER BY window_end, window_length").to_arrow_table()
        answers.append(answer["n"].to_pylist())
    assert (answers, run.passes) == ([[0, 2], [1, 1, 2], [3, 2, 4], [2, 1, 2]], 2)
    run.forget({"1"})
    assert run.connection.sql("SELECT count(*) FROM duckdb_tables()").fetchall() == [(1,)]
    run.close()
