"""Which types hold every value of another: what a column may become without a value being lost or changed."""

from __future__ import annotations

from warehouse.catalog.types import Atomic, Decimal, parse_type

__all__ = ["widens"]

_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""Integer types with the decimal digits that their values have at the most."""
_DOUBLE_HOLDS = ("tinyint", "smallint", "int", "float")
_FLOAT_HOLDS = ("tinyint", "smallint")


def widens(old: str, new: str) -> bool:
    """Whether every value of one Spark SQL type is a value of the other, exactly; both are canonical texts.

    >>> widens("int", "bigint"), widens("bigint", "int"), widens("int", "decimal(10,0)"), widens("bigint", "double")
    (True, False, True, False)
    """
    one, other = parse_type(old), parse_type(new)
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        return other.scale >= one.scale and other.precision - other.scale >= one.precision - one.scale and one != other
    if not isinstance(one, Atomic):
        return False
    if isinstance(other, Decimal):
        digits = _INTEGERS.get(one.name)
        return digits is not None and other.precision - other.scale >= digits
    if not isinstance(other, Atomic):
        return False
    if one.name in _INTEGERS and other.name in _INTEGERS:
        return _INTEGERS[other.name] > _INTEGERS[one.name]
    held = {"double": _DOUBLE_HOLDS, "float": _FLOAT_HOLDS}
    return one.name in held.get(other.name, ())
