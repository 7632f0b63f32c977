"""Log entries with one changed value or one changed byte."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ODD_VALUES", "odd_entries"]

ODD_VALUES: tuple[Any, ...] = (None, "", "?", "{", -1, 0.5, True, [], {}, [7], {"?": None})
_TEXTS = ("stats", "schemaString")  # they are JSON themselves
_Values = dict[str, Any] | list[Any]


def odd_entries(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each place in an entry's actions, with the texts of the entry with each odd value there, and without the place."""
    actions = [json.loads(line) for line in text.splitlines()]
    for number, action in enumerate(actions):
        for path, changed in _odd(action):
            lines = [[*actions[:number], odd, *actions[number + 1 :]] for odd in changed]
            yield f"{number}.{path}", ["".join(json.dumps(line) + "\n" for line in entry) for entry in lines]


def _odd(value: object, path: str = "") -> Iterator[tuple[str, list[Any]]]:
    if isinstance(value, dict | list):
        for key in sorted(value) if isinstance(value, dict) else range(len(value)):
            inner = value[key]
            inner_path = f"{path}.{key}".lstrip(".")
            yield inner_path, [*(_with(value, key, odd) for odd in ODD_VALUES), _without(value, key)]
            nested = json.loads(inner) if key in _TEXTS else inner
            for deeper, changed in _odd(nested, inner_path):
                yield deeper, [_with(value, key, json.dumps(odd) if key in _TEXTS else odd) for odd in changed]


def _with(value: _Values, key: str | int, odd: object) -> _Values:
    changed = copy.copy(value)
    changed[key] = odd
    return changed


def _without(value: _Values, key: str | int) -> _Values:
    changed = copy.copy(value)
    del changed[key]
    return changed
