"""Spark's ``xxhash64`` in Python, to check in which bucket a row of a keyed table belongs without starting Spark.

Spark hashes the values of a row one after the other, each with the previous hash as seed, from seed 42; a null does not change
the hash. It hashes the bytes of a value: 4 of integers up to ``int``, of booleans, dates and floats, 8 of ``bigint``, timestamps,
doubles and decimals up to 18 digits (their unscaled value), all little-endian, else the UTF-8 text, the bytes, or the two's
complement of a larger decimal, big-endian (Spark's ``XXH64`` and ``InterpretedHashFunction``). Arrays and structs hash their
parts in turn. XXH64 itself is Yann Collet's, by the library ``xxhash``.
"""

from __future__ import annotations

import struct
from datetime import date
from decimal import Context
from decimal import Decimal as Number
from functools import lru_cache
from typing import TYPE_CHECKING, Any, assert_never

import xxhash

from warehouse.catalog.types import Array, AtomicType, Decimal, Struct
from warehouse.time import to_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from warehouse.catalog.types import SqlType
    from warehouse.layout import Layout

__all__ = ["bucket", "buckets", "spark_xxhash64"]

_SEED = 42
_LONG_DIGITS = 18
_ORDINAL_OF_1970 = date(1970, 1, 1).toordinal()
_SIGN = 1 << 63
_EXACT = Context(prec=76)
"""More digits than any decimal has: the usual context rounds to 28."""


def bucket(values: Sequence[Any], types: Sequence[SqlType], layout: Layout) -> int:
    """Return the sub-index of a keyed row: ``base + pmod(xxhash64(values), n) + 1`` for the ``values`` of the search key."""
    return layout.base + spark_xxhash64(values, types) % layout.cells + 1


def buckets(keys: Sequence[tuple[Any, ...]], types: Sequence[SqlType], layout: Layout) -> Iterator[int]:
    """Yield the sub-indices of keyed rows, as :func:`bucket` does; a repeated key is not hashed again."""
    simple = all(isinstance(kind, Decimal | AtomicType) for kind in types)
    hashed = _hash_of(tuple(types)) if simple else lambda key: spark_xxhash64(key, types)
    return (layout.base + hashed(key) % layout.cells + 1 for key in keys)


@lru_cache(maxsize=16)
def _hash_of(types: tuple[SqlType, ...]) -> Callable[[tuple[Any, ...]], int]:
    return lru_cache(maxsize=16_384)(lambda key: spark_xxhash64(key, types))


def spark_xxhash64(values: Sequence[Any], types: Sequence[SqlType]) -> int:
    """Return ``xxhash64(values)`` of Spark as a signed 64-bit integer.

    Parameters
    ----------
    values
        Python values as DuckDB gives them: timestamps as aware datetimes, arrays as lists, structs as dictionaries.
    types
        Their Spark SQL types.

    Examples
    --------
    >>> spark_xxhash64(["Spark"], [AtomicType("string")])
    -4294468057691064905

    """
    hashed = _SEED
    for value, kind in zip(values, types, strict=True):
        hashed = _hashed(value, kind, hashed)
    return hashed - 2 * _SIGN if hashed >= _SIGN else hashed


def _hashed(value: Any, kind: SqlType, seed: int) -> int:  # noqa: ANN401 - any stored value
    if value is None:
        return seed
    match kind:
        case Array(element):
            for part in value:
                seed = _hashed(part, element, seed)
            return seed
        case Struct(fields):
            for field in fields:
                seed = _hashed(value[field.name], field.type, seed)
            return seed
        case Decimal() | AtomicType():
            return xxhash.xxh64_intdigest(_bytes(value, kind), seed)
        case _:
            assert_never(kind)


def _bytes(value: Any, kind: AtomicType | Decimal) -> bytes:  # noqa: ANN401 - any stored value
    if isinstance(kind, Decimal):
        unscaled = int(_EXACT.scaleb(Number(value), kind.scale))
        if kind.precision <= _LONG_DIGITS:
            return struct.pack("<q", unscaled)
        length = (unscaled + (unscaled < 0)).bit_length() // 8 + 1
        return unscaled.to_bytes(length, "big", signed=True)
    match kind.name:
        case "boolean" | "tinyint" | "smallint" | "int":
            return struct.pack("<i", int(value))
        case "bigint":
            return struct.pack("<q", value)
        case "date":
            return struct.pack("<i", value.toordinal() - _ORDINAL_OF_1970)
        case "timestamp":
            return struct.pack("<q", to_micros(value))
        case "float":
            return _floating("<f", "<i", 0x7FC00000, value)
        case "double":
            return _floating("<d", "<q", 0x7FF8000000000000, value)
        case "binary":
            return bytes(value)
        case _:
            return str(value).encode()


def _floating(form: str, bits: str, nan: int, value: float) -> bytes:
    """Negative zero hashes as zero, every NaN as the canonical one."""
    return struct.pack(bits, nan) if value != value else struct.pack(form, value + 0.0)  # noqa: PLR0124 - NaN is not itself
