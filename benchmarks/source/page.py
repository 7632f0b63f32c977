"""The page of the source's experiments: the claims, the counted costs, and the tables behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.field.figures import QUANTITIES, spread
from benchmarks.field.page import made_on, markdown_table, spread_text
from benchmarks.source.claims import CLAIMS
from benchmarks.source.exact import GRIDS, predicted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from benchmarks.field.roster import Entry
    from benchmarks.source.claims import Experiment
    from benchmarks.source.exact import Counted

__all__ = ["page"]

_SHOWN = ("update", "many", "scan", "written", "space", "files", "dead")


def page(
    experiments: Mapping[str, Experiment],
    variants: Mapping[str, Sequence[Entry]],
    counted: Mapping[str, Sequence[Counted]] | None,
    periods: int,
) -> str:
    """Return the page as Markdown.

    Parameters
    ----------
    experiments
        What was run, by name.
    variants
        The contenders of each experiment.
    counted
        The counted costs of each grid, if they were counted, with p = ``periods``.
    periods
        See above.

    """
    parts = ["# The source's experiments", "## Claims", _claims(experiments)]
    if counted is not None:
        parts += ["## Counted costs", _counted(counted, periods)]
    for name, experiment in experiments.items():
        parts += [f"## Experiment `{name}`", made_on(experiment.job, experiment.results), _table(experiment, variants[name])]
    return "\n\n".join(parts) + "\n"


def _claims(experiments: Mapping[str, Experiment]) -> str:
    rows = [["claim", "", "verdict", "measured", "what is different here"]]
    for claim in CLAIMS:
        verdict, measured = claim.verdict(dict(experiments))
        rows.append([claim.name, claim.text, verdict, measured, claim.otherwise if verdict == "does not hold here" else ""])
    return markdown_table(rows, numbers=False)


def _counted(counted: Mapping[str, Sequence[Counted]], periods: int) -> str:
    rows = [["", "sub-indices touched", "rows read", "rows rewritten", "rows in", "rows out", "equal to section 5"]]
    for grid in GRIDS:
        right = predicted(grid, periods)
        equal = all(counts == right for counts in counted[grid.label])
        first = counted[grid.label][0]
        numbers = (first.accessed, first.read, first.written, first.inserted, first.expired)
        rows.append([grid.label, *map(str, numbers), "yes" if equal else f"no: {right}"])
    return markdown_table(rows)


def _table(experiment: Experiment, variants: Sequence[Entry]) -> str:
    quantities = [quantity for name in _SHOWN for quantity in QUANTITIES if quantity.name == name]
    rows = [["", *(f"{quantity.title}{', ' if quantity.unit else ''}{quantity.unit}" for quantity in quantities)]]
    out = []
    for entry in variants:
        failed = experiment.results.of(entry.name).failed
        if failed is not None:
            out.append(f"* {entry.title}: {failed['reason']}")
            continue
        measured = [spread(experiment.results, entry.name, quantity, experiment.job) for quantity in quantities]
        if measured[0] is not None:
            rows.append([
                    entry.title,
                    *("" if values is None else spread_text(values.median, values.low, values.high) for values in measured),
                ])
    return "\n\n".join([markdown_table(rows), *(["\n".join(out)] if out else [])])
