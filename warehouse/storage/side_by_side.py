"""Short work on many files, several at a time, by threads that stay: making some for each commit costs more than the work.

Other work is done beside that of Spark, for which the driver waits.
"""

from __future__ import annotations

import os
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
def _beside() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_WORKERS, thread_name_prefix="beside")


for _made in (_pool, _beside):  # a child has no thread but the one that made it
    os.register_at_fork(after_in_child=_made.cache_clear)


def each(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Do work on each item and return what it gave, in order; an error is raised when no other item is at work any more.

    The work itself must not come here again: it might wait for a thread that it holds.
    """
    several = list(items)
    if len(several) == 1:
        return [work(several[0])]
    begun = [_pool().submit(work, item) for item in several]
    try:
        wait(begun)
    finally:
        for one in begun:
            one.cancel()
        wait(begun)
    return [one.result() for one in begun]


def begun(work: Callable[[], R]) -> Future[R]:
    """Begin work while this thread waits for something else, and return what gives its result; the work may use :func:`each`."""
    return _beside().submit(work)


def ended(work: Future[R]) -> None:
    """Return when work that was begun is not done any more; what it gave, or raised, is of no interest."""
    work.cancel()
    wait([work])
