"""No error that does not name what it is about, the key, the file, the row or the option, and the way on."""

from __future__ import annotations

import re

import pytest

from .messages import HOLE
from .raised import raised

TEXTS = raised()
_NAMES = re.compile(rf"{HOLE}|--[a-z]|`[a-z_]+`|\[[a-z]+\]|\b[a-z_]+=|\b[A-Z]{{4,}}\b")
"""A name that is filled in, an option, a key, a section, a parameter, an argument of a command."""
_VERBS = """
add ask accept begin check choose change convert copy correct create cut declare decompress drop erase forget free get give go
install leave let look lower make match migrate move name open quote raise read remove rename replace restate restore run save
say set start stop suppose take try update use wait write cast
"""
_BEGINS = r"(?:[;:.,] |^|\bor |\band |`)(?:so |best )?"
_WAY = re.compile(rf"allowed:|pip install|{_BEGINS}(?:stream-wh |{'|'.join(_VERBS.split())})\b", re.IGNORECASE)
_AS_A_WHOLE = {
    "the condition is empty": "the condition is the one that was given",
    "not one condition": "same",
    "a parameter in the condition": "same",
    "a * in the condition": "same",
    "bytes that are not UTF-8 text; convert the query": "the query is the one that was given",
    "a query within a time reads one table": "same",
    "hot is one text": "names the parameter of a method",
    "keys is one text": "same",
    "parameters is one text": "same",
    "columns is empty or one text": "same",
    "as_of names an epoch of the past": "same",
    "within goes with keys alone": "same",
    "a range cannot begin or end at null": "names the end of the range that was given",
    "the warehouse is closed": "there is but one",
    "what gave this answer is closed": "of the library: the answer is the one that is read",
    "files were left for another epoch": "of the warehouse as a whole",
    "nothing has been loaded yet": "same",
    "an erasure needs an epoch": "same",
}
"""Texts that name nothing, with the reason."""
_FILLED_IN = {
    '"○" is stored in any case: ○': "what is filled in says that nothing is to do",
    "--what-if: ○ is none of ○○": "what is filled in is the list of what is allowed",
    "--what-if: ○: ○; ○": "same",
    "○ cannot be read as it is; `○` writes it": "what is filled in is the command",
    "○ cannot be read as it is: ○": "what is filled in is what to do",
    "○ cannot be read as ○ (○); ○": "what is filled in says what the file should be",
    "○ cannot be read as orc (○); ○": "same",
    "○ cannot be read as avro (○); ○": "same",
    "○ has no object a line, and ○; ○": "what is filled in is the command",
    "○; `○` makes a line of each": "same",
    "○ cannot be read: ○": "of logs of Zeek: what is filled in says what they must have",
    '○: there is no column "○".○ There are ○': "what is filled in are the columns to choose from",
    '○: the column "○" cannot be declared: ○': "what is filled in says which names and types can",
    'no ○ named "○".○ Known: ○': "what is filled in are the names to choose from",
    'cannot restate "○": ○': "the reasons are looked at where they are raised",
    "cannot migrate ○: ○": "same",
    "○: ○; ○": "of damaged records: what is filled in is the way",
    "the table or its _delta_log is missing": "what is filled in is what to do",
    "was changed from outside": "what is filled in is the command",
    "within: ○": "what is filled in says what a duration is",
    "interval: ○": "same",
    "--interval: ○": "same",
    "a backup is a directory, no archive": "what is filled in is the command",
    "○ ○": "of backups: same",
    "stands still: ○": "what is filled in is why, with what to do",
    "--rename ○=○": "both columns are named, and what they must be",
    "is declared as a source: ○": "what is filled in is the command that helps for it",
    "none of its files can be read as it is declared": "what is filled in is why, of the first file",
    "and a view follows what changes in files": "a restriction of the design; the way is the other key that the message names",
    "its log is not the one that the warehouse wrote": "what is filled in is what to do",
    "○ statements; ○": "what is filled in says what is allowed",
    "○ is not a query; ○": "same",
    "cannot be parsed: ○; ○": "same",
    "○ inside a query; ○": "same",
    '"○" is not column=value; the search key is ○': "says the form and the columns",
    "○, line ○: ○": "of a file of keys: what is filled in says what is allowed",
    "No such command": "what is filled in is the nearest one",
    "the update time `at` cannot be read: ○": "what is filled in says what an instant is",
}
"""Texts that end with a part that is filled in, which is the way on, with what it is."""


def _exempt(text: str, table: dict[str, str]) -> bool:
    return any(part in text for part in table)


@pytest.mark.parametrize("text", sorted(TEXTS))
def test_an_error_names_its_place_and_the_way_on(text: str) -> None:
    """Of each class of errors and each place that raises one."""
    assert _NAMES.search(text) or _exempt(text, _AS_A_WHOLE), f"{TEXTS[text]}: {text!r} names nothing"
    assert _WAY.search(text) or _exempt(text, _FILLED_IN), f"{TEXTS[text]}: {text!r} gives no way on"


def test_the_tables_name_texts_that_need_them() -> None:
    """A text that was mended or is gone takes its exemption along."""
    for table, pattern in ((_AS_A_WHOLE, _NAMES), (_FILLED_IN, _WAY)):
        for part in table:
            assert any(part in text and not pattern.search(text) for text in TEXTS), part


def test_what_is_looked_at() -> None:
    """The texts are of errors of both rooms and of the provider, with the files that raise them."""
    assert len(TEXTS) > 250
    assert {path.split("/")[0] for path in TEXTS.values()} == {"warehouse", "cli", "airflow_stream_wh"}
