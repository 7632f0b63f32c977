"""Update: how long a `norebuild` update takes beside the plain write of the same rows."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from benchmarks.ratio import Ratio, Sample, ratio

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.bench import Bench
    from benchmarks.plain import Cost
    from benchmarks.rounds import Round

__all__ = ["measure"]

_NAME = "update"
TARGET = 1.5


def measure(bench: Bench) -> list[Ratio]:
    """Return the ratios of update times."""
    timed = [each for each in bench.rounds if each.timed]
    plainly = [each for each in timed if not each.sealed]
    sealing = [each for each in timed if each.sealed]
    bench.details["seconds of an update up to each point, without sealing"] = phases(plainly)
    bench.details["seconds of an update up to each point, sealing"] = phases(sealing)
    lines = [
        *_lines(plainly, "update / read, sort, write", lambda each: each.plain, target=TARGET),
        *_lines(sealing, "update that seals / read, sort, write", lambda each: each.plain),
        *_lines(timed, "any update / read, sort, write", lambda each: each.plain),
        *_lines(plainly, "update / read, sort, write with the update's Spark settings", lambda each: each.tuned),
        *_lines(plainly, "update / write of rows sorted and cached before", lambda each: each.cached),
    ]
    if plainly:
        lines.append(
            ratio(
                _NAME,
                "update / read, sort, write: processor time",
                Sample("update", "CPU s", tuple(each.update.cpu for each in plainly)),
                Sample("plain write", "CPU s", tuple(each.plain.cpu for each in plainly if each.plain)),
            ),
        )
    return lines


def _lines(
    rounds: Sequence[Round], text: str, other: Callable[[Round], Cost | None], target: float | None = None
) -> list[Ratio]:
    pairs = [(each.update.wall, cost.wall) for each in rounds if (cost := other(each)) is not None]
    if not pairs:
        return []
    updates, writes = zip(*pairs, strict=True)
    return [ratio(_NAME, text, Sample("update", "s", updates), Sample("plain write", "s", writes), target=target)]


def phases(rounds: Sequence[Round]) -> dict[str, float]:
    """Return the median seconds that updates took up to each of their points."""
    names = dict.fromkeys(name for each in rounds for name in each.phases)
    return {name: statistics.median(each.phases.get(name, 0.0) for each in rounds) for name in names}
