"""The filter of a file's keys holds each of them, few others, and no more bytes than it may have."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from warehouse.promise.presence import bits_of, filter_of, hash_of, hashes_of, holds

PARTS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5)


def held(data: bytes, key: tuple[object, ...]) -> bool:
    """Whether a filter holds a key."""
    hashed = hash_of(key)
    return holds(data, hashed, bits_of(hashed))


@given(st.sets(st.tuples(PARTS, PARTS), max_size=200), st.integers(0, 400))
def test_each_key_is_held_in_few_bytes(keys: set[tuple[object, ...]], most: int) -> None:
    """Whatever the keys are; a filter that cannot have a byte a key is none."""
    found = filter_of([[key[place] for key in keys] for place in (0, 1)], most)
    assert (found is None) == (most < max(32, len(keys)))
    if found is not None:
        assert len(found) <= most
        assert all(held(found, key) for key in keys)


def test_few_other_keys_are_held() -> None:
    """One in 200 with room for it, one in 30 in a byte a key."""
    keys = [(f"{number * 7919:016x}",) for number in range(5000)]
    others = [(f"other-{number}",) for number in range(20_000)]
    for most, share in ((100_000, 0.01), (5_000, 0.05)):
        found = filter_of([[key for (key,) in keys]], most)
        assert found is not None
        assert sum(held(found, key) for key in others) < share * len(others)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), PARTS), max_size=50))
def test_arrays_are_hashed_as_their_numbers(keys: list[tuple[int, object]]) -> None:
    """One key, keys in lists, and integers as an array: the same hash."""
    numbers, others = [number for number, _ in keys], [other for _, other in keys]
    expected = [hash_of(key) for key in keys]
    assert hashes_of([numbers, others]).tolist() == expected
    assert hashes_of([np.array(numbers, np.int64), others]).tolist() == expected


def test_integers_spread_over_the_hashes() -> None:
    """Also where they are multiples of large powers of two, and where two parts change places."""
    numbers = np.arange(1 << 14, dtype=np.int64) << 40
    assert len(np.unique(hashes_of([numbers]) >> np.uint64(50))) > 10_000, "as many as random numbers have"
    assert hash_of((1, 2)) != hash_of((2, 1))
