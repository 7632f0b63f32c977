"""Windows with a length for each input of a join equal brute force: all lengths and phases, late parts; without Spark."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from math import ceil
from typing import TYPE_CHECKING

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.aggregates.definition import AggregateDefinition, FrequentItems, Value, Window
from warehouse.aggregates.sharing import missing
from warehouse.aggregates.synopses import needs
from warehouse.steps.local_states import local_states
from warehouse.steps.merging import merged
from warehouse.steps.merging_items import merged_items

from .test_merging import fitting
from .windowed import bounds_of, due_table, reads_of, run_of

if TYPE_CHECKING:
    import duckdb

Part = tuple[float, str, int]
"""When a row arrives, its key, its value."""
LENGTHS = (1, 2, 3, 5)
PAIRS = tuple(
    Window(f"{first}h, {second}h", min(first, second), 1, (first, second)) for first, second in product(LENGTHS, LENGTHS)
)
WINDOWS = (*PAIRS, Window("2h", 2, 1))
VALUES = (
    Value("n", "rows", "bigint"),
    Value("total", "sum", "bigint", "v", "bigint"),
    Value("low", "min", "bigint", "v", "bigint"),
    Value("kinds", "distinct", "bigint", "v", "bigint"),
)
PAIRED = AggregateDefinition("pairs", None, (("k", "string"),), VALUES, WINDOWS, 0, ("k",), over="live", parts=("at", "bt"))
SLOTS = 9
HALF = 2**62
"""Two such values are at the end of a `bigint`."""


def met(left: list[Part], right: list[Part], lifetimes: tuple[float, float]) -> list[dict[str, object]]:
    """Return the results of a join of two windows that are ever live, as a batch has them."""
    results: list[dict[str, object]] = []
    for (at, k, v), (bt, other, w) in product(left, right):
        begins, ends = max(at, bt), min(at + lifetimes[0], bt + lifetimes[1])
        if k == other and begins < ends:
            times = {"at": at, "bt": bt, "_exp": ends}
            instants = {name: round(time * 1_000_000) for name, time in times.items()}
            results.append({"_fate": "live", "_arrival_slot": ceil(begins), "k": k, "v": v + w, **instants})
    return results


def answers(
    definition: AggregateDefinition, batches: list[list[dict[str, object]]], beside: tuple[AggregateDefinition, ...] = ()
) -> list[dict]:
    """Return the answers at every end, from the synopses that all definitions need; each batch adds to them."""
    synopses = missing([need for aggregate in (definition, *beside) for need in needs(aggregate)], ())
    reads = reads_of(definition, synopses)
    due = [(window, end) for window, end in definition.due(0, SLOTS)]
    instant, whole = pa.timestamp("us", tz="UTC"), pa.int64()
    kinds = {"_fate": pa.string(), "_arrival_slot": whole, "k": pa.string(), "v": whole}
    schema = pa.schema({**kinds, "at": instant, "bt": instant, "_exp": instant})

    def stored(connection: duckdb.DuckDBPyConnection, number: int) -> pa.Table:
        tables, synopsis = [], synopses[number]
        for batch in [*batches, []]:
            connection.register("arrived", pa.Table.from_pylist(batch, schema))
            slots = [f'CAST(ceil(epoch_us("{name}") / 1000000.0) AS BIGINT)' for name in ("_exp", "at", "bt")]
            parts = slots[1:] if synopsis.parts else []
            query = local_states(synopsis, "true", until=slots[0], parts=parts, batch=len(tables))
            tables.append(connection.sql(query).to_arrow_table())
        return pa.concat_tables(tables, promote_options="permissive")

    run = run_of(synopses, stored)
    run.connection.register("due", due_table(due))
    run.prepare(reads, [bounds_of(due)] * len(reads))
    if definition.frequent is None:
        query = merged(definition, reads, ends="make_timestamptz(_end)", epoch=1)
    else:
        query = merged_items(definition, ends="make_timestamptz(_end)", epoch=1)
    run.connection.execute(f"CREATE TEMP TABLE answers AS {query}")
    rows = run.connection.sql("SELECT *, epoch_us(window_end) AS ended FROM answers").to_arrow_table().to_pylist()
    run.close()
    return rows


def within(batches: list[list[dict[str, object]]], window: Window, end: int) -> list[dict]:
    """Return the results that are live after an end and whose parts both arrived inside their windows."""
    results = []
    for row in (row for batch in batches for row in batch):
        at, bt, ends = (ceil(row[name] / 1_000_000) for name in ("at", "bt", "_exp"))  # type: ignore[operator] - a number
        first, second = window.parts or (SLOTS * 9, SLOTS * 9)
        inside = end - first < at <= end and end - second < bt <= end and end - window.slots < max(at, bt)
        if inside and ends > end:
            results.append(row)
    return results


times = st.floats(0.01, SLOTS).map(lambda number: round(number, 2))
parts = st.lists(st.tuples(times, st.sampled_from("xy"), st.integers(0, 4) | st.sampled_from([-HALF, HALF - 1])), max_size=8)
batched = st.lists(st.tuples(parts, parts), min_size=1, max_size=3)


def joined(given_parts: list[tuple[list[Part], list[Part]]], lifetimes: tuple[float, float]) -> list[list[dict[str, object]]]:
    """Return the results that each batch adds: its parts meet each other and the parts of earlier batches, in any order."""
    batches, left, right = [], [], []
    for new_left, new_right in given_parts:
        batches.append(met(new_left, [*right, *new_right], lifetimes) + met(left, new_right, lifetimes))
        left, right = left + new_left, right + new_right
    return batches


@settings(max_examples=40, deadline=None)
@given(batched, st.tuples(st.sampled_from([1.5, 3, 4.2]), st.sampled_from([3, 5])))
def test_any_two_lengths_equal_brute_force(
    given_parts: list[tuple[list[Part], list[Part]]], lifetimes: tuple[float, float]
) -> None:
    """The rows of one input may live longer than the rows of the other; another aggregate shares the synopses."""
    batches = joined(given_parts, lifetimes)
    plain = replace(PAIRED, windows=(Window("2h", 2, 1),), parts=None)
    assert len(missing([*needs(plain), *needs(PAIRED)], ())) == len(needs(PAIRED))
    for definition in (PAIRED, plain):
        answered = {(row["window_length"], row["ended"], row["k"]): row for row in answers(definition, batches, (PAIRED, plain))}
        expected = {}
        for window, end in definition.due(0, SLOTS):
            rows = within(batches, window, end)
            for k in {row["k"] for row in rows}:
                values = [row["v"] for row in rows if row["k"] == k]
                expected[window.text, end, k] = len(values), fitting(sum(values)), min(values), len(set(values))
        assert {key: tuple(row[value.name] for value in VALUES) for key, row in answered.items()} == expected


@settings(max_examples=20, deadline=None)
@given(batched)
def test_bounds_of_frequent_items_hold(given_parts: list[tuple[list[Part], list[Part]]]) -> None:
    """A list has the results of two slots: certain items are frequent, and a complete answer has all frequent items."""
    batches = joined(given_parts, (3, 5))
    frequent_items = FrequentItems("v", "bigint", 0.4, None, 3)
    definition = replace(PAIRED, group_by=(), values=(), frequent=frequent_items, search_key=("item",))
    answered: dict[tuple[str, int], list[dict]] = {}
    for row in answers(definition, batches):
        answered.setdefault((row["window_length"], row["ended"]), []).append(row)
    for window, end in definition.due(0, SLOTS):
        counts = Counter(row["v"] for row in within(batches, window, end))
        items = answered.get((window.text, end), [])
        assert all(row["at_least"] <= counts[row["item"]] <= row["at_most"] for row in items)
        frequent = {item for item, count in counts.items() if count * 5 > counts.total() * 2}
        assert {row["item"] for row in items if row["certain"]} <= frequent
        if items and items[0]["complete"]:
            assert frequent <= {row["item"] for row in items}


def test_the_vector_of_the_sheet() -> None:
    """Shared-aggregates sheet, 4.2: lifetimes of three slots, one key, counts by both lengths."""
    left, right = [(at, "x", 0) for at in (0.5, 1.5, 2.5, 3.4)], [(at, "x", 0) for at in (0.7, 2.2)]
    pairs = tuple(
        Window(f"{first}h, {second}h", min(first, second), 1, (first, second))
        for first, second in product((1, 2, 3), (1, 2, 3))
    )
    rows = answers(replace(PAIRED, windows=pairs), [met(left, right, (3, 3))])
    counts = {(row["window_length"], row["ended"]): row["n"] for row in rows}
    assert [counts.get((window.text, 3), 0) for window in pairs] == [1, 1, 2, 2, 2, 4, 3, 3, 6]
    assert [counts.get((window.text, 4), 0) for window in pairs] == [0, 1, 1, 0, 2, 2, 0, 3, 3]
