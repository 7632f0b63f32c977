"""Answers at re-evaluations only: Rstream, Istream, Dstream, and the short-lived results that restore reports.

With p the previous re-evaluation before tau, over the real lifetimes ``[ts, exp)`` of the result rows:
Rstream ``ts <= tau < exp``; Istream ``p < ts <= tau < exp``; Dstream ``ts <= p < exp <= tau``; restored
``p < ts < exp <= tau``. A restored row is reported once and is in no answer (update-patterns sheet, 4.4 and 4.5, A12).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.reference.engine.changes import Change, lifetimes
from tests.reference.engine.tuples import BEGINNING, Row, Value, bag, live_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Evaluation", "evaluations", "grid_point", "lost", "restored_values", "seen_at"]


@dataclass(frozen=True)
class Evaluation:
    """What one re-evaluation reports, as result rows."""

    at: int
    rstream: tuple[Row, ...]
    istream: tuple[Row, ...]
    dstream: tuple[Row, ...]
    restored: tuple[Row, ...]

    @property
    def istream_restore(self) -> tuple[Row, ...]:
        """New results and short-lived ones."""
        return (*self.istream, *self.restored)

    @property
    def rstream_restore(self) -> tuple[Row, ...]:
        """The answer and the short-lived results since the last one."""
        return (*self.rstream, *self.restored)


def evaluations(changes: Iterable[Change], instants: Sequence[int], before: int = BEGINNING) -> list[Evaluation]:
    """Evaluate at some instants, in order.

    Parameters
    ----------
    changes
        What an operator emitted.
    instants
        The re-evaluations, ascending.
    before
        p of the first one.

    """
    rows = lifetimes(changes)
    return [
        Evaluation(
            at=now,
            rstream=tuple(live_rows(rows, now)),
            istream=tuple(row for row in rows if previous < row.ts <= now < row.exp),
            dstream=tuple(row for row in rows if row.ts <= previous < row.exp <= now),
            restored=tuple(row for row in rows if previous < row.ts < row.exp <= now),
        )
        for previous, now in zip([before, *instants], instants, strict=False)
    ]


def restored_values(previous: Evaluation | None, current: Evaluation) -> Counter[Value]:
    """Restored values that neither the previous nor the current answer shows, each once: what to report of distinct rows."""
    seen = bag([*(previous.rstream if previous else ()), *current.rstream])
    return Counter({row.value: 1 for row in current.restored if row.value not in seen})


def grid_point(instant: int, interval: int) -> int:
    """The first multiple of the interval at or after an instant."""
    return -(-instant // interval) * interval


def seen_at(row: Row, interval: int) -> range:
    """The multiples of the interval at which a row is seen (update-patterns sheet, 1.2).

    >>> list(seen_at(Row("a1", ("a",), 1, 11), 5)), list(seen_at(Row("a1", ("a",), 6, 10), 5))
    ([5, 10], [])
    """
    return range(grid_point(row.ts, interval), grid_point(row.exp, interval), interval)


def lost(row: Row, interval: int) -> bool:
    """Whether a result is never seen at a multiple of the interval: a lifetime below it is needed, and not enough (4.4)."""
    return grid_point(row.ts, interval) >= row.exp
