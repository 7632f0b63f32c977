"""Probes against the model: a list of rows and an if."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warehouse.errors import UnknownNameError, UsageError
from warehouse.serving import Reader
from warehouse.time import HOUR, MINUTE, at_slot, to_datetime

from .house import ANCHOR

if TYPE_CHECKING:
    from .house import House

few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NEWEST = 4

names = st.sampled_from(["a", "aa", "ab", "b", "007", "7", "", "it's", 'say "x"', "ü", "x" * 40, "x" * 41, "no", "\0"])
firsts = st.sampled_from([None, -3, 0, 5, 6])
seconds = st.sampled_from([None, "x", "xy", "y", "z"])
thirds = st.sampled_from([None, 1, 2])
pairs = st.tuples(firsts) | st.tuples(firsts, seconds) | st.tuples(firsts, seconds, thirds)


def ordered(key: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    """Return what sorts nulls first."""
    return [(part is not None, part) for part in key]


@few
@given(st.lists(names, max_size=6), st.integers(0, 200))
def test_lists_of_keys(house: House, reader: Reader, wanted: list[str], later: int) -> None:
    """Live rows of all keys, each row once, by key, exp, ts; later instants let more expire."""
    now = at_slot(NEWEST, ANCHOR, HOUR) + later * MINUTE
    expected = house["names"].probed(lambda key: key[0] in wanted, NEWEST, now)
    assert reader.probe("names", wanted, now=now).all() == expected


@few
@given(st.lists(pairs, min_size=1, max_size=5))
def test_composite_keys_and_prefixes(house: House, reader: Reader, wanted: list[tuple[Any, ...]]) -> None:
    """A call takes keys and prefixes of any length, with nulls."""
    expected = house["pairs"].probed(lambda key: any(key[: len(prefix)] == prefix for prefix in wanted), NEWEST)
    assert reader.probe("pairs", wanted).all() == expected


@few
@given(st.none() | names, st.none() | names)
def test_ranges(house: House, reader: Reader, low: str | None, high: str | None) -> None:
    """The lower end is in, the upper is not, nulls are in none."""
    if low is None and high is None:
        return
    expected = house["names"].probed(
        lambda key: key[0] is not None and (low is None or key[0] >= low) and (high is None or key[0] < high), NEWEST
    )
    assert reader.probe("names", from_=low, to=high).all() == expected


ends = (st.tuples(firsts) | st.tuples(firsts, seconds) | st.tuples(firsts, seconds, thirds)).filter(
    lambda key: None not in key
)


@few
@given(st.none() | ends, st.none() | ends)
def test_composite_ranges(
    house: House, reader: Reader, low: tuple[Any, ...] | None, high: tuple[Any, ...] | None
) -> None:
    """Ends of any length compare as prefixes; a null in a later part comes first."""
    if low is None and high is None:
        return

    def within(key: tuple[Any, ...]) -> bool:
        after = low is None or ordered(key[: len(low)]) >= ordered(low)
        return key[0] is not None and after and (high is None or ordered(key[: len(high)]) < ordered(high))

    assert reader.probe("pairs", from_=low, to=high).all() == house["pairs"].probed(within, NEWEST)


def test_two_ranges_that_meet_are_one(house: House, reader: Reader) -> None:
    """[a, m) and [m, z) hold exactly the rows of [a, z), also at a null part."""
    parts = [reader.probe("pairs", from_=(-9,), to=(5, "xy", 1)), reader.probe("pairs", from_=(5, "xy", 1), to=(9,))]
    assert parts[0].all() + parts[1].all() == house["pairs"].probed(lambda key: key[0] is not None, NEWEST)


def test_null_keys(house: House, reader: Reader) -> None:
    """Rows of which a part of the key is null."""
    for table in ("names", "pairs"):
        assert reader.probe(table, null=True).all() == house[table].probed(lambda key: None in key, NEWEST)


def test_every_key_type(house: House, reader: Reader) -> None:
    """Keys are dates, decimals beyond a double, and timestamps to the microsecond and before 1970."""
    for table, at in (("days", 4), ("amounts", 4), ("moments", 4)):
        keys = {house[table].key_of(row) for row in house[table].rows}
        for key in keys:
            expected = house[table].probed(lambda row_key, key=key: row_key == key, at)
            assert reader.probe(table, [key]).all() == expected
            assert reader.probe(table, [key, key]).all() == expected
        low, high = min(keys)[0], max(keys)[0]
        expected = house[table].probed(lambda row_key, low=low, high=high: low <= row_key[0] < high, at)
        assert reader.probe(table, from_=low, to=high).all() == expected
        assert reader.probe(table, list(keys)).all() == house[table].probed(lambda _: True, at)
    assert reader.probe("days", [date(2000, 1, 1)]).all() == []
    assert reader.probe("amounts", [Decimal("0.01")]).all() == []
    assert reader.probe("moments", [to_datetime(2)]).all() == []
    assert reader.probe("moments", [to_datetime(1) + timedelta(hours=1)]).all() == []


def test_a_dict_names_the_parts(house: House, reader: Reader) -> None:
    """A mapping of column to value, in any order and case."""
    expected = house["pairs"].probed(lambda key: key[:2] == (5, "x"), NEWEST)
    assert reader.probe("pairs", [{"B": "x", "a": 5}]).all() == expected


def test_many_keys_are_one_query(house: House, reader: Reader) -> None:
    """A thousand keys, duplicates among them, are bound as one list."""
    wanted = [f"absent {index % 700}" for index in range(1000)] + ["a", "b", "a"]
    answer = reader.probe("names", wanted)
    assert answer.all() == house["names"].probed(lambda key: key[0] in ("a", "b"), NEWEST)
    assert answer.explain is not None
    assert answer.explain.sql.count("?") == 1
    assert len(answer.explain.parameters[0]) == 702
    assert reader.probe("names", []).all() == []


def test_a_second_probe_uses_bloom_filters_and_finds_the_same(house: House) -> None:
    """A fresh reader and a reader that was asked before give the same rows for each key."""
    keys = [row.values[0] for row in house["names"].rows if row.values[0] is not None]
    with Reader.open(house.root) as warm:
        warm.probe("names", ["a"])
        for key in dict.fromkeys(keys):
            assert warm.probe("names", [key]).all() == house["names"].probed(
                lambda row_key, key=key: row_key[0] == key, NEWEST
            )


def test_columns_limit_and_system_columns(house: House, reader: Reader) -> None:
    """Columns come in the given order; a limit cuts after sorting; `_exp` of a row that never expires is null."""
    table = house["names"]
    expected = table.probed(lambda key: key[0] == "a", NEWEST)
    answer = reader.probe("names", ["a"], columns=["VALUE", "name"], limit=1)
    assert answer.columns == (("value", "INTEGER"), ("name", "VARCHAR"))
    assert answer.all() == [(row[1], row[0]) for row in expected][:1]
    assert reader.probe("names", ["a"], limit=0).all() == []
    rows = {(*row.values[:2], *row.shown()) for row in table.live(NEWEST)}
    wide = reader.probe("names", from_="", system_columns=True)
    assert [name for name, _ in wide.columns][4:] == [
        "_ts",
        "_exp",
        "_load_slot",
        "_exp_slot",
        "sub_index",
        "exp_block",
    ]
    wide_rows = {(*row[:2], *row[4:]) for row in wide.all()}
    assert wide_rows == {row for row in rows if row[0] is not None}
    assert any(row[3] is None for row in wide_rows)
    narrow = reader.probe("names", ["a"], columns=["exp_block", "_exp"])
    assert len(narrow.all()) == len(expected)


def test_explain_accounts_for_every_file(house: House) -> None:
    """Considered files are expired, out of bounds, without the key, or read; rows and time are of the last reading."""
    with Reader.open(house.root) as reader:
        answer = reader.probe("names", ["a"])
        rows = answer.all()
        explain = answer.explain
        assert explain is not None
        plan = explain.plan
        left_out = plan.files_expired + plan.files_out_of_bounds + plan.files_without_key
        assert (
            plan.files_considered
            == left_out + plan.files_read
            == len(reader.pin.snapshot(reader.pin.state("names")).files)
        )
        assert plan.files_expired > 0
        assert plan.files_out_of_bounds > 0
        assert plan.sub_indices_considered == 4
        assert 0 < plan.sub_indices_read <= 4
        assert explain.rows == len(rows)
        assert explain.milliseconds > plan.milliseconds > 0
        assert "read_parquet" in explain.sql
        assert explain.parameters == ("a",)
        nothing = reader.probe("names", from_="zzzz", to="zzzzz").explain
        assert nothing is not None
        assert nothing.plan.files_read < plan.files_read
        assert reader.sql("SELECT 1").explain is None


def test_an_empty_table_and_pruned_reads_have_columns(reader: Reader) -> None:
    """No files at all give no rows of the right types."""
    answer = reader.probe("nothing", ["a"])
    assert answer.all() == []
    assert answer.columns == (("k", "VARCHAR"), ("v", "BIGINT"))
    assert answer.arrow().schema.names == ["k", "v"]
    assert reader.probe("days", [date(1900, 1, 1)]).arrow().num_rows == 0


def test_wrong_arguments_say_what_is_right(reader: Reader, house: House) -> None:
    """Unknown names come with the nearest one; combinations and types with what is allowed."""
    with pytest.raises(UnknownNameError, match='Did you mean "names"'):
        reader.probe("namse", ["a"])
    with pytest.raises(UnknownNameError, match='Did you mean "value"'):
        reader.probe("names", ["a"], columns=["valeu"])
    with pytest.raises(UsageError, match="texts"):
        reader.probe("names", [1])
    for wrong in ({}, {"keys": ["a"], "null": True}, {"keys": ["a"], "from_": "a"}, {"to": "a", "null": True}):
        with pytest.raises(UsageError, match="exactly one"):
            reader.probe("names", **wrong)
    for wrong in ({"keys": "a"}, {"keys": ["a"], "columns": []}, {"keys": ["a"], "columns": "name"}):
        with pytest.raises(UsageError, match="list of"):
            reader.probe("names", **wrong)
    with pytest.raises(UsageError, match="0 or more"):
        reader.probe("names", ["a"], limit=-1)
    with pytest.raises(UsageError, match="before the window time"):
        reader.probe("names", ["a"], now=house.epochs[-1].window_time - 1)
