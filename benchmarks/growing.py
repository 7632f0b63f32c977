"""Growth: whether an update of the same batch takes longer, or does more, when many more rows are live."""

from __future__ import annotations

import shutil
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from benchmarks.plain import measured
from benchmarks.project import Project
from benchmarks.ratio import Ratio, Sample, ratio

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.bench import Bench
    from warehouse.epochs.records import Counts

__all__ = ["measure"]

_NAME = "growth"
_UPDATES = 16
TARGET = 1.2
_COUNTED: tuple[tuple[str, str, Callable[[Counts], int]], ...] = (
    ("rows that an update writes, sealed ones included", "rows", lambda counts: counts.inserted + counts.rewritten),
    ("bytes that an update writes", "bytes", lambda counts: counts.bytes_written),
    ("sub-indices that an update changes", "", lambda counts: counts.changed),
)


@dataclass(frozen=True)
class _Update:
    seconds: float
    counts: Counts


def measure(bench: Bench) -> list[Ratio]:
    """Return the ratios of updates with many and with few live rows, updated in turn with the same rows."""
    settings = bench.settings
    few = Project(bench.scratch / "few", settings)
    many = Project(bench.scratch / "many", settings)
    for project, times in ((few, 1), (many, settings.times)):
        bench.say(f"building a warehouse of {settings.rows * times:,} live rows")
        project.build(settings.rows * times, bench.spark)
    bench.say("updates of both in turn")
    pairs = []
    for number in range(min(settings.updates, _UPDATES)):
        order = (few, many) if number % 2 else (many, few)
        done = {id(project): _update(bench, project) for project in order}
        if number >= settings.warm_up:
            pairs.append((done[id(few)], done[id(many)]))
    shutil.rmtree(many.directory)
    lines = []
    names = [f"{settings.rows * times:,} live rows" for times in (settings.times, 1)]
    for text, sealing, target in (("", False, TARGET), ("that seals ", True, None)):
        chosen = [(a.seconds, b.seconds) for a, b in pairs if bool(a.counts.sealed) == bool(b.counts.sealed) == sealing]
        if chosen:
            small, large = zip(*chosen, strict=True)
            lines.append(
                ratio(
                    _NAME,
                    f"update {text}with {settings.times} times the live rows / update",
                    Sample(names[0], "s", large),
                    Sample(names[1], "s", small),
                    target=target,
                ),
            )
    for text, unit, of in _COUNTED:  # of all updates, sealing ones among them
        small, large = (Sample(name, unit, (statistics.fmean(map(of, side)),)) for name, side in zip(
            reversed(names), zip(*((a.counts, b.counts) for a, b in pairs), strict=True), strict=True
        ))  # fmt: skip
        lines.append(ratio(_NAME, f"{text} (mean), with {settings.times} times the live rows / with few", large, small))
    return lines


def _update(bench: Bench, project: Project) -> _Update:
    landed = project.land(project.slot + 1)
    counts: list[Counts] = []
    cost = measured(bench.spark, lambda: counts.append(project.update(bench.spark)[0].counts[0]))
    shutil.rmtree(landed)
    return _Update(cost.wall, counts[0])
