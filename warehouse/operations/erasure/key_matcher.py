"""Whether a text shows a key: texts of invalid rows, messages, malformed records of landing files."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from warehouse.steps.erased_keys import ErasedKeys, Key

__all__ = ["text_matcher"]

_WORD = re.compile("[0-9A-Za-z]+")


def text_matcher(keys: ErasedKeys) -> Callable[[str], bool]:
    """Return a function that tells whether a text contains all parts of one of the keys, each as a word of its own.

    The test finds too much rather than too little: ``7`` is also found in ``1.7``. Keys that are single words are looked up in
    the set of words of a text, so many keys cost as much as few keys; all other keys are searched.

    >>> from warehouse.serving.keys import KeyColumn
    >>> from warehouse.steps.erased_keys import ErasedKeys
    >>> test = text_matcher(ErasedKeys((KeyColumn("k", "VARCHAR"),), (("N1",), ("a b",))))
    >>> test("x,N1,3"), test('{"k": "N1"}'), test("N12,x"), test("a b")
    (True, True, False, True)
    """
    words = {key[0] for key in keys.keys if _is_word(key)}
    searched = replace(keys, keys=tuple(key for key in keys.keys if not _is_word(key)))
    compiled = [[re.compile(pattern) for pattern in patterns] for patterns in searched.patterns()]

    def test(text: str) -> bool:
        if words and not words.isdisjoint(_WORD.findall(text)):
            return True
        return any(all(pattern.search(text) for pattern in patterns) for patterns in compiled)

    return test


def _is_word(key: Key) -> bool:
    return len(key) == 1 and isinstance(key[0], str) and bool(_WORD.fullmatch(key[0]))
