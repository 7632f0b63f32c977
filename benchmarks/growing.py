"""Growth: whether an update of the same batch takes longer when many more rows are live."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from benchmarks.plain import measured
from benchmarks.project import Project
from benchmarks.ratio import Ratio, Sample, ratio

if TYPE_CHECKING:
    from benchmarks.bench import Bench

__all__ = ["measure"]

_NAME = "growth"
TARGET = 1.2


def measure(bench: Bench) -> list[Ratio]:
    """Return the ratios of update times with many and with few live rows, updated in turn with the same rows."""
    settings = bench.settings
    small = Project(bench.scratch / "small", settings)
    large = Project(bench.scratch / "large", settings)
    for project, times in ((small, 1), (large, settings.times)):
        bench.say(f"building a warehouse of {settings.rows * times:,} live rows")
        project.build(settings.rows * times, bench.spark)
    bench.say(f"updates of {settings.batch:,} rows, in turn")
    seconds: dict[tuple[bool, Project], list[float]] = {}
    kinds = {id(small): "few", id(large): "many"}
    found: dict[tuple[str, bool], list[float]] = {}
    for number in range(settings.updates):
        for project in (small, large) if number % 2 else (large, small):
            project.land(project.slot + 1)
            sealed: list[int] = []
            cost = measured(bench.spark, lambda: sealed.append(project.update(bench.spark)[0].counts[0].sealed))  # noqa: B023
            if number >= settings.warm_up:
                found.setdefault((kinds[id(project)], bool(sealed[0])), []).append(cost.wall)
    del seconds, replace
    return []
