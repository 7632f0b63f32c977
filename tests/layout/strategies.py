"""Layouts of every kind for Hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from hypothesis import strategies as st

from warehouse.layout import Layout

if TYPE_CHECKING:
    from warehouse.layout import Expiration, Insertion

Axis = Literal["round-robin", "chronological", "permuted"]
AXES: tuple[Axis, ...] = ("round-robin", "chronological", "permuted")
INSERTIONS: tuple[Insertion, ...] = (*AXES, "staggered")
EXPIRATIONS: tuple[Expiration, ...] = (*AXES, "blocks")


@st.composite
def rebuilt(draw: st.DrawFn) -> Layout:
    """Any layout whose sub-indices are rewritten."""
    periods = draw(st.integers(1, 20))
    side = st.integers(1, periods)
    return Layout(
        technique="rebuild",
        rows=draw(side),
        columns=draw(side),
        insertion=draw(st.sampled_from(AXES)),
        expiration=draw(st.sampled_from(AXES)),
        periods=periods,
        expiry_block=0,
        seal=False,
        seed=draw(st.integers(-3, 3)),
        base=draw(st.sampled_from([0, 7])),
    )


@st.composite
def appended(draw: st.DrawFn, *, plain: bool = True, seal: bool | None = None) -> Layout:
    """Any layout that appends runs; with `plain=False` only staggered rows of block columns."""
    periods = draw(st.integers(1, 20))
    rows, columns = draw(st.integers(1, periods)), draw(st.integers(1, periods))
    insertion: Insertion = draw(st.sampled_from(INSERTIONS)) if plain else "staggered"
    expiration: Expiration = draw(st.sampled_from(EXPIRATIONS)) if plain else "blocks"
    least = -(-periods // columns) if expiration == "blocks" and columns > 1 else 1
    can_seal = (insertion, expiration) == ("staggered", "blocks")
    return Layout(
        technique="norebuild",
        rows=rows,
        columns=columns,
        insertion=insertion,
        expiration=expiration,
        periods=periods,
        expiry_block=draw(st.integers(least, periods)),
        seal=can_seal and (draw(st.booleans()) if seal is None else seal),
        seed=draw(st.integers(-3, 3)),
        base=draw(st.sampled_from([0, 7])),
    )


def layouts() -> st.SearchStrategy[Layout]:
    """Any layout."""
    return rebuilt() | appended()


def plain(rows: int, columns: int, assignment: Axis, periods: int, seed: int = 0) -> Layout:
    """A rewritten grid with one assignment on both axes, as in the sheet."""
    return Layout("rebuild", rows, columns, assignment, assignment, periods, expiry_block=0, seal=False, seed=seed)
