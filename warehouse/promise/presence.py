"""Presence filters: a few bytes that say of a set of keys that a file surely has none of them.

They are split-block Bloom filters, as Parquet's: blocks of 32 bytes, of which a value has one, and in it one bit of each of eight
words; block and bits come from a 64-bit hash (parquet-format, BloomFilter.md). Invariant, for a filter of the keys K:

    holds(filter, hash_of(k))    for each k in K

Of other keys about one in 200 is held too, at :data:`_BITS` bits a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import xxhash

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["BLOCK", "bits_of", "filter_of", "hash_of", "holds"]

BLOCK = 32
"""Bytes of a block."""
_SALTS = (
    0x47B6137B,
    0x44974D91,
    0x8824AD5B,
    0xA2B7289D,
    0x705495C7,
    0x2DF1424B,
    0x9EFC4947,
    0x5C6BFB31,
)
_WORDS = len(_SALTS)
_LOW = 0xFFFFFFFF
_BITS = 12
_FEWEST_BITS = 8
"""Bits of a key below which a filter tells too little."""


def hash_of(key: tuple[Any, ...]) -> int:
    """Return the hash of a key whose parts are as summaries have them."""
    return xxhash.xxh3_64_intdigest(msgspec.msgpack.encode(key))


def filter_of(keys: Iterable[tuple[Any, ...]], number: int, most_bytes: int) -> bytes | None:
    """Return the filter of so many keys as at most so many bytes; None: they do not fit.

    >>> found = filter_of([("a",), ("b", 1)], 2, 100)
    >>> [holds(found, hash_of(key), bits_of(hash_of(key))) for key in (("a",), ("b", 1), ("c",))]
    [True, True, False]
    """
    import numpy as np  # noqa: PLC0415 - those who only read never need it

    bits = min(_BITS, 8 * most_bytes // max(number, 1))
    if bits < _FEWEST_BITS or most_bytes < BLOCK:
        return None
    blocks = max(1, min(number * bits // (8 * BLOCK), most_bytes // BLOCK))
    hashes = np.fromiter(map(hash_of, keys), np.uint64, number)
    low = hashes & np.uint64(_LOW)
    first = ((hashes >> np.uint64(32)) * np.uint64(blocks) >> np.uint64(32)) * np.uint64(_WORDS)
    words = np.zeros(blocks * _WORDS, np.uint32)
    for place, salt in enumerate(_SALTS):
        bit = (low * np.uint64(salt) & np.uint64(_LOW)) >> np.uint64(27)
        np.bitwise_or.at(words, first + np.uint64(place), np.uint32(1) << bit.astype(np.uint32))
    return words.astype("<u4").tobytes()


def holds(data: bytes, hashed: int, bits: int) -> bool:
    """Whether a filter holds a hash, of which ``bits`` are :func:`bits_of`."""
    start = ((hashed >> 32) * (len(data) // BLOCK) >> 32) * BLOCK
    return int.from_bytes(data[start : start + BLOCK], "little") & bits == bits


def bits_of(hashed: int) -> int:
    """Return the bits of a hash in its block: one in each of eight words."""
    low, block = hashed & _LOW, 0
    for index, salt in enumerate(_SALTS):
        block |= 1 << (32 * index + ((low * salt & _LOW) >> 27))
    return block
