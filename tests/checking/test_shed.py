"""The finding of the check for a ledger that does not match the rows."""

from __future__ import annotations

import pytest

from warehouse.checking.shed import entry_fault

RUN = {"stamps": [0, 4, 6, 9], "shed": [4], "until": 13}


@pytest.mark.parametrize(
    ("entry", "rows", "found"),
    [
        ({}, [([0], 4), ([6, 9], 13)], ""),
        ({"shed": [0, 9]}, [([4, 6], 9)], ""),
        ({"shed": [0, 4, 6, 9]}, [], ""),
        ({}, [([0], 6), ([6, 9], 13)], "2 microseconds were shed of 13, and 13 are kept"),
        ({}, [([0], 4), ([6], 13)], "4 members are not 2 kept and 1 shed ones"),
        ({}, [([0, 4], 6), ([6, 9], 13)], "4 members are not 4 kept and 1 shed ones"),
        ({"shed": [5]}, [([0, 4, 6, 9], 13)], "its members are not in order, or none of them was shed"),
        ({"stamps": [4, 0, 6, 9]}, [], "its members are not in order, or none of them was shed"),
    ],
)
def test_members_and_lengths_add_up(entry: dict[str, object], rows: list[tuple[list[int], int]], found: str) -> None:
    """In an exact run, kept and shed members are all members, and holes are as long as the shed members."""
    assert entry_fault({**RUN, **entry}, rows) == found
