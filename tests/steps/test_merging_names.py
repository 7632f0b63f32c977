"""No name that a user may choose changes an answer: each word of the queries is tried as the name of a group and of a value."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from warehouse.aggregates.definition import ITEM_COLUMNS, OWN_COLUMNS, AggregateDefinition, FrequentItems, Value, Window
from warehouse.aggregates.sharing import missing
from warehouse.aggregates.synopses import needs
from warehouse.steps.local_states import local_states
from warehouse.steps.merging import merged, windowed
from warehouse.steps.merging_items import merged_items

from .windowed import bounds_of, due_table, reads_of, run_of

ROWS = [(1, "a", 1), (1, "a", 2), (2, "a", 3), (2, "b", 4), (2, None, 4)]
"""Slot, group and value."""
VALUES = (
    Value("rows", "rows", "bigint"),
    Value("added", "sum", "bigint", "v", "bigint"),
    Value("spread", "stddev_samp", "double", "v", "bigint"),
    Value("p30", "percentile", "double", "v", "bigint", 0.3),
    Value("p90", "percentile", "double", "v", "bigint", 0.9),
    Value("kinds", "distinct", "bigint", "v", "bigint"),
)
WINDOWS = (Window("1h", 1, 1), Window("3h", 3, 1))
GROUPED = AggregateDefinition("s", None, (("k", "string"),), VALUES, WINDOWS, 0, ())
ASKED = {
    "values": GROUPED,
    "above": replace(GROUPED, values=(), frequent=FrequentItems("v", "bigint", 0.3, None, 2)),
    "top": replace(GROUPED, values=(), frequent=FrequentItems("v", "bigint", None, 1, 2)),
}


def query_of(asked: AggregateDefinition) -> str:
    """Return the query that merges answers."""
    ends = "make_timestamptz(_end)"
    if asked.frequent is not None:
        return merged_items(asked, ends=ends, epoch=3)
    return merged(asked, reads_of(asked, missing(needs(asked), ())), ends=ends, epoch=3)


def answered(asked: AggregateDefinition) -> list[tuple[Any, ...]]:
    """Return the answers, without the names of their columns."""
    ((group, _),), synopses = asked.group_by, missing(needs(asked), ())
    slots, groups, values = zip(*ROWS, strict=True)

    def stored(connection: Any, number: int) -> pa.Table:  # noqa: ANN401 - a connection
        columns = {group: pa.array(groups, pa.string()), "v": pa.array(values, pa.int64())}
        arrived = {"_fate": ["live"] * len(ROWS), "_arrival_slot": pa.array(slots, pa.int64()), **columns}
        connection.register("arrived", pa.table(arrived))
        return connection.sql(local_states(synopses[number], "true", until="99")).to_arrow_table()

    due = list(asked.due(0, 3))
    run, reads = run_of(synopses, stored), reads_of(asked, synopses)
    run.connection.register("due", due_table(due))
    run.prepare(reads, [bounds_of(due)] * len(reads))
    rows = run.connection.sql(query_of(asked)).fetchall()
    run.close()
    return sorted(rows, key=repr)


def words(asked: AggregateDefinition) -> list[str]:
    """Return the words of all queries for the answers that are allowed as names of a group and a value."""
    text = " ".join([query_of(asked), *map(windowed, missing(needs(asked), ()))])
    candidates = {word.lower() for word in re.findall(r"\b[A-Za-z]\w*", text)}
    return sorted(candidates - {*OWN_COLUMNS, *ITEM_COLUMNS, "k", "v", *(value.name for value in asked.values)})


@pytest.mark.parametrize("kind", ASKED)
def test_a_group_may_have_any_name(kind: str) -> None:
    """The answers equal the answers of a group with another name."""
    definition = ASKED[kind]
    expected, names = answered(definition), words(definition)
    assert len(names) > 30
    for name in (*names, "total", "listed", "A, b", 'say "so"'):
        assert answered(replace(definition, group_by=((name, "string"),))) == expected, name


@pytest.mark.parametrize("place", [1, 3])
def test_a_value_may_have_any_name(place: int) -> None:
    """The answers equal the answers of a value with another name."""
    definition = ASKED["values"]
    expected = answered(definition)
    for name in words(definition):
        values = (*VALUES[:place], replace(VALUES[place], name=name), *VALUES[place + 1 :])
        assert answered(replace(definition, values=values)) == expected, name
