"""Pruning against rows: no file is left out that holds a row which is wanted."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from warehouse.serving.pruning import All, KeyRange, Keys, NullKey, all_live, any_live, may_hold, prune
from warehouse.storage.snapshot import BOUND_LENGTH, Bounds, DataFile, Snapshot

texts = st.one_of(
    st.text(st.sampled_from("ab\x7fü\U0010ffff"), max_size=3),
    st.builds(lambda end: "a" * 31 + end, st.text(st.sampled_from("ab\x7fü\U0010ffff"), max_size=4)),
)
numbers = st.integers(-3, 3)
parts = st.tuples(st.none() | texts, st.none() | numbers)


def cut(values: list[Any], ending: str, *, known: bool) -> Bounds:
    """Return statistics as writers leave them: strings cut, the largest with or without a character after it."""
    present = [value for value in values if value is not None]
    nulls = len(values) - len(present)
    if not known or not present:
        return Bounds(None, None, nulls if known else None)
    low, high = min(present), max(present)
    if isinstance(low, str):
        high = high if len(high) <= BOUND_LENGTH else high[:BOUND_LENGTH] + ending
        low = low[:BOUND_LENGTH]
    return Bounds(low, high, nulls)


@st.composite
def files(draw: st.DrawFn) -> tuple[list[tuple[Any, ...]], DataFile]:
    """Draw rows, and a file record that a writer might make for them."""
    rows = draw(st.lists(parts, min_size=1, max_size=6))
    ending = draw(st.sampled_from(["", "\x7f", "\U0010ffff"]))
    has_bounds = draw(st.tuples(st.booleans() | st.just(value=True), st.booleans() | st.just(value=True)))
    bounds = {
        name: cut([row[index] for row in rows], ending, known=has_bounds[index]) for index, name in enumerate(("s", "n"))
    }
    count = draw(st.sampled_from([len(rows), None]))
    return rows, DataFile("f", 1, count, 1, 0, bounds)


def ordered(keys: set[tuple[Any, ...]]) -> Keys:
    """Return keys ascending, nulls first."""
    return Keys(tuple(sorted(keys, key=lambda key: [(part is not None, part) for part in key])))


keys = st.sets(parts | st.tuples(st.none() | texts), min_size=1, max_size=9).map(ordered)


@given(files(), keys)
@example(
    ([("a" * 40, 1)], DataFile("f", 1, 1, 1, 0, {"s": Bounds("a" * 32, "a" * 32, 0)})),
    Keys((("a" * 40,),)),
)
@example(
    ([("a" * 32 + "ü", None)], DataFile("f", 1, 1, 1, 0, {"s": Bounds("a" * 32, "a" * 32 + "\x7f", 0)})),
    Keys(tuple(("a" * 32 + end,) for end in ("q", "r", "s", "t", "ü"))),
)
def test_no_file_with_a_key_is_left_out(file: tuple[list[tuple[Any, ...]], DataFile], wanted: Keys) -> None:
    """A file that holds a row of one of the keys, whole or prefix, stays."""
    rows, data = file
    if any(row[: len(key)] == key for row in rows for key in wanted.keys):
        assert may_hold(data, ("s", "n"), wanted)


bound = st.none() | st.tuples(texts) | st.tuples(texts, numbers)


beyond_ascii = "a" * BOUND_LENGTH + "ü"


@given(files(), bound, bound)
@example(
    ([(beyond_ascii, None)], DataFile("f", 1, 1, 1, 0, {"s": Bounds("a" * BOUND_LENGTH, "a" * BOUND_LENGTH + "\x7f", 0)})),
    (beyond_ascii,),
    None,
)
def test_no_file_within_a_range_is_left_out(
    file: tuple[list[tuple[Any, ...]], DataFile], low: tuple[Any, ...] | None, high: tuple[Any, ...] | None
) -> None:
    """A file that holds a row of a half-open range stays; an end may be a prefix."""

    def within(row: tuple[Any, ...]) -> bool:
        def key(parts: tuple[Any, ...]) -> list[tuple[bool, Any]]:
            return [(part is not None, part) for part in parts]

        after = low is None or key(row[: len(low)]) >= key(low)
        return row[0] is not None and after and (high is None or key(row[: len(high)]) < key(high))

    rows, data = file
    if any(within(row) for row in rows):
        assert may_hold(data, ("s", "n"), KeyRange(low, high))


@given(files())
def test_no_file_with_a_null_key_is_left_out(file: tuple[list[tuple[Any, ...]], DataFile]) -> None:
    """A file with a null in a part of the key stays for null keys, and every file stays for all rows."""
    rows, data = file
    if any(None in row for row in rows):
        assert may_hold(data, ("s", "n"), NullKey())
    assert may_hold(data, ("s", "n"), All())


def of(**bounds: Bounds) -> DataFile:
    """Return a file of three rows with these bounds."""
    return DataFile("f", 1, 3, 1, 0, bounds)


def test_files_outside_are_left_out() -> None:
    """Pruning prunes: by bounds of each part, by nulls, by ranges on both ends."""
    data = of(s=Bounds("b", "d", 0), n=Bounds(1, 5, 0))
    two = ("s", "n")
    assert not may_hold(data, two, Keys((("a",), ("e",))))
    assert not may_hold(data, two, Keys((("c", 0), ("c", 6))))
    assert may_hold(data, two, Keys((("a",), ("c", 5))))
    assert may_hold(data, two, Keys((("dx",),)))  # d may be a prefix
    assert not may_hold(data, two, Keys(((None,), ("c", None))))
    assert not may_hold(data, two, NullKey())
    assert not may_hold(data, two, KeyRange(("e",), None))
    assert not may_hold(data, two, KeyRange(None, ("b",)))
    assert may_hold(data, two, KeyRange(None, ("b", 0)))
    assert not may_hold(of(s=Bounds(None, None, 3)), ("s",), Keys((("a",),)))
    assert not may_hold(of(s=Bounds(None, None, 3)), ("s",), KeyRange(None, ("z",)))
    assert not may_hold(of(d=Bounds(Decimal(1), Decimal(2), 0)), ("d",), Keys(((Decimal(3),),)))
    assert not may_hold(data, two, Keys(()))


def test_expiry_counts_by_slots_only() -> None:
    """Only max(_exp_slot) at or before the slot proves a file dead; only min(_exp_slot) after it proves it live.

    slots   3   4   5
    file    [-------]     dead at 5, live at 2
    """
    data = of(_exp_slot=Bounds(3, 5, 0), _exp=Bounds(0, 0, 0))
    assert [any_live(data, slot) for slot in (2, 4, 5)] == [True, True, False]
    assert [all_live(data, slot) for slot in (2, 3)] == [True, False]
    assert any_live(of(), 10**9)
    assert not all_live(of(), -(10**9))


def test_every_file_is_accounted_for() -> None:
    """Considered files are expired, out of bounds, or kept."""
    live_file = of(k=Bounds(1, 2, 0), _exp_slot=Bounds(9, 9, 0))
    snapshot = Snapshot("id", 0, (live_file, of(_exp_slot=Bounds(1, 1, 0)), of(k=Bounds(7, 8, 0))))
    pruned = prune(snapshot, ("k",), Keys(((1,),)), 3)
    assert (pruned.files, pruned.considered, pruned.expired, pruned.out_of_bounds) == ((live_file,), 3, 1, 1)
