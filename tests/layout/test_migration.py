"""From one layout to the next: kept keys, keys derived again, the numbers of cells, the share of old rows that remains."""

from __future__ import annotations

import random
from typing import Any

import pytest

from warehouse.layout import LayoutError, migrated, remaining_share, resolve, same_cells


def base_of(**keys: Any) -> Any:  # noqa: ANN401 - a layout
    """Return a layout of p = 24."""
    return resolve(periods=24, label="WK", **keys)


@pytest.mark.parametrize(
    ("given", "periods", "expected"),
    [
        ({}, 24, ("norebuild", 5, 4, "staggered", "blocks", 6, True)),
        ({"grid": (6, 6)}, 24, ("norebuild", 6, 6, "staggered", "blocks", 4, True)),
        ({"expiry_block": 12}, 24, ("norebuild", 5, 2, "staggered", "blocks", 12, True)),
        ({"grid": None, "seal": False}, 24, ("norebuild", 5, 4, "staggered", "blocks", 6, False)),
        ({"insertion": "round-robin"}, 24, ("norebuild", 5, 4, "round-robin", "blocks", 6, False)),
        ({"technique": "rebuild"}, 24, ("rebuild", 4, 4, "round-robin", "round-robin", 0, False)),
        ({}, 48, ("norebuild", 5, 4, "staggered", "blocks", 12, True)),
        ({}, 3, ("norebuild", 2, 3, "staggered", "blocks", 1, True)),
    ],
)
def test_what_is_not_given_stays_where_it_fits(given: dict[str, Any], periods: int, expected: tuple[Any, ...]) -> None:
    """The width of blocks follows grid and p; another technique has its own grid and assignments."""
    new = migrated(base_of(), given, periods=periods, label="WK")
    values = (new.technique, new.rows, new.columns, new.insertion, new.expiration, new.expiry_block, new.seal)
    assert values == expected
    assert (new.version, new.base, new.periods) == (1, 20, periods)


def test_cells_of_all_layouts_of_a_table_differ() -> None:
    """Each begins after the last cell of the previous layout."""
    first = base_of()
    second = migrated(first, {"grid": (2, 3)}, periods=24, label="WK")
    third = migrated(second, {"technique": "rebuild"}, periods=24, label="WK")
    assert [(layout.first_cell, layout.last_cell) for layout in (first, second, third)] == [(1, 20), (21, 26), (27, 42)]
    assert not same_cells(first, second)
    assert same_cells(first, migrated(first, {}, periods=24, label="WK"))


def test_what_cannot_be_is_refused() -> None:
    """With the problems of the completed layout."""
    with pytest.raises(LayoutError, match="expiry_block = 2"):
        migrated(base_of(), {"grid": (4, 4), "expiry_block": 2}, periods=24, label="WK")


def test_the_predicted_share_is_that_of_uniform_lifetimes() -> None:
    """(1 - j/p)^2 of the rows of steady arrivals with lifetimes uniform up to p are left after j updates."""
    chance, p, rows = random.Random(1), 40, 20_000  # noqa: S311 - rows of a test
    ends = []
    while len(ends) < rows:
        age, life = chance.uniform(0, p), chance.uniform(0, p)
        if life > age:
            ends.append(life - age)
    for j in (0, 4, 10, 20, 36):
        remaining = sum(end > j for end in ends) / rows
        assert remaining == pytest.approx(remaining_share(j, p), abs=0.015)
