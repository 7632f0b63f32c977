"""Presence filters: a few bytes that can prove that a file has no key of a set.

They are split-block Bloom filters, as Parquet's: each value sets one bit of each of the eight words of one block of 32 bytes.
Block and bits come from a 64-bit hash (parquet-format, BloomFilter.md). Invariant, for a filter of the keys K:

    holds(filter, hash_of(k))    for each k in K

The filter also holds about one in 200 of other keys, at :data:`_BITS_PER_KEY` bits per key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import xxhash

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Parts = Sequence[Any] | NDArray[np.int64]

__all__ = ["BLOCK", "bits_of", "filter_of", "filter_of_blocks", "hash_of", "hashes_of", "holds"]

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
_LOW_32 = 0xFFFFFFFF
_LOW_64 = 0xFFFFFFFFFFFFFFFF
_GOLDEN = 0x9E3779B97F4A7C15
_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31
_CONSTANTS = {None: 0x2545F4914F6CDD1D, False: 0x9E6C63D0676A9A99, True: 0xD1342543DE82EF95}
"""The hashes of parts that are neither integers nor text."""
_BITS_PER_KEY = 12
_MIN_BITS_PER_KEY = 8
"""With fewer bits per key a filter excludes too few files."""


def hash_of(key: tuple[Any, ...]) -> int:
    """Return the hash of one key, as :func:`hashes_of` does; its parts are as summaries store them."""
    hashed = 0
    for part in key:
        hashed = _mix((hashed + _part_hash(part)) & _LOW_64)
    return hashed


def filter_of(columns: Sequence[Parts], most_bytes: int) -> bytes | None:
    """Return the filter of keys within a number of bytes; None: they do not fit.

    Parameters
    ----------
    columns
        The parts of the keys, a list for each column of the search key; 64-bit integers may be an array.
    most_bytes
        The greatest length of the filter, in bytes.

    Examples
    --------
    >>> data = filter_of([["a", "b"], [0, 1]], 100)
    >>> [holds(data, hash_of(key), bits_of(hash_of(key))) for key in (("a", 0), ("b", 1), ("b", 2))]
    [True, True, False]

    """
    number = len(columns[0])
    bits = min(_BITS_PER_KEY, 8 * most_bytes // max(number, 1))
    if bits < _MIN_BITS_PER_KEY or most_bytes < BLOCK:
        return None
    return filter_of_blocks(columns, max(1, min(number * bits // (8 * BLOCK), most_bytes // BLOCK)))


def filter_of_blocks(columns: Sequence[Parts], blocks: int) -> bytes:
    """Return the filter of keys with a number of blocks; columns as for :func:`filter_of`."""
    import numpy as np  # noqa: PLC0415 - reading does not need it

    hashes = hashes_of(columns)
    low = hashes & np.uint64(_LOW_32)
    first = ((hashes >> np.uint64(32)) * np.uint64(blocks) >> np.uint64(32)) * np.uint64(_WORDS)
    words = np.zeros(blocks * _WORDS, np.uint32)
    for index, salt in enumerate(_SALTS):
        bit = (low * np.uint64(salt) & np.uint64(_LOW_32)) >> np.uint64(27)
        np.bitwise_or.at(words, first + np.uint64(index), np.uint32(1) << bit.astype(np.uint32))
    return words.astype("<u4").tobytes()


def hashes_of(columns: Sequence[Parts]) -> NDArray[np.uint64]:
    """Return the hash of each key; integers are hashed as an array, since an update hashes each key that it writes."""
    import numpy as np  # noqa: PLC0415 - as above

    hashes = np.zeros(len(columns[0]), np.uint64)
    with np.errstate(over="ignore"):
        for parts in columns:
            if isinstance(parts, np.ndarray):
                part_hashes = _mix_array(parts.astype(np.int64).view(np.uint64))
            else:
                part_hashes = np.fromiter(map(_part_hash, parts), np.uint64, len(parts))
            hashes = _mix_array(hashes + part_hashes)
    return hashes


def _part_hash(part: Any) -> int:  # noqa: ANN401 - any part of a key
    match part:
        case str():
            return xxhash.xxh3_64_intdigest(part.encode())
        case bool() | None:
            return _CONSTANTS[part]
        case _:
            return _mix(part & _LOW_64)


def _mix(number: int) -> int:
    """Return a mixed number.

    It is the finalizer of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
    """
    number = (number + _GOLDEN) & _LOW_64
    for shift, factor in _ROUNDS:
        number = ((number ^ (number >> shift)) * factor) & _LOW_64
    return number ^ (number >> _LAST_SHIFT)


def _mix_array(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return :func:`_mix` of each number."""
    import numpy as np  # noqa: PLC0415 - as above

    numbers = numbers + np.uint64(_GOLDEN)
    for shift, factor in _ROUNDS:
        numbers = (numbers ^ (numbers >> np.uint64(shift))) * np.uint64(factor)
    return numbers ^ (numbers >> np.uint64(_LAST_SHIFT))


def holds(data: bytes, hashed: int, bits: int) -> bool:
    """Whether a filter holds a hash; ``bits`` is :func:`bits_of` of the hash."""
    start = ((hashed >> 32) * (len(data) // BLOCK) >> 32) * BLOCK
    return int.from_bytes(data[start : start + BLOCK], "little") & bits == bits


def bits_of(hashed: int) -> int:
    """Return the bits of a hash in its block: one in each of eight words."""
    low, block = hashed & _LOW_32, 0
    for index, salt in enumerate(_SALTS):
        block |= 1 << (32 * index + ((low * salt & _LOW_32) >> 27))
    return block
