"""Shedding of coalesced members: accuracy, methods, both forms, budgets and the ledger (temporal-load-shedding, S1 to S6)."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.source.online import OnLine
from warehouse.coalescing.accuracy import accuracy, jaccard
from warehouse.coalescing.budgets import CoalescedBudget
from warehouse.coalescing.runs import Run
from warehouse.coalescing.scoring import CALS, CALS_I, CALS_V, RANDOM, Method
from warehouse.coalescing.shedding import shed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

S1 = [("81", 1), ("83", 4), ("83", 7), ("83", 10), ("82", 13)]
S2 = [("a", 0), ("a", 4), ("a", 6), ("b", 13), ("b", 16), ("c", 21), ("a", 27), ("a", 30)]
KEPT = [
    ((1, 2, 3, 4, 5, 6, 7, 8), (1, 1, 1, 1, 1)),
    ((1, 3, 4, 5, 6, 7, 8), (0.7692, 0.8846, 0.6667, 0, 1)),
    ((3, 4, 5, 6, 7, 8), (0.8846, 0.8846, 0.6667, 0, 1)),
    ((1, 2, 3, 4, 5, 7, 8), (0.75, 0.75, 1, 1, 1)),
    ((1, 3, 5, 6, 8), (0.6397, 0.5664, 0.2424, 0, 1)),
    ((3, 5, 6, 7, 8), (0.7909, 0.6346, 0.3333, 0, 1)),
    ((3, 4, 5, 6, 8), (0.8164, 0.8164, 0.5758, 0, 1)),
    ((2,), (0.0385, 0, 0, 0, 1)),
]
"""S2: which are kept, and the accuracy for theta 0, 6, 8, 12 and 20."""
METHODS = (
    CALS, CALS_V, CALS_I, Method(basis="retained"), Method(0.0, 1.0, "retained"), Method(1.0, 2.0), RANDOM, Method(at_least=7),
)  # fmt: skip


def runs_of(points: Sequence[tuple[object, int]], end: int | None, group: object = "g") -> list[Run]:
    """Return the exact runs of one group; without an end the last member is open."""
    runs: list[Run] = []
    for value, stamp in points:
        if runs and runs[-1].value == value:
            runs[-1] = Run(group, value, (*runs[-1].stamps, stamp), stamp)
        else:
            if runs:
                runs[-1] = Run(group, runs[-1].value, runs[-1].stamps, stamp)
            runs.append(Run(group, value, (stamp,), stamp))
    last = runs[-1]
    runs[-1] = Run(group, last.value, last.stamps, last.stamps[-1] if end is None else end, open=end is None)
    return runs


def keeping(runs: Iterable[Run], stamps: Iterable[int]) -> list[Run]:
    """The runs with these members only."""
    wanted = set(stamps)
    return [run.without(n for n, stamp in enumerate(run.stamps) if stamp not in wanted) for run in runs]


def kept(runs: Iterable[Run]) -> list[int]:
    """The stamps that are left."""
    return sorted(stamp for run in runs for number, stamp in enumerate(run.stamps) if number not in run.shed)


@pytest.mark.parametrize(
    ("dropped", "scores", "share", "values"),
    [
        (1, (0, 1, 1), 0.6667, 2 / 3), (4, (0, 3 / 9, 3 / 9), 0.8889, 1), (7, (1, 3 / 9, 12 / 9), 0.6667, 3 / 4),
        (10, (0, 3 / 9, 3 / 9), 0.8889, 1), (13, (0, 1, 1), 0.6667, 2 / 3),
    ],
)  # fmt: skip
def test_one_dropped_member(dropped: int, scores: tuple[float, float, float], share: float, values: float) -> None:
    """S1: delta, rho and their sum of each member, the accuracy without it, and Eq. 2 alone."""
    runs = runs_of(S1, 16)
    run = next(candidate for candidate in runs if dropped in candidate.stamps)
    number, last = run.stamps.index(dropped), len(run.stamps) - 1
    assert tuple(method.score(run, 0, last, number) for method in (CALS_V, CALS_I, CALS)) == pytest.approx(scores)
    result = accuracy(keeping(runs, {1, 4, 7, 10, 13} - {dropped}))
    assert result.share == pytest.approx(share, abs=5e-5)
    assert result.values == pytest.approx(values)
    assert shed(runs, 1).members == ((1, 0),)


@pytest.mark.parametrize(("numbers", "shares"), KEPT)
def test_accuracy_of_given_subsets(numbers: tuple[int, ...], shares: tuple[float, ...]) -> None:
    """S2: Eq. 6 for each threshold; dropping one more can raise it."""
    left = keeping(runs_of(S2, 38), [S2[number - 1][1] for number in numbers])
    assert [accuracy(left, theta).share for theta in (0, 6, 8, 12, 20)] == pytest.approx(shares, abs=5e-5)


def test_what_an_answer_carries() -> None:
    """Without s2 and s6: one row in two fragments, one row lost, eight of 38 units of length gone; holes stay open (S6)."""
    left = keeping(runs_of(S2, 38), [0, 6, 13, 16, 27, 30])
    assert [(fragment.start, fragment.end) for fragment in left[0].fragments] == [(0, 4), (6, 13)]
    result = accuracy(left)
    assert (result.rows, result.lost, result.extraneous, result.length_lost) == (4, 1, 1, 8)
    assert result.values == pytest.approx(3 / 5)
    assert result.mean_kept == pytest.approx((11 / 13 + 2) / 4)
    assert jaccard([]) == 1


@pytest.mark.parametrize(
    ("method", "dropped", "share"),
    [
        (CALS, [0, 4, 13], 0.7909), (Method(basis="retained"), [0, 4, 13], 0.7909), (CALS_V, [0, 4, 6], 0.75),
        (CALS_I, [4, 0, 13], 0.7909), (Method(0.0, 1.0, "retained"), [4, 13, 0], 0.7909),
    ],
)  # fmt: skip
def test_the_on_line_form(method: Method, dropped: list[int], share: float) -> None:
    """S3: each arrival sheds these members, by each method and basis, with a capacity of five of eight."""
    window = OnLine(5, rows=8, method=method)
    shed_stamps = [window.arrive("g", stamp, value) for value, stamp in S2]
    window.close("g", 38)
    assert [stamp for stamp in shed_stamps if stamp is not None] == dropped
    assert accuracy(window.runs).share == pytest.approx(share, abs=5e-5)


@pytest.mark.parametrize(
    ("capacity", "stamps", "share"),
    [
        (7, [0, 4, 6, 13, 16, 21, 30], 0.9318), (6, [4, 6, 13, 16, 21, 30], 0.8549), (5, [6, 13, 16, 21, 30], 0.8164),
        (4, [6, 16, 21, 30], 0.7227), (3, [16, 21, 30], 0.5881), (2, [21, 30], 0.4318), (1, [21], 0.25),
    ],
)  # fmt: skip
def test_the_batch_form(capacity: int, stamps: list[int], share: float) -> None:
    """S4: these of eight members stay, with this accuracy; a capacity of eight or more sheds nothing."""
    result = shed(runs_of(S2, 38), 8 - capacity)
    assert kept(result.runs) == stamps
    assert result.share == pytest.approx(share, abs=5e-5)
    assert accuracy(result.runs).share == pytest.approx(result.share)


def test_trimmed_rows_and_all_subsets() -> None:
    """S4: five members are four rows cut at their ends; the best, the mean and the worst accuracy of all subsets of five."""
    runs = runs_of(S2, 38)
    rows = [(fragment.start, fragment.end) for run in shed(runs, 3).runs for fragment in run.fragments]
    assert rows == [(6, 13), (13, 21), (21, 27), (30, 38)]
    shares = [accuracy(keeping(runs, chosen)).share for chosen in combinations([stamp for _, stamp in S2], 5)]
    assert len(shares) == 56
    assert (max(shares), fmean(shares), min(shares)) == pytest.approx((0.8164, 0.6014, 0.4119), abs=5e-5)


@pytest.mark.parametrize(
    ("basis", "dropped"),
    [("exact", [None, None, None, 3, 0, 5, 9, 16]), ("retained", [None, None, None, 3, 5, None, 9, 16])],
)
def test_a_sliding_window(basis: str, dropped: list[int | None]) -> None:
    """S5: five arrivals in the window, three kept, either basis; the same is left."""
    window = OnLine(3, rows=5, method=Method(basis=basis))  # type: ignore[arg-type]
    points = [("a", 0), ("a", 3), ("b", 5), ("b", 9), ("b", 10), ("c", 16), ("c", 18), ("a", 23)]
    assert [window.arrive("g", stamp, value) for value, stamp in points] == dropped
    window.close("g", 25)
    assert kept(window.runs) == [10, 18, 23]
    assert accuracy(window.runs).share == pytest.approx(6 / 7 / 3 + 5 / 7 / 3 + 1 / 3)


def naive(runs: Sequence[Run], count: int, method: Method) -> list[Run]:
    """Shed members one by one, each after a look at all members."""
    left = list(runs)
    for _ in range(count):
        ranks = [
            (method.score(run, fragment.first, fragment.last, number), run.stamps[number], repr(run.group), position, number)
            for position, run in enumerate(left)
            for fragment in run.fragments
            for number in range(fragment.first, fragment.last + 1)
            if number in run.closed
        ]
        if not ranks:
            break
        *_, position, number = min(ranks)
        left[position] = left[position].without([number])
    return left


_STEPS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 9)), min_size=1, max_size=14)
_GROUPS = st.lists(st.tuples(_STEPS, st.booleans()), min_size=1, max_size=3)


def _drawn(groups: Sequence[tuple[Sequence[tuple[str, int]], bool]]) -> list[Run]:
    runs = []
    for group, (steps, is_open) in enumerate(groups):
        stamp, points = group, []
        for value, step in steps:
            points.append((value, stamp))
            stamp += step
        runs += runs_of(points, None if is_open else stamp, group)
    return runs


@settings(deadline=None)
@given(_GROUPS, st.integers(0, 20), st.sampled_from(METHODS), st.sampled_from([0, 5]))
def test_queue_naive_and_increments(
    groups: Sequence[tuple[Sequence[tuple[str, int]], bool]], count: int, method: Method, theta: int
) -> None:
    """S6: the queue sheds the members of the naive method, its running accuracy is exact, and all members are counted."""
    runs = _drawn(groups)
    result = shed(runs, count, method, at_least=theta)
    assert list(result.runs) == naive(runs, count, method)
    assert result.share == pytest.approx(accuracy(result.runs, theta).share)
    in_two_steps = shed(shed(runs, count // 2, method).runs, count - count // 2, method)
    assert in_two_steps.runs == result.runs
    assert all(len(run.stamps) - 1 not in run.shed for run in result.runs if run.open)
    if method == CALS:
        assert all(len(run.fragments) <= 2 - (not run.open) for run in result.runs)
    assert sum(len(run.shed) for run in result.runs) == len(result.members)
    for edge in (3, 9):
        cut = [run.within(edge) for run in result.runs]
        assert kept(run for run in cut if run) == [stamp for stamp in kept(result.runs) if stamp >= edge]


@settings(deadline=None)
@given(_STEPS, st.integers(2, 6), st.integers(3, 10), st.sampled_from(METHODS[:5]))
def test_the_on_line_queue_is_the_naive_one(
    steps: Sequence[tuple[str, int]], capacity: int, rows: int, method: Method
) -> None:
    """Each arrival sheds the member with the least (score, stamp); the window has the newest rows."""
    window, stamp, points = OnLine(capacity, rows=rows, method=method), 0, []
    for value, step in steps:
        points = [*points, (value, stamp)][-rows:]
        before = {member for run in window.runs for n, member in enumerate(run.stamps) if n not in run.shed}
        left = keeping(runs_of(points, None), before | {stamp})
        expected = naive(left, max(0, len(kept(left)) - capacity), method)
        window.arrive("g", stamp, value)
        assert list(window.runs) == expected
        stamp += step


@settings(deadline=None)
@given(_GROUPS, st.floats(0.1, 1.0))
def test_an_accuracy_is_a_floor(groups: Sequence[tuple[Sequence[tuple[str, int]], bool]], floor: float) -> None:
    """Shedding stops before the accuracy falls below the floor; one member more would fall below it."""
    runs = _drawn(groups)
    result = shed(runs, 10**6, floor=floor)
    assert accuracy(result.runs).share >= floor - 1e-9
    closed = sum(len(run.closed) for run in runs)
    if len(result.members) < closed:
        assert accuracy(shed(runs, len(result.members) + 1).runs).share < floor + 1e-9


def test_the_theta_aware_variant() -> None:
    """With theta 8 the row that is too short goes first, then ends that leave their rows long enough."""
    runs = runs_of(S2, 38)
    aware, plain = (shed(runs, 3, method, at_least=8) for method in (Method(at_least=8), CALS))
    assert accuracy(aware.runs, 8).share == pytest.approx((9 / 13 + 1 + 8 / 11) / 3)
    assert accuracy(plain.runs, 8).share == pytest.approx(0.5758, abs=5e-5)


def test_budgets() -> None:
    """Rows, bytes, a share of what arrived, an accuracy; impossible ones are refused with what is possible."""
    assert CoalescedBudget(bytes=100).excess(20, 20, 8.0) == 8
    assert CoalescedBudget(bytes=1000).excess(20, 20, 8.0) == 0
    assert CoalescedBudget(rows=5, accuracy=0.5).excess(20, 20, 8.0) == 15
    for wrong in ({}, {"rows": 1, "keep": 0.5}, {"keep": 0.0}, {"accuracy": 1.5}, {"rows": 0}):
        with pytest.raises(ValueError, match="budget"):
            CoalescedBudget(**wrong)  # type: ignore[arg-type]


def test_what_cannot_be_shed() -> None:
    """An open member never goes, nor does the on-line form keep fewer members than groups; stamps increase in a group."""
    with pytest.raises(ValueError, match="open member"):
        Run("g", "a", (1,), 1, open=True).without([0])
    window = OnLine(1)
    window.arrive("g", 1, "a")
    with pytest.raises(ValueError, match="not more than the groups"):
        window.arrive("h", 1, "a")
    with pytest.raises(ValueError, match="not after"):
        window.arrive("g", 1, "b")
    with pytest.raises(ValueError, match="weights"):
        Method(0.0, 0.0)
    assert kept(shed(runs_of(S2, None), 99).runs) == [30]
