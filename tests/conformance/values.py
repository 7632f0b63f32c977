"""Column types that a table may have, and the values of each that readers get wrong most often.

Values are plain: instants are microseconds since 1970, everything else is what Python has for it.
"""

from __future__ import annotations

import struct
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

__all__ = ["ARROW", "KEY_TYPES", "NEVER", "TOP", "VALUES", "arrow_type", "values_of"]

TOP = "\U0010ffff"
NEVER = 253_402_300_799_999_999
_FIRST = -62_135_596_800_000_000

ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "decimal(9,2)": pa.decimal128(9, 2),
    "decimal(18,2)": pa.decimal128(18, 2),
    "decimal(38,10)": pa.decimal128(38, 10),
    "decimal(38,0)": pa.decimal128(38, 0),
    "array<int>": pa.list_(pa.int32()),
    "struct<x:int,y:struct<z:string>>": pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))]),
}
KEY_TYPES = (
    "boolean", "tinyint", "smallint", "int", "bigint", "string", "date", "timestamp",
    "decimal(9,2)", "decimal(18,2)", "decimal(38,10)", "decimal(38,0)",
)  # fmt: skip

_SINGLE = struct.unpack("f", struct.pack("f", 3.4e38))[0]
VALUES: dict[str, tuple[Any, ...]] = {
    "boolean": (True, False, None),
    "tinyint": (-128, 127, 0, None, -1),
    "smallint": (-(2**15), 2**15 - 1, 0, None, 300),
    "int": (-(2**31), 2**31 - 1, 0, None, 70_000),
    "bigint": (-(2**63), 2**63 - 1, 0, None, 2**53 + 1, 2**53),
    "float": (0.0, -0.0, float("nan"), float("inf"), float("-inf"), _SINGLE, None, 1.5),
    "double": (0.0, -0.0, float("nan"), float("inf"), float("-inf"), 5e-324, 1.7e308, None, 1.5),
    "string": (
        "", "a", "it's", 'say "x"', "100%", "per%20cent", "a/b\\c", "line\nbreak\ttab", "NULL", " ", "ü", "\ud7ff", "\ue000",
        "\uffff" * 33, "\U0001f600" * 33, TOP, TOP * 40, TOP * 33 + "a", "x" * 32 + TOP + "q", "x" * 32 + "y", "y" * 5000,
        "z" * 8000, None, "a" * 33, "#+&?=:;,`$", "a\x85b", "a\u2028b", "a\u2029b", "\u2027" * 40,
    ),
    "binary": (b"", b"\x00\xff", b"\xf4\x8f\xbf\xbf", None),
    "date": (date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), None, date(2024, 2, 29), date(1582, 10, 10)),
    "timestamp": (_FIRST, NEVER, NEVER - 999, -1, 0, 1, 1_704_067_200_000_001, None, 1_704_067_200_000_999),
    "decimal(9,2)": (Decimal("9999999.99"), Decimal("-9999999.99"), Decimal("0.01"), Decimal("0.29"), None, Decimal("0.00")),
    "decimal(18,2)": (
        Decimal("9999999999999999.99"), Decimal("-9999999999999999.99"), Decimal("1234567890123456.70"),
        Decimal("1234567890123456.71"), Decimal("0.07"), None,
    ),
    "decimal(38,10)": (
        Decimal("9" * 28 + ".9999999999"), Decimal("-" + "9" * 28 + ".9999999999"), Decimal("0.0000000001"),
        Decimal("12345678901234567890.1234567891"), Decimal("12345678901234567890.1234567892"), None,
    ),
    "decimal(38,0)": (Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(0), Decimal(10) ** 37, None, Decimal(10) ** 37 + 1),
    "array<int>": ([], [1, None], None),
    "struct<x:int,y:struct<z:string>>": ({"x": 1, "y": {"z": TOP * 40}}, {"x": None, "y": None}, None),
}  # fmt: skip


def values_of(kind: str, number: int) -> Any:  # noqa: ANN401 - any value
    """Return a value of a type; numbers that follow each other go through all of them."""
    return VALUES[kind][number % len(VALUES[kind])]


def arrow_type(kind: str) -> pa.DataType:
    """Return the Arrow type of a Spark SQL type."""
    return ARROW[kind]
