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
    timed = [played for played in bench.rounds if played.timed]
    plainly = [played for played in timed if not played.sealed]
    sealing = [played for played in timed if played.sealed]
    bench.details["seconds of an update up to each point, without sealing"] = phases(plainly)
    bench.details["seconds of an update up to each point, sealing"] = phases(sealing)
    lines = [
        *_lines(plainly, "update / read, sort, write", lambda played: played.plain, target=TARGET),
        *_lines(sealing, "update that seals / read, sort, write", lambda played: played.plain),
        *_lines(timed, "any update / read, sort, write", lambda played: played.plain),
        *_lines(plainly, "update / read, sort, write with the update's Spark settings", lambda played: played.tuned),
        *_lines(plainly, "update / write of rows sorted and cached before", lambda played: played.cached),
    ]
    if plainly:
        lines.append(
            ratio(
                _NAME,
                "update / read, sort, write: processor time",
                Sample("update", "CPU s", tuple(played.update.cpu for played in plainly)),
                Sample("plain write", "CPU s", tuple(played.plain.cpu for played in plainly if played.plain)),
            ),
        )
    return lines


def _lines(
    rounds: Sequence[Round], text: str, other: Callable[[Round], Cost | None], target: float | None = None
) -> list[Ratio]:
    pairs = [(played.update.wall, cost.wall) for played in rounds if (cost := other(played)) is not None]
    if not pairs:
        return []
    updates, writes = zip(*pairs, strict=True)
    return [ratio(_NAME, text, Sample("update", "s", updates), Sample("plain write", "s", writes), target=target)]


def phases(rounds: Sequence[Round]) -> dict[str, float]:
    """Return the median seconds that updates took up to each of their points."""
    names = dict.fromkeys(name for played in rounds for name in played.phases)
    return {name: statistics.median(played.phases.get(name, 0.0) for played in rounds) for name in names}
