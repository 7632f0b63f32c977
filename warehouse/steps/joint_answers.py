"""The answers of an update: aggregates that read the same synopses are answered in one run, as far as there is time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warehouse.aggregates.backlog import rounds
from warehouse.aggregates.intervals import cover
from warehouse.steps.window_run import WindowBounds, WindowRun
from warehouse.time import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import duckdb
    import pyarrow as pa

    from warehouse.aggregates.definition import Due
    from warehouse.aggregates.intervals import Piece
    from warehouse.planning.following import SynopsisPlan
    from warehouse.planning.plan_record import Plan
    from warehouse.steps.answers_source import AnswersSource, Given

__all__ = ["JointAnswers"]


@dataclass(eq=False)
class JointAnswers:
    """The answers of an update. If its time is limited, it computes at least the first round, so that each update makes progress.

    Views move after all streams. Aggregates over views are answered after that, in the remaining time.

    Parameters
    ----------
    plan
        The plan.
    sources
        Returns the sources of all answers that are not committed yet; called when the first of them is needed.
    clock
        Returns the time in seconds.
    """

    plan: Plan
    sources: Callable[[], Sequence[AnswersSource]]
    clock: Callable[[], float] = time.monotonic
    _given: dict[bool, dict[str, Given]] = field(default_factory=dict)
    _spent: float = 0.0
    _run: WindowRun = field(init=False)
    _waiting: dict[AnswersSource, Sequence[Due]] = field(default_factory=dict)
    _begun: bool = False

    def __post_init__(self) -> None:
        """Start with nothing merged."""
        self._run = WindowRun(self._stored, lambda table: self._planned(table).synopsis, self._asked, self._pieces)

    def of(self, source: AnswersSource) -> Given:
        """Return the windows of an aggregate that are answered, and the answers."""
        if source.table_plan.within is not None:
            over_view = self._is_over_view(source)
            if over_view not in self._given:
                ready = [each for each in self.sources() if self._is_over_view(each) == over_view]
                self._given[over_view] = self._in_time({each.planned.name: each for each in ready})
            return self._given[over_view].get(source.planned.name, ((), ()))
        due = source.table_plan.due
        if not due:
            return due, ()
        if not self._begun:
            self._begun, self._waiting = True, {each: each.table_plan.due for each in self.sources() if each.table_plan.due}
        self._waiting[source] = due
        return due, (self._answered(source, due),)

    def _answered(self, source: AnswersSource, due: Sequence[Due]) -> pa.Table:
        found = source.answered(due, self._run)
        self._waiting.pop(source, None)
        self._run.forget({table for each in self._waiting for read in each.table_plan.reads for table in read.tables})
        return found

    def _is_over_view(self, source: AnswersSource) -> bool:
        return self.plan.node(source.planned.followed or "") is not None

    def _in_time(self, sources: Mapping[str, AnswersSource]) -> dict[str, Given]:
        waiting = {name: source.table_plan.due for name, source in sources.items()}
        most = min((source.table_plan.within or 0 for source in sources.values()), default=0)
        given: dict[str, Given] = {}
        begun = self.clock() - self._spent
        for each in rounds(waiting, groups_of(sources)):
            self._waiting = {sources[name]: dues for name, dues in each}
            for name, dues in each:
                before = given.get(name, ((), ()))
                given[name] = (*before[0], *dues), (*before[1], self._answered(sources[name], dues))
            self._spent = self.clock() - begun
            if self._spent * SECOND >= most:
                break
        return given

    def _stored(self, connection: duckdb.DuckDBPyConnection, table: str) -> str:
        return next(each for each in self._waiting if _reads(each, table)).rows(connection, table)

    def _planned(self, table: str) -> SynopsisPlan:
        planned = self.plan.stream(table).synopsis
        if planned is None:
            raise TypeError(f"{table} is no synopsis")
        return planned

    def _pieces(self, table: str, window: WindowBounds) -> Iterator[Piece]:
        """The intervals of a window, at the version of this plan, without those that are too old for any window."""
        own = self._planned(table)
        return cover(window.first, window.end, own.synopsis.levels, self.plan.slot - own.slots)

    def _asked(self, table: str) -> list[WindowBounds]:
        """The windows of a synopsis that aggregates ask for."""
        found = dict[WindowBounds, None]()
        for source, dues in self._waiting.items():
            for read in source.table_plan.reads:
                found.update(dict.fromkeys(source.window_bounds(read, dues) if table in read.tables else ()))
        return list(found)

    def release(self) -> None:
        """Drop the merged states."""
        self._run.close()
        self._waiting.clear()
        self._begun = False


def _reads(source: AnswersSource, table: str) -> bool:
    return any(table in read.tables for read in source.table_plan.reads)


def groups_of(sources: Mapping[str, AnswersSource]) -> dict[str, str]:
    """Return the group of each aggregate: aggregates with a common synopsis are answered together."""
    groups: dict[str, str] = {}
    of_table: dict[str, str] = {}
    for name, source in sorted(sources.items()):
        tables = [table for read in source.table_plan.reads for table in read.tables]
        joined = {of_table[table] for table in tables if table in of_table}
        own = min(joined, default=name)
        groups[name] = own
        groups = {each: own if group in joined else group for each, group in groups.items()}
        of_table = {table: own if group in joined else group for table, group in of_table.items()}
        of_table |= dict.fromkeys(tables, own)
    return groups
