"""The judgement: a pure function from facts and thresholds to a level, and to concerns with the commands that help."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.health.facts import LEVELS, Level, Thresholds
from warehouse.time import SECOND, format_instant, rough
from warehouse.units import counted, size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from warehouse.health.facts import Arrivals, Facts, Kind, TableFacts

__all__ = ["Concern", "Health", "ahead_of_clock", "judge"]

_MAX_NAMED_FILES = 3
_MIN_FREE_BYTES = 10**9


@dataclass(frozen=True)
class Concern:
    """A concern: its level, its table (None: all tables), a sentence about it, and what to do."""

    level: Level
    kind: Kind
    table: str | None
    text: str
    command: str | None = None

    def __str__(self) -> str:
        """Return one line: the table, the sentence, the command."""
        table = f"{self.table}: " if self.table else ""
        return f"{table}{self.text}" + (f"; `{self.command}`" if self.command else "")


@dataclass(frozen=True)
class Health:
    """The level of a warehouse, its concerns with the worst first, and ``notes`` that are no concerns."""

    level: Level
    concerns: tuple[Concern, ...]
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """The verdict in a few words.

        >>> Health("ok", ()).headline
        'ok'
        """
        if not self.concerns:
            return self.level
        count = len(self.concerns)
        return f"{self.level}: {count} {'thing needs' if count == 1 else 'things need'} a person"


def judge(facts: Facts, thresholds: Thresholds | None = None) -> Health:
    """Return the health of a warehouse.

    Parameters
    ----------
    facts
        The facts about it at one instant.
    thresholds
        The thresholds of concerns; None: the defaults.

    """
    bounds = thresholds or Thresholds()
    all_concerns = [*_warehouse_concerns(facts, bounds)]
    for table in facts.tables:
        table_bounds = bounds.of_table(table.name)
        all_concerns += [concern for rule in _TABLE_RULES for concern in rule(table, table_bounds)]
    concerns = [concern for concern in all_concerns if concern.kind not in bounds.ignore]
    concerns.sort(key=lambda concern: -LEVELS.index(concern.level))
    return Health(concerns[0].level if concerns else "ok", tuple(concerns), tuple(_notes(facts)))


def _notes(facts: Facts) -> Iterator[str]:
    running = facts.running
    if running is not None:
        since = f" since {format_instant(running.since // SECOND * SECOND)}" if running.since is not None else ""
        doing = f": {running.doing}" if running.doing else ""
        yield f"an update is running{since}, by {running.by}{doing}"


# --- the warehouse ---


def _warehouse_concerns(facts: Facts, bounds: Thresholds) -> Iterator[Concern]:
    if facts.listing is not None:
        yield Concern("broken", "landing", None, f"landing files cannot be listed, so no update can run: {facts.listing}")
    yield from _unfinished(facts)
    yield from _overdue(facts, bounds)
    yield from _ahead(facts)
    yield from _disk(facts, bounds)
    for text in facts.outsiders:
        yield Concern("attention", "outsiders", None, text)
    for table, text in facts.layouts:
        yield Concern("attention", "layout", table or None, text)


def _unfinished(facts: Facts) -> Iterator[Concern]:
    if facts.planned is not None and facts.running is None:
        since = format_instant(facts.planned // SECOND * SECOND)
        text = f"an update that began at {since} has not ended and no process is at work on it; the next update completes it"
        yield Concern("attention", "unfinished", None, text, "stream-wh update")


def _overdue(facts: Facts, bounds: Thresholds) -> Iterator[Concern]:
    allowed = bounds.overdue if bounds.overdue is not None else facts.update_interval
    due = facts.window_time + facts.update_interval
    late = facts.now - due
    if late > allowed and not facts.replayed:
        text = (
            f"the update that was due at {format_instant(due)} is {rough(late)} overdue; "
            f"the last one was committed at {format_instant(facts.committed_at // SECOND * SECOND)}"
        )
        yield Concern("attention", "overdue", None, text, None if facts.running else "stream-wh update")


def _ahead(facts: Facts) -> Iterator[Concern]:
    early = facts.window_time - facts.now
    if early > facts.update_interval:
        yield Concern("broken", "ahead", None, ahead_of_clock(facts.window_time, facts.now))


def ahead_of_clock(window_time: int, now: int) -> str:
    """Return a text about a window time ahead of the clock (both in microseconds), and what to do."""
    return (
        f"the window time {format_instant(window_time)} is {rough(window_time - now)} ahead of the clock, so no update moves a "
        "table until then. If an update ran while the clock was wrong, go back to a backup with "
        "`stream-wh restore DIR --replace`, or load the landing files under a new root"
    )


def _disk(facts: Facts, bounds: Thresholds) -> Iterator[Concern]:
    if facts.disk_free is None:
        return
    required = bounds.disk_free if bounds.disk_free is not None else max(2 * facts.written, _MIN_FREE_BYTES)
    if facts.disk_free < required:
        text = f"{size_text(facts.disk_free)} are free on the disk of the warehouse, less than {size_text(required)}"
        level: Level = "broken" if facts.disk_free < facts.written else "attention"
        yield Concern(level, "disk", None, text, "stream-wh vacuum")


# --- one table ---


def _state_concerns(table: TableFacts, _: Thresholds) -> Iterator[Concern]:
    name = table.name
    if table.standing_still is not None:
        yield Concern("broken", "standing_still", name, f"stands still: {table.standing_still}")
    if table.differs is not None:
        yield Concern("broken", "differs", name, table.differs, f"stream-wh rebuild {name}")
    if table.erasure_overdue is not None:
        yield Concern("broken", "erasure_overdue", name, table.erasure_overdue)
    if table.stale is not None:
        yield Concern("attention", "stale", name, f"is stale: {table.stale}")
    if table.answers_late:
        text = (
            f"{counted(table.answers_waiting, 'answer')} waited since the updates had no time for more, the first for "
            f"{counted(table.answers_late, 'update')}; give `aggregate_time` of [warehouse] more"
        )
        yield Concern("attention", "answers_late", name, text)
    if table.over_budget:
        text = (
            f"keeps {counted(table.over_budget, 'member')} more than its budget, since open members stay and an accuracy wins; "
            f"give `budget` of [coalesced.{name}] more"
        )
        yield Concern("attention", "over_budget", name, text)
    if table.lapsed:
        text = (
            f"lost {counted(table.lapsed, 'unit')} of owed results with the last update, since their rows ended first; give "
            f"`budget` of [views.{name}] more, or complete it oftener"
        )
        yield Concern("attention", "lapsed", name, text, f"stream-wh complete {name}")
    if not table.declared:
        text = "is no longer declared, and no update moves it; declare it again, or forget it"
        yield Concern("attention", "undeclared", name, text, f"stream-wh drop {name}")


def _landing_concerns(table: TableFacts, _: Thresholds) -> Iterator[Concern]:
    if table.unreadable:
        count = len(table.unreadable)
        examples = "; ".join(f"{path}: {reason}" for path, reason in table.unreadable[:_MAX_NAMED_FILES])
        more = f"; and {count - _MAX_NAMED_FILES} more" if count > _MAX_NAMED_FILES else ""
        yield Concern("attention", "unreadable", table.name, f"{_files(count)} could not be loaded: {examples}{more}")
    if table.changed:
        count = len(table.changed)
        examples = ", ".join(table.changed[:_MAX_NAMED_FILES]) + (" and more" if count > _MAX_NAMED_FILES else "")
        yield Concern(
            "attention",
            "changed",
            table.name,
            f"{_files(count)} changed after being loaded ({examples}); restore the former file, remove it, or load it again: "
            "rows that it gave before stay in the table, too",
            f"stream-wh reload {shlex.quote(table.changed[0])}",
        )
    if table.vanished:
        text = f"its landing directory is empty, and {_files(table.vanished)} of before gone from it: is a disk not mounted?"
        yield Concern("attention", "vanished", table.name, text)


def _row_concerns(table: TableFacts, bounds: Thresholds) -> Iterator[Concern]:
    name = table.name
    yield from _share_concern(
        table,
        "rejected",
        lambda arrivals: (arrivals.rejected, arrivals.rows),
        bounds.rejected,
        "were rejected",
        f"stream-wh rejected {name}",
    )
    yield from _share_concern(
        table,
        "dead_on_arrival",
        lambda arrivals: (arrivals.dead, arrivals.on_time),
        bounds.dead_on_arrival,
        "had expired before their update, so nobody saw them; a shorter update_interval shows more, and if that is as it should "
        f"be, raise dead_on_arrival of [streams.{name}.health]",
        None,
    )
    yield from _share_concern(
        table,
        "late",
        lambda arrivals: (arrivals.late, arrivals.on_time),
        bounds.late,
        "came late: their arrival lay before the update before; do files come in time, and in the right time zone?",
        None,
    )
    if table.last.lost:
        text = f"{table.last.lost:,} rows were counted and not stored: their landing file vanished during the last update"
        yield Concern("attention", "lost", name, text, "stream-wh check")


def _share_concern(
    table: TableFacts,
    kind: Kind,
    counts: Callable[[Arrivals], tuple[int, int]],
    bound: float,
    predicate: str,
    command: str | None,
) -> Iterator[Concern]:
    """Yield a concern if a share of the rows is too large in the last update, or else in the updates of the last day."""
    for arrivals in (table.last, table.day):
        part, total = counts(arrivals)
        if total and part / total > bound:
            period = "the last update" if arrivals is table.last else f"the newest {arrivals.updates} updates within a day"
            text = f"{part / total:.1%} of the rows of {period} ({part:,} of {total:,}) {predicate}"
            yield Concern("attention", kind, table.name, text, command)
            return


_TABLE_RULES = (_state_concerns, _landing_concerns, _row_concerns)


# --- words ---


def _files(count: int) -> str:
    return f"{count} landing file{'' if count == 1 else 's'}"
