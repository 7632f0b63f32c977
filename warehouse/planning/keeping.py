"""``keep``: how long rejected rows and reported short-lived results stay, counted from the update that found them.

A row names the epoch that found it. A *mark* (epoch, instant) gives its age: marks e(1) < e(2) < ... with instants a(1) <= a(2)
<= ... mean that each epoch in (e(i - 1), e(i)] found its rows in [a(i) - keep / 16, a(i)]. So after an update that moved the
windows at instant t

    a row has left  =>  it was found at or before t - keep
    a row is there  =>  it was found after t - keep - keep / 16

and a table has at most about thirty marks, with any number of updates. So its record does not grow, and an update need not read
its log to find that no row is old enough. Marks use the plan's clock, and not the times of files, which a copy or a restored
backup changes. An update appends a file, so whole files are removed. A file with rows of several epochs (after `erase`, `restate
--rejected` or an outsider's OPTIMIZE) is written again without the overdue rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.epochs.records import AgeMark
from warehouse.planning.steps import DropOverdue, Role

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import SideTable, TableState

__all__ = ["SHARES", "keep_by_table", "marks_after", "overdue_epoch", "overdue_steps", "with_mark"]

SHARES = 16
"""Rows stay at most this part of ``keep`` longer than it says: for fewer marks, and commits that remove many files at once."""


def keep_by_table(catalog: Catalog) -> tuple[tuple[str, int], ...]:
    """Return ``keep`` in microseconds of each declared stream, relation and view that does not keep such rows forever."""
    times = [(source.name, source.keep) for source in catalog.sources] + [(view.name, view.keep) for view in catalog.views]
    return tuple((name, keep) for name, keep in times if keep is not None)


def overdue_epoch(marks: Sequence[AgeMark], keep: int | None, now: int) -> int | None:
    """Return the last epoch up to which ``keep`` is over for all rows; None if there is no such epoch.

    ``keep`` is in microseconds; None: forever.

    >>> overdue_epoch((AgeMark(3, 100), AgeMark(7, 200)), 50, now=150), overdue_epoch((AgeMark(3, 100),), 50, now=149)
    (3, None)
    """
    return None if keep is None else max((mark.epoch for mark in marks if mark.at + keep <= now), default=None)


def marks_after(marks: Sequence[AgeMark], through: int) -> tuple[AgeMark, ...]:
    """Return the marks of the epochs after ``through``."""
    return tuple(mark for mark in marks if mark.epoch > through)


def with_mark(marks: Sequence[AgeMark], epoch: int, at: int, keep: int) -> tuple[AgeMark, ...]:
    """Return the marks with one more, of an epoch that found rows at an instant.

    It replaces the newest mark if this makes the rows of that mark younger by at most a fixed share of ``keep``.

    >>> marks = with_mark((AgeMark(1, 0), AgeMark(2, 10)), 3, 100, keep=1600)
    >>> marks, with_mark(marks, 4, 101, keep=1600)[1:]
    ((AgeMark(epoch=1, at=0), AgeMark(epoch=3, at=100)), (AgeMark(epoch=3, at=100), AgeMark(epoch=4, at=101)))
    """
    former = list(marks)
    at = max([at, *(mark.at for mark in former)])  # a clock that was set back makes no row older
    if len(former) > 1 and at - former[-2].at <= keep // SHARES:
        former.pop()
    return (*former, AgeMark(epoch, at))


def overdue_steps(owner: str, state: TableState | None, keep: Mapping[str, int], clock: int) -> Iterator[DropOverdue]:
    """Yield the steps that remove rejected rows and short-lived results older than ``keep``."""
    sides: tuple[tuple[Role, SideTable | None], ...] = (
        () if state is None else (("rejected", state.rejected), ("restored", state.restored))
    )
    for role, side in sides:
        if state is None or side is None or not side.rows:
            continue
        through = overdue_epoch(side.found, keep.get(owner), clock)
        if through is not None:
            yield DropOverdue(state.name, role, side.path, side.table_id, side.version, through)
