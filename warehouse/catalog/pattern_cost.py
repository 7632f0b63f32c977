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

_SIGNS = (*map(chr, range(128)), "\u00e9")
"""The characters that are distinguished: those of ASCII, and one for all others."""
_ANY = frozenset(_SIGNS)
_MANY = 100
"""A repeat of at least this many times counts as unbounded."""
_SEVERAL = 10
"""If a group repeats at least this many times, each varying part in it counts as unbounded: 2**10 ways are a thousand."""
_TIMES = re.compile(r"(?:[*+?]|\{(\d+)(,?)(\d*)\})([+?]?)")
_OPENING = re.compile(r"\((?:\?:|\?=|\?!|\?P?<[A-Za-z_]\w*>)?")
_CLASS = re.compile(r"\[\^?(?:\\.|[^\]\\])*\]", re.DOTALL)


@dataclass(frozen=True)
class _Part:
    """A set of characters, perhaps repeated, with its text in the pattern.

    ``least`` is the minimum of repetitions, ``endless`` says whether there is no small maximum, ``varies`` whether the number can
    vary, ``gives`` whether it backtracks.
    """

    signs: frozenset[str]
    text: str
    least: int = 1
    endless: bool = False
    varies: bool = False
    gives: bool = True


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
        while parts and parts[-1].endless and parts[-1].signs == _ANY:
            parts.pop()  # it matches the rest of any line at once
        for place, first in enumerate(parts):
            if first.endless and first.gives and (other := _divided(first, parts[place + 1 :])) is not None:
                return first.text, other
    return None


def _divided(first: _Part, behind: list[_Part]) -> str | None:
    """Return the repeat with which a part shares a line in many ways: both take each sign that must stand between them."""
    shared = [first.signs]
    for part in behind:
        both = first.signs & part.signs
        if part.endless and both and all(both & each for each in shared):
            return part.text
        if part.least and not both:
            return None  # here the end of the first one is certain
        if part.least:
            shared.append(part.signs)
    return None


def _alternatives(pattern: str, place: int) -> tuple[list[_Way], int]:
    """Return the ways through the alternatives that begin at a place, and where they end."""
    found: list[_Way] = []
    ways: list[_Way] = [()]
    while place < len(pattern) and pattern[place] != ")":
        if pattern[place] == "|":
            found, ways, place = [*found, *ways], [()], place + 1
            continue
        pieces, place = _piece(pattern, place)
        ways = list(dict.fromkeys(way + piece for way, piece in product(ways, pieces)))[:_MOST_WAYS]
    return [*found, *ways], place


def _piece(pattern: str, place: int) -> tuple[list[_Way], int]:
    """Return the ways through one sign, class or group with its repeat, and where it ends."""
    begin = place
    if pattern[place] == "(":
        opening = _OPENING.match(pattern, place)
        inner, place = _alternatives(pattern, opening.end() if opening else place + 1)
        place += 1  # the closing parenthesis
        least, most, possessive, place = _times(pattern, place)
        ahead = opening is not None and opening[0] in ("(?=", "(?!")
        ways = [tuple(_within(part, keeps=possessive, passed=ahead) for part in way) for way in inner]
        if most >= _SEVERAL and not possessive:
            ways = _often(ways, pattern[begin:place])
        if most > 1:
            ways = [way + other for way, other in product(ways, ways)][:_MOST_WAYS]
        return ([*ways, ()] if least == 0 or ahead else ways), place
    step = 2 if pattern[place] == "\\" else 1
    if pattern[place] == "[" and (found := _CLASS.match(pattern, place)):
        step = found.end() - place
    signs = _signs(pattern[place : place + step])
    least, most, possessive, place = _times(pattern, place + step)
    varies = most > least
    part = _Part(signs, pattern[begin:place], min(least, 1), endless=most > _MANY, varies=varies, gives=not possessive)
    return [(part,)], place


def _within(part: _Part, *, keeps: bool, passed: bool) -> _Part:
    """Return a part of a group that gives nothing back, or that is looked at ahead and passed over."""
    return replace(part, least=0 if passed else part.least, gives=part.gives and not keeps)


def _often(ways: list[_Way], group: str) -> list[_Way]:
    """Return the ways through a group that repeats often: a varying part may match many characters over all repetitions.

    So may each part of ways that begin with the same character, since each repetition can take another of these ways.
    """
    begins = [way[0].signs if way else frozenset() for way in ways]
    alike = [any(begin & other for number, other in enumerate(begins) if number != own) for own, begin in enumerate(begins)]
    return [
        tuple(replace(part, endless=True, text=group) if same or part.varies else part for part in way)
        for way, same in zip(ways, alike, strict=True)
    ]


def _times(pattern: str, place: int) -> tuple[int, float, bool, int]:
    """Return the minimum, the maximum, whether it is possessive, and the end of the repeat at a position."""
    found = _TIMES.match(pattern, place)
    if found is None:
        return 1, 1, False, place
    least, comma, most, kind = found.groups()
    if least is None:
        return (1 if found[0][0] == "+" else 0), (1 if found[0][0] == "?" else float("inf")), kind == "+", found.end()
    upper = float("inf") if comma and not most else float(most or least)
    return int(least), upper, kind == "+", found.end()


@cache
def _signs(text: str) -> frozenset[str]:
    """Return the characters that one element of a pattern matches; for ``^`` and ``$`` any result is right."""
    if text in ("^", "$"):
        return _ANY
    compiled = re.compile(text, re.ASCII | re.DOTALL)
    found = {sign for sign in _SIGNS if compiled.fullmatch(sign)}
    return frozenset(found if text.isascii() else {*found, _SIGNS[-1]})
