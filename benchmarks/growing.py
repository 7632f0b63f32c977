"""Growth: whether an update of the same batch takes longer when many more rows are live."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from benchmarks.plain import measured
from benchmarks.project import Project
from benchmarks.ratio import Ratio, Sample, ratio

if TYPE_CHECKING:
    from benchmarks.bench import Bench

__all__ = ["measure"]

_NAME = "growth"
_UPDATES = 16
TARGET = 1.2


def measure(bench: Bench) -> list[Ratio]:
    """Return the ratios of update times with many and with few live rows, updated in turn with the same rows."""
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
    for text, sealing, target in (("", False, TARGET), ("that seals ", True, None)):
        chosen = [(a, b) for (a, sealed), (b, also) in pairs if sealed == also == sealing]
        if chosen:
            small, large = zip(*chosen, strict=True)
            lines.append(
                ratio(
                    _NAME,
                    f"update {text}with {settings.times} times the live rows / update",
                    Sample(f"{settings.rows * settings.times:,} live rows", "s", large),
                    Sample(f"{settings.rows:,} live rows", "s", small),
                    target=target,
                ),
            )
    return lines


def _update(bench: Bench, project: Project) -> tuple[float, bool]:
    """Return the seconds of an update, and whether it sealed."""
    place = project.land(project.slot + 1)
    sealed: list[int] = []
    cost = measured(bench.spark, lambda: sealed.append(project.update(bench.spark)[0].counts[0].sealed))
    shutil.rmtree(place)
    return cost.wall, bool(sealed[0])
