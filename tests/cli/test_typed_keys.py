"""Keys as they are typed."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from warehouse.cli.keys import keys_of_lines, named_key, positional_key
from warehouse.errors import UnknownNameError, UsageError
from warehouse.serving.keys import KeyColumn

if TYPE_CHECKING:
    from pathlib import Path

ONE = (KeyColumn("k", "VARCHAR"),)
NUMBER = (KeyColumn("k", "BIGINT"),)
TWO = (KeyColumn("name", "VARCHAR"), KeyColumn("type", "INTEGER"))


def test_a_positional_key_is_parsed_by_the_type_of_the_column() -> None:
    """007 stays text in a string column; a bracket is text where the key has one column."""
    assert positional_key("007", ONE) == ("007",)
    assert positional_key("007", NUMBER) == (7,)
    assert positional_key("", ONE) == ("",)
    assert positional_key('["a"]', ONE) == ('["a"]',)
    with pytest.raises(UsageError, match="BIGINT"):
        positional_key("x", NUMBER)


@pytest.mark.parametrize("text", ["x\r", "x\n", "\r\nx"])
def test_a_key_with_a_line_break_is_refused(text: str) -> None:
    """Output of commands has them at the end of a line; no row would be found, without a word."""
    for columns in (ONE, TWO):
        with pytest.raises(UsageError, match="line break"):
            positional_key(text, columns)
    source = io.BytesIO(json.dumps([text]).encode())
    assert list(keys_of_lines(SimpleNamespace(open=lambda _: source), ONE)) == [(text,)]


def test_a_composite_key_is_a_json_array_or_a_prefix() -> None:
    """An array gives the parts; plain text is the first part."""
    assert positional_key('["a", 1]', TWO) == ("a", 1)
    assert positional_key('[" a ", "2"]', TWO) == (" a ", 2)
    assert positional_key('["a"]', TWO) == ("a",)
    assert positional_key('["a", null]', TWO) == ("a", None)
    assert positional_key("a", TWO) == ("a",)
    assert positional_key("[a", TWO) == ("[a",)
    for wrong in ('["a", 1, 2]', "[]", '[["a"]]'):
        with pytest.raises(UsageError):
            positional_key(wrong, TWO)


def test_named_parts_spell_one_key() -> None:
    """--key takes the columns in any order and case; missing leading columns, repeats and strangers are errors."""
    assert named_key([], TWO) is None
    assert named_key(["type=1", "NAME=a=b"], TWO) == ("a=b", 1)
    assert named_key(["name="], TWO) == ("",)
    for wrong in (["type=1"], ["name=a", "Name=b"], ["a"]):
        with pytest.raises(UsageError, match="name"):
            named_key(wrong, TWO)
    with pytest.raises(UnknownNameError, match="name, type"):
        named_key(["nane=a"], TWO)


def test_lines_of_a_file_are_keys(tmp_path: Path) -> None:
    """A text or an array a line; empty lines are skipped, spaces are kept, a fault names its line."""
    file = tmp_path / "keys"
    file.write_bytes(b'\xef\xbb\xbf007\r\n\n a \n["x"]\n[""]\n[no array')
    assert list(keys_of_lines(file, ONE)) == [("007",), (" a ",), ("x",), ("",), ("[no array",)]
    file.write_bytes(b'a\n["b", 2]\n["b", "c"]')
    with pytest.raises(UsageError, match="keys, line 3: "):
        list(keys_of_lines(file, TWO))
    file.write_bytes(b"a\n\xff\n")
    with pytest.raises(UsageError, match="line 2: not UTF-8"):
        list(keys_of_lines(file, ONE))


def test_keys_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is standard input."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"a\nb\n")))
    assert list(keys_of_lines(None, ONE)) == [("a",), ("b",)]
