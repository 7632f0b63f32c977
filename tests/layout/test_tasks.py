"""Runs are dealt to tasks whole, and cut into ranges of keys when one of them would be the work of all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.layout.tasks import deal, key_ranges, loads


@given(st.lists(st.integers(1, 6_000_000), min_size=1, max_size=30), st.integers(1, 8))
def test_no_task_is_much_fuller_than_the_others(runs: list[int], workers: int) -> None:
    """Each run has one task, none is left without one, and the fullest has at most one run more than the emptiest."""
    tasks = deal(runs, workers)
    held = loads(runs, tasks)
    assert sum(held) == sum(runs)
    assert min(held) > 0
    fullest = held.index(max(held))
    smallest = min(rows for rows, task in zip(runs, tasks, strict=True) if task == fullest)
    assert held[fullest] - smallest <= min(held)


@pytest.mark.parametrize(
    ("runs", "workers", "ranges"),
    [
        ([300_000, 250_000, 200_000], 2, 0),  # small runs are left whole
        ([2_000_000, 100_000], 2, 0),  # two executors cannot wait for each other for long
        ([2_000_000, 100_000], 8, 3),  # seven would wait for one
        ([1_000_000] * 8, 8, 0),  # each has its own
        ([4_000_001], 1, 2),  # a file has no more rows, and is one task
        ([400_000_000], 4, 128),  # a task for each file, and as many for each executor
    ],
)
def test_large_runs_are_cut(runs: list[int], workers: int, ranges: int) -> None:
    """Only where others would wait for the task that has it, or where it is several files anyway."""
    assert key_ranges(runs, deal(runs, workers), workers) == ranges
