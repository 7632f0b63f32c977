"""Why an answer is empty: the row expired, the key never came, the table has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.serving.house import House, build
from warehouse.serving import Reader
from warehouse.serving.absence import why_no_key, why_no_row
from warehouse.time import format_instant, to_datetime

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A warehouse of three epochs, written without Spark."""
    return build(tmp_path_factory.mktemp("absence"))


@pytest.fixture
def reader(house: House) -> Iterator[Reader]:
    """Its newest epoch."""
    with Reader.open(house.root) as opened:
        yield opened


def test_a_key_whose_rows_expired_says_when_and_where_it_was_live_last(house: House, reader: Reader) -> None:
    """The model has the keys that were live before and are not now; the message has the end of a key's last row."""
    table, count = house["names"], 0
    now = reader.epoch
    for before in house.epochs[-2::-1]:
        dead_keys = {table.key_of(row) for row in table.live(before.slot)} - {table.key_of(row) for row in table.live(now.slot)}
        for key in dead_keys:
            count += 1
            last = max(
                epoch.slot for epoch in house.epochs if any(table.key_of(row) == key for row in table.live(epoch.slot))
            )
            ends = [row.exp for row in table.live(last) if table.key_of(row) == key]
            (number,) = [epoch.number for epoch in house.epochs if epoch.slot == last]
            text = why_no_key(reader, "names", {"null": True} if key == (None,) else {"keys": [key]})
            assert text.startswith(f"expired {format_instant(max(ends))}; last live in epoch {number}, window time ")
    if not count:
        pytest.skip("no key of this warehouse is gone")


def test_rows_that_end_before_now_are_of_the_epoch_itself(house: House, reader: Reader) -> None:
    """A later `now` hides rows that the newest epoch still has."""
    table = house["names"]
    ending = [row for row in table.live(reader.epoch.slot) if row.exp < to_microseconds_far()]
    row = max(ending, key=lambda ending_row: ending_row.exp)
    assert to_datetime(row.exp).year == 2013
    text = why_no_key(reader, "names", {"keys": [table.key_of(row)]})
    assert f"last live in epoch {reader.epoch.number}" in text


def to_microseconds_far() -> int:
    """Return an instant after every end that is one."""
    return 4_000_000_000_000_000


def test_a_key_that_never_came_is_told_with_its_neighbours(house: House, reader: Reader) -> None:
    """The live keys before and after it, by the order of the column's type."""
    keys = sorted({key for row in house["names"].live(reader.epoch.slot) if (key := row.values[0]) is not None})
    before, after = max(key for key in keys if key < "aab"), min(key for key in keys if key > "aab")
    assert why_no_key(reader, "names", {"keys": [("aab",)]}) == (
        f"no readable epoch has this key; nearest keys: {before}, {after}"
    )
    assert why_no_key(reader, "names", {"keys": [("aab",), ("aac",)]}) == "no readable epoch has a row of these 2 keys"
    assert why_no_key(reader, "names", {"from_": ("aab",), "to": ("aac",)}) == "no readable epoch has a row of these keys"


def test_a_key_of_quotes_is_no_sql(reader: Reader) -> None:
    """What was typed is a value."""
    assert "nearest keys" in why_no_key(reader, "names", {"keys": [("it''s' OR 1=1 --",)]})


def test_a_table_without_rows_says_so(reader: Reader) -> None:
    """Nothing came, or a condition left rows out, of which nothing is said."""
    assert why_no_row(reader, "nothing") in ("no row of this table has come yet", "all rows of this table have expired")
    assert why_no_row(reader, "names") is None
