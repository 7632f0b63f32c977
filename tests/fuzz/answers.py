"""Answers as bags that can be compared: exact but for floats, whose sums depend on the order of addition."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Answer", "answer", "differences"]

Answer = list[tuple[object, ...]]
_TOLERANCE = 1e-9


def answer(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Answer:
    """Return rows in an order of their own, columns by name."""
    return sorted((tuple(_plain(row[name]) for name in columns) for row in rows), key=_order)


def differences(held: Answer, asked: Answer) -> tuple[Answer, Answer]:
    """Return the rows that only one of two answers has."""
    rest = list(asked)
    only = []
    for row in held:
        found = next((place for place, other in enumerate(rest) if _alike(row, other)), None)
        if found is None:
            only.append(row)
        else:
            del rest[found]
    return only, rest


def _alike(one: object, other: object) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(_alike(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        if one == 0 == other:
            return True
        return one == other or (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=_TOLERANCE)
    return type(one) is type(other) and one == other


def _plain(value: Any) -> object:  # noqa: ANN401 - a value of Arrow
    match value:
        case dict():
            return tuple((name, _plain(each)) for name, each in value.items())
        case list() | tuple():
            return tuple(_plain(each) for each in value)
        case Decimal():
            return value.normalize() + 0
        case bool() | None | str() | bytes() | float():
            return value
        case int():
            return Decimal(value)
        case _:
            return value


def _order(row: tuple[object, ...]) -> str:
    return repr(tuple(round(each, 6) if isinstance(each, float) else each for each in row))
