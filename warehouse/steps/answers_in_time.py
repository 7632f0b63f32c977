"""The answers of an update that may spend only so much time on them: in rounds, until the time is over."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warehouse.aggregates.backlog import rounds
from warehouse.time import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

    from warehouse.aggregates.definition import Due
    from warehouse.steps.answers_source import AnswersSource

__all__ = ["AnswersInTime"]


@dataclass(eq=False)
class AnswersInTime:
    """What an update answers in the time that it has; the first round is always made, so that each update gets on.

    Parameters
    ----------
    sources
        Gives the sources of all answers that are not committed yet, when the first of them is asked for.
    clock
        Seconds.
    """

    sources: Callable[[], Sequence[AnswersSource]]
    clock: Callable[[], float] = time.monotonic
    _given: dict[str, tuple[tuple[Due, ...], tuple[pa.Table, ...]]] | None = field(default=None)

    def of(self, name: str) -> tuple[tuple[Due, ...], tuple[pa.Table, ...]]:
        """Return what is answered of an aggregate, and the answers."""
        if self._given is None:
            self._given = self._all()
        return self._given.get(name, ((), ()))

    def _all(self) -> dict[str, tuple[tuple[Due, ...], tuple[pa.Table, ...]]]:
        sources = {source.planned.name: source for source in self.sources()}
        waiting = {name: source.own.due for name, source in sources.items()}
        groups = {name: min((read.table for read in source.own.reads), default="") for name, source in sources.items()}
        most = min((source.own.within or 0 for source in sources.values()), default=0)
        given: dict[str, tuple[tuple[Due, ...], tuple[pa.Table, ...]]] = {}
        begun = self.clock()
        for each in rounds(waiting, groups):
            for name, dues in each:
                before = given.get(name, ((), ()))
                given[name] = (*before[0], *dues), (*before[1], sources[name].answered(dues))
            if (self.clock() - begun) * SECOND >= most:
                break
        return given
