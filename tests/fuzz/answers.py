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
        match = next((position for position, other in enumerate(rest) if _alike(row, other)), None)
        if match is None:
            only.append(row)
        else:
            del rest[match]
    return only, rest


def _alike(left: object, right: object) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(_alike(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, float) and isinstance(right, float):
        if left == 0 == right:
            return True
        return left == right or (math.isnan(left) and math.isnan(right)) or math.isclose(left, right, rel_tol=_TOLERANCE)
    return type(left) is type(right) and left == right


def _plain(value: Any) -> object:  # noqa: ANN401 - a value of Arrow
    match value:
        case dict():
            return tuple((name, _plain(item)) for name, item in value.items())
        case list() | tuple():
            return tuple(_plain(item) for item in value)
        case Decimal():
            return value.normalize() + 0
        case bool() | None | str() | bytes() | float():
            return value
        case int():
            return Decimal(value)
        case _:
            return value


def _order(row: tuple[object, ...]) -> str:
    return repr(tuple(round(value, 6) if isinstance(value, float) else value for value in row))
