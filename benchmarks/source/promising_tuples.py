"""Promising tuples, the batch form of the source's goals: ``python -m benchmarks.source.promising_tuples``.

No warehouse: two drawn streams, joined batch by batch under a budget of work (:mod:`benchmarks.source.promising_units`). Units
are taken in no order, most results first, the same part of each, or rare keys first; by exact tables of each batch, of zones that
follow the data and of granularities, and by Count-Sketches of these. Beside them is a sample of as large a part of one stream,
by DuckDB and, if asked for, by Spark.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import click

from benchmarks.field.page import markdown_table
from benchmarks.source.promising_units import (
    BATCHES,
    BUDGETS,
    CUTS,
    KEYS,
    ROWS,
    WINDOW,
    Outcome,
    looks,
    played,
    sampled_by_spark,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.source.promising_units import Cut

__all__ = ["Found", "claims", "main", "measured"]

ORDERS = ("none", "sample", "desc", "desc by cost", "desc by sketch", "weighted", "asc")
_BY_TABLES = ("desc", "desc by sketch", "weighted", "asc")
"""The orders that look at tables of zones."""
_LONG, _FEW = 24, 4
"""Batches of a window that is long enough for a pyramid, and how many of them have a rare key."""
_RESULTS = Path(__file__).parents[1] / "results" / "source"

Found = dict[tuple[str, float, "Cut"], Outcome]
"""By order, budget and how the window is cut into zones."""


def measured(seeds: int) -> Found:
    """Return the mean outcome of each order, budget and cut."""
    return {
        (name, budget, cut): _mean([played(seed, name, budget, cut=cut) for seed in range(seeds)])
        for cut in CUTS
        for budget in BUDGETS
        for name in (ORDERS if cut == "batches" else _BY_TABLES)
    }


def _measured_by_spark(seeds: int) -> Found:
    """The mean outcome of Spark's sample."""
    from warehouse.storage.session import spark_session  # noqa: PLC0415 - few runs need Spark

    session = spark_session(())
    return {
        ("sample by Spark", budget, "batches"): _mean([sampled_by_spark(session, seed, budget) for seed in range(seeds)])
        for budget in BUDGETS
    }


def _mean(outcomes: list[Outcome]) -> Outcome:
    names = ("share", "error", "precision", "recall", "age")
    return Outcome(*(fmean(getattr(outcome, quantity) for outcome in outcomes) for quantity in names))


_Looks = dict[str, float]
"""How many sums of a pyramid are looked at to find a key: one that is rare, and any."""


def claims(found: Found, faded: dict[float, Outcome], looked: _Looks) -> list[tuple[str, bool, str]]:
    """Return each claim, whether it holds here, and what was measured; ``faded`` is `desc` at a quarter of the work by alpha."""
    none = {budget: found["none", budget, "batches"] for budget in BUDGETS}

    def times(name: str, cut: Cut) -> list[float]:
        return [found[name, budget, cut].share / none[budget].share for budget in BUDGETS]

    def told(values: list[float]) -> str:
        return ", ".join(f"{value:.2f}" for value in values)

    gains = {(name, cut): times(name, cut) for name in ("desc", "desc by sketch") for cut in CUTS}
    errors = {cut: [found["weighted", budget, cut].error < none[budget].error for budget in BUDGETS] for cut in CUTS}
    rare = {
        cut: [found["asc", budget, cut].precision / max(none[budget].precision, 1e-9) for budget in BUDGETS] for cut in CUTS
    }
    sampled = [
        max(found[name, budget, "batches"].share for name in ("sample", "sample by Spark") if (name, budget, "batches") in found)
        for budget in BUDGETS
    ]
    above = [found["desc", budget, "batches"].share / share for budget, share in zip(BUDGETS, sampled, strict=True)]
    ages = [faded[alpha].age for alpha in sorted(faded)]
    return [
        *(
            (f"{name} over {cut} gives at least 1.5 times the results of no order", min(values) >= 1.5, told(values))
            for (name, cut), values in gains.items()
        ),
        ("desc gives at least 1.5 times the results of a sample (TABLESAMPLE)", min(above) >= 1.5, told(above)),
        *(
            (f"the same part of each is the better sample, over {cut}", all(values), f"{sum(values)} of {len(values)} budgets")
            for cut, values in errors.items()
        ),
        *(
            (f"asc over {cut}: rare keys are at least 5 times as many of the results", min(values) >= 5, told(values))
            for cut, values in rare.items()
        ),
        ("a smaller alpha gives fresher results", ages == sorted(ages), told(ages)),
        (
            f"to find a key in at most {_FEW} of {_LONG} batches, a pyramid looks at fewer tables than there are",
            looked["rare"] < _LONG,
            f"{looked['rare']:.1f}; for all keys {looked['all']:.1f}",
        ),
    ]


@click.command(epilog="Example: python -m benchmarks.source.promising_tuples --seeds 5")
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, help="Pairs of streams.")
@click.option("--spark", is_flag=True, help="Sample by Spark, too.")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, help="Where the page and its picture go.")
def main(seeds: int, results: Path, *, spark: bool) -> None:
    """Play each order under each budget, and judge each claim."""
    outcomes = {**measured(seeds), **(_measured_by_spark(seeds) if spark else {})}
    faded = {alpha: _mean([played(seed, "desc", 0.25, alpha) for seed in range(seeds)]) for alpha in (1.0, 0.9, 0.8, 0.5)}
    looked = {
        name: fmean(looks(seed, _LONG, most) for seed in range(seeds)) for name, most in (("rare", _FEW), ("all", _LONG))
    }
    judged = [[words, "holds" if holds else "does not hold here", text] for words, holds, text in claims(outcomes, faded, looked)]
    rows = [["order", "zones", "budget", "share", "Hist-MSE", "precision of rare keys", "recall", "age, batches"]]
    for (name, budget, cut), outcome in outcomes.items():
        numbers = (outcome.share, outcome.error, outcome.precision, outcome.recall, outcome.age)
        rows.append([name, cut, f"{budget:.0%}", *(f"{number:.4f}" for number in numbers)])
    setup = (
        f"{seeds} pairs of streams, {KEYS} keys, Zipf 1, {ROWS} rows a batch, a window of {WINDOW} of {BATCHES} batches. Work is "
        "a look at each unit and the rows that it reaches, so where zones are longer the same share is less work."
    )
    page = "\n\n".join([
        "# Promising tuples: three goals under a budget",
        setup,
        markdown_table([["claim", "verdict", "measured"], *judged], numbers=False),
        "![share, error of the histogram and precision of rare keys, by budget](promising-tuples.png)",
        markdown_table(rows),
    ])  # fmt: skip
    results.mkdir(parents=True, exist_ok=True)
    (results / "promising-tuples.md").write_text(page + "\n")
    _draw(outcomes, results)
    click.echo(page)


def _draw(outcomes: Mapping[tuple[str, float, Cut], Outcome], results: Path) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra `bench` has it

    figure = Figure(figsize=(12, 4), layout="constrained")
    goals = (
        ("share", "share of the exact results", ("none", "sample", "desc", "desc by sketch")),
        ("error", "error of the histogram (Hist-MSE)", ("none", "sample", "weighted")),
        ("precision", "results that are rare", ("none", "sample", "asc")),
    )
    for axes, (quantity, label, names) in zip(figure.subplots(1, 3), goals, strict=True):
        lines = [(name, cut) for name in names for cut in CUTS if (name, BUDGETS[0], cut) in outcomes]
        for name, cut in lines:
            values = [getattr(outcomes[name, budget, cut], quantity) for budget in BUDGETS]
            axes.plot(BUDGETS, values, marker="o", label=name if cut == "batches" else f"{name}, {cut}")
        axes.set(xlabel="share of the work", ylabel=label)
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    figure.savefig(results / "promising-tuples.png", dpi=110)


if __name__ == "__main__":
    main()
