"""Pages again from published lines: ``python -m benchmarks.field.derive DIRECTORY...``.

Each directory has the compressed lines of a run, ``field.jsonl.xz``; its page and plots are written beside them. Of several, runs
of one kind of rows at several sizes, it also draws how updates and probes grow with the live rows, and tells at how many rows a
contender is as fast as this warehouse, between the sizes that were measured.
"""

from __future__ import annotations

import math
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click

from benchmarks.field.figures import QUANTITIES, spread
from benchmarks.field.page import markdown_table, save_page
from benchmarks.field.plots import by_size
from benchmarks.field.results import Results, recorded
from benchmarks.field.roster import OURS, ROSTER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.field.job import Job

__all__ = ["crossings", "main"]

_LINES = "field.jsonl.xz"
_GROWING = ("update", "few", "many", "aggregate")


def crossings(own: Mapping[int, float], other: Mapping[int, float]) -> Iterator[int]:
    """Yield the numbers of rows at which two lines cross, straight between the sizes on logarithmic axes.

    Examples
    --------
    >>> list(crossings({100: 4.0, 10_000: 4.0}, {100: 1.0, 10_000: 16.0}))
    [1000]

    """
    sizes = sorted(own.keys() & other.keys())
    for small, large in pairwise(sizes):
        log_ratio_small, log_ratio_large = (math.log(other[rows] / own[rows]) for rows in (small, large))
        if log_ratio_small * log_ratio_large < 0:
            share = log_ratio_small / (log_ratio_small - log_ratio_large)
            yield round(math.exp(math.log(small) + share * math.log(large / small)))


def growth(runs: Sequence[tuple[Job, Results]], directory: Path) -> Path:
    """Write a page of how quantities grow with the live rows, with a plot of each, and return its path."""
    parts = ["# By live rows", "Of runs at " + " and ".join(f"{job.rows:,}" for job, _ in runs) + " live rows; medians."]
    for quantity in (candidate for candidate in QUANTITIES if candidate.name in _GROWING):
        lines: dict[str, dict[int, float]] = {}
        for job, results in runs:
            for entry in ROSTER:
                measured = spread(results, entry.name, quantity, job)
                if measured is not None:
                    lines.setdefault(entry.name, {})[job.rows] = measured.median
        our_values = lines.get(OURS, {})
        by_size(directory / f"{quantity.name}-by-rows.png", quantity.title, quantity.unit, lines, OURS)
        sizes = [job.rows for job, _ in runs]
        rows = [["", *(f"{size:,}" for size in sizes), "as fast as stream-wh at"]]
        for name, values in lines.items():
            met = ", ".join(f"{crossing:,}" for crossing in crossings(our_values, values)) if name != OURS else ""
            rows.append([name, *(f"{values[size]:.3g}" if size in values else "" for size in sizes), met])
        unit = f", {quantity.unit}" if quantity.unit else ""
        parts += [f"## {quantity.title}{unit}", markdown_table(rows), f"![{quantity.title}]({quantity.name}-by-rows.png)"]
    path = directory / "by-rows.md"
    path.write_text("\n\n".join(parts) + "\n")
    return path


@click.command(epilog="Example: python -m benchmarks.field.derive benchmarks/measured/field-1-million")
@click.argument("directories", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, file_okay=False))
def main(*, directories: tuple[Path, ...]) -> None:
    """Write the pages of published runs again from their lines, and of several runs how they grow with the live rows."""
    with tempfile.TemporaryDirectory(prefix="stream-wh-lines-") as scratch:
        runs = []
        for number, directory in enumerate(directories):
            target = Path(scratch) / str(number)
            target.mkdir()
            job, results = recorded(directory / _LINES, target)
            click.echo(f"written: {save_page(job, results, ROSTER, directory)}")
            runs.append((job, results))
        if len(runs) > 1:
            runs.sort(key=lambda run: run[0].rows)
            click.echo(f"written: {growth(runs, directories[0].parent)}")


if __name__ == "__main__":
    main()
