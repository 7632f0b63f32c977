"""Runs short tasks on many files in a permanent thread pool; new threads for each commit would cost more than the tasks.

It also runs other work in parallel with Spark jobs, for which the driver waits.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["begun", "each", "ended"]

T = TypeVar("T")
R = TypeVar("R")
_WORKERS = 8


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_WORKERS, thread_name_prefix="files")


@cache
def _background_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_WORKERS, thread_name_prefix="background")


for _made in (_pool, _background_pool):  # a child has no thread but the one that made it
    os.register_at_fork(after_in_child=_made.cache_clear)


def each(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Do work on each item, and return the results in order; an error is raised when the work on all items has ended.

    The work must not call this function: it might wait for its own thread.
    """
    arguments = list(items)
    if len(arguments) <= 1:
        return [work(argument) for argument in arguments]
    numbers = deque(range(len(arguments)))  # each thread takes the next: a future for each item costs more than a short task
    results: dict[int, R] = {}
    errors: dict[int, Exception] = {}

    def work_on() -> None:
        while numbers:
            try:
                number = numbers.popleft()
            except IndexError:  # another thread was faster
                return
            try:
                results[number] = work(arguments[number])
            except Exception as error:  # noqa: BLE001 - raised when all work has ended
                errors[number] = error

    futures = [_pool().submit(work_on) for _ in range(min(_WORKERS, len(arguments)))]
    try:
        wait(futures)
    finally:
        numbers.clear()
        wait([future for future in futures if not future.cancel()])
    for future in futures:
        future.result()
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(len(arguments))]


def begun(work: Callable[[], R]) -> Future[R]:
    """Begin work while this thread waits for something else, and return its future; the work may use :func:`each`."""
    return _background_pool().submit(work)


def ended(work: Future[R]) -> None:
    """Wait for the end of work that was begun, and ignore its result or error."""
    work.cancel()
    wait([work])
