"""The types of Spark SQL for which the driver has SQL of DuckDB, and which of their values both engines treat alike."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = [
    "DIGITS_OF",
    "EXACT",
    "MOST_DIGITS",
    "WHOLE",
    "LeftToSparkError",
    "Translated",
    "compared_as_they_are",
    "decimal_digits",
    "duck_type",
    "exactly_grouped",
    "holds_whole_numbers",
    "plain_type",
]

WHOLE = ("tinyint", "smallint", "int", "bigint")
"""The types of whole numbers, from the narrowest."""
_DUCK = {
    "string": "VARCHAR", "int": "INTEGER", "binary": "BLOB", "timestamp": "TIMESTAMPTZ", "tinyint": "TINYINT",
    "smallint": "SMALLINT", "bigint": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "boolean": "BOOLEAN", "date": "DATE",
}  # fmt: skip
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
DIGITS_OF = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""The digits of a decimal without fraction that holds all values of a type."""
MOST_DIGITS = 38
"""The digits of the widest decimal."""
EXACT = 2**53
"""Every whole number up to this one is a double."""


class LeftToSparkError(ValueError):
    """The driver cannot compute something as Spark would, so Spark computes it."""


@dataclass(frozen=True)
class Translated:
    """SQL of DuckDB, and the Spark SQL type of its values; None: the values are only passed on."""

    sql: str
    kind: str | None


def plain_type(kind: str | None) -> bool:
    """Whether values are neither nested nor of an unknown type."""
    return kind is not None and (kind in _DUCK or decimal_digits(kind) is not None)


def exactly_grouped(kind: str | None) -> bool:
    """Whether both engines make the same groups of values."""
    return plain_type(kind) and kind not in ("float", "double")


def duck_type(kind: str) -> str:
    """Return DuckDB's name of a type."""
    return _DUCK.get(kind) or kind.upper()


def decimal_digits(kind: str | None) -> tuple[int, int] | None:
    """Return the digits of a decimal type, in all and of the fraction; None for other types."""
    match = _DECIMAL.fullmatch(kind or "")
    return None if match is None else (int(match[1]), int(match[2]))


def holds_whole_numbers(kind: str | None) -> bool:
    """Whether this decimal type is Spark's common type for its own values and whole numbers."""
    digits = decimal_digits(kind)
    return digits is not None and digits[0] == MOST_DIGITS and digits[0] - digits[1] >= DIGITS_OF["bigint"]


def compared_as_they_are(one: str | None, other: str | None) -> bool:
    """Whether both engines compare values of these types alike, without a cast."""
    if one is None or other is None:
        return False
    exact = all(kind in WHOLE or decimal_digits(kind) is not None for kind in (one, other))
    return exact or (one == other and one in _DUCK)
