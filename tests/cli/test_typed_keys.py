"""Keys as they are typed."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from cli.keys import KeyColumns
from warehouse.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


def parse(text: str, kind: str) -> Any:
    if kind == "string":
        return text
    try:
        return int(text)
    except ValueError:
        raise UsageError(f'"{text}" is no {kind}') from None


ONE = KeyColumns("t", [("k", "string")], parse)
NUMBER = KeyColumns("t", [("k", "bigint")], parse)
TWO = KeyColumns("t", [("name", "string"), ("type", "int")], parse)


def test_a_positional_key_is_parsed_by_the_type_of_the_column() -> None:
    """007 stays text in a string column; a bracket is text where the key has one column."""
    assert ONE.positional("007") == ("007",)
    assert NUMBER.positional("007") == (7,)
    assert ONE.positional('["a"]') == ('["a"]',)
    with pytest.raises(UsageError, match="is no bigint"):
        NUMBER.positional("x")


def test_a_composite_key_is_a_json_array_or_a_prefix() -> None:
    """An array gives the parts, digits untouched; plain text is the first part."""
    assert TWO.positional('["a", 1]') == ("a", 1)
    assert TWO.positional('[" a ", "12345678901234567890"]') == (" a ", 12345678901234567890)
    assert TWO.positional('["a"]') == ("a",)
    assert TWO.positional('["a", null]') == ("a", None)
    assert TWO.positional("a") == ("a",)
    assert TWO.positional("[a") == ("[a",)
    with pytest.raises(UsageError, match="3 parts"):
        TWO.positional('["a", 1, 2]')
    with pytest.raises(UsageError, match="0 parts"):
        TWO.positional("[]")


def test_named_parts_spell_one_key() -> None:
    """--key takes the columns in any order and case; missing leading columns, repeats and strangers are errors."""
    assert TWO.named([]) is None
    assert TWO.named(["type=1", "NAME=a=b"]) == ("a=b", 1)
    assert TWO.named(["name="]) == ("",)
    with pytest.raises(UsageError, match="--key name is missing"):
        TWO.named(["type=1"])
    with pytest.raises(UsageError, match="twice"):
        TWO.named(["name=a", "Name=b"])
    with pytest.raises(UsageError, match="not column=value"):
        TWO.named(["a"])
    with pytest.raises(UnknownNameError, match="name, type"):
        TWO.named(["nane=a"])


def test_lines_of_a_file_are_keys(tmp_path: Path) -> None:
    """A text or an array a line; empty lines are skipped, spaces are kept, a fault names its line."""
    file = tmp_path / "keys"
    file.write_bytes(b'\xef\xbb\xbf007\r\n\n a \n["x"]\n[""]\n[no array')
    assert list(ONE.lines(file)) == [("007",), (" a ",), ("x",), ("",), ("[no array",)]
    file.write_bytes(b'a\n["b", 2]\n["b", "c"]')
    with pytest.raises(UsageError, match=r"keys, line 3: .*is no int"):
        list(TWO.lines(file))
    file.write_bytes(b"a\n\xff\n")
    with pytest.raises(UsageError, match="line 2: not UTF-8"):
        list(ONE.lines(file))


def test_keys_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file is standard input."""
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"a\nb\n")))
    assert list(ONE.lines(None)) == [("a",), ("b",)]
