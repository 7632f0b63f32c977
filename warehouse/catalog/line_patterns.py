r"""Patterns of lines: regular expressions whose named groups are the fields of a record, the same for Python and for Java.

Each part of a pattern has the same meaning for both: ``\d``, ``\w`` and ``\s`` match ASCII only, ``.`` matches any character, and
a line must match from its beginning to its end. Parts that one of them does not know or reads differently are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from warehouse.catalog.pattern_cost import costly_repeats
from warehouse.catalog.spelling import FaultError, as_written

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "APPLICATION",
    "PATTERN",
    "LinePattern",
    "line_pattern",
    "pattern_fault",
    "pattern_missing",
    "pattern_of",
]

_NAMED_GROUP = re.compile(r"\(\?P?<([A-Za-z_][A-Za-z0-9_]*)>")
PATTERN = r"a regular expression with a named group for each field, such as '(?P<at>\S+) (?P<message>.*)'"
"""The description of the option, for messages."""
_OPENINGS = ("(?:", "(?=", "(?!")
_ESCAPES = frozenset("dDwWsSt")
_COUNT = re.compile(r"\{\d+(,\d*)?\}")
_REPEATED_GROUP = re.compile(r"\)([*+]|\{(\d+,|\d{3,}|\d+,\d{3,})\})(?!\+)\??")
"""A group that repeats a hundred times or more, and backtracks: each repetition takes a frame of Java's stack."""
_TIMESTAMP = r"(?P<moment>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?Z| ?[+-]\d\d:?\d\d)?)"
APPLICATION = (
    _TIMESTAMP
    + r"[ \t]+(?:\[(?P<thread>[^\]]*)\][ \t]+)?\[?(?P<level>TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\]?"
    r"[: \t]+(?P<message>.*)"
)
"""Lines that programs write: a time, perhaps a thread, a level, and a message."""


@dataclass(frozen=True)
class LinePattern:
    """A pattern: the names of its fields in order, the number of each one's group, and the expression for Java and for Python."""

    names: tuple[str, ...]
    group_numbers: tuple[int, ...]
    java: str
    python: re.Pattern[str]

    def fields(self, line: str) -> dict[str, str | None] | None:
        """Return the fields of a line, or None if the line does not match; an empty or missing field is None."""
        match = self.python.fullmatch(line)
        return None if match is None else {name: value or None for name, value in match.groupdict().items()}


@lru_cache(maxsize=256)
def line_pattern(text: str) -> LinePattern:
    r"""Return the line pattern that a text describes.

    Raises
    ------
    FaultError
        When the pattern cannot be used.

    Examples
    --------
    >>> pattern = line_pattern(r"(?P<at>\S+) (?P<host>[a-z]+)(?: (?P<what>.*))?")
    >>> pattern.names, pattern.fields("12:00 web")
    (('at', 'host', 'what'), {'at': '12:00', 'host': 'web', 'what': None})

    """
    python, java = _translated(text)
    try:
        compiled = re.compile(python, re.ASCII | re.DOTALL)
    except (re.error, RecursionError, OverflowError) as error:
        raise FaultError(f"{as_written(text)}: {error}", PATTERN) from error
    if not compiled.groupindex:
        raise FaultError(f"{as_written(text)}, which names no field", PATTERN)
    if compiled.fullmatch(""):
        raise FaultError(f"{as_written(text)}, which matches an empty line", "a pattern that something must match")
    if (repeats := costly_repeats(text)) is not None:
        found_repeats = " before ".join(map(as_written, repeats))
        allowed = "repeats that end where the next sign begins, such as [^,]* before a comma, or possessive ones, [^ ]*+"
        reason = "which may divide a long line between them in very many ways"
        raise FaultError(f"{found_repeats} in the pattern {as_written(text)}, {reason}", allowed)
    groups = sorted(compiled.groupindex.items(), key=lambda group: group[1])
    return LinePattern(
        tuple(name for name, _ in groups), tuple(position for _, position in groups), rf"(?s)\A(?:{java})\z", compiled
    )


def pattern_of(options: Iterable[tuple[str, str]]) -> LinePattern | None:
    """Return the pattern among the options of a stream; None if there is none."""
    text = next((value for key, value in options if key.lower() == "pattern"), None)
    return None if text is None else line_pattern(text)


def pattern_missing(options: Iterable[tuple[str, str]]) -> bool:
    """Whether no option is a pattern, valid or not."""
    return not any(key.lower() == "pattern" for key, _ in options)


def pattern_fault(text: str) -> FaultError | None:
    """Return why a text is no pattern of lines, or None."""
    try:
        line_pattern(text)
    except FaultError as fault:
        return fault
    return None


def _translated(text: str) -> tuple[str, str]:
    """Return a pattern for Python and one for Java with the same meaning.

    Raises
    ------
    FaultError
        When the meanings differ, or when a line could overflow Java's stack, which would end Spark.

    """
    position, in_class = 0, False
    python, java = [], []
    while position < len(text):
        rest, character = text[position:], text[position]
        length = 1
        named_group = None
        if character == "\\":
            length = 2
            if len(rest) < length or (rest[1].isalnum() and rest[1] not in _ESCAPES) or not rest[1].isascii():
                raise _unsupported(text, rest[:2], r"\d \w \s, their opposites, \t, or a sign that is neither letter nor digit")
        elif in_class:
            if character == "[" or rest.startswith(("&&", "--", "~~", "||")):
                raise _unsupported(text, rest[: 1 if character == "[" else 2], f"\\{character} within a class")
            in_class = character != "]"
        elif character == "[":
            length = 2 if rest.startswith("[^") else 1
            if rest[length : length + 1] == "]":
                raise _unsupported(text, rest[: length + 1], "\\] within a class")
            in_class = True
        elif character == "{" and not (count := _COUNT.match(rest)):
            raise _unsupported(text, character, "\\{, or a number of times such as {1,3}")
        elif character == "{" and count:
            length = count.end()
        elif character == ")" and (repeat := _REPEATED_GROUP.match(rest)):
            raise _unsupported(text, repeat[0], f"{repeat[0].rstrip('?')}+, which gives nothing back, or a repeated class")
        elif rest.startswith("(?") and not rest.startswith(_OPENINGS):
            named_group = _NAMED_GROUP.match(rest)
            if named_group is None:
                raise _unsupported(text, rest[:4], "(?P<name>...), (?:...), (?=...) and (?!...)")
            length = named_group.end()
        python.append(f"(?P<{named_group[1]}>" if named_group else rest[:length])
        java.append("(" if named_group else rest[:length])
        position += length
    return "".join(python), "".join(java)


def _unsupported(text: str, part: str, allowed: str) -> FaultError:
    return FaultError(f"{as_written(part)} in the pattern {as_written(text)}", allowed)
