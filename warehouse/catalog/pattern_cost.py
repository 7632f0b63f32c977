r"""Finds patterns of lines that can take very long on a line that does not match, since repeats backtrack again and again.

In ``.*,.*,x`` both repeats match the same characters and the text between them, so a line can be divided between them in as many
ways as it has characters: a line of a megabyte takes 10**12 steps. Possessive repeats do not backtrack, and neither does ``.*``
at the end of a pattern. A repeated group, ``(?:a|aa){1,20}``, divides a line in even more ways if one or several repetitions can
match the same characters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

__all__ = ["costly_repeats"]

_CHARACTERS = (*map(chr, range(128)), "\u00e9")
"""The characters that are distinguished: ASCII, and one that represents all others."""
_ANY = frozenset(_CHARACTERS)
_UNBOUNDED = 100
"""A repeat of more times than this counts as unbounded."""
_OFTEN = 10
"""If a group repeats at least this many times, each varying part in it counts as unbounded: 2**10 ways are a thousand."""
_REPETITION = re.compile(r"(?:[*+?]|\{(\d+)(,?)(\d*)\})([+?]?)")
_OPENING = re.compile(r"\((?:\?:|\?=|\?!|\?P?<[A-Za-z_]\w*>)?")
_CLASS = re.compile(r"\[\^?(?:\\.|[^\]\\])*\]", re.DOTALL)


@dataclass(frozen=True)
class _Part:
    """A set of characters, perhaps repeated, with its text in the pattern.

    ``least`` is the minimum of repetitions. ``endless``: there is no small maximum. ``varies``: the number can vary.
    ``backtracks``: the repeat is not possessive.
    """

    characters: frozenset[str]
    text: str
    least: int = 1
    endless: bool = False
    varies: bool = False
    backtracks: bool = True


_Way = tuple[_Part, ...]
"""One way through the alternatives of a pattern."""
_MOST_WAYS = 2000


def costly_repeats(pattern: str) -> tuple[str, str] | None:
    r"""Return two repeats of a pattern that can divide a line between them in very many ways; None if there are none.

    The pattern must have the same meaning in Python and in Java.

    >>> costly_repeats(r"(?P<a>.*),(?P<b>.*),x"), costly_repeats(r"(?P<a>[^,]*),(?P<b>[^,]*),x")
    (('.*', '.*'), None)
    >>> costly_repeats(r"(?P<a>\S+) \[(?P<b>[^\]]*)\] (?P<c>.*)"), costly_repeats(r"(?P<a>\d+)(?P<b>\d*)x")
    (None, ('\\d+', '\\d*'))
    """
    ways, _ = _alternatives(pattern, 0)
    for way in ways:
        parts = list(way)
        while parts and parts[-1].endless and parts[-1].characters == _ANY:
            parts.pop()  # it matches the rest of any line at once
        for position, first in enumerate(parts):
            if first.endless and first.backtracks and (other := _sharing_repeat(first, parts[position + 1 :])) is not None:
                return first.text, other
    return None


def _sharing_repeat(first: _Part, behind: list[_Part]) -> str | None:
    """Return the later repeat with which a part can divide a line in many ways.

    That is the case if both match every character that must stand between them.
    """
    shared = [first.characters]
    for part in behind:
        common = first.characters & part.characters
        if part.endless and common and all(common & characters for characters in shared):
            return part.text
        if part.least and not common:
            return None  # the end of the first part is certain
        if part.least:
            shared.append(part.characters)
    return None


def _alternatives(pattern: str, position: int) -> tuple[list[_Way], int]:
    """Return the ways through the alternatives that begin at a position, and their end."""
    finished: list[_Way] = []
    ways: list[_Way] = [()]
    while position < len(pattern) and pattern[position] != ")":
        if pattern[position] == "|":
            finished, ways, position = [*finished, *ways], [()], position + 1
            continue
        pieces, position = _piece(pattern, position)
        ways = list(dict.fromkeys(way + piece for way, piece in product(ways, pieces)))[:_MOST_WAYS]
    return [*finished, *ways], position


def _piece(pattern: str, position: int) -> tuple[list[_Way], int]:
    """Return the ways through one character, class or group with its repeat, and its end."""
    begin = position
    if pattern[position] == "(":
        opening = _OPENING.match(pattern, position)
        inner, position = _alternatives(pattern, opening.end() if opening else position + 1)
        position += 1  # the closing parenthesis
        minimum, maximum, possessive, position = _repetition(pattern, position)
        is_lookahead = opening is not None and opening[0] in ("(?=", "(?!")
        ways = [tuple(_in_group(part, possessive=possessive, lookahead=is_lookahead) for part in way) for way in inner]
        if maximum >= _OFTEN and not possessive:
            ways = _repeated_often(ways, pattern[begin:position])
        if maximum > 1:
            ways = [way + other for way, other in product(ways, ways)][:_MOST_WAYS]
        return ([*ways, ()] if minimum == 0 or is_lookahead else ways), position
    step = 2 if pattern[position] == "\\" else 1
    if pattern[position] == "[" and (character_class := _CLASS.match(pattern, position)):
        step = character_class.end() - position
    characters = _matched_characters(pattern[position : position + step])
    minimum, maximum, possessive, position = _repetition(pattern, position + step)
    varies = maximum > minimum
    part = _Part(
        characters,
        pattern[begin:position],
        min(minimum, 1),
        endless=maximum > _UNBOUNDED,
        varies=varies,
        backtracks=not possessive,
    )
    return [(part,)], position


def _in_group(part: _Part, *, possessive: bool, lookahead: bool) -> _Part:
    """Return a part of a group: a possessive group does not backtrack, and a lookahead consumes no character."""
    return replace(part, least=0 if lookahead else part.least, backtracks=part.backtracks and not possessive)


def _repeated_often(ways: list[_Way], group: str) -> list[_Way]:
    """Return the ways through a group that repeats often: a varying part may match many characters over all repetitions.

    The same is true of all parts of ways that can begin with the same character: each repetition can take another such way.
    """
    begins = [way[0].characters if way else frozenset() for way in ways]
    clashing = [
        any(begin & other for number, other in enumerate(begins) if number != index) for index, begin in enumerate(begins)
    ]
    return [
        tuple(replace(part, endless=True, text=group) if clashes or part.varies else part for part in way)
        for way, clashes in zip(ways, clashing, strict=True)
    ]


def _repetition(pattern: str, position: int) -> tuple[int, float, bool, int]:
    """Return the minimum and the maximum of the repeat at a position, whether it is possessive, and its end."""
    match = _REPETITION.match(pattern, position)
    if match is None:
        return 1, 1, False, position
    minimum, comma, maximum, kind = match.groups()
    if minimum is None:
        return (1 if match[0][0] == "+" else 0), (1 if match[0][0] == "?" else float("inf")), kind == "+", match.end()
    upper = float("inf") if comma and not maximum else float(maximum or minimum)
    return int(minimum), upper, kind == "+", match.end()


@cache
def _matched_characters(text: str) -> frozenset[str]:
    """Return the characters that one element of a pattern matches; all characters for ``^`` and ``$``, which match none."""
    if text in ("^", "$"):
        return _ANY
    compiled = re.compile(text, re.ASCII | re.DOTALL)
    matched = {character for character in _CHARACTERS if compiled.fullmatch(character)}
    return frozenset(matched if text.isascii() else {*matched, _CHARACTERS[-1]})
