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
                ready = [other for other in self.sources() if self._is_over_view(other) == over_view]
                self._given[over_view] = self._in_time({other.planned.name: other for other in ready})
            return self._given[over_view].get(source.planned.name, ((), ()))
        due = source.table_plan.due
        if not due:
            return due, ()
        if not self._begun:
            self._begun, self._waiting = True, {other: other.table_plan.due for other in self.sources() if other.table_plan.due}
        self._waiting[source] = due
        return due, (self._answered(source, due),)

    def _answered(self, source: AnswersSource, due: Sequence[Due]) -> pa.Table:
        answers = source.answered(due, self._run)
        self._waiting.pop(source, None)
        self._run.forget({table for other in self._waiting for read in other.table_plan.reads for table in read.tables})
        return answers

    def _is_over_view(self, source: AnswersSource) -> bool:
        return self.plan.node(source.planned.followed or "") is not None

    def _in_time(self, sources: Mapping[str, AnswersSource]) -> dict[str, Given]:
        waiting = {name: source.table_plan.due for name, source in sources.items()}
        most = min((source.table_plan.within or 0 for source in sources.values()), default=0)
        answers: dict[str, Given] = {}
        begun = self.clock() - self._spent
        for group in rounds(waiting, groups_of(sources)):
            self._waiting = {sources[name]: dues for name, dues in group}
            for name, dues in group:
                before = answers.get(name, ((), ()))
                answers[name] = (*before[0], *dues), (*before[1], self._answered(sources[name], dues))
            self._spent = self.clock() - begun
            if self._spent * SECOND >= most:
                break
        return answers

    def _stored(self, connection: duckdb.DuckDBPyConnection, table: str) -> str:
        return next(source for source in self._waiting if _reads(source, table)).rows(connection, table)

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
        windows = dict[WindowBounds, None]()
        for source, dues in self._waiting.items():
            for read in source.table_plan.reads:
                windows.update(dict.fromkeys(source.window_bounds(read, dues) if table in read.tables else ()))
        return list(windows)

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
        joint_group = min(joined, default=name)
        groups[name] = joint_group
        groups = {other: joint_group if group in joined else group for other, group in groups.items()}
        of_table = {table: joint_group if group in joined else group for table, group in of_table.items()}
        of_table |= dict.fromkeys(tables, joint_group)
    return groups
