from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.layout.assignment import permutation, permuted


def test_vectors_of_the_sheet() -> None:
    """Seed 0 and 4 parts give the permutations of doubly-partitioned-index sheet, section 7."""
    for tag, expected in (("ins", ("1302", "0213", "2103", "2031")), ("exp", ("1203", "1320", "0321", "2310"))):
        tagged = "ins" if tag == "ins" else "exp"
        digits = tuple("".join(map(str, permutation(0, tagged, cycle, 4))) for cycle in range(4))
        assert digits == expected


@settings(max_examples=50)
@given(seed=st.integers(-5, 5), cycle=st.integers(-9, 9), size=st.integers(1, 9))
def test_each_cycle_uses_each_part_once(seed: int, cycle: int, size: int) -> None:
    """The slots of one cycle go to all parts, also before slot 1."""
    first = cycle * size + 1
    assert sorted(permuted(seed, "ins", slot, size) for slot in range(first, first + size)) == list(range(size))
