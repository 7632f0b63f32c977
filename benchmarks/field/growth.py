"""Growth: what becomes of this warehouse over many updates, ``python -m benchmarks.field.growth``.

One warehouse with its default layout is updated again and again at a constant rate, its vacuum and log clean-up running as
they do for a user; after each update it answers as any contender does, and the oracle checks it. A run that is stopped, or
asked for more updates, goes on. The page compares the tenths of the run.
"""

from __future__ import annotations

import statistics
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks.field.alone import BusyError, alone
from benchmarks.field.facts import facts
from benchmarks.field.figures import QUANTITIES
from benchmarks.field.job import Job
from benchmarks.field.page import made_on, markdown_table
from benchmarks.field.results import OtherJobError, Results
from benchmarks.field.roster import OURS, ROSTER, worker_for
from benchmarks.field.run import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["TARGET", "growth_page", "main"]

TARGET = 1.5
"""Updating and opening a snapshot in the last tenth take at most this many times what they take in the second tenth."""

_TENTHS = 10
_RESULTS = Path(__file__).parents[1] / "results" / "growth"
_NAMED = {quantity.name: quantity for quantity in QUANTITIES}

_Line = dict[str, Any]
_ROWS: tuple[tuple[str, str, Callable[[_Line, Job], float]], ...] = (
    ("update, s", "target", _NAMED["update"].of),
    ("opening the snapshot, ms", "target", lambda line, _: 1000 * line["counted"]["opening"]),
    ("probe, few rows, ms", "", _NAMED["few"].of),
    ("scan, s", "", _NAMED["scan"].of),
    ("files", "", _NAMED["files"].of),
    ("bytes on disk / live row bytes", "", _NAMED["space"].of),
    ("files of the log", "", lambda line, _: line["counted"]["log_files"]),
    ("KB of the log", "", lambda line, _: line["counted"]["log_bytes"] / 1000),
    ("records", "", lambda line, _: line["counted"]["records"]),
    ("KB of records", "", lambda line, _: line["counted"]["record_bytes"] / 1000),
)


@click.command(epilog="Example: python -m benchmarks.field.growth --updates 1000 --periods 144")
@click.option("--rows", type=click.IntRange(100, 10_000_000), default=20_000, show_default=True, help="Live rows.")
@click.option("--updates", type=click.IntRange(20), default=100, show_default=True, help="Updates; more of them go on.")
@click.option("--periods", type=click.IntRange(4), default=24, show_default=True, help="p: 24, 144, 1440.")
@click.option("--patience", type=click.FloatRange(1), default=600, show_default=True, help="Seconds for one answer.")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, help="Where lines, page and the warehouse lie.")
def main(*, rows: int, updates: int, periods: int, patience: float, results: Path) -> None:
    """Update one warehouse many times, and tell what grows."""
    job = Job(rows=rows, keys=max(100, rows // 10), updates=updates, periods=periods)
    directory = (results / f"p{periods}-{rows}").absolute()
    try:
        recorded = Results(directory / "growth.jsonl", job, facts())
    except OtherJobError as error:
        raise click.UsageError(str(error)) from error
    entries = [entry for entry in ROSTER if entry.name == OURS]
    work = directory / "work"
    try:
        with alone(work) as lock:
            Run(job, entries, work, recorded, lambda entry: worker_for(entry, work, patience, lock), _say).play()
    except BusyError as error:
        raise click.ClickException(str(error)) from error
    page = directory / "README.md"
    page.write_text(growth_page(job, recorded))
    _say(f"written: {page}")


def growth_page(job: Job, results: Results) -> str:
    """Return the medians of each tenth of the run, as Markdown."""
    standing = results.of(OURS)
    lines = [standing.done[slot] for slot in sorted(standing.done)]
    paragraphs = ["# Growth", f"{len(lines):,} updates. {made_on(job, results)}"]
    if standing.failed is not None:
        paragraphs.append(f"**Stopped at update {standing.failed['slot']}: {standing.failed['reason']}**")
    if len(lines) >= 2 * _TENTHS:
        paragraphs.append(_table(job, lines))
    return "\n\n".join(paragraphs) + "\n"


def _table(job: Job, lines: Sequence[_Line]) -> str:
    edges = [round(number * len(lines) / _TENTHS) for number in range(_TENTHS + 1)]
    shown = (0, 1, _TENTHS // 2, _TENTHS - 1)
    rows = [["medians", *(f"updates {edges[tenth] + 1} to {edges[tenth + 1]}" for tenth in shown), "last / second", "target"]]
    for title, target, value in _ROWS:
        tenths = [statistics.median(value(line, job) for line in lines[low:high]) for low, high in pairwise(edges)]
        ratio = tenths[-1] / tenths[1]
        verdict = f"≤ {TARGET}: {'holds' if ratio <= TARGET else 'does not hold'}" if target else ""
        rows.append([title, *(f"{tenths[tenth]:.3g}" for tenth in shown), f"{ratio:.2f}", verdict])
    return markdown_table(rows)


def _say(text: str) -> None:
    click.echo(f"... {text}", err=True)


if __name__ == "__main__":
    main()
