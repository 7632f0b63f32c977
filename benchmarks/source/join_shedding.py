"""Window joins that cannot keep everything, the source's experiments: ``python -m benchmarks.source.join_shedding``.

No warehouse: PROB, LIFE and RAND (:mod:`benchmarks.source.join_memory`) beside the best that any schedule could do
(:mod:`benchmarks.source.join_optimum`), against memory, window, skew and the number of values, and over a stand-in for the
source's weather reports (approximate-joins sheet, 6). Beside them is the Archive-metric: how many tuples miss a partner.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import click

from benchmarks.field.page import markdown_table
from benchmarks.machine import machine
from benchmarks.source.join_memory import VALUES, archive_metric, exact, kept, play, predicted, streams, weather
from benchmarks.source.join_optimum import optimum

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.source.join_memory import Correlation, Policy, Streams

__all__ = ["Setting", "Share", "Shares", "claims", "main", "settings", "shares"]

MEMORIES = (0.1, 0.25, 0.5, 1.0, 1.5)
SKEWS = (0.0, 0.5, 1.0, 1.5)
DOMAINS = (10, 50, 200)
KINDS: tuple[Correlation, ...] = ("uncorrelated", "correlated")
_RESULTS = Path(__file__).parents[1] / "results" / "source"
_SHEET: dict[tuple[str, float], tuple[float, ...]] = {
    ("uncorrelated", 0.1): (0.052, 0.275, 0.302, 0.321), ("uncorrelated", 0.25): (0.127, 0.445, 0.488, 0.527),
    ("uncorrelated", 0.5): (0.252, 0.607, 0.661, 0.723), ("uncorrelated", 1.0): (0.505, 0.768, 0.830, 0.902),
    ("uncorrelated", 1.5): (0.750, 0.887, 0.932, 0.987), ("correlated", 0.1): (0.052, 0.140, 0.140, 0.143),
    ("correlated", 0.25): (0.127, 0.335, 0.347, 0.351), ("correlated", 0.5): (0.253, 0.572, 0.650, 0.658),
    ("correlated", 1.0): (0.505, 0.829, 0.895, 0.908), ("correlated", 1.5): (0.749, 0.939, 0.974, 0.986),
}  # fmt: skip
"""The sheet's shares of RAND, LIFE, PROB and OPT (6.3), at a window of 400."""


@dataclass(frozen=True)
class Setting:
    """Streams of a kind (Zipf's skew of each, their number of values), a window in time units, and a memory as a part of it."""

    window: int
    kind: Correlation | str = "uncorrelated"
    memory: float = 1.0
    skews: tuple[float, float] = (1.0, 1.0)
    values: int = VALUES

    def drawn(self, length: int, seed: int) -> Streams:
        """Return two streams."""
        if self.kind == "weather":
            return weather(length, seed)
        return streams(length, self.kind, self.skews[0], seed, self.values, self.skews[1])  # type: ignore[arg-type]

    @property
    def cells(self) -> int:
        """Of the memory; an even number, from 2."""
        return max(2, 2 * round(self.memory * self.window / 2))


@dataclass(frozen=True)
class Share:
    """What a method delivers of the exact pairs, how many of the tuples miss a partner, and what it is expected to deliver.

    ``of_first`` is the share of the memory that the first stream has.
    """

    pairs: float
    incomplete: float = 0.0
    expected: float = 0.0
    of_first: float = 0.5


Shares = dict[tuple[Setting, str], Share]
"""By setting and method (with V: one memory for both streams)."""


def settings(window: int) -> tuple[Setting, ...]:
    """Return the settings of the source's figures: against memory, at twice the window, against skew, against values; weather."""
    chosen = [Setting(window, kind, memory) for kind in KINDS for memory in MEMORIES]
    chosen += [Setting(2 * window, kind, memory) for kind in KINDS for memory in (0.5, 1.0)]
    chosen += [Setting(window, "uncorrelated", memory, (0.0, 0.0)) for memory in MEMORIES]
    chosen += [Setting(window, kind, skews=(skew, skew)) for kind in KINDS for skew in SKEWS]
    chosen += [Setting(window, kind, values=values) for kind in KINDS for values in DOMAINS]
    chosen += [Setting(window, skews=(1.0, 0.0)), Setting(window, "weather")]
    return tuple(dict.fromkeys(chosen))


def shares(lengths: int, chosen: Sequence[Setting], seeds: int, *, with_optimum: bool = True) -> Shares:
    """Return the mean shares over drawn streams of ``lengths`` windows, counted after a warm-up of two.

    For the weather there is no optimum, as in the source.
    """
    measured: dict[tuple[Setting, str], list[Share]] = defaultdict(list)
    for setting in chosen:
        for seed in range(seeds):
            own = setting.drawn(lengths * setting.window, seed)
            for method, share in _measured(setting, own, seed, with_optimum=with_optimum and setting.kind != "weather"):
                measured[setting, method].append(share)
    fields = ("pairs", "incomplete", "expected", "of_first")
    return {
        key: Share(*(fmean(getattr(share_of_seed, name) for share_of_seed in shares_of_key) for name in fields))
        for key, shares_of_key in measured.items()
    }


def _measured(setting: Setting, own: Streams, seed: int, *, with_optimum: bool) -> Iterator[tuple[str, Share]]:
    window, cells, since = setting.window, setting.cells, 2 * setting.window
    whole = range(since, len(own[0]) - window)  # of these all partners were there
    pairs = [pair for pair in exact(own, window) if max(pair) >= since]
    policies: tuple[Policy, ...] = ("RAND", "LIFE", "PROB")
    for policy in policies:
        for variable in (False, True):
            run = play(own, window, cells, policy, variable=variable, seed=seed)
            joined = kept(pairs, run)
            missed = archive_metric(pairs, joined, whole) / (2 * len(whole))
            expected = 0.0 if policy == "LIFE" else predicted(own, window, cells, policy, variable=variable)
            yield policy + "V" * variable, Share(len(joined) / len(pairs), missed, expected, run.held_of_first(since))
    for variable in (False, True) if with_optimum else ():
        yield "OPT" + "V" * variable, Share(optimum(own, window, cells, variable=variable, since=since) / len(pairs))


# --- claims ---

_Claim = tuple[str, str, bool, str]


def claims(found: Shares, window: int) -> list[_Claim]:
    """Return each claim of the source: the figure, its words, whether it holds here, and what was measured."""
    return [*_of_memory(found, window), *_of_skew(found, window), *_of_values(found, window), *_of_weather(found, window)]


def _of_memory(means: Shares, window: int) -> Iterator[_Claim]:
    cells = [Setting(window, kind, memory) for kind in KINDS for memory in MEMORIES]

    def at(setting: Setting, method: str) -> float:
        return means[setting, method].pairs

    linear = max(abs(at(cell, "RAND") - means[cell, "RAND"].expected) for cell in cells)
    yield "3", "RAND is linear in memory", linear < 0.03, f"largest distance from (M+1)/(2w-1): {linear:.3f}"
    ordered = sum(at(cell, "RAND") - 0.01 <= at(cell, "LIFE") <= at(cell, "PROB") + 0.01 for cell in cells)
    yield "3", "RAND <= LIFE <= PROB (to 0.01)", ordered == len(cells), f"{ordered} of {len(cells)} cells"
    below = sum(at(cell, "PROB") <= at(cell, "OPT") + 1e-9 and at(cell, "OPT") <= at(cell, "OPTV") + 1e-9 for cell in cells)
    yield "3", "PROB <= OPT <= OPTV", below == len(cells), f"{below} of {len(cells)} cells"
    other = {cell: replace(cell, window=2 * window) for cell in cells if cell.memory in (0.5, 1.0)}
    apart = max(abs(at(cell, name) - at(twice, name)) for cell, twice in other.items() for name in ("RAND", "LIFE", "PROB"))
    yield "4", "twice the window gives the same shares (to 0.05)", apart <= 0.05, f"apart by at most {apart:.3f}"
    far = max(abs(at(cell, name) - means[cell, name].expected) for cell in cells for name in ("PROB", "PROBV"))
    yield "", "the sheet's: PROB and PROBV are as predicted (to 0.03)", far <= 0.03, f"largest distance: {far:.3f}"
    half = [at(Setting(window, kind), "PROB") for kind in KINDS]
    yield "4.6", "half of the memory gives 90 % of the pairs", min(half) >= 0.9, ", ".join(f"{share:.3f}" for share in half)
    best = sum(
        means[cell, "PROB"].incomplete <= min(means[cell, name].incomplete for name in ("LIFE", "RAND")) + 0.01 for cell in cells
    )
    yield "", "the sheet's: PROB leaves the fewest tuples incomplete", best == len(cells), f"{best} of {len(cells)} cells"


def _of_skew(means: Shares, window: int) -> Iterator[_Claim]:
    flat = [Setting(window, memory=memory, skews=(0.0, 0.0)) for memory in MEMORIES]
    apart = max(abs(means[setting, name].pairs - means[setting, "RAND"].pairs) for setting in flat for name in ("LIFE", "PROB"))
    yield "5", "without skew RAND, LIFE and PROB are alike (to 0.06)", apart <= 0.06, f"apart by at most {apart:.3f}"
    lines = {kind: [Setting(window, kind, skews=(skew, skew)) for skew in SKEWS] for kind in KINDS}
    gaps = {
        kind: [(means[setting, "PROB"].pairs - means[setting, "RAND"].pairs) / means[setting, "OPT"].pairs for setting in line]
        for kind, line in lines.items()
    }
    text = "; ".join(f"{kind} {', '.join(f'{gap:.2f}' for gap in gaps_of_kind)}" for kind, gaps_of_kind in gaps.items())
    growing = all(gap < next_gap for gaps_of_kind in gaps.values() for gap, next_gap in pairwise(gaps_of_kind[:3]))
    yield "6", "the gap of PROB and RAND grows with the skew up to 1", growing, f"of OPT: {text}"
    near = [
        means[setting, "PROB"].pairs / means[setting, "OPT"].pairs for setting in lines["correlated"] if setting.skews[0] >= 1
    ]
    text = ", ".join(f"{share:.3f}" for share in near)
    yield "6", "correlated, skew from 1 on: PROB is above 96 % of OPT", min(near) >= 0.96, text
    gain = max(means[setting, "PROBV"].pairs / means[setting, "PROB"].pairs for setting, name in means if name == "PROBV")
    yield "4.3", "variable allocation never gains more than a tenth", gain <= 1.1, f"at most {gain:.3f} times"
    unequal = means[Setting(window, skews=(1.0, 0.0)), "PROBV"].of_first
    yield "4.3", "the more skewed stream gets more of the memory", unequal > 0.5, f"{unequal:.2f} of it"


def _of_values(means: Shares, window: int) -> Iterator[_Claim]:
    for kind in KINDS:
        line = [Setting(window, kind, values=values) for values in DOMAINS]
        near = [means[setting, "PROB"].pairs / means[setting, "OPT"].pairs for setting in line]
        whole = [means[setting, "OPT"].pairs for setting in line]
        text = f"PROB / OPT {', '.join(f'{share:.3f}' for share in near)}; OPT {', '.join(f'{share:.3f}' for share in whole)}"
        holds = near[0] >= near[-1] and whole[0] <= whole[-1]
        yield "9-11", f"{kind}: with 10, 50, 200 values PROB is further from OPT, OPT nearer to all pairs", holds, text


def _of_weather(means: Shares, window: int) -> Iterator[_Claim]:
    fixed, variable = (means[Setting(window, "weather"), method] for method in ("PROB", "PROBV"))
    equal = abs(fixed.pairs - variable.pairs) <= 0.02
    yield "7", "weather: half of the memory gives 90 %, PROB is PROBV", min(fixed.pairs, variable.pairs) >= 0.9 and equal, (
        f"{fixed.pairs:.3f}, {variable.pairs:.3f}"
    )
    yield "8", "weather: both streams have about half of the memory", abs(variable.of_first - 0.5) <= 0.05, (
        f"{variable.of_first:.2f}"
    )


# --- the page ---


@click.command(epilog="Example: python -m benchmarks.source.join_shedding --seeds 3")
@click.option("--lengths", type=click.IntRange(4), default=14, show_default=True, help="Windows that a stream lasts.")
@click.option("--window", type=click.IntRange(4), default=100, show_default=True, help="Time units.")
@click.option("--seeds", type=click.IntRange(1), default=3, show_default=True, help="Pairs of streams of each setting.")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, help="Where the page and its pictures go.")
def main(lengths: int, window: int, seeds: int, results: Path) -> None:
    """Measure all methods in each setting, and judge each claim of the source."""
    means = shares(lengths, settings(window), seeds)
    results.mkdir(parents=True, exist_ok=True)
    page = _page(means, lengths, window, seeds)
    (results / "join-shedding.md").write_text(page)
    _draw(means, window, results)
    click.echo(page)


def _page(means: Shares, lengths: int, window: int, seeds: int) -> str:
    judged = [
        [figure, words, "holds" if holds else "does not hold here", text] for figure, words, holds, text in claims(means, window)
    ]
    methods = ("RAND", "LIFE", "PROB", "PROBV", "OPT", "OPTV")
    rows = [["", "M / w", *methods, "incomplete: PROB", "LIFE", "RAND", "the sheet's RAND, LIFE, PROB, OPT"]]
    for setting in (Setting(window, kind, memory) for kind in KINDS for memory in MEMORIES):
        values = [f"{means[setting, method].pairs:.3f}" for method in methods]
        missed = [f"{means[setting, method].incomplete:.3f}" for method in ("PROB", "LIFE", "RAND")]
        sheet = " ".join(f"{share:.3f}" for share in _SHEET[setting.kind, setting.memory])
        rows.append([setting.kind, str(setting.memory), *values, *missed, sheet])
    setup = (
        f"{seeds} pairs of streams of {lengths} windows for each setting; where nothing else is said {VALUES} values, Zipf 1, a "
        f"memory of a window, which is {window}; counted after a warm-up of two windows. {machine()['processor']}. The sheet's "
        "values are of a window of 400, of other drawn streams. PROB and LIFE know how often a value comes in the whole stream: "
        "the shorter it is, the more they gain by that, without skew, too."
    )
    parts = [
        "# Window joins that cannot keep everything: the source's experiments",
        setup,
        markdown_table([["figure", "claim", "verdict", "measured"], *judged], numbers=False),
        "![share of the exact pairs, by memory, skew and number of values](join-shedding.png)",
        "## Share of the exact pairs, and of tuples that miss a partner",
        markdown_table(rows),
    ]
    return "\n\n".join(parts) + "\n"


def _draw(means: Mapping[tuple[Setting, str], Share], window: int, results: Path) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra `bench` has it

    figure = Figure(figsize=(10, 10), layout="constrained")
    panels = figure.subplots(3, 2, sharey=True)
    for column, kind in enumerate(KINDS):
        lines: dict[str, list[tuple[float, Setting]]] = {
            "memory / window": [(memory, Setting(window, kind, memory)) for memory in MEMORIES],
            "skew": [(skew, Setting(window, kind, skews=(skew, skew))) for skew in SKEWS],
            "values": [(values, Setting(window, kind, values=values)) for values in DOMAINS],
        }
        for axes, (label, line) in zip(panels[:, column], lines.items(), strict=True):
            for method in ("RAND", "LIFE", "PROB", "OPT", "OPTV"):
                axes.plot(
                    [place for place, _ in line], [means[setting, method].pairs for _, setting in line], marker="o", label=method
                )
            axes.set(xlabel=label, ylabel="share of the exact pairs", title=kind, ylim=(0, 1))
            axes.grid(alpha=0.3)
        panels[0, column].legend()
    figure.savefig(results / "join-shedding.png", dpi=110)


if __name__ == "__main__":
    main()
