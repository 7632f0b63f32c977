"""Chapter 8 of the source: schedules of shared refreshes under load: ``python -m benchmarks.source.refreshes``.

A model, no warehouse: the tasks of ``benchmarks.source.deadlines`` for drawn queries run on a clock that counts updates
(shared-aggregates sheet, section 9). A run takes ``scan * longest window + single * queries`` updates. Each claim M1 to M6
has a line.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from math import floor
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import click

from benchmarks.field.page import markdown_table
from benchmarks.source.deadlines import DeadlineTask, Sharing, SubGroup, conservative, hybrid, next_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["LOADS", "TECHNIQUES", "Load", "Outcome", "claims", "main", "measure", "schedule"]

GROUPS = 8
SIZES = (5, 10, 20, 30)
"""Queries of a group."""
WINDOWS = (20, 100)
"""The shortest and the longest window, in updates; a period is at most half a window."""
_RESULTS = Path(__file__).parents[1] / "results" / "source"


def schedule(tasks: Sequence[DeadlineTask], sharing: Sharing, updates: int) -> list[tuple[int, tuple[DeadlineTask, ...]]]:
    """Return the joint runs if each update leaves time for one run at most: the update's number, and the tasks.

    Parameters
    ----------
    tasks
        Of one scheduler; the first deadline of each is its period.
    sharing
        What joins a run.
    updates
        How many.
    """
    remaining = {task: task.period for task in tasks}
    runs = []
    for update in range(1, updates + 1):
        remaining = {task: time - 1 for task, time in remaining.items()}
        joined = next_run(tasks, remaining, sharing)
        if joined:
            runs.append((update, joined))
            remaining |= {task: task.period for task in joined}
    return runs


@dataclass(frozen=True)
class Load:
    """What a run takes, in updates: for each update of its longest window, and for each query that it refreshes."""

    name: str
    scan: float
    single: float


LOADS = (Load("1500/s", 0.002, 0.0005), Load("3000/s", 0.006, 0.001))
"""The two loads of section 9, as the sheet models them."""

TECHNIQUES: Mapping[str, Sharing] = {
    "No-S": "none",
    "AS": "equal",
    "CS": "equal",
    "CS + late": "late",
    "CS + late-pending": "pending",
    "HS": "equal",
    "H-LS": "late",
    "H-LP": "pending",
}


@dataclass(frozen=True)
class Outcome:
    """What a technique did: means over the seeds.

    Parameters
    ----------
    refreshes
        Of queries, for each update.
    useful
        The same, counted once in each period of the query: n updates.
    latency
        Updates that a query is late, mean over its refreshes and over the queries (section 9).
    tasks
        How many.
    """

    refreshes: float
    useful: float
    latency: float
    tasks: float


def measure(load: Load, size: int, technique: str, seeds: Sequence[int], updates: int) -> Outcome:
    """Return the outcome of a technique with drawn queries."""
    return _mean([_play(_tasks(technique, _draw(size, seed)), load, TECHNIQUES[technique], updates) for seed in seeds])


def _mean(outcomes: Sequence[Outcome]) -> Outcome:
    return Outcome(**{name: fmean(getattr(outcome, name) for outcome in outcomes) for name in Outcome.__dataclass_fields__})


def _draw(size: int, seed: int) -> list[SubGroup]:
    chance = random.Random(seed)  # noqa: S311 - drawn queries
    subgroups = []
    for group in range(GROUPS):
        windows: defaultdict[int, list[int]] = defaultdict(list)
        for _ in range(size):
            window = chance.randint(*WINDOWS)
            windows[chance.randint(1, window // 2)].append(window)
        subgroups += [
            SubGroup(f"{group}.{period:03}", str(group), period, max(lengths), len(lengths))
            for period, lengths in windows.items()
        ]
    return subgroups


def _tasks(technique: str, subgroups: Sequence[SubGroup]) -> tuple[DeadlineTask, ...]:
    if technique == "AS":
        return tuple(
            DeadlineTask(tuple(subgroup for subgroup in subgroups if subgroup.group == group))
            for group in sorted({subgroup.group for subgroup in subgroups})
        )
    return hybrid(subgroups) if technique.startswith("H") else conservative(subgroups)


def _play(tasks: Sequence[DeadlineTask], load: Load, sharing: Sharing, updates: int) -> Outcome:
    """Runs follow each other; an update that falls into a run is done when it ends, and counts for all tasks."""
    remaining = {task: task.period for task in tasks}
    ran: dict[SubGroup, list[int]] = {part: [0] for task in tasks for part in task.parts}
    clock, seen = 0.0, 0
    while clock < updates:
        if floor(clock) > seen:
            remaining = {task: time - (floor(clock) - seen) for task, time in remaining.items()}
            seen = floor(clock)
        joined = next_run(tasks, remaining, sharing)
        if not joined:
            clock = seen + 1
            continue
        parts = [part for task in joined for part in task.parts]
        clock += load.scan * float(max(part.cost for part in parts)) + load.single * sum(part.queries for part in parts)
        for part in parts:
            ran[part].append(seen)
        remaining |= {task: task.period for task in joined}
    return _outcome(ran, len(tasks), updates)


def _outcome(ran: Mapping[SubGroup, Sequence[int]], tasks: int, updates: int) -> Outcome:
    refreshes = useful = 0
    late: list[float] = []
    for part, at in ran.items():
        refreshes += part.queries * (len(at) - 1)
        useful += part.queries * len({(update - 1) // part.period for update in at[1:]})
        waits = [max(0, later - earlier - part.period) for earlier, later in zip(at, [*at[1:], updates], strict=True)]
        late += [fmean(waits[:-1] if len(waits) > 1 else waits)] * part.queries
    return Outcome(refreshes / updates, useful / updates, fmean(late), tasks)


Table = dict[tuple[str, int, str], Outcome]
"""Outcomes by load, size of a group and technique."""

_LOW, _HIGH = (level.name for level in LOADS)
_MOST = SIZES[-1]
_NOT_SHARED = ("No-S", "CS")
_LATE = {"CS + late": "H-LS", "CS + late-pending": "H-LP"}
_NONE_LATE = 0.01
"""Latencies are compared from here: a hundredth of an update."""


@dataclass(frozen=True)
class Claim:
    """A claim of the source, whether it holds here, the values, and why it does not."""

    name: str
    text: str
    holds: bool
    measured: str
    why: str = ""


def claims(table: Table) -> list[Claim]:
    """Return the claims M1 to M6 of section 9, judged.

    Parameters
    ----------
    table
        The outcomes of all loads, sizes and techniques.
    """
    return [*_underload(table), *_overload(table)]


def _underload(table: Table) -> list[Claim]:
    rate, late = _of(table, _LOW, "refreshes"), _of(table, _LOW, "latency")
    shared = [name for name in TECHNIQUES if name not in _NOT_SHARED]
    lowest = all(
        max(rate[name][at] for name in _NOT_SHARED) <= min(rate[name][at] for name in shared) for at in range(len(SIZES))
    )
    gaps = [conservative - single for single, conservative in zip(rate["No-S"], rate["CS"], strict=True)]
    twice = _over(rate["HS"], rate["CS"])
    tenth = _over([max(latency, _NONE_LATE) for latency in late["CS"]], [max(latency, _NONE_LATE) for latency in late["HS"]])
    tasks = _over(_of(table, _LOW, "tasks")["HS"], _of(table, _LOW, "tasks")["CS"])
    adds = [pending - plain for plain, pending in zip(rate["HS"], rate["H-LP"], strict=True)]
    both = list(zip(late["No-S"], late["CS"], strict=True))
    often = all(aggressive > plain for aggressive, plain in zip(rate["AS"], rate["CS"], strict=True))
    cheap = "a joint run costs little more here than its longest window"
    light = "the model is not overloaded by so few queries"
    return [
        Claim("M1", "No-S and CS refresh least", lowest, f"No-S {_text(rate['No-S'])}, CS {_text(rate['CS'])}", light),
        Claim("M1", "the gap between them grows with the queries", _grows(gaps), _text(gaps)),
        Claim("M2", "HS refreshes at least twice as often as CS", min(twice) >= 2, _text(twice), light),
        Claim("M2", "the latency of HS is a tenth of that of CS", min(tenth) >= 10, _text(tenth), light),
        Claim(
            "M2",
            "HS leaves about half of the tasks (0.4 to 0.6)",
            all(0.4 <= share <= 0.6 for share in tasks),
            _text(tasks),
            light,
        ),
        Claim("M3", "H-LP adds to HS, more so with more queries", adds[-1] > 0 and _grows(adds), _text(adds), light),
        Claim(
            "M3",
            "No-S and CS are late even with few queries",
            all(min(latencies) > _NONE_LATE for latencies in both),
            _text(late["CS"]),
            light,
        ),
        Claim("M3", "No-S is the latest", all(first >= second for first, second in both), _text(late["No-S"])),
        Claim("M4", "AS refreshes often, and is late", often and min(late["AS"]) > _NONE_LATE, _text(late["AS"]), cheap),
    ]


def _overload(table: Table) -> list[Claim]:
    rate, late = _of(table, _HIGH, "refreshes"), _of(table, _HIGH, "latency")
    worse = all(
        table[_HIGH, size, name].latency >= table[_LOW, size, name].latency
        and table[_HIGH, size, name].refreshes <= table[_LOW, size, name].refreshes
        for size in SIZES
        for name in TECHNIQUES
    )
    twice = _over(rate["H-LP"], rate["HS"])
    gains = [_of(table, load, "refreshes")["HS"][-1] / _of(table, load, "refreshes")["CS"][-1] for load in (_LOW, _HIGH)]
    sharp = _over(rate["AS"], _of(table, _LOW, "refreshes")["AS"])
    remaining_techniques = [name for name in TECHNIQUES if name not in {"AS", "H-LP"}]
    best = all(rate["H-LP"][-1] > rate[name][-1] and late["H-LP"][-1] < late[name][-1] for name in remaining_techniques)
    plain = [
        _of(table, load, "refreshes")[merged][at] / _of(table, load, "refreshes")[apart][at]
        for load in (_LOW, _HIGH)
        for apart, merged in _LATE.items()
        for at in range(len(SIZES))
    ]
    return [
        Claim("M5", "all refresh less and later", worse, f"No-S late by {_text(late['No-S'])}"),
        Claim(
            "M5",
            "the gain of HS over CS is smaller",
            gains[1] < gains[0],
            _text(gains),
            "HS is what keeps CS from its backlog here",
        ),
        Claim("M5", f"H-LP refreshes twice as often as HS ({_MOST} queries)", twice[-1] > 2, _text(twice)),
        Claim("M5", f"H-LP is best in both, AS apart ({_MOST} queries)", best, f"late by {_text(late['H-LP'])}"),
        Claim(
            "M5",
            "AS drops more sharply than H-LP",
            sharp[-1] < _over(rate["H-LP"], _of(table, _LOW, "refreshes")["H-LP"])[-1],
            _text(sharp),
        ),
        Claim("M6", "late sharing refreshes less on CS than on HS", min(plain) >= 1, f"least {min(plain):.2f}"),
    ]


def _of(table: Table, load: str, quantity: str) -> dict[str, list[float]]:
    """The values of a quantity over the sizes, by technique."""
    return {name: [getattr(table[load, size, name], quantity) for size in SIZES] for name in TECHNIQUES}


def _over(values: Sequence[float], divisors: Sequence[float]) -> list[float]:
    return [value / other for value, other in zip(values, divisors, strict=True)]


def _grows(values: Sequence[float]) -> bool:
    return all(later >= earlier for earlier, later in pairwise(values))


def _text(values: Sequence[float]) -> str:
    return " ".join(f"{value:.3g}" for value in values)


@click.command(epilog="Example: python -m benchmarks.source.refreshes --seeds 1 --updates 100")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True, help="Draws of the queries: seeds 0, 1, ...")
@click.option("--updates", type=click.IntRange(10), default=300, show_default=True, help="Updates of each play.")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, help="Where the page and its pictures go.")
def main(seeds: int, updates: int, results: Path) -> None:
    """Play every technique for 8 groups of 5, 10, 20 and 30 queries at both loads, and judge each claim of the source."""
    table = {
        (load.name, size, technique): measure(load, size, technique, range(seeds), updates)
        for load in LOADS
        for size in SIZES
        for technique in TECHNIQUES
    }
    results.mkdir(parents=True, exist_ok=True)
    page = _page(table, seeds, updates)
    (results / "refreshes.md").write_text(page)
    for load in LOADS:
        _draw_load(table, load.name, results / f"refreshes-{load.name.replace('/', '-')}.png")
    click.echo(page)


def _page(table: Table, seeds: int, updates: int) -> str:
    judged = [["", "claim of the source", "verdict", "measured, groups of 5, 10, 20, 30"]]
    for claim in claims(table):
        verdict = "holds" if claim.holds else f"does not hold here{': ' * bool(claim.why)}{claim.why}"
        judged.append([claim.name, claim.text, verdict, claim.measured])
    rows = [["load, queries a group, technique", "refreshes an update", "useful ones", "latency, updates", "tasks"]]
    for (load, size, technique), claim in table.items():
        numbers = (claim.refreshes, claim.useful, claim.latency)
        rows.append([f"{load}, {size}, {technique}", *(f"{number:.2f}" for number in numbers), f"{claim.tasks:.0f}"])
    setup = (
        f"A model: {GROUPS} groups, windows of {WINDOWS[0]} to {WINDOWS[1]} updates, periods up to half a window, {seeds} draws "
        f"of the queries, {updates} updates. A run takes `scan * longest window + single * queries` updates: "
        + "; ".join(f"{load.name} scan {load.scan}, single {load.single}" for load in LOADS)
        + ". A useful refresh is the first in a period of its query."
    )
    pictures = [f"![{load.name}](refreshes-{load.name.replace('/', '-')}.png)" for load in LOADS]
    return (
        "\n\n".join(
            [
                "# Shared refreshes: chapter 8 of the source",
                setup,
                markdown_table(judged, numbers=False),
                *pictures,
                markdown_table(rows),
            ]
        )
        + "\n"
    )


def _draw_load(table: Table, load: str, path: Path) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra `bench` has it

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    refresh_axes, latency_axes = figure.subplots(1, 2)
    for name in TECHNIQUES:
        refresh_axes.plot(SIZES, _of(table, load, "useful")[name], marker="o", label=name)
        latency_axes.plot(SIZES, _of(table, load, "latency")[name], marker="o", label=name)
    refresh_axes.set(title=f"{load}: useful refreshes an update", xlabel="queries a group")
    latency_axes.set(title="latency, updates", xlabel="queries a group")
    refresh_axes.legend(fontsize=7)
    for axes in (refresh_axes, latency_axes):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
