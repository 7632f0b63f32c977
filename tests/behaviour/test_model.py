"""The model itself, against the doubly-partitioned-index sheet; nothing here needs Spark."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

import warehouse.testing
from tests.layout.vectors import ANSWERS, DELTA, MAX_LIFETIME, ROWS, UPDATES
from warehouse.testing import Model, Row, Rules, bag
from warehouse.time import NEVER, slot

SHEET = Rules(anchor=0, interval=DELTA, max_lifetime=MAX_LIFETIME)


def test_examples_of_the_documentation() -> None:
    """The examples in the module's docstrings give the documented results."""
    assert doctest.testmod(warehouse.testing).attempted
    assert doctest.testmod(warehouse.testing).failed == 0


def test_the_model_answers_as_the_sheet() -> None:
    """The live, loaded, expired and dropped rows of 9.4, and the load slots of 9.2, follow from the if statements."""
    model = Model(SHEET)
    load_slots = {row.id: row.a for row in ROWS if row.a is not None}
    for answer, tick in zip(ANSWERS, UPDATES, strict=True):
        model.arrive(*(Row(row.ts, row.exp, row.key, row.id) for row in ROWS if row.loaded_at == tick))
        state = model.update(tick)
        assert (state.counts.inserted, state.counts.dead) == (len(answer.loaded), len(answer.dropped))
        assert {stored.row.value for stored in state.expired} == set(answer.expired)
        assert len(state.live) == answer.live
        for key, ids in answer.by_key.items():
            assert sorted(stored.row.value for stored in model.probe(key)) == list(ids)
        assert all(stored.load_slot == load_slots[stored.row.value] for stored in state.live)


@given(instant=st.integers(-(10**6), 10**6), anchor=st.integers(-1000, 1000), interval=st.integers(1, 1000))
def test_slots_of_the_model(instant: int, anchor: int, interval: int) -> None:
    """A slot is open at its beginning and closed at its end, as in 3.2."""
    rules = Rules(anchor=anchor, interval=interval)
    number = rules.slot(instant)
    assert rules.time(number - 1) < instant <= rules.time(number)
    assert number == slot(instant, anchor, interval)


@pytest.mark.parametrize(
    ("policy", "exp", "counted"),
    [("accept", 99, (1, 1, 0)), ("clamp", 30, (1, 1, 0)), ("reject", None, (0, 0, 1))],
)
def test_lifetimes_above_the_bound(policy: str, exp: int | None, counted: tuple[int, int, int]) -> None:
    """A row that lives longer than S is kept and counted, cut to S, or rejected."""
    model = Model(Rules(anchor=0, interval=10, max_lifetime=20, over_lifetime=policy))  # type: ignore[arg-type]
    model.arrive(Row(10, 99))
    counts = model.update(10).counts
    assert (counts.inserted, counts.over_lifetime, counts.rejected) == counted
    assert [stored.exp for stored in model.scan()] == ([] if exp is None else [exp])


def test_a_crash_is_a_beginning_without_an_end() -> None:
    """Rows that arrive after an update has begun belong to the next update, which finishes the first."""
    model = Model(Rules(anchor=0, interval=10, null_expiry="never"))
    model.arrive(Row(5, None, value="first"))
    model.begin(1)
    model.arrive(Row(6, 100, value="second"))
    assert not model.states
    model.update(20)
    assert [len(state.live) for state in model.states] == [1, 2]
    assert bag(model.scan(as_of=10)) == {(None, "first", 5, NEVER): 1}


def test_a_first_run_in_which_nothing_is_live_is_refused() -> None:
    """A first run is refused if none of the waiting rows would be live, unless a replay would reach them."""
    model = Model(Rules(anchor=0, interval=10))
    model.arrive(Row(25, 29))
    assert model.refuses(20)
    assert model.refuses(40)
    assert not model.refuses(20, each=True)
    assert model.refuses(40, each=True)
    model.arrive(Row(25, 50))
    assert not model.refuses(40)
