"""The result of a run: a table for people, in Markdown, and JSON that has every value."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.ratio import Ratio, Sample

__all__ = ["markdown", "save", "table"]

_HEAD = ("measurement", "ratio of medians", "ratio", "quartiles", "target", "", "of", "to")
_NUMBERS = (2, 3, 4, 6, 7)


def table(ratios: Sequence[Ratio]) -> str:
    """Return the ratios as an aligned Markdown table."""
    rows = [_HEAD, *(_cells(ratio) for ratio in ratios)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    rule = ["-" * (width - 1) + ":" if column in _NUMBERS else "-" * width for column, width in enumerate(widths)]
    return "\n".join(_line(row, widths) for row in (_HEAD, rule, *rows[1:])) + "\n"


def markdown(ratios: Sequence[Ratio], facts: dict[str, Any]) -> str:
    """Return the table, after the facts by which to judge it."""
    machine, settings, versions = facts["machine"], facts["settings"], facts["versions"]
    made_on = f"{machine['processor']}, {machine['cores']} cores, {machine['memory']}, {machine['system']}"
    load = f"load average {facts['load_before']:.1f} before, {facts['load_after']:.1f} after"
    rows = f"{settings['rows']:,} live rows of {settings['row_bytes']} bytes, p = {settings['periods']}"
    updates = f"{settings['updates']} updates of {settings['batch']:,} rows in {settings['files']} files"
    paragraphs = [
        f"{made_on}; {load}.",
        ", ".join(f"{name} {version}" for name, version in versions.items()) + ".",
        f"{rows}, {updates}, seed {settings['seed']}.",
        f"Started {facts['started']}, took {facts['seconds'] / 60:.0f} minutes.",
    ]
    return "\n".join([*paragraphs, "", table(ratios)])


def save(ratios: Sequence[Ratio], facts: dict[str, Any], directory: Path, name: str) -> tuple[Path, Path]:
    """Write both forms and return where they are."""
    directory.mkdir(parents=True, exist_ok=True)
    lines = [{**asdict(ratio), "holds": ratio.holds} for ratio in ratios]
    as_json, as_markdown = directory / f"{name}.json", directory / f"{name}.md"
    as_json.write_text(json.dumps({**facts, "ratios": lines}, indent=1, default=asdict) + "\n")
    as_markdown.write_text(markdown(ratios, facts))
    return as_json, as_markdown


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.rjust(width) if column in _NUMBERS else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"


def _cells(line: Ratio) -> tuple[str, ...]:
    holds = {None: "", True: "holds", False: "does not hold"}[line.holds]
    target = "" if line.target is None else f"{'≥' if line.at_least else '≤'} {line.target:g}"
    spread = "" if line.low == line.high else f"{_number(line.low)} to {_number(line.high)}"
    return (line.measurement, line.text, _number(line.value), spread, target, holds, _amount(line.of), _amount(line.to))


def _number(number: float) -> str:
    return f"{number:.4f}" if number < 0.1 else f"{number:.3f}"


def _amount(sample: Sample | None) -> str:
    if sample is None:
        return ""
    median = sample.median
    match sample.unit:
        case "bytes":
            return f"{median / 1e6:.2f} MB"
        case "s" if median < 1:
            return f"{median * 1000:.{3 if median < 0.001 else 1}f} ms"
        case unit:
            return f"{median:.2f} {unit}"
