"""What the lines of a run say of each contender: medians with their quartiles, and ratios to this warehouse, update by update."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.ratio import Ratio, Sample, ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.field.job import Job
    from benchmarks.field.results import Results

__all__ = ["QUANTITIES", "Quantity", "Spread", "beside", "spread"]

Line = dict[str, Any]


@dataclass(frozen=True)
class Quantity:
    """One thing that is measured at each update: how it is named and shown, and its value in a line of results."""

    name: str
    title: str
    unit: str
    of: Callable[[Line, Job], float]


@dataclass(frozen=True)
class Spread:
    """A median and its quartiles, over the updates."""

    median: float
    low: float
    high: float
    values: tuple[float, ...]


QUANTITIES: tuple[Quantity, ...] = (
    Quantity("update", "update", "s", lambda line, _: line["load"] + line["expire"]),
    Quantity("tidy", "housekeeping", "s", lambda line, _: line["tidy"]),
    Quantity("few", "probe, few rows", "ms", lambda line, _: _milliseconds(line, "few")),
    Quantity("many", "probe, many rows", "ms", lambda line, _: _milliseconds(line, "many")),
    Quantity("absent", "probe, absent key", "ms", lambda line, _: _milliseconds(line, "absent")),
    Quantity("scan", "scan", "s", lambda line, _: line["scan"]),
    Quantity("aggregate", "aggregate", "ms", lambda line, _: 1000 * line["aggregate"]),
    Quantity("written", "bytes written / inserted", "", lambda line, job: line["written"] / (line["landed"] * job.row_bytes)),
    Quantity("space", "bytes on disk / live row bytes", "", lambda line, job: line["bytes"] / (line["live"] * job.row_bytes)),
    Quantity("files", "files", "", lambda line, _: line["files"]),
    Quantity("dead", "dead bytes", "MB", lambda line, _: line["bytes"] * _dead(line) / 1e6),
)
"""Dead bytes: those on disk, times the share of dead rows among the rows that the newest state's files hold."""


def _milliseconds(line: Line, kind: str) -> float:
    return 1000 * statistics.median(min(seconds) for seconds in line["probes"][kind])


def _dead(line: Line) -> float:
    return max(0.0, 1 - line["live"] / line["stored"]) if line["stored"] else 0.0


def _values(results: Results, contender: str, quantity: Quantity, job: Job, slots: Sequence[int]) -> tuple[float, ...]:
    done = results.of(contender).done
    return tuple(quantity.of(done[slot], job) for slot in slots)


def spread(results: Results, contender: str, quantity: Quantity, job: Job) -> Spread | None:
    """Return a contender's median of a quantity; None without an update."""
    slots = sorted(results.of(contender).done)
    if not slots:
        return None
    values = _values(results, contender, quantity, job, slots)
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return Spread(middle, low, high, values)


def beside(results: Results, contender: str, ours: str, quantity: Quantity, job: Job) -> Ratio | None:
    """Return a contender's ratio to this warehouse over the updates that both made; None without such an update."""
    slots = sorted(set(results.of(contender).done) & set(results.of(ours).done))
    if not slots:
        return None
    of, to = (_values(results, name, quantity, job, slots) for name in (contender, ours))
    if min(to) <= 0:
        return None
    return ratio("field", quantity.title, Sample(contender, quantity.unit, of), Sample(ours, quantity.unit, to))
