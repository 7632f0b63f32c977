"""Lists of slots merge to bounds that hold: for all windows, groups, late batches and lifetimes, in DuckDB alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.aggregates.definition import AggregateDefinition, FrequentItems, Over, Window
from warehouse.aggregates.frequent import Frequent, above, bounds, summarise, top
from warehouse.aggregates.synopses import Synopsis, needs
from warehouse.planning.following import SynopsisRead
from warehouse.steps.local_states import local_states, same_in_both_engines
from warehouse.steps.merging_items import merged_items

from .windowed import bounds_of, due_table, run_of

if TYPE_CHECKING:
    from warehouse.steps.window_run import WindowRun

SLOTS = 6
WINDOWS = (Window("1h", 1, 1), Window("4h", 4, 1))
Row = tuple[int, int, str | None, str | None]
"""Slot of arrival, slot of expiration, group, item."""
rows = st.tuples(
    st.integers(1, SLOTS),
    st.integers(1, SLOTS + 3),
    st.sampled_from(["x", None]),
    st.sampled_from(["a", "b", "B", "é", "", None]),
)
batches = st.lists(st.lists(rows, max_size=25), max_size=3)
Key = tuple[str | None, str, int]


def definition(asked: FrequentItems, over: Over, *, grouped: bool) -> AggregateDefinition:
    """Return an aggregate of the frequent items of a stream of groups and items."""
    groups = (("k", "string"),) if grouped else ()
    return AggregateDefinition("s", None, groups, (), WINDOWS, 0, ("item",), frequent=asked, over=over)


def answered(asked: AggregateDefinition, *synopses: list[list[Row]]) -> dict[Key, list[dict[str, object]]]:
    """Return the answers by group, length and end, from the lists of each batch of all synopses."""
    (need,) = needs(asked)
    run = run_of(
        [need.synopsis] * len(synopses),
        lambda connection, number: lists(connection, need.synopsis, synopses[number]),
        [(window, end) for window, end in asked.due(0, SLOTS) if end % 2],
    )
    answer_rows = offered(run, asked, len(synopses))
    longest = asked.windows[-1]
    longest_rows = offered(run, replace(asked, windows=(longest,)), len(synopses))
    assert longest_rows == [
        row for row in answer_rows if row["window_length"] == longest.text
    ], "another aggregate asks for some of them"
    assert run.passes == len(synopses)
    run.close()
    answers: dict[Key, list[dict[str, object]]] = {}
    for row in answer_rows:
        answers.setdefault((row.get("k"), row["window_length"], row["_end"]), []).append(row)
    return answers


def offered(run: WindowRun, asked: AggregateDefinition, synopses: int) -> list[dict[str, object]]:
    """Return the answers of a run from the lists of several synopses, in order."""
    (need,) = needs(asked)
    due = [(window, end) for window, end in asked.due(0, SLOTS)]
    run.connection.register("due", due_table(due))
    reads = [SynopsisRead(str(number), need.synopsis, (), rows=True) for number in range(synopses)]
    run.prepare(reads, [bounds_of(due)] * synopses)
    query = merged_items(asked, synopses=synopses, ends="make_timestamptz(_end)", epoch=3)
    return sorted(run.connection.sql(query).to_arrow_table().to_pylist(), key=repr)


@settings(deadline=None, max_examples=15)
@given(batches)
def test_lists_of_several_conditions_add_up(given_rows: list[list[Row]]) -> None:
    """Two synopses have different rows: if their lists have every item, the answer counts all rows."""
    aggregate = definition(FrequentItems("item", "string", 0.2, None, 9), "arrivals", grouped=False)
    parts = [[[row for row in batch if (row[2] is None) == null] for batch in given_rows] for null in (True, False)]
    answers = {key: {row["item"]: row["at_least"] for row in rows_} for key, rows_ in answered(aggregate, *parts).items()}
    for window, end in aggregate.due(0, SLOTS):
        counts = Counter(row[3] for batch in given_rows for row in batch if end - window.slots < row[0] <= end)
        frequent = {item: count for item, count in counts.items() if count * 5 > counts.total()}
        assert answers.get((None, window.text, end), {}) == frequent


def lists(connection: object, synopsis: Synopsis, given_rows: list[list[Row]]) -> pa.Table:
    """Return the table of a synopsis, as updates would make it."""
    assert same_in_both_engines(synopsis)
    parts = []
    for number, batch in enumerate([*given_rows, []]):
        arrived, until, groups, items = zip(*batch, strict=True) if batch else ((), (), (), ())
        connection.register("arrived", pa.table({  # type: ignore[attr-defined]
            "_fate": pa.array(["dead" if position % 2 else "live" for position in range(len(batch))], pa.string()),
            "_arrival_slot": pa.array(arrived, pa.int64()), "u": pa.array(until, pa.int64()),
            "k": pa.array(groups, pa.string()), "item": pa.array(items, pa.string()),
        }))  # fmt: skip
        query = local_states(synopsis, "true", until="u", batch=number)
        parts.append(connection.sql(query).to_arrow_table())  # type: ignore[attr-defined]
    return pa.concat_tables(parts, promote_options="permissive")


def modelled(asked: AggregateDefinition, given_rows: list[list[Row]]) -> dict[Key, tuple[Frequent, Counter[str | None]]]:
    """Return the answers that the pure code gives of the lists, and the exact counts."""
    frequent, live = asked.frequent, asked.over == "live"
    assert frequent is not None
    answers: dict[Key, tuple[Frequent, Counter[str | None]]] = {}
    for window in asked.windows:
        for end in range(1, SLOTS + 1):
            within: dict[str | None, dict[tuple[int, int, int], Counter[str | None]]] = {}
            for number, batch in enumerate(given_rows):
                for arrived, until, group, item in batch:
                    if end - window.slots < arrived <= end and (not live or until > end):
                        cell = (number, arrived, until if live else 0)
                        by_cell = within.setdefault(group if asked.group_by else None, {})
                        by_cell.setdefault(cell, Counter())[item] += 1
            for group, cells in within.items():
                limits = bounds([summarise(counts, frequent.k).tight() for counts in cells.values()])
                share = Fraction(repr(frequent.above or 0.0))
                answer = above(limits, share) if frequent.top is None else top(limits, frequent.top)
                answers[group, window.text, end] = answer, sum(cells.values(), Counter())
    return answers


asks = st.one_of(
    st.builds(
        lambda share, k: FrequentItems("item", "string", share, None, k), st.sampled_from([0.1, 0.3, 0.5]), st.integers(1, 7)
    ),
    st.builds(lambda n, k: FrequentItems("item", "string", None, n, k), st.integers(1, 3), st.integers(1, 7)),
)


@settings(deadline=None, max_examples=60)
@given(batches, asks, st.sampled_from(["arrivals", "live"]), st.booleans())
def test_answers_are_those_of_the_lists_and_hold(
    given_rows: list[list[Row]], asked: FrequentItems, over: Over, grouped: bool
) -> None:
    """Each equals the pure code's; counts are within bounds, certain items belong, a complete answer lacks no item."""
    whole = definition(asked, over, grouped=grouped)
    answers, model = answered(whole, given_rows), modelled(whole, given_rows)
    for key, (answer, counts) in model.items():
        own = {row["item"]: (row["at_least"], row["at_most"], row["certain"]) for row in answers.get(key, [])}
        assert own == {listed.item: (listed.at_least, listed.at_most, listed.certain) for listed in answer.items}
        assert len(own) == len(answers.get(key, []))
        assert all(row["complete"] == answer.complete for row in answers.get(key, []))
        for item, (least, most, _) in own.items():
            assert least <= counts[item] <= most  # type: ignore[operator] - numbers
            assert (most - least) * asked.k <= counts.total(), "the promise of `error`"  # type: ignore[operator] - same
        belongs = belonging(asked, counts)
        assert {item for item, (_, _, certain) in own.items() if certain} <= belongs
        if answer.complete:
            assert belongs <= own.keys()
    assert answers.keys() <= model.keys()


def belonging(asked: FrequentItems, counts: Counter[str | None]) -> set[str | None]:
    """Return the frequent items, including all ties."""
    if asked.top is None:
        threshold = Fraction(repr(asked.above or 0.0)) * counts.total()
        return {item for item, count in counts.items() if count > threshold}
    least = sorted(counts.values(), reverse=True)[: asked.top][-1]
    return {item for item, count in counts.items() if count >= least}


def test_windows_of_the_sheet() -> None:
    """Frequent-items sheet, section 6, with the tight choice: the certain items that each window reports above its own delta."""
    windows = ["aaaabbbccd", "aaaaacccdb", "bbbbaaaccd", "cccccaabbd", "ddddddccca"]
    given_rows: list[list[Row]] = [[(position + 1, 9, None, item) for item in text] for position, text in enumerate(windows)]
    aggregate = AggregateDefinition(
        "s", None, (), (), (Window("3h", 3, 1),), 0, ("item",), frequent=FrequentItems("item", "string", 1 / 6, None, 2)
    )
    answers = answered(aggregate, given_rows)
    reported = {
        key[2]: {(row["item"], row["at_least"]) for row in rows_ if row["at_least"] > 5}  # type: ignore[operator] - numbers
        for key, rows_ in answers.items()
    }
    assert reported[3] == {("a", 12), ("b", 7)}
    assert reported[4] == {("a", 10), ("c", 8)}
    assert reported[5] == {("c", 8), ("d", 6)}
