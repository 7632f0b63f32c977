"""Chapter 6 of the source: how good the lists of Algorithm 6 are: ``python -m benchmarks.source.frequent_items``.

No warehouse: the lists of ``warehouse.aggregates.frequent`` over drawn items, beside exact counts (frequent-items sheet,
section 7). The source's trace is replaced by independent draws from Zipf(1.2) over as many items as it has addresses, so
the shapes are to be expected and not its numbers; values of the sheet's table for these draws stand beside them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import click
import numpy as np

from benchmarks.field.page import markdown_table
from benchmarks.machine import machine
from warehouse.aggregates.frequent import bounds, summarise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Quality", "claims", "main", "measure"]

ITEMS = 1647
"""Addresses of the source's trace."""
EXPONENT = 1.2
SUB_WINDOWS = (20, 100, 500)
"""b in rows."""
LENGTHS = tuple(range(1, 11))
"""k."""
_RESULTS = Path(__file__).parents[1] / "results" / "source"
_FEW_MISSED = 0.95
_MOSTLY = 0.8
_SMALL_ERROR = 0.02
_SAME = 1e-9
_ERROR_FALLS = "the error falls as k grows"


@dataclass(frozen=True)
class Quality:
    """The measures (a) to (f) of one sub-window length and list length, means over the trials.

    Parameters
    ----------
    delta
        (a) as a share of the window's rows.
    above
        (b) items that really occur more than delta times.
    reported
        (c) items that Algorithm 6 reports.
    found
        (d) the share of (b) that is reported; 1 if (b) is 0.
    pairs
        (e) pairs of an item and a count in all lists.
    error
        (f) mean of ``(true - least) / true`` over (b), items on no list included.
    """

    delta: float
    above: float
    reported: float
    found: float
    pairs: float
    error: float


Grid = dict[tuple[int, int], Quality]


def measure(rows: int, sub_window: int, lengths: Sequence[int], trials: Sequence[int]) -> dict[int, Quality]:
    """Return the quality of lists of each length over windows of drawn items.

    Parameters
    ----------
    rows
        N, rows of a window.
    sub_window
        b, rows of a sub-window; it divides ``rows``.
    lengths
        The values of k.
    trials
        Seeds, one window each.
    """
    singles: dict[int, list[Quality]] = {k: [] for k in lengths}
    for seed in trials:
        items = _draw(rows, seed)
        true = Counter(items.tolist())
        slots = [summarise(Counter(part.tolist()), max(lengths)) for part in items.reshape(-1, sub_window)]
        for k in lengths:
            lists = [summary.shortened(k) if len(summary.listed) >= k else summary for summary in slots]
            window = bounds(lists)
            above = {item: count for item, count in true.items() if count > window.delta}
            least = {item: low for item, (low, _) in window.items.items()}
            reported = [item for item, low in least.items() if low > window.delta]
            singles[k].append(
                Quality(
                    delta=window.delta / rows,
                    above=len(above),
                    reported=len(reported),
                    found=len(reported) / len(above) if above else 1.0,
                    pairs=sum(len(summary.listed) for summary in lists),
                    error=fmean((count - least.get(item, 0)) / count for item, count in above.items()) if above else 0.0,
                )
            )
    return {k: _mean(qualities) for k, qualities in singles.items()}


def _mean(qualities: Sequence[Quality]) -> Quality:
    return Quality(**{name: fmean(getattr(mean, name) for mean in qualities) for name in Quality.__dataclass_fields__})


def _draw(rows: int, seed: int) -> np.ndarray:
    weights = 1 / np.arange(1, ITEMS + 1) ** EXPONENT
    return np.random.default_rng(seed).choice(ITEMS, size=rows, p=weights / weights.sum())


def claims(grid: Mapping[tuple[int, int], Quality]) -> list[tuple[str, str, bool, str]]:
    """Return each claim of section 6.3: its letter, its words, whether it holds here, and the measured figures.

    Parameters
    ----------
    grid
        The quality by (b, k), for all of `SUB_WINDOWS` and `LENGTHS`.
    """

    def course(name: str, b: int, lengths: Sequence[int] = LENGTHS) -> list[float]:
        return [getattr(grid[b, k], name) for k in lengths]

    def at(name: str, k: int) -> list[float]:
        return [getattr(grid[b, k], name) for b in SUB_WINDOWS]

    small = SUB_WINDOWS[0]
    later = LENGTHS[2:]
    shares_found = [value for b in SUB_WINDOWS for value in course("found", b, later)]
    ends = {name: [(course(name, b)[0], course(name, b)[-1]) for b in SUB_WINDOWS] for name in ("above", "reported", "error")}
    return [
        ("a", "delta falls as k grows", all(_falls(course("delta", b)) for b in SUB_WINDOWS), _shares(course("delta", small))),
        ("a", "delta rises as b shrinks (k = 5)", _falls(at("delta", 5)), _shares(at("delta", 5))),
        (
            "a",
            "delta is about 5 percent at k = 5 (3 to 7)",
            all(0.03 <= delta <= 0.07 for delta in at("delta", 5)),
            _shares(at("delta", 5)),
        ),
        ("b", "more items are above delta as k grows", _grows(ends["above"]), _numbers(course("above", small))),
        ("c", "more items are reported as k grows", _grows(ends["reported"]), _numbers(course("reported", small))),
        (
            "b",
            "three to four items are above delta at k = 5",
            all(2.5 <= items_above <= 4.5 for items_above in at("above", 5)),
            _numbers(at("above", 5)),
        ),
        ("d", "at least 80 percent are found for k >= 3", min(shares_found) >= _MOSTLY, f"least {min(shares_found):.0%}"),
        (
            "d",
            "almost none is missed for b = 20 and k > 7",
            min(course("found", small, LENGTHS[7:])) >= _FEW_MISSED,
            _shares(course("found", small, LENGTHS[7:])),
        ),
        (
            "e",
            "the lists are governed by the number of sub-windows: pairs = k N / b",
            all(grid[b, k].pairs <= k * grid[small, 1].pairs * small / b + _SAME for b in SUB_WINDOWS for k in LENGTHS),
            _numbers(at("pairs", 5)),
        ),
        (
            "f",
            "the error falls as k grows",
            _grows([(last, first) for first, last in ends["error"]]),
            _shares(course("error", small)),
        ),
        (
            "f",
            "the error is below 2 percent for b = 20 and k >= 7",
            max(course("error", small, LENGTHS[6:])) < _SMALL_ERROR,
            _shares(course("error", small, LENGTHS[6:])),
        ),
    ]


def _falls(values: Sequence[float]) -> bool:
    return all(later <= earlier + _SAME for earlier, later in pairwise(values))


def _grows(ends: Sequence[tuple[float, float]]) -> bool:
    return all(last >= first - _SAME for first, last in ends)


def _shares(values: Sequence[float]) -> str:
    return " ".join(f"{value:.1%}" for value in values)


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{value:.3g}" for value in values)


@click.command(epilog="Example: python -m benchmarks.source.frequent_items --trials 10")
@click.option("--rows", type=click.IntRange(1_000), default=100_000, show_default=True, help="Rows of a window; 500 divides it.")
@click.option("--trials", type=click.IntRange(1), default=3, show_default=True, help="Windows, with seeds 0, 1, ...")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, help="Where the page and its pictures go.")
def main(rows: int, trials: int, results: Path) -> None:
    """Measure the lists for b = 20, 100, 500 and k = 1 to 10, and judge each claim of the source."""
    if rows % SUB_WINDOWS[-1]:
        message = f"{rows} rows are no multiple of {SUB_WINDOWS[-1]}"
        raise click.BadParameter(message, param_hint="--rows")
    grid: Grid = {}
    for b in SUB_WINDOWS:
        grid |= {(b, k): mean for k, mean in measure(rows, b, LENGTHS, range(trials)).items()}
    results.mkdir(parents=True, exist_ok=True)
    page = _page(grid, rows, trials)
    (results / "frequent-items.md").write_text(page)
    _draw_measures(grid, results)
    click.echo(page)


def _page(grid: Grid, rows: int, trials: int) -> str:
    head = ["", "claim of the source", "verdict", "measured"]
    judged = [
        [letter, text, "holds", evidence] if holds else [letter, text, f"does not hold here{_WHY.get(text, '')}", evidence]
        for letter, text, holds, evidence in claims(grid)
    ]
    table = [["b, k", "(a) delta", "(b) above", "(c) reported", "(d) found", "(e) pairs", "(f) error"]]
    for (b, k), mean in grid.items():
        numbers = (f"{mean.delta:.1%}", f"{mean.above:.3g}", f"{mean.reported:.3g}", f"{mean.found:.0%}", f"{mean.pairs:.0f}")
        table.append([f"{b}, {k}", *numbers, f"{mean.error:.1%}"])
    setup = f"{rows} rows a window, {trials} windows, Zipf({EXPONENT}) over {ITEMS} items. {machine()['processor']}."
    parts = ["# Frequent items: chapter 6 of the source", setup, markdown_table([head, *judged], numbers=False)]
    parts += [f"![{name}](frequent-{name}.png)" for name in _DRAWN]
    return "\n\n".join([*parts, markdown_table(table)]) + "\n"


_WHY = {_ERROR_FALLS: ": a larger k brings items near delta into (b); for larger b these just miss many lists"}
_DRAWN = {"delta": "delta, share of the window", "found": "share found", "pairs": "stored pairs", "error": "relative error"}


def _draw_measures(grid: Grid, results: Path) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra `bench` has it

    for name, title in _DRAWN.items():
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        for b in SUB_WINDOWS:
            axes.plot(LENGTHS, [getattr(grid[b, k], name) for k in LENGTHS], marker="o", label=f"b = {b}")
        axes.set(xlabel="k", title=title, yscale="log" if name == "pairs" else "linear")
        axes.grid(alpha=0.3)
        axes.legend()
        figure.savefig(results / f"frequent-{name}.png", dpi=110)


if __name__ == "__main__":
    main()
