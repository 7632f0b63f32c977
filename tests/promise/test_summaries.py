"""Key summaries: linear, one-sided, small, and never taken for what they are not."""

from __future__ import annotations

from collections import Counter
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.promise.summaries import KeySummary, decode, encode, join_bounds, most_frequent, stored_part, total

PARTS = st.one_of(st.none(), st.text(max_size=4), st.integers(-(2**63), 2**63 - 1), st.booleans())
KEYS = st.one_of(
    st.lists(st.tuples(st.one_of(st.none(), st.integers(-5, 5))), max_size=40),
    st.lists(st.tuples(st.sampled_from(["a", "b", "ü", ""]), st.integers(-(2**63), 2**63 - 1)), max_size=40),
)


def summary_of(keys: list[tuple[Any, ...]]) -> KeySummary:
    """Return the exact summary of rows with these keys."""
    return KeySummary(len(keys), dict(Counter(keys)))


def encoded(summary: KeySummary, most: int = 1 << 20) -> bytes | None:
    """Return a summary's bytes; keys stand in any order."""
    columns = [list(column) for column in zip(*summary.counts, strict=True)]
    return encode(summary.rows, columns, list(summary.counts.values()), most)


def cut(summary: KeySummary, keys: int) -> KeySummary:
    """Return a summary with only its most frequent keys."""
    frequent_keys, counts = [*summary.counts], [*summary.counts.values()]
    return KeySummary(summary.rows, {frequent_keys[position]: counts[position] for position in most_frequent(counts, keys)})


@given(KEYS)
def test_bytes_give_the_summary_back(keys: list[tuple[Any, ...]]) -> None:
    """What was encoded whole is decoded as it was."""
    content = encoded(summary_of(keys))
    assert content is not None
    assert decode(content) == summary_of(keys)


@given(st.lists(st.tuples(st.integers(0, 30)), min_size=1, max_size=200), st.integers(0, 120))
def test_fewer_bytes_hold_the_most_frequent_keys_and_the_rest(keys: list[tuple[int]], most: int) -> None:
    """A summary that does not fit keeps its most frequent keys with exact counts, and bounds every other key."""
    whole = summary_of(keys)
    content = encoded(whole, most)
    if content is None:
        return
    assert len(content) <= most
    decoded = decode(content)
    assert decoded is not None
    assert decoded.rows == len(keys)
    for key in {*whole.counts, (77,)}:
        low, high = decoded.between(key)
        assert low <= whole.counts.get(key, 0) <= high
    left_out = max((count for key, count in whole.counts.items() if key not in decoded.counts), default=0)
    assert all(count >= left_out for count in decoded.counts.values())


@given(st.lists(st.lists(st.tuples(st.integers(0, 5)), max_size=20), max_size=5), st.integers(0, 3))
def test_summaries_are_linear(files: list[list[tuple[int]]], keys: int) -> None:
    """The sum over files is the summary of all their rows; without one file it is the summary of the others."""
    parts = [summary_of(rows) for rows in files]
    assert total(parts) == summary_of([row for rows in files for row in rows])
    for part in parts:
        assert total(parts) - part + part == total(parts)
    combined = total(cut(part, keys) for part in parts)
    for key in [(number,) for number in range(6)]:
        low, high = combined.between(key)
        assert low <= sum(row == key for rows in files for row in rows) <= high


@given(st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 4))), max_size=20), KEYS, st.integers(0, 4))
def test_join_sizes_are_within_their_bounds(left: list[tuple[Any]], right: list[tuple[Any, ...]], keys: int) -> None:
    """However few keys are listed, the pairs of rows with the same key, null joining nothing, are within the bounds."""
    pairs = sum(a == b and None not in a for a in left for b in right)
    assert join_bounds(summary_of(left), summary_of(right)) == (pairs, pairs)
    low, high = join_bounds(cut(summary_of(left), keys), cut(summary_of(right), keys))
    assert low <= pairs <= high


def test_a_prefix_counts_all_keys_that_begin_so() -> None:
    """Of a composite key the first parts suffice."""
    summary = KeySummary(9, {("a", 1): 4, ("a", 2): 3, ("b", 1): 2})
    assert summary.between(("a",)) == (7, 7)
    assert summary.between(("c",)) == (0, 0)


@pytest.mark.parametrize("place", range(0, 60, 3))
def test_changed_bytes_are_no_summary(place: int) -> None:
    """A file that a disk has changed or cut tells nothing."""
    content = encoded(summary_of([("a", 1), ("b", 2)] * 9))
    assert content is not None
    at = place % len(content)
    assert decode(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]) is None
    assert decode(content[:at]) is None


@given(st.dictionaries(st.tuples(PARTS), st.integers(1, 9), max_size=9))
def test_any_key_is_stored(counts: dict[tuple[Any], int]) -> None:
    """Nulls, texts, numbers of 64 bits and truth values are keys."""
    one_type = {key: count for key, count in counts.items() if type(key[0]) in (type(None), str)}
    summary = KeySummary(sum(one_type.values()), one_type)
    assert decode(encoded(summary) or b"") == summary


def test_parts_are_stored_as_the_column_has_them() -> None:
    """A date is a number of days, a decimal its digits; a reader's key and a file's are the same then."""
    assert stored_part(date(1969, 12, 31)) == -1
    assert stored_part(Decimal("-0.10")) == "-0.1"
    assert [stored_part(Decimal(text)) for text in ("100", "1E+2", "-0.00", "100.000")] == [100, 100, 0, 100]
    assert stored_part(Decimal(2**63 - 1)) == 2**63 - 1
    assert stored_part(Decimal(2**63)) == str(2**63)
    assert stored_part(Decimal("12345678901234567890123456789012345.678")) == "12345678901234567890123456789012345.678"
    assert stored_part(7) == 7
    assert [stored_part(part) for part in (True, None)] == [True, None]
