"""Chapter 7 of the source: queries while windows move: ``python -m benchmarks.source.movements``.

A model of one processor, no warehouse: periodic queries, in groups of five that share a scan, are run again round-robin without
pause; one-time queries come at random and go first (window-concurrency sheet, sections 5 and 9). A read of a sub-window takes
``6 + 4 * t`` ms, half as long to half as long again, a third of that for a one-time query; a movement takes 5 ms. An ended query
begins again at once. Each claim E1 to E7 has a line.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import click

from benchmarks.field.page import markdown_table
from benchmarks.source.refreshes import Claim
from benchmarks.source.schedulers import Kind, Query, Window

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["KINDS", "SETTINGS", "Measured", "Setting", "claims", "main", "measure"]

KINDS: tuple[Kind, ...] = ("Serial", "WS", "LWS", "TTU")
SLOTS = (10, 40, 70, 100)
_SHARED = 5
_MOVEMENT = 0.005
_ONE_TIME_SHARE = 1 / 3
_GAP = 1.0
_RESULTS = Path(__file__).parents[1] / "results" / "source"


@dataclass(frozen=True)
class Setting:
    """A test: seconds between movements, sub-windows, periodic queries, and whether one-time queries come too."""

    seconds: float
    slots: int
    queries: int
    mixed: bool = False

    def __str__(self) -> str:
        return f"t = {self.seconds:g} s, n = {self.slots}{', mixed' * self.mixed}"


SETTINGS = tuple(
    [Setting(1, slots, 40) for slots in SLOTS]
    + [Setting(5, slots, 100) for slots in SLOTS]
    + [Setting(5, slots, 100, mixed=True) for slots in SLOTS]
)


@dataclass(frozen=True)
class Measured:
    """Means over the seeds (section 5).

    Attributes
    ----------
    aborts
        Percent of the queries that began.
    staleness, once_staleness
        Seconds from the movement that an answer knows to its report; of periodic and of one-time queries.
    between
        Seconds between two reports of a periodic query.
    throughput
        Queries that committed, a second.
    response
        Seconds from the submission of a one-time query to its report.

    """

    aborts: float
    staleness: float
    between: float
    throughput: float
    response: float
    once_staleness: float


@dataclass(eq=False)
class _Job:
    needed: int
    submitted: float
    once: bool = False
    query: Query | None = None


@dataclass
class _Play:
    setting: Setting
    kind: Kind
    chance: random.Random
    now: float = 0.0
    ended: int = 0
    committed: int = 0
    staleness: list[float] = field(default_factory=list)
    once: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        setting = self.setting
        self.window = Window(self.kind, setting.slots, setting.slots - 1)
        self.moved = {self.window.newest: 0.0}
        draw = self.chance.randint
        self.periodic = [
            _Job(max(draw(1, setting.slots) for _ in range(_SHARED)), 0.0) for _ in range(setting.queries // _SHARED)
        ]
        self.reports: dict[_Job, list[float]] = {job: [] for job in self.periodic}
        self.waiting: list[_Job] = []
        self.end = setting.seconds * setting.slots
        self.due = setting.seconds
        self.comes = self.chance.expovariate(1 / _GAP) if setting.mixed else float("inf")

    def run(self) -> Measured:
        """Play one window length."""
        turn = 0
        while self.now < self.end:
            self._arrive()
            low = self.periodic[turn % len(self.periodic)]
            if self.due <= self.now and not (self.kind == "Serial" and self.window.active):
                self._move()
                continue
            running = next((job for job in (*self.waiting, low) if job.query is not None), None)
            job = running if self.kind == "Serial" and running is not None else (self.waiting or [low])[0]
            if self._step(job):
                if job.once:
                    self.waiting.remove(job)
                else:
                    turn += 1
        gaps = [later - earlier for times in self.reports.values() for earlier, later in itertools.pairwise(times)]
        started = self.ended + self.committed
        return Measured(
            aborts=100 * self.ended / started if started else 0.0,
            staleness=_mean(self.staleness),
            between=_mean(gaps),
            throughput=self.committed / self.now,
            response=_mean(response for response, _ in self.once),
            once_staleness=_mean(staleness for _, staleness in self.once),
        )

    def _arrive(self) -> None:
        while self.comes <= self.now:
            self.waiting.append(_Job(self.chance.randint(1, self.setting.slots), self.comes, once=True))
            self.comes += self.chance.expovariate(1 / _GAP)

    def _move(self) -> None:
        self.now += _MOVEMENT
        ended_queries = self.window.move()
        self.moved[self.window.newest] = self.now
        self.due += self.setting.seconds
        self.ended += len(ended_queries)
        for job in (*self.waiting, *self.periodic):
            if job.query is not None and job.query.aborted:
                job.query = None

    def _step(self, job: _Job) -> bool:
        """Let a query read once; return whether it has reported."""
        if job.query is None:
            job.query = self.window.begin(job.needed)
        query = job.query
        self.window.step(query)
        share = _ONE_TIME_SHARE if job.once else 1
        self.now += (0.006 + 0.004 * self.setting.seconds) * share * self.chance.uniform(0.5, 1.5)
        if not query.done:
            return False
        self.committed += 1
        stale = self.now - self.moved.get(max(query.read), 0.0)
        if job.once:
            self.once.append((self.now - job.submitted, stale))
        else:
            self.staleness.append(stale)
            self.reports[job].append(self.now)
        job.query = None
        return True


def measure(setting: Setting, kind: Kind, seeds: Iterable[int]) -> Measured:
    """Return the figures of a scheduler, as means over draws of the queries and of the times."""
    outcomes = [_Play(setting, kind, random.Random(seed)).run() for seed in seeds]  # noqa: S311 - a simulation
    return Measured(**{name: fmean(getattr(outcome, name) for outcome in outcomes) for name in Measured.__dataclass_fields__})


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return fmean(numbers) if numbers else 0.0


Table = dict[tuple[Setting, Kind], Measured]


def claims(table: Table) -> list[Claim]:
    """Return the claims E1 to E7 of section 9, judged over all settings."""
    short = [setting for setting in SETTINGS if setting.seconds == 1]
    long = [setting for setting in SETTINGS if setting.seconds > 1 and not setting.mixed]
    mixed = [setting for setting in SETTINGS if setting.mixed]
    plain = [*short, *long]

    def of(name: str, kind: Kind, settings: Sequence[Setting] = plain) -> list[float]:
        return [getattr(table[setting, kind], name) for setting in settings]

    def first(name: str, kinds: Sequence[Kind], settings: Sequence[Setting]) -> bool:
        """Whether the first kind's value is the least in all settings, but for a hundredth."""
        return all(
            getattr(table[setting, kinds[0]], name) <= 1.01 * min(getattr(table[setting, kind], name) for kind in kinds[1:])
            for setting in settings
        )

    aborts = of("aborts", "LWS", short)
    losses = [1 - best / serial for best, serial in zip(of("throughput", "TTU"), of("throughput", "Serial"), strict=True)]
    near = [best / plain_ws for best, plain_ws in zip(of("between", "TTU"), of("between", "WS"), strict=True)]
    return [
        Claim("E1", "TTU ends no query", not any(of("aborts", "TTU", SETTINGS)), _text(of("aborts", "TTU", SETTINGS))),
        Claim(
            "E1", "Algorithm 7 ends more with n", aborts == sorted(aborts), _text(aborts), "it grows up to n = 70, and levels off"
        ),
        Claim(
            "E1",
            "Algorithm 7 ends more at t = 1 s than at 5 s",
            all(short_aborts > long_aborts for short_aborts, long_aborts in zip(aborts, of("aborts", "LWS", long), strict=True)),
            _text(of("aborts", "LWS", long)),
        ),
        Claim(
            "E1",
            "Algorithm 7 ends more than half at t = 1 s, n = 100",
            aborts[-1] > 50,
            f"{aborts[-1]:.1f} %",
            "a query that a movement ended begins right after it, with nearly all of t ahead",
        ),
        Claim("E2", "TTU is the least stale, then LWS", _ordered(table, plain), _text(of("staleness", "TTU"))),
        Claim(
            "E2",
            "Serial is a little less stale than WS",
            first("staleness", ("Serial", "WS"), plain),
            f"Serial {_text(of('staleness', 'Serial'))}, WS {_text(of('staleness', 'WS'))}",
        ),
        Claim(
            "E3",
            "WS and TTU run queries again equally often, LWS least often",
            all(0.95 < quotient < 1.05 for quotient in near) and first("between", ("TTU", "LWS"), plain),
            _text(near),
        ),
        Claim("E4", "TTU loses at most 4 % of the throughput of Serial", max(losses) <= 0.04, f"{100 * max(losses):.1f} %"),
        Claim(
            "E5",
            "one-time queries are answered soonest by TTU and WS, latest by Serial",
            first("response", ("TTU", "LWS", "Serial"), mixed) and first("response", ("LWS", "Serial"), mixed),
            " ".join(f"{kind} {_text(of('response', kind, mixed))}" for kind in KINDS),
        ),
        Claim(
            "E6",
            "one-time answers of TTU are the least stale",
            first("once_staleness", ("TTU", "LWS", "WS", "Serial"), mixed),
            " ".join(f"{kind} {_text(of('once_staleness', kind, mixed))}" for kind in KINDS),
            "under Serial a movement that had waited runs right before the one-time query that had waited too",
        ),
        Claim(
            "E7",
            "TTU is the least stale in the mixed test",
            first("staleness", ("TTU", "LWS", "WS", "Serial"), mixed),
            " ".join(f"{kind} {_text(of('staleness', kind, mixed))}" for kind in KINDS),
        ),
    ]


def _ordered(table: Table, settings: Sequence[Setting]) -> bool:
    for setting in settings:
        best, second, *further = (table[setting, kind].staleness for kind in ("TTU", "LWS", "Serial", "WS"))
        if not best <= 1.02 * second <= 1.02**2 * min(further):
            return False
    return True


def _text(values: Iterable[float]) -> str:
    return " ".join(f"{value:.3g}" for value in values)


@click.command(epilog="Example: python -m benchmarks.source.movements --seeds 1")
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, help="Draws of queries and times: seeds 0, 1, ...")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, help="Where the page and its pictures go.")
def main(seeds: int, results: Path) -> None:
    """Play every scheduler in every test, and judge each claim of the source."""
    table = {(setting, kind): measure(setting, kind, range(seeds)) for setting in SETTINGS for kind in KINDS}
    results.mkdir(parents=True, exist_ok=True)
    for name in ("aborts", "staleness"):
        _draw(table, name, results / f"movements-{name}.png")
    page = _page(table, seeds)
    (results / "movements.md").write_text(page)
    click.echo(page)


def _page(table: Table, seeds: int) -> str:
    judged = [["", "claim of the source", "verdict", "measured"]]
    for claim in claims(table):
        reason = f": {claim.why}" if claim.why else ""
        judged.append([claim.name, claim.text, "holds" if claim.holds else f"does not hold here{reason}", claim.measured])
    names: Mapping[str, str] = {
        "aborts": "ended, %", "staleness": "staleness, s", "between": "again after, s", "throughput": "a second",
        "response": "one-time: response, s", "once_staleness": "one-time: staleness, s",
    }  # fmt: skip
    rows = [["test, scheduler", *names.values()]]
    for (setting, kind), claim in table.items():
        rows.append([f"{setting}, {kind}", *(f"{getattr(claim, name):.2f}" for name in names)])
    setup = f"A model of one processor, {seeds} draws, one window length each. LWS is Algorithm 7, TTU Algorithm 8."
    pictures = "\n".join(f"![{name}](movements-{name}.png)" for name in ("aborts", "staleness"))
    parts = ("# Queries while windows move: chapter 7 of the source", setup, markdown_table(judged, numbers=False), pictures)
    return "\n\n".join((*parts, markdown_table(rows))) + "\n"


def _draw(table: Table, name: str, file: Path) -> None:
    """Draw a quantity over n, a line for each scheduler, a panel for each test."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra `bench` has it

    figure = Figure(figsize=(9, 3))
    tests = [(1.0, False), (5.0, False), (5.0, True)]
    for position, (axes, (seconds, mixed)) in enumerate(zip(figure.subplots(1, len(tests)), tests, strict=True)):
        settings = [setting for setting in SETTINGS if (setting.seconds, setting.mixed) == (seconds, mixed)]
        for kind in KINDS:
            axes.plot(
                [setting.slots for setting in settings], [getattr(table[setting, kind], name) for setting in settings], label=kind
            )
        axes.set_title(f"t = {seconds:g} s{', mixed' * mixed}")
        axes.set_xlabel("n")
        if not position:
            axes.set_ylabel({"aborts": "ended, %", "staleness": "staleness, s"}[name])
            axes.legend()
    figure.tight_layout()
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
