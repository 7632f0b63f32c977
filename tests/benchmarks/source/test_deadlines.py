"""Refreshes by deadline: the worked example and the schedules of the shared-aggregates sheet, section 8."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise

import pytest

from benchmarks.source.deadlines import DeadlineTask, SubGroup, conservative, cost_rate, harmonic, hybrid, next_run
from benchmarks.source.refreshes import schedule

A, B, C = SubGroup("A", "g", 2, 9, 3), SubGroup("B", "g", 3, 14, 2), SubGroup("C", "g", 5, 29, 2)
"""Section 8.4: seven queries in three sub-groups."""

THREE = (SubGroup("A1", "A", 2, 1), SubGroup("A2", "A", 3, 1), SubGroup("A3", "A", 5, 1))
A1, A2, A3 = conservative(THREE)

TWO_GROUPS = (
    SubGroup("A1", "A", 2, 1, 3),
    SubGroup("A2", "A", 3, 1, 2),
    SubGroup("A3", "A", 5, 1, 2),
    SubGroup("B1", "B", 2, 1, 3),
    SubGroup("B2", "B", 3, 1, 2),
    SubGroup("B3", "B", 4, 1, 2),
)
MERGED = tuple(
    DeadlineTask(tuple(subgroup for subgroup in TWO_GROUPS if subgroup.name in names))
    for names in (("A1", "A2"), ("A3",), ("B1", "B2"), ("B3",))
)


@pytest.mark.parametrize(
    ("tasks", "rate"),
    [
        ([[A], [B]], Fraction(46, 6)),
        ([[A, B]], Fraction(7)),
        ([[A], [B], [C]], Fraction(358, 30)),
        ([[A, B], [C]], Fraction(114, 10)),
        ([[A, B, C]], Fraction(29, 2)),
        ([[A], [B, C]], Fraction(76, 6)),
        ([[A, C], [B]], Fraction(101, 6)),
    ],
)
def test_cost_rates(tasks: list[list[SubGroup]], rate: Fraction) -> None:
    """Section 8.4, case by case; 358 / 30 where the source says 11.63."""
    assert cost_rate([DeadlineTask(tuple(parts)) for parts in tasks]) == pytest.approx(float(rate))


def test_hybrid_merges_what_costs_least() -> None:
    """A and B run together, C apart (11.40); with its period rounded down to 4 C coincides every second time (10.75)."""
    tasks = hybrid([C, A, B])
    assert tasks == (DeadlineTask((A, B)), DeadlineTask((C,)))
    assert cost_rate(harmonic(tasks)) == pytest.approx(10.75)
    assert [task.period for task in harmonic(tasks)] == [2, 4]


def test_hybrid_is_never_worse_than_its_choices() -> None:
    """Contiguous partitions are all tried for few sub-groups; merging pair by pair never costs more than sharing nothing."""
    for seed in range(12):
        chance = random.Random(seed)  # noqa: S311
        drawn = [SubGroup(f"{at:02}", "g", chance.randint(2, 12), chance.randint(5, 99)) for at in range(chance.choice([4, 14]))]
        tasks = hybrid(drawn)
        assert sorted(part for task in tasks for part in task.parts) == sorted(drawn)
        assert cost_rate(tasks) <= min(cost_rate(conservative(drawn)), cost_rate([DeadlineTask(tuple(drawn))]))
        assert cost_rate(harmonic(tasks)) <= cost_rate(tasks)


def test_a_group_alone() -> None:
    """Section 8.6: 22 joint runs of three sub-groups in 30 updates."""
    runs = schedule((A1, A2, A3), "equal", 30)
    assert len(runs) == 22
    at: dict[str, list[int]] = {}
    for update, tasks in runs:
        at.setdefault("+".join(task.name for task in tasks), []).append(update)
    assert at == {
        "A1": [2, 4, 8, 14, 16, 22, 26, 28],
        "A2": [3, 9, 21, 27],
        "A3": [5, 25],
        "A1+A2": [6, 12, 18, 24],
        "A1+A3": [10, 20],
        "A2+A3": [15],
        "A1+A2+A3": [30],
    }
    assert [(update, tasks[0].name) for update, tasks in schedule((A1, A2, A3), "none", 12)] == [
        *((2, "A1"), (3, "A2"), (4, "A1"), (5, "A3"), (6, "A1"), (7, "A2"), (8, "A1"), (10, "A1"), (11, "A2"), (12, "A3"))
    ]


@pytest.mark.parametrize(
    ("left", "runs"),
    [
        ((-1, -1, 0), {"equal": "A1 A2", "late": "A1 A2", "pending": "A1 A2 A3", "none": "A1"}),
        ((-2, -1, 0), {"equal": "A1", "late": "A1 A2", "pending": "A1 A2 A3", "none": "A1"}),
        ((1, 0, 0), {"equal": "A2 A3", "late": "A2 A3", "pending": "A2 A3", "none": "A2"}),
        ((1, 2, 3), {"equal": "", "late": "", "pending": "", "none": ""}),
    ],
)
def test_what_joins_a_run(left: tuple[int, int, int], runs: dict[str, str]) -> None:
    """Section 8.6: the states of figure 8.6(d), and a state in which tasks are only due."""
    tasks = (A1, A2, A3)
    tasks_of_sharing = {
        sharing: next_run(tasks, dict(zip(tasks, left, strict=True)), sharing) for sharing in ("none", "equal", "late", "pending")
    }
    assert {sharing: " ".join(task.name for task in joined) for sharing, joined in tasks_of_sharing.items()} == runs
    if not runs["none"]:
        assert next_run(tasks, dict(zip(tasks, left, strict=True)), "equal", eager=True) == (A1,)
    assert next_run((), {}, "equal") == ()


ROWS = """\
2 A1 A1 A1 A1 A12 A12
3 B1 B1 B1 B1+B2 B12 B12
4 A2 A2 A2 A1+A2 A12 A12
5 B2 B2 B2+B3 B1+B3 B3 B12+B3
6 A1 A1 A1+A3 A1+A3 A3 A12+A3
7 B3 B3 B1 B1+B2 B12 B12
8 A3 A3 A2 A1+A2 A12 A12
9 B1 B1 A1 B1+B3 B12+B3 B12+B3
10 A2 A2 B1+B2+B3 A1 A12 A12
11 A1 A1 A1+A2+A3 B1+B2 A3 A3
12 B2 B2 B1 A1+A2+A3 B12 B12
13 B1 B1+B3 A1 B1+B3 A12 A12"""


@pytest.mark.parametrize(
    ("column", "sharing", "tasks", "refreshes", "latency"),
    [
        (1, "none", conservative(TWO_GROUPS), 141, 2.87),
        (2, "equal", conservative(TWO_GROUPS), 171, 1.92),
        (3, "late", conservative(TWO_GROUPS), 194, 1.41),
        (4, "pending", conservative(TWO_GROUPS), 275, 0.35),
        (5, "equal", MERGED, 240, 0.70),
        (5, "late", MERGED, 240, 0.70),
        (6, "pending", MERGED, 291, 0.30),
    ],
)
def test_two_groups(column: int, sharing: str, tasks: tuple[DeadlineTask, ...], refreshes: int, latency: float) -> None:
    """Section 8.6: who runs at each update, refreshes of queries in 60 updates, and the mean latency of a refresh."""
    runs = schedule(tasks, sharing, 60)  # type: ignore[arg-type]
    named = {
        update: "+".join(task.name[0] + "".join(part.name[1] for part in task.parts) for task in run) for update, run in runs
    }
    rows = [line.split() for line in ROWS.splitlines()]
    assert [named[int(row[0])] for row in rows] == [row[column] for row in rows]
    assert sum(part.queries for _, run in runs for task in run for part in task.parts) == refreshes
    late: list[int] = []
    for part in TWO_GROUPS:
        ran = [0, *(update for update, run in runs if any(part in task.parts for task in run))]
        late += part.queries * [max(0, later - earlier - part.period) for earlier, later in pairwise(ran)]
    assert sum(late) / len(late) == pytest.approx(latency, abs=0.006)
