"""Rows for the tables of the grammar: few values, so that rows meet, nulls, and now and then an extreme one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.operations.projects import text

from .grammar import ARRAY, BOOLEAN, DECIMAL, DOUBLE, INT, LONG, STRING, STRUCT, TABLES

if TYPE_CHECKING:
    import random

__all__ = ["landing_rows"]

_VALUES: dict[str, list[Any]] = {
    STRING: ["p", "q", "r", "P", "ü€", "", "p", "q", None],
    INT: [0, 1, 2, 3, -1, 1, 2, None],
    LONG: [0, 1, 2, 3, 100, -7, 1, 2, None],
    DOUBLE: [0.0, -0.0, 0.5, 1.5, -2.25, 1.5, None],
    DECIMAL: [0, 1.25, 2.5, -3.75, 1.25, None],
    BOOLEAN: [True, False, True, False, None],
}
_EXTREME: dict[str, list[Any]] = {
    STRING: ["\U0010ffff", " p", "0"],
    INT: [2147483647, -2147483648],
    LONG: [9223372036854775807, -9223372036854775808, 2147483648],
    DOUBLE: [1e300, "NaN", "Infinity", "-Infinity", 5e-324],
    DECIMAL: [99999999.99, -99999999.99],
    BOOLEAN: [None],
}


def landing_rows(chance: random.Random, table: str, hour: int, count: int, extreme: float) -> str:
    """Return lines of JSON for one update: rows that arrived in the hour before it, some late, each at a time of its own.

    ``extreme`` is the share of values that are extreme.
    """
    lines = []
    for number in range(count):
        late = chance.choice([0, 0, 0, 0, 0.7, 1.6])
        begins = hour - late - (number + 1 + chance.random() * 0.5) / (count + 2)
        row: dict[str, Any] = {name: _value(chance, kind, extreme) for name, kind in TABLES[table].items()}
        row["b"] = text(round(begins * 3600) / 3600 + (number + 1) / 3.6e6)
        if table == "a":
            row["e"] = text(begins + chance.choice([0.3, 0.8, 1.4, 2.2, 3.5]))
        if table == "r":
            row["k"] = row["k"] or "p"
        lines.append(json.dumps(row))
    return "".join(line + "\n" for line in lines)


def _value(chance: random.Random, kind: str, extreme: float) -> Any:  # noqa: ANN401 - a value of JSON
    if kind == STRUCT:
        if chance.random() < 0.15:
            return None
        return {"x": _value(chance, INT, extreme), "y": _value(chance, STRING, extreme)}
    if kind == ARRAY:
        return [_value(chance, INT, extreme) for _ in range(chance.randint(0, 2))] if chance.random() < 0.85 else None
    return chance.choice(_EXTREME[kind] if chance.random() < extreme else _VALUES[kind])
