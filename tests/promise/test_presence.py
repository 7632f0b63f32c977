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
    """The filter has every key, whatever the keys are; without one byte for each key there is no filter."""
    key_filter = filter_of([[key[index] for key in keys] for index in (0, 1)], most)
    assert (key_filter is None) == (most < max(32, len(keys)))
    if key_filter is not None:
        assert len(key_filter) <= most
        assert all(held(key_filter, key) for key in keys)


def test_few_other_keys_are_held() -> None:
    """About one in 200 other keys passes a roomy filter, one in 30 a filter of one byte for each key."""
    keys = [(f"{number * 7919:016x}",) for number in range(5000)]
    other_keys = [(f"other-{number}",) for number in range(20_000)]
    for most, share in ((100_000, 0.01), (5_000, 0.05)):
        key_filter = filter_of([[key for (key,) in keys]], most)
        assert key_filter is not None
        assert sum(held(key_filter, key) for key in other_keys) < share * len(other_keys)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), PARTS), max_size=50))
def test_arrays_are_hashed_as_their_numbers(keys: list[tuple[int, object]]) -> None:
    """One key, keys in lists and integers in an array have the same hash."""
    numbers, parts = [number for number, _ in keys], [part for _, part in keys]
    expected = [hash_of(key) for key in keys]
    assert hashes_of([numbers, parts]).tolist() == expected
    assert hashes_of([np.array(numbers, np.int64), parts]).tolist() == expected


def test_integers_spread_over_the_hashes() -> None:
    """Also where they are multiples of large powers of two, and where two parts change places."""
    numbers = np.arange(1 << 14, dtype=np.int64) << 40
    assert len(np.unique(hashes_of([numbers]) >> np.uint64(50))) > 10_000, "as many as random numbers have"
    assert hash_of((1, 2)) != hash_of((2, 1))
