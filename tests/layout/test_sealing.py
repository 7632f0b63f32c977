from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warehouse.layout import (
    OVERFLOW_BLOCK,
    Layout,
    Seal,
    closing_cells,
    exp_block,
    expired_below,
    resolve,
    row,
    sealable,
    seals,
    sub_index,
)
from warehouse.layout.assignment import stagger

from .sealing_model import figures
from .strategies import AXES, appended, plain


def test_rows_close_in_turn() -> None:
    """Staggered columns close their rows at different slots, so that an update seals about one sub-index.

    p = 24, 5 x 4, F = 5; `|` ends a row after load slots 1..10:

        e=0   ..... | ..... |
        e=1   .... | ..... | .
        e=2   ... | ..... | ..
        e=3   .. | ..... | ...
    """
    layout = resolve(periods=24, label="WK")
    assert [closing_cells(layout, j - 1, j) for j in range(1, 11)] == [
        (),
        (4,),
        (3,),
        (2,),
        (1,),
        (),
        (8,),
        (7,),
        (6,),
        (5,),
    ]


@settings(max_examples=200)
@given(layout=appended(plain=False), k0=st.integers(-60, 60), slots=st.integers(-1, 70))
def test_closing_cells_are_those_of_the_slots(layout: Layout, k0: int, slots: int) -> None:
    """A cell closes iff its row closes at a slot of the range and no later slot of the range maps to it again."""
    k = k0 + slots
    expected = set()
    for e in range(layout.columns):
        for j in range(k0 + 1, k + 1):
            g = row(layout, j, e)
            closes = (j + stagger(layout, e)) % layout.rows_span == 0
            if closes and all(row(layout, later, e) != g for later in range(j + 1, k + 1)):
                expected.add(layout.base + g * layout.columns + e + 1)
    assert closing_cells(layout, k0, k) == tuple(sorted(expected))


@settings(max_examples=100)
@given(layout=appended(), number=st.integers(-9, 9))
def test_every_cell_closes_once_in_a_cycle(layout: Layout, number: int) -> None:
    """In one cycle, slot by slot, each cell closes exactly once with every assignment, so that overflow is seen."""
    cycle = layout.periods if layout.insertion == "chronological" else layout.rows * layout.rows_span
    k0 = number * cycle
    closed = Counter(cell for j in range(k0 + 1, k0 + cycle + 1) for cell in closing_cells(layout, j - 1, j))
    assert closed == dict.fromkeys(range(layout.first_cell, layout.last_cell + 1), 1)


def test_huge_ranges_are_fast() -> None:
    """Catching up a trillion slots costs no more than a cycle: all cells close except the cells that are opened again."""
    layout = resolve(periods=24, label="WK")
    assert closing_cells(layout, 3, 10**12) == closing_cells(layout, 10**12 - 25, 10**12)
    assert len(closing_cells(layout, 3, 10**12)) == 17
    for insertion in AXES:
        other = resolve(periods=24, label="WK", insertion=insertion)
        assert closing_cells(other, 3, 10**12) == closing_cells(other, 10**12 - 50, 10**12)


def test_rewritten_grids_never_seal() -> None:
    """With rebuild nothing closes and nothing is sealable."""
    layout = plain(4, 4, "round-robin", 36)
    assert closing_cells(layout, 0, 36) == ()
    assert not sealable(layout, 0, 36)
    assert seals(layout, 0, 36, {(1, 0): 5}) == ()


def test_sealable_blocks() -> None:
    """A block is worth sealing while it lives for more than F further slots; overflow blocks always are."""
    layout = resolve(periods=24, label="WK")  # w = 6, F = 5
    assert [block for block in range(10) if sealable(layout, block, 24)] == [4, 5, 6, 7, 8, 9]
    assert [block for block in range(10) if sealable(layout, block, 25)] == [5, 6, 7, 8, 9]
    assert sealable(layout, OVERFLOW_BLOCK, 10**6)
    assert sealable(layout, OVERFLOW_BLOCK + 1, 10**6)
    unsealed = replace(layout, seal=False)
    assert [block for block in (3, 9, OVERFLOW_BLOCK, OVERFLOW_BLOCK + 1) if sealable(unsealed, block, 24)] == [
        OVERFLOW_BLOCK
    ]


def test_seals_list_existing_partitions() -> None:
    """Seals name the closing sub-indices with every sealable block that has runs, whatever the batch will add."""
    layout = resolve(periods=24, label="WK")
    runs = {(1, 3): 2, (1, 4): 1, (1, 8): 0, (1, OVERFLOW_BLOCK): 1, (5, 4): 3, (999, 4): 2}
    assert seals(layout, 24, 25, runs) == ()
    assert seals(layout, 29, 30, runs) == (Seal(1, ((OVERFLOW_BLOCK, 1),)),)
    assert seals(layout, 4, 5, runs) == (Seal(1, ((3, 2), (4, 1), (OVERFLOW_BLOCK, 1))),)


def test_a_first_build_seals_nothing() -> None:
    """At the first build k0 = k - p and no partition exists: rows close, but each partition is one run already."""
    layout = resolve(periods=24, label="WK")
    assert len(closing_cells(layout, 0, 24)) == 17
    assert seals(layout, 0, 24, {}) == ()


@dataclass
class Loaded:
    """A row of the simulation and how often it has been rewritten."""

    a: int
    b: int
    never: bool
    rewritten: int = 0


def simulate(layout: Layout, random: Random, updates: int) -> list[Loaded]:
    """Move a table of random rows through updates of random length, late and overflowing rows included.

    After every update the live rows are the rows of a plain list, and no removed row was live.
    """
    table: dict[tuple[int, int], list[list[Loaded]]] = {}
    everything: list[Loaded] = []
    k = random.randrange(3 * layout.periods)
    k0 = k - layout.periods
    for _ in range(updates):
        batch: dict[tuple[int, int], list[Loaded]] = defaultdict(list)
        for _ in range(random.randrange(12)):
            arrival = random.randint(k0 - layout.periods, k)  # before k0 + 1: late
            a = min(max(arrival, k0 + 1), k)
            kind = random.random()
            never = kind > 0.95
            lifetime = random.randint(1, layout.periods) + (3 * layout.periods if kind < 0.05 else 0)
            if never or arrival + lifetime > k:
                new = Loaded(a, arrival + lifetime, never)
                everything.append(new)
                partition = (sub_index(layout, a, new.b, never=never), exp_block(layout, a, new.b, never=never))
                batch[partition].append(new)
        for seal in seals(layout, k0, k, {at: len(runs) for at, runs in table.items()}):
            for block, runs in seal.blocks:
                at = (seal.sub_index, block)
                if runs + (at in batch) < 2:
                    continue
                remaining = [loaded for run in table[at] for loaded in run if loaded.never or loaded.b > k]
                for sealed in remaining:
                    sealed.rewritten += 1
                table[at] = [remaining + batch.pop(at, [])]
        for at, run in batch.items():
            table.setdefault(at, []).append(run)
        table = {at: runs for at, runs in table.items() if at[1] >= expired_below(layout, k)}
        stored = {id(loaded) for runs in table.values() for run in runs for loaded in run if loaded.never or loaded.b > k}
        assert stored == {id(stored_row) for stored_row in everything if stored_row.never or stored_row.b > k}
        step = random.choice([*[1] * 8, 2, layout.rows_span, layout.periods, 3 * layout.periods])
        k0, k = k, k + step
    return everything


@settings(max_examples=120)
@given(layout=appended(plain=False, seal=True), seed=st.integers(0, 10**6))
def test_rows_are_rewritten_at_most_once(layout: Layout, seed: int) -> None:
    """Rows with lifetimes up to S, and rows that never expire, are rewritten at most once, late or caught up."""
    for loaded in simulate(layout, Random(seed), updates=25):  # noqa: S311 - a simulation
        overflows = not loaded.never and loaded.b > loaded.a + layout.periods
        assert loaded.rewritten <= 1 or overflows or (loaded.never and loaded.a < 1)


def test_sealing_happens() -> None:
    """In the simulation of a default layout rows within the window are rewritten, and no row twice."""
    loaded = simulate(resolve(periods=12, label="WK"), Random(1), updates=300)  # noqa: S311 - a simulation
    times = Counter(loaded_row.rewritten for loaded_row in loaded if not loaded_row.never and loaded_row.b <= loaded_row.a + 12)
    assert set(times) == {0, 1}
    assert times[1] > 50


@settings(max_examples=40)
@given(layout=appended(), seed=st.integers(0, 10**6))
def test_without_sealing_only_overflow_is_rewritten(layout: Layout, seed: int) -> None:
    """With seal = false, in every assignment, only rows that outlive the window are rewritten."""
    layout = replace(layout, seal=False)
    for loaded in simulate(layout, Random(seed), updates=15):  # noqa: S311 - a simulation
        assert loaded.rewritten == 0 or loaded.b > loaded.a + layout.periods or loaded.never


def steady(periods: int, columns: int, *, seal: bool = True) -> Layout:
    """The default layout of a window with E columns."""
    rows = resolve(periods=periods, label="WK").rows
    return resolve(periods=periods, label="WK", grid=(rows, columns), seal=seal)


@pytest.mark.parametrize(
    ("periods", "files", "unsealed", "written", "largest"),
    [(24, 26, 72, 1.63, 1.0), (36, 32, 110, 1.71, 1.3), (144, 66, 448, 1.86, 2.8)],
)
def test_figures_of_four_columns(periods: int, files: int, unsealed: int, written: float, largest: float) -> None:
    """Uniform lifetimes and E = 4 keep the files, write and seal the rows that DESIGN section 4 states."""
    sealed, open_ = figures(steady(periods, 4)), figures(steady(periods, 4, seal=False))
    assert sealed.files == pytest.approx(files, rel=0.03)
    assert open_.files == pytest.approx(unsealed, rel=0.03)
    assert sealed.written == pytest.approx(written, abs=0.01)
    assert sealed.largest_seal == pytest.approx(largest, abs=0.05)
    assert open_.written == 1
    assert sealed.sealed <= 1
    assert 0.195 <= sealed.dead <= open_.dead <= 0.245
    assert sealed.most_dead <= open_.most_dead <= 0.485


@pytest.mark.parametrize(("periods", "files"), [(24, 44), (36, 51), (144, 112)])
def test_figures_of_eight_columns(periods: int, files: int) -> None:
    """Eight columns keep more files and about half of the dead rows, at most 12 % on average."""
    measured = figures(steady(periods, 8))
    assert measured.files == pytest.approx(files, rel=0.03)
    assert measured.dead <= 0.12
    assert measured.most_dead <= 0.24
