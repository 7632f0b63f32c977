from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import pytest

from warehouse.layout import Layout, LayoutError, resolve
from warehouse.layout.resolution import _rounded_root

if TYPE_CHECKING:
    from warehouse.layout import Label, Technique


def shape(layout: Layout) -> tuple[int, int, int]:
    """G, E and w of a layout."""
    return layout.rows, layout.columns, layout.expiry_block


@pytest.mark.parametrize(
    ("periods", "expected"),
    [
        (1, (1, 1, 1)),
        (2, (1, 2, 1)),
        (3, (2, 3, 1)),
        (8, (3, 4, 2)),
        (24, (5, 4, 6)),
        (36, (6, 4, 9)),
        (144, (12, 4, 36)),
    ],
)
def test_default_of_windows(periods: int, expected: tuple[int, int, int]) -> None:
    """By default runs are appended and sealed: G = round(sqrt(p)), E = min(4, p), w = ceil(p/E), staggered blocks."""
    layout = resolve(periods=periods, label="WK")
    assert shape(layout) == expected
    assert (layout.technique, layout.insertion, layout.expiration, layout.seal) == (
        "norebuild",
        "staggered",
        "blocks",
        True,
    )


@pytest.mark.parametrize(("periods", "side"), [(1, 1), (2, 1), (3, 1), (4, 2), (6, 3), (8, 4), (36, 4)])
def test_default_of_rebuild(periods: int, side: int) -> None:
    """Rewritten windows are square, with at least two slots in a part, round-robin, unsealed and without blocks."""
    layout = resolve(periods=periods, label="WK", technique="rebuild")
    assert shape(layout) == (side, side, 0)
    assert (layout.insertion, layout.expiration, layout.seal) == ("round-robin", "round-robin", False)


@pytest.mark.parametrize("label", ["WKS", "MON", "STR"])
@pytest.mark.parametrize(("technique", "width"), [("norebuild", 6), ("rebuild", 0)])
def test_default_of_other_labels(label: Label, technique: Technique, width: int) -> None:
    """Rows that leave in the order of their arrival need one column, whose blocks are as wide as its rows."""
    assert shape(resolve(periods=24, label=label, technique=technique)) == (4, 1, width)
    assert shape(resolve(periods=3, label=label, technique=technique)) == (3, 1, min(1, width))


def test_declared_width_sets_the_columns() -> None:
    """An expiry block declared without a grid leaves as many columns as the window needs."""
    assert shape(resolve(periods=24, label="WK", expiry_block=5)) == (5, 5, 5)
    assert shape(resolve(periods=24, label="WK", expiry_block=24)) == (5, 1, 24)
    assert shape(resolve(periods=24, label="MON", expiry_block=5)) == (4, 1, 5)


def test_declared_grid_sets_the_width() -> None:
    """A grid declared without an expiry block has blocks as wide as needed, one column as wide as its rows."""
    assert shape(resolve(periods=24, label="WK", grid=(2, 7))) == (2, 7, 4)
    assert shape(resolve(periods=24, label="WK", grid=(5, 1))) == (5, 1, 5)


def test_assignments_that_cannot_be_sealed_are_not() -> None:
    """Declaring another assignment turns sealing off without having to say so."""
    assert not resolve(periods=24, label="WK", insertion="round-robin").seal
    assert not resolve(periods=24, label="WK", expiration="chronological").seal
    assert not resolve(periods=24, label="WK", seal=False).seal


def test_what_is_declared_stands() -> None:
    """A complete declaration is the layout, also when it repeats the values of a stored layout."""
    for technique in ("norebuild", "rebuild"):
        stored = resolve(
            periods=24, label="WK", technique="norebuild" if technique == "norebuild" else "rebuild", seed=3
        )
        repeated = resolve(
            periods=stored.periods,
            label="MON",
            technique=stored.technique,
            grid=(stored.rows, stored.columns),
            insertion=stored.insertion,
            expiration=stored.expiration,
            expiry_block=stored.expiry_block,
            seal=stored.seal,
            seed=stored.seed,
        )
        assert repeated == stored


def test_all_problems_are_listed_at_once() -> None:
    """One error names every wrong key; no fault hides another."""
    with pytest.raises(LayoutError) as caught:
        resolve(periods=8, label="WK", grid=(9, 0), expiry_block=12, insertion="round-robin", seal=True)
    assert [problem.key for problem in caught.value.problems] == ["grid", "grid", "expiry_block", "seal"]
    assert [problem.found for problem in caught.value.problems] == ["[9, 0]", "[9, 0]", "12", "true"]
    assert str(caught.value).count("Allowed:") == 4


def test_rebuild_takes_nothing_of_appending() -> None:
    """Staggered rows, block columns, expiry blocks and seals are errors with rebuild."""
    with pytest.raises(LayoutError) as caught:
        resolve(
            periods=8,
            label="WK",
            technique="rebuild",
            insertion="staggered",
            expiration="blocks",
            expiry_block=2,
            seal=True,
        )
    assert [problem.key for problem in caught.value.problems] == ["insertion", "expiration", "expiry_block", "seal"]


@pytest.mark.parametrize("width", [0, -1, 25])
def test_width_of_a_block(width: int) -> None:
    """An expiry block has 1 to p slots."""
    with pytest.raises(LayoutError, match="Allowed: 1 to 24"):
        resolve(periods=24, label="WK", expiry_block=width)


def test_blocks_span_the_window() -> None:
    """Block columns times width cover p; one column, and columns that are not blocks, need not."""
    with pytest.raises(LayoutError, match=r"w \* E = 20 is below p = 24.*Allowed: 6 or more with 4 columns"):
        resolve(periods=24, label="WK", grid=(5, 4), expiry_block=5)
    assert shape(resolve(periods=24, label="WK", grid=(5, 1), expiry_block=2)) == (5, 1, 2)
    assert shape(resolve(periods=24, label="WK", grid=(5, 4), expiration="round-robin", expiry_block=1)) == (5, 4, 1)


def test_windows_and_numbers_that_cannot_be() -> None:
    """A window has at least one slot; cells and versions are counted up from zero."""
    with pytest.raises(LayoutError) as caught:
        resolve(periods=0, label="WK", base=-1, version=-1)
    assert {problem.key for problem in caught.value.problems} == {"periods", "base", "version"}


def test_unknown_words() -> None:
    """A misspelt assignment is listed with the words that exist."""
    with pytest.raises(LayoutError, match=r'insertion = "stagered".*Allowed: round-robin \| chronological'):
        resolve(periods=8, label="WK", insertion="stagered")  # type: ignore[arg-type]


def test_rounding_of_roots() -> None:
    """The integer rounding of a root is Python's round of the float root; a tie cannot occur."""
    assert [_rounded_root(number) for number in range(2000)] == [round(sqrt(number)) for number in range(2000)]
