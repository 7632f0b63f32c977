"""The page: what was measured, on what, how each contender was set up, who did not run and why; with plots beside it."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import TYPE_CHECKING, Any

from benchmarks.field.figures import QUANTITIES, Quantity, beside, spread
from benchmarks.field.plots import bars, courses, scatter
from benchmarks.field.roster import HOT, OURS
from benchmarks.field.targets import TARGETS, better_at_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from benchmarks.field.figures import Spread
    from benchmarks.field.job import Job
    from benchmarks.field.results import Results
    from benchmarks.field.roster import Entry

__all__ = ["made_on", "markdown_table", "page", "save_page", "spread_text"]

_TIMES = ("update", "tidy", "few", "many", "absent", "scan", "aggregate")
_SPACE = ("written", "space", "files", "dead")
_DRAWN = ("update", "few", "many", "scan", "aggregate", "written", "space")
_EXPLAINED = """\
All contenders load the same Parquet file at each update, one after the other in an order that turns, on the same machine in
the same run; then each answers the same probes (each key three times; the best of the three counts), a scan of all columns
into the client's memory, and `sum(a), max(b)`. Times are medians over the updates, in brackets the quartiles; a ratio is
that of the medians over the updates that both made, with the quartiles of the ratios update by update. *Update* is loading
and expiring, durable on disk; *housekeeping* (vacuum, compaction, checkpoints) is timed apart, and this warehouse has none
outside its update. *Bytes written* are those that the kernel counts for the contender's processes during update and
housekeeping. *Dead bytes* are bytes on disk times the share of dead rows in the newest state's files. Every answer of every
contender was compared with an oracle that knows the landed rows and the definition of live; one wrong answer and a
contender is out."""


def save_page(job: Job, results: Results, roster: Sequence[Entry], directory: Path) -> Path:
    """Write the page and its plots into a directory and return the page's path."""
    directory.mkdir(parents=True, exist_ok=True)
    ran = [entry for entry in roster if results.of(entry.name).done and not results.of(entry.name).failed]
    drawn = _draw(job, results, ran, directory)
    path = directory / "README.md"
    path.write_text(page(job, results, roster, drawn))
    return path


def page(job: Job, results: Results, roster: Sequence[Entry], plots: Sequence[str] = ()) -> str:
    """Return the page as Markdown."""
    ran = [entry for entry in roster if results.of(entry.name).done and not results.of(entry.name).failed]
    out = [entry for entry in roster if results.of(entry.name).failed]
    never = [entry for entry in roster if entry not in ran and entry not in out]
    parts = ["# Beside today's contenders", made_on(job, results), _EXPLAINED]
    if ran:
        parts += ["## Time", _table(job, results, ran, _TIMES), "## Space", _table(job, results, ran, _SPACE)]
        parts += ["## Ratios to stream-wh", _ratios(job, results, ran), "## To reach", _reached(job, results, ran)]
    parts += [f"![{name}]({name})" for name in plots]
    if out:
        parts += ["## Not run, or failed", "\n".join(_reason(results, entry) for entry in out)]
    if never:
        parts.append("Not asked for: " + ", ".join(entry.title for entry in never) + ".")
    parts += ["## How each was set up", *(_set_up(entry) for entry in roster)]
    return "\n\n".join(parts) + "\n"


def made_on(job: Job, results: Results) -> str:
    """Return a description of the job, the machine and the versions."""
    facts = results.facts
    machine: dict[str, Any] = facts["machine"]
    names = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    updates = f"{job.updates} updates" + (f" after {job.settling} that are not measured" if job.settling else "")
    return (
        f"{job.rows:,} live rows of {job.row_bytes} bytes, {job.keys:,} keys, p = {job.periods}, lifetimes {job.lifetimes}, "
        f"rate {job.rate} ({job.batch:,} rows an update), seed {job.seed}; {updates}. "
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory']}, {machine['system']}; "
        f"commit {facts.get('commit', 'unknown')}; load average {facts['load']:.1f} at the start, {facts['started']}.\n\n{names}."
    )


def _named(names: Iterable[str]) -> list[Quantity]:
    return [next(quantity for quantity in QUANTITIES if quantity.name == name) for name in names]


def _table(job: Job, results: Results, ran: Sequence[Entry], names: Sequence[str]) -> str:
    quantities = _named(names)
    rows = [["", *(f"{quantity.title}{', ' if quantity.unit else ''}{quantity.unit}" for quantity in quantities)]]
    for entry in ran:
        cells = [entry.title]
        for quantity in quantities:
            measured = spread(results, entry.name, quantity, job)
            cells.append("" if measured is None else spread_text(measured.median, measured.low, measured.high))
        rows.append(cells)
    return markdown_table(rows)


def _ratios(job: Job, results: Results, ran: Sequence[Entry]) -> str:
    quantities = _named(("update", "few", "many", "scan", "aggregate", "written", "space"))
    rows = [["", *(quantity.title for quantity in quantities)]]
    for entry in ran:
        if entry.name != OURS:
            relative = [beside(results, entry.name, OURS, quantity, job) for quantity in quantities]
            texts = ["" if value is None else spread_text(value.value, value.low, value.high) for value in relative]
            rows.append([entry.title, *texts])
    return markdown_table(rows)


def _reached(job: Job, results: Results, ran: Sequence[Entry]) -> str:
    """Return the table of the targets: each with its verdict and the measured ratio."""
    rows = [["to reach", "", "measured"], *([target.text, *target.verdict(results, job)] for target in TARGETS)]
    names = [entry.name for entry in ran]
    for ours, how in ((OURS, "from files"), (HOT, "in memory")):
        if ours in names:
            better = better_at_all(results, job, names, ours)
            text = f"nobody better at update, probe (few rows) and space at once: {how}"
            rows.append([text, "does not hold" if better else "holds", ", ".join(better) or "nobody"])
    return markdown_table(rows, numbers=False)


def markdown_table(rows: Sequence[Sequence[str]], *, numbers: bool = True) -> str:
    """Return an aligned Markdown table of a head and rows; all columns but the first are numbers, to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rule = ["-" * width if column == 0 or not numbers else "-" * (width - 1) + ":" for column, width in enumerate(widths)]
    return "\n".join(_line(row, widths, numbers=numbers) for row in (rows[0], rule, *rows[1:]))


def _line(cells: Sequence[str], widths: Sequence[int], *, numbers: bool) -> str:
    first, *further = zip(cells, widths, strict=True)
    padded = [first[0].ljust(first[1]), *(cell.rjust(width) if numbers else cell.ljust(width) for cell, width in further)]
    return f"| {' | '.join(padded)} |"


def _reason(results: Results, entry: Entry) -> str:
    failed = results.of(entry.name).failed
    assert failed is not None
    outcome = "not run" if failed["missing"] else f"failed at update {failed['slot']}"
    return f"* **{entry.title}**: {outcome}: {failed['reason']}"


def _set_up(entry: Entry) -> str:
    module, _, name = entry.spec.partition(":")
    kind = getattr(importlib.import_module(module), name)
    return f"**{entry.title}.** {re.sub('``', '`', inspect.getdoc(kind) or '')}"


def _draw(job: Job, results: Results, ran: Sequence[Entry], directory: Path) -> list[str]:
    ours = next((entry.title for entry in ran if entry.name == OURS), "")
    spreads: dict[str, dict[str, Spread]] = {
        quantity.name: {
            entry.title: measured for entry in ran if (measured := spread(results, entry.name, quantity, job)) is not None
        }
        for quantity in _named(_DRAWN)
    }
    if not ran:
        return []
    names = []
    for quantity in _named(_DRAWN):
        names.append(f"{quantity.name}.png")
        bars(directory / names[-1], quantity.title, quantity.unit, spreads[quantity.name], ours)
    names.append("updates.png")
    courses(directory / names[-1], "update, one after another", "s", spreads["update"], ours)
    names.append("update-and-probe.png")
    points = {title: (spreads["update"][title].median, spreads["few"][title].median) for title in spreads["update"]}
    scatter(directory / names[-1], "update and probe: lower left is better", ("update, s", "probe of few rows, ms"), points, ours)
    return names


def spread_text(middle: float, low: float, high: float) -> str:
    """Return a median with its quartiles."""
    return f"{_number(middle)} ({_number(low)} to {_number(high)})"


def _number(number: float) -> str:
    if number >= 1000:
        return f"{number:,.0f}"
    if 0 < number < 0.0005:
        return "<0.001"
    return f"{number:.3g}"
