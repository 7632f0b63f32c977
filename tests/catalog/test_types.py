from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.catalog.spelling import FaultError
from warehouse.catalog.types import (
    Array,
    AtomicType,
    Decimal,
    Field,
    SqlType,
    Struct,
    canonical,
    delta_type,
    is_key_type,
    parse_type,
)

TABLE = [
    # written, canonical, in a Delta schema, usable as a key
    ("BOOLEAN", "boolean", "boolean", True),
    ("tinyint", "tinyint", "byte", True),
    ("byte", "tinyint", "byte", True),
    ("smallint", "smallint", "short", True),
    ("short", "smallint", "short", True),
    ("int", "int", "integer", True),
    ("Integer", "int", "integer", True),
    ("bigint", "bigint", "long", True),
    ("LONG", "bigint", "long", True),
    ("float", "float", "float", False),
    ("real", "float", "float", False),
    ("double", "double", "double", False),
    ("decimal", "decimal(10,0)", "decimal(10,0)", True),
    ("dec(5)", "decimal(5,0)", "decimal(5,0)", True),
    ("NUMERIC( 38 , 38 )", "decimal(38,38)", "decimal(38,38)", True),
    ("string", "string", "string", True),
    ("binary", "binary", "binary", False),
    ("date", "date", "date", True),
    ("timestamp", "timestamp", "timestamp", True),
    ("TIMESTAMP_LTZ", "timestamp", "timestamp", True),
    ("array<int>", "array<int>", {"type": "array", "elementType": "integer", "containsNull": True}, False),
    (
        "struct<Name: string, `a-b` dec(3, 1)>",
        "struct<Name:string,`a-b`:decimal(3,1)>",
        {
            "type": "struct",
            "fields": [
                {"name": "Name", "type": "string", "nullable": True, "metadata": {}},
                {"name": "a-b", "type": "decimal(3,1)", "nullable": True, "metadata": {}},
            ],
        },
        False,
    ),
]


@pytest.mark.parametrize(("written", "text", "delta", "key"), TABLE)
def test_table(written: str, text: str, delta: object, key: bool) -> None:
    """Each type has one canonical text, one form in Delta's schema, and is or is not usable as a key."""
    kind = parse_type(written)
    assert canonical(kind) == text
    assert delta_type(kind) == delta_type(written) == delta
    assert is_key_type(kind) is key


REFUSED = [
    ("timestamp_ntz", "timestamp (text without an offset"),
    ("variant", "string, or struct<...>"),
    ("interval day to second", "bigint, e.g. seconds"),
    ("map<string,int>", "array<struct<key:...,value:...>>"),
    ("array<map<string,int>>", "array<struct<key:...,value:...>>"),
    ("varchar(10)", "string"),
    ("char(1)", "string"),
    ("time", "bigint microseconds"),
    ("datetime", "timestamp"),
    ("bool", "boolean"),
    ("decimal(39,0)", "p from 1 to 38"),
    ("decimal(5,6)", "s from 0 to p"),
    ("decimal(x)", "two numbers"),
    ("decimal(5", "boolean, tinyint"),
    ("array", "boolean, tinyint"),
    ("array<>", "boolean, tinyint"),
    ("struct<>", "struct<name:type,...>"),
    ("struct<a:int,A:int>", "unique ignoring case"),
    ("struct<`a b`:int>", "letters, digits"),
    ("int int", "one type"),
    ("int not null", "one type"),
    ("", "boolean, tinyint"),
]


@pytest.mark.parametrize(("written", "remedy"), REFUSED)
def test_refused(written: str, remedy: str) -> None:
    """The message for a type that cannot be stored names a replacement."""
    with pytest.raises(FaultError) as caught:
        parse_type(written)
    assert remedy in caught.value.allowed


def test_nearest() -> None:
    """The message for a misspelt type names the nearest type."""
    with pytest.raises(FaultError) as caught:
        parse_type("timestmp")
    assert caught.value.suggestion == "timestamp"


ATOMS = st.one_of(
    st.sampled_from(["boolean", "int", "bigint", "double", "string", "date", "timestamp"]).map(AtomicType),
    st.builds(Decimal, st.integers(10, 38), st.integers(0, 10)),
)
NAMES = st.text(st.characters(codec="ascii", categories=["L", "N"], include_characters="_-"), min_size=1)
TYPES: st.SearchStrategy[SqlType] = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds(Array, inner),
        st.builds(
            Struct,
            st.lists(
                st.builds(Field, NAMES, inner), min_size=1, max_size=4, unique_by=lambda field: field.name.lower()
            ).map(tuple),
        ),
    ),
    max_leaves=8,
)


@given(TYPES)
def test_canonical_text_reads_back(kind: SqlType) -> None:
    """The canonical text of any type means that type."""
    assert parse_type(canonical(kind)) == kind
