"""Keys, from text and from Python values."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from warehouse.errors import UnknownNameError, UsageError
from warehouse.serving.keys import KeyColumn, key_range, keys_of, parse_composite, parse_key

TZ = "TIMESTAMP WITH TIME ZONE"
TWO = (KeyColumn("name", "VARCHAR"), KeyColumn("n", "INTEGER"))


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("007", "VARCHAR", "007"),
        (" 7 ", "string", " 7 "),
        ("", "VARCHAR", ""),
        ("-128", "TINYINT", -128),
        ("+7", "bigint", 7),
        ("TRUE", "BOOLEAN", True),
        ("2013-01-31", "DATE", date(2013, 1, 31)),
        ("2013-01-31T12:00:00", TZ, datetime(2013, 1, 31, 12, tzinfo=UTC)),
        ("2013-01-31 12:00:00+02:00", "timestamp", datetime(2013, 1, 31, 10, tzinfo=UTC)),
        ("1.50", "DECIMAL(10,2)", Decimal("1.50")),
        ("1e2", "DECIMAL(10,2)", Decimal(100)),
        ("1.500", "decimal(3,1)", Decimal("1.500")),
    ],
)
def test_a_text_is_read_as_the_columns_type(text: str, kind: str, value: object) -> None:
    """Leading zeros stay in a string column; no offset means UTC."""
    parsed = parse_key(text, kind)
    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "kind", "allowed"),
    [
        ("x", "BIGINT", "integers from -9223372036854775808"),
        ("1.0", "INTEGER", "integers"),
        ("128", "TINYINT", "integers from -128 to 127"),
        ("yes", "BOOLEAN", "true, false"),
        ("31.1.2013", "DATE", "2013-01-31"),
        ("2013-02-30", "DATE", "2013-01-31"),
        ("noon", TZ, "without an offset: UTC"),
        ("1.234", "DECIMAL(10,2)", "at most 2 decimals"),
        ("NaN", "DECIMAL(10,2)", "at most 2 decimals"),
        ("123456789", "DECIMAL(10,2)", "10 digits"),
        ("a", "DOUBLE", "values of the types"),
    ],
)
def test_a_text_of_another_type_says_what_is_allowed(text: str, kind: str, allowed: str) -> None:
    """Nothing is rounded, cut or guessed."""
    with pytest.raises(UsageError, match=allowed):
        parse_key(text, kind)


def test_composite_keys() -> None:
    """A JSON array or column=value items; fewer parts are a prefix; null is a part."""
    assert parse_composite('["007", 7]', TWO) == ("007", 7)
    assert parse_composite('["a", "7"]', TWO) == ("a", 7)
    assert parse_composite("[null]", TWO) == (None,)
    assert parse_composite(["N=7", "name=a=b"], TWO) == ("a=b", 7)
    assert parse_composite(["name="], TWO) == ("",)
    for text in ("[]", '["a", 1, 2]', "{}", "a", "[[1]]", "[007]", "[true]", "[7]"):
        with pytest.raises(UsageError):
            parse_composite(text, TWO)
    with pytest.raises(UsageError, match='lacks "name"'):
        parse_composite(["n=7"], TWO)
    with pytest.raises(UsageError, match="twice"):
        parse_composite(["name=a", "NAME=b"], TWO)
    with pytest.raises(UnknownNameError, match="name, n"):
        parse_composite(["nam=a"], TWO)
    with pytest.raises(UsageError, match="is not column=value"):
        parse_composite(["name"], TWO)


def test_keys_are_distinct_and_sorted() -> None:
    """Scalars, tuples, lists and mappings are the same keys; nulls come first, prefixes before what they begin."""
    result = keys_of([("b", 1), {"NAME": "a"}, "a", ["b", 1], ("b",), (None, 2)], TWO)
    assert result.keys == ((None, 2), ("a",), ("b",), ("b", 1))
    assert keys_of([datetime(1970, 1, 1)], (KeyColumn("t", TZ),)).keys == ((0,),)  # noqa: DTZ001 - naive is UTC
    assert keys_of([7], (KeyColumn("d", "DECIMAL(4,2)"),)).keys == ((Decimal(7),),)


@pytest.mark.parametrize(
    "key", [1.5, b"a", True, 1, ("a", "7"), ("a", True), ("a", 2**31), ("a", 1, 2), (), "\ud800", date(2013, 1, 1)]
)
def test_a_value_of_another_type_is_refused(key: object) -> None:
    """A key is of its column's type, within its range."""
    with pytest.raises(UsageError):
        keys_of([key], TWO)


def test_ranges() -> None:
    """An end is a key or a prefix; null is no end."""
    assert key_range("a", ("b", 1), TWO).high == ("b", 1)
    assert key_range(None, "b", TWO).low is None
    with pytest.raises(UsageError, match="null"):
        key_range(("a", None), None, TWO)


def test_decimals_have_the_columns_digits_or_are_refused() -> None:
    """The number of written zeros does not matter, nor digits beyond the default precision of Python's decimals."""
    column = (KeyColumn("d", "DECIMAL(38,2)"),)
    long = Decimal("12345678901234567890123456789.12")
    for number, expected in (
        (Decimal("1.5" + "0" * 60), "1.50"),
        (Decimal("0E+50"), "0.00"),
        (Decimal("-0"), "0.00"),
        (long, str(long)),
        (Decimal("1E+3"), "1000.00"),
        (10**35, "1" + "0" * 35 + ".00"),
    ):
        ((key,),) = keys_of([number], column).keys
        assert str(key) == expected
    for number in (Decimal("12345678901234567890123456789.12345"), Decimal("1E+36"), Decimal("1E+999999"), Decimal("0.001")):
        with pytest.raises(UsageError):
            keys_of([number], column)
