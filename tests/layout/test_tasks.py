"""Runs are assigned to tasks whole, and cut into ranges of keys when one run would be most of the work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warehouse.layout.tasks import FILE_BYTES, FILE_ROWS, distribute, file_rows, key_ranges, largest_file, loads


@given(st.lists(st.integers(1, 6_000_000), min_size=1, max_size=30), st.integers(1, 8))
def test_no_task_is_much_fuller_than_the_others(runs: list[int], workers: int) -> None:
    """Each run has one task, no task is without a run, and the fullest has at most one run more than the emptiest."""
    tasks = distribute(runs, workers)
    rows_of_tasks = loads(runs, tasks)
    assert sum(rows_of_tasks) == sum(runs)
    assert min(rows_of_tasks) > 0
    fullest = rows_of_tasks.index(max(rows_of_tasks))
    smallest = min(rows for rows, task in zip(runs, tasks, strict=True) if task == fullest)
    assert rows_of_tasks[fullest] - smallest <= min(rows_of_tasks)


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
    assert key_ranges(runs, distribute(runs, workers), workers) == ranges


@pytest.mark.parametrize(
    ("runs", "workers", "target", "ranges"),
    [
        ([50_000, 40_000], 2, 100_000, 0),  # each is a file
        ([126_000], 1, 100_000, 2),  # a quarter more than a file should have
        ([125_000], 1, 100_000, 0),
        ([400_000_000], 4, 1_000_000, 400),
        ([4_000_001], 1, 10_000_000, 0),  # larger files
    ],
)
def test_runs_are_cut_by_the_size_of_a_file(runs: list[int], workers: int, target: int, ranges: int) -> None:
    """What is larger than a file should be is cut into as many as it makes."""
    assert key_ranges(runs, distribute(runs, workers, target), workers, target) == ranges


@given(st.none() | st.integers(10**6, 10**12), st.integers(0, 10**10), st.integers(1, 10**5))
def test_rows_of_a_file_follow_the_rows_that_are_stored(target: int | None, rows: int, each: int) -> None:
    """A file of this many rows has about the target size, once more than a few rows are stored; it has at least one row."""
    rows_of_file = file_rows(target, rows=rows, size=rows * each)
    assert rows_of_file >= 1
    if target is None:
        assert rows_of_file <= FILE_ROWS
    if rows > 10**8 and rows_of_file > 10 and not (target is None and rows_of_file == FILE_ROWS):
        assert rows_of_file * each == pytest.approx(target or FILE_BYTES, rel=0.1)
    assert largest_file(rows_of_file) * 4 <= rows_of_file * 5


def test_a_table_of_few_rows_says_little_of_their_size() -> None:
    """Ten rows in a file of their own, mostly footer, do not make files of the next run small."""
    assert file_rows(None, rows=10, size=20_000) > 1_000_000
