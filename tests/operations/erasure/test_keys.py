"""Keys to erase: recorded as texts, named by hashes, recognised in texts."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from warehouse.catalog.declaration import ColumnRecord
from warehouse.errors import UsageError
from warehouse.operations.erasure.key_matcher import text_matcher
from warehouse.planning.plan_record import Erasure
from warehouse.steps.erased_keys import ErasedKeys, erased_keys, key_columns, keys_of_erasure

VALUES: dict[str, list[object]] = {
    "string": ["N1", 'a "b"', "é\n,", "7"],
    "int": [7, -7, 0],
    "bigint": [1 << 60],
    "decimal(10,2)": [Decimal("1.50"), Decimal(-3)],
    "date": [date(2013, 1, 31)],
    "timestamp": [datetime(2013, 1, 31, 12, 30, 0, 5, tzinfo=UTC)],
    "boolean": [True],
}


def _keys(kind: str, *values: object) -> ErasedKeys:
    return erased_keys(key_columns([ColumnRecord("k", kind)], ["k"]), values)


@pytest.mark.parametrize("kind", VALUES)
def test_what_a_plan_records_is_read_back(kind: str) -> None:
    """Texts of keys of every type give the keys."""
    keys = _keys(kind, *VALUES[kind], (None,))
    erasure = Erasure("a", (ColumnRecord("k", kind),), keys.texts(), (), 0, "salt")
    assert keys_of_erasure(erasure) == keys


@pytest.mark.parametrize(
    ("kind", "value", "shown", "hidden"),
    [
        ("string", "N1", ["x,N1,2", '{"k":"N1"}', "N1", "k_N1;"], ["N12", "xN1", "n1", ""]),
        ("string", 'a"b', ['"a""b",1', r'{"k": "a\"b"}', 'a"b'], ["ab"]),
        ("string", "Zoë", ['{"k": "Zo\\u00eb"}', "Zoë,1"], ["Zoe"]),
        ("string", "é", ['{"k": "\\u00e9"}', "xé,1"], ["e"]),
        ("string", ".*", ["a,.*,b"], ["a,b"]),
        ("int", 7, ["7,x", "007", "7.0", "x 7"], ["70", "17", "x"]),
        ("int", -7, ["a,-7"], ["7"]),
        ("decimal(10,2)", Decimal("1.50"), ["1.5", "1.500", "01.50,"], ["1.51", "21.5"]),
        ("date", date(2013, 1, 31), ["a,2013-01-31,b"], ["2013-01-30"]),
        ("timestamp", datetime(2013, 1, 31, 12, tzinfo=UTC), ["2013-01-31 12:00:00", "2013-01-31T12:00:00Z"], ["2013-01-31"]),
        ("boolean", True, ["a,True"], ["a,untrue"]),
    ],
)
def test_a_text_shows_a_key_that_stands_alone_in_it(kind: str, value: object, shown: list[str], hidden: list[str]) -> None:
    """In its usual spelling, escaped or not; never as a part of a longer word."""
    test = text_matcher(_keys(kind, value))
    assert [text for text in shown if not test(text)] == []
    assert [text for text in hidden if test(text)] == []


def test_a_composite_key_is_shown_when_all_its_parts_are() -> None:
    """One of its parts is not enough."""
    columns = key_columns([ColumnRecord("n", "int"), ColumnRecord("k", "string")], ["n", "k"])
    test = text_matcher(erased_keys(columns, [(7, "x"), (8,)]))
    assert [test("7,x,?"), test("7,y,?"), test("8,y,?"), test("x")] == [True, False, True, False]


def test_a_null_key_shows_in_no_text() -> None:
    """A null has no text."""
    assert not text_matcher(_keys("string", (None,)))(",,")


def test_hashes_name_keys_without_telling_them() -> None:
    """The same key, table and salt give the same hash; anything else gives another."""
    hashes = {_keys("string", key).hashes(table, salt)[0] for key in ("a", "b") for table in ("t", "u") for salt in ("1", "2")}
    assert len(hashes) == 8
    assert _keys("string", "a").hashes("t", "1") == _keys("string", "a").hashes("t", "1")


def test_a_key_of_another_type_is_refused() -> None:
    """Before any file is read."""
    with pytest.raises(UsageError):
        _keys("int", "x")
