"""The metrics of a warehouse in the text format of Prometheus, written by its client library.

All metrics are gauges from the newest epoch and the landing directories, since no process of the warehouse keeps running to
count. The text suits the node exporter's textfile collector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from warehouse.health import LEVELS
from warehouse.serving.staleness import stale_tables
from warehouse.serving.table_status import status
from warehouse.serving.visible_tables import counts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.epochs.records import Counts, Epoch
    from warehouse.health import Health
    from warehouse.planning.inputs import LandingFacts
    from warehouse.serving.reader import Reader
    from warehouse.serving.table_status import TableStatus

__all__ = ["prometheus_text"]

_SECOND = 1_000_000
_OUTCOMES = ("inserted", "late", "over_lifetime", "deferred", "dead", "rejected", "lost", "expired", "rewritten")


def prometheus_text(
    reader: Reader, landing: Sequence[LandingFacts], stale_after: Mapping[str, int], health: Health, *, retain: int, now: int
) -> bytes:
    """Return the metrics of the reader's epoch.

    Parameters
    ----------
    reader
        The newest epoch.
    landing
        The waiting files in the landing directories, and the files that need a person.
    stale_after
        The greatest age of the newest data of each table that declares it.
    health
        The verdict.
    retain, now
        How long superseded epochs stay readable, and the clock's instant; all in microseconds.

    """
    gauges = _Gauges()
    _health(gauges, health)
    _epoch(gauges, reader.epoch, now)
    tables = tuple(table_status for table_status in status(reader, retain=retain) if table_status.kind != "state")
    for table in tables:
        _table(gauges, table)
    stale = stale_tables(reader.epoch, stale_after, now)
    for name in stale_after:
        gauges.set("table_stale", "1 if the newest data is older than stale_after", int(name in stale), table=name)
    for counts in counts_of(reader.epoch):
        _counts(gauges, counts)
    for facts in landing:
        _landing(gauges, facts)
    return gauges.text()


def _health(gauges: _Gauges, health: Health) -> None:
    gauges.set("health", "0: ok, 1: needs attention, 2: broken", LEVELS.index(health.level))
    for concern in health.concerns:
        text = "what needs a person, by kind: 1: needs attention, 2: broken; all: of no table alone"
        gauges.set("health_concern", text, LEVELS.index(concern.level), kind=concern.kind, table=concern.table or "")


def _epoch(gauges: _Gauges, epoch: Epoch, now: int) -> None:
    gauges.set("epoch", "number of the newest epoch", epoch.number)
    gauges.set("window_time_seconds", "window time, since 1970", epoch.window_time / _SECOND)
    gauges.set("committed_time_seconds", "when the newest epoch was committed, since 1970", epoch.committed_at / _SECOND)
    gauges.set("lag_seconds", "wall-clock time minus window time", (now - epoch.window_time) / _SECOND)
    if epoch.planned_at:
        seconds = (epoch.committed_at - epoch.planned_at) / _SECOND
        gauges.set("update_seconds", "from plan to commit of the last update", seconds)
    for step in epoch.seconds:
        gauges.set("update_step_seconds", "seconds of each step of the last update", step.seconds, step=step.step)


def _table(gauges: _Gauges, table: TableStatus) -> None:
    name = table.table
    gauges.set("table_live_rows", "rows that are live at the window time", table.live_rows, table=name)
    gauges.set("table_rows", "rows in the table's files, expired ones included", table.rows, table=name)
    gauges.set("table_files", "data files of the newest epoch", table.files, table=name)
    gauges.set("table_bytes", "bytes of these files", table.bytes, table=name)
    gauges.set("table_waiting_rows", "rows that wait for their slot", table.waiting, table=name)
    gauges.set("table_rejected_rows", "rejected rows that are kept", table.rejected, table=name)
    failed = "1 for a view that the last update could not maintain, and for a table that stands still"
    gauges.set("table_failed", failed, int(table.failed is not None), table=name)
    if table.late is not None:
        gauges.set("answers_waiting", "due windows that the last update had no time to answer", table.waiting, table=name)
        gauges.set("answers_late_updates", "how many updates ago the first of these was due", table.late, table=name)
    if (owed := table.owed) is not None:
        for bound, value in (("least", owed.least), ("most", owed.most)):
            text = "results that a view under a budget lacks, at least and at most"
            gauges.set("owed_results", text, value, table=name, bound=bound)
        gauges.set("owed_share", "the least share of its results that a view under a budget has", owed.share_least, table=name)
        gauges.set("owed_rows", "rows that completing a view under a budget joins at most", owed.rows, table=name)
        for bound, value in (("least", owed.incomplete), ("most", owed.rows)):
            text = "rows that lack a partner in a view under a budget (the Archive-metric), at least and at most"
            gauges.set("incomplete_rows", text, value, table=name, bound=bound)
        gauges.set("lapsed_units", "units that ended before a view under a budget made them", owed.lapsed, table=name)
        text = "rows that had ended while they were owed, whose results a rebuild of the view gave up"
        gauges.set("given_up_rows", text, owed.ended, table=name)
    if table.newest is not None:
        gauges.set("table_newest_seconds", "ts of the newest row that ever came, since 1970", table.newest / _SECOND, table=name)


def _counts(gauges: _Gauges, counts: Counts) -> None:
    name = counts.stream
    for outcome in _OUTCOMES:
        text = "rows of the last update by what became of them"
        gauges.set("update_rows", text, getattr(counts, outcome), table=name, outcome=outcome)
    gauges.set("update_read_bytes", "bytes of landing files that the last update loaded", counts.bytes_read, table=name)
    gauges.set("update_written_bytes", "bytes of data files that the last update wrote", counts.bytes_written, table=name)


def _landing(gauges: _Gauges, facts: LandingFacts) -> None:
    counts = {
        "waiting": facts.waiting,
        "settling": facts.settling,
        "changed": len(facts.changed),
        "unreadable": len(facts.unreadable),
    }
    for state, number in counts.items():
        text = "landing files that are not loaded, by what they wait for"
        gauges.set("landing_files", text, number, table=facts.stream, state=state)


class _Gauges:
    """Gauges by name, in a registry of their own: metrics of the reading process do not belong to the warehouse."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._made: dict[str, Gauge] = {}

    def set(self, name: str, text: str, value: float, **labels: str) -> None:
        """Set one sample."""
        gauge = self._made.get(name)
        if gauge is None:
            gauge = Gauge(f"stream_wh_{name}", text, tuple(labels), registry=self._registry)
            self._made[name] = gauge
        (gauge.labels(**labels) if labels else gauge).set(value)

    def text(self) -> bytes:
        """Return all of them."""
        return generate_latest(self._registry)
