"""The filter of a file's keys holds each of them, few others, and no more bytes than it may have."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from warehouse.promise.presence import bits_of, filter_of, hash_of, holds

PARTS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5)


def held(data: bytes, key: tuple[object, ...]) -> bool:
    """Whether a filter holds a key."""
    hashed = hash_of(key)
    return holds(data, hashed, bits_of(hashed))


@given(st.sets(st.tuples(PARTS, PARTS), max_size=200), st.integers(0, 400))
def test_each_key_is_held_in_few_bytes(keys: set[tuple[object, ...]], most: int) -> None:
    """Whatever the keys are; a filter that cannot have a byte a key is none."""
    found = filter_of(keys, len(keys), most)
    assert (found is None) == (most < max(32, len(keys)))
    if found is not None:
        assert len(found) <= most
        assert all(held(found, key) for key in keys)


def test_few_other_keys_are_held() -> None:
    """One in 200 with room for it, one in 30 in a byte a key."""
    keys = [(f"{number * 7919:016x}",) for number in range(5000)]
    others = [(f"other-{number}",) for number in range(20_000)]
    for most, share in ((100_000, 0.01), (5_000, 0.05)):
        found = filter_of(keys, len(keys), most)
        assert found is not None
        assert sum(held(found, key) for key in others) < share * len(others)
