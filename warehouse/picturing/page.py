"""The report: one HTML page, everything in it, nothing fetched; for a dark browser, a light one, and paper."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from warehouse.picturing.charts import COLOURS, HeatCell, Series, graph, heat_map, histogram, legend, lines, stacked
from warehouse.time import SECOND, format_duration, format_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.picturing.figures import Cell, EpochFigures, Figures, Lifetimes, TableFigures

__all__ = ["html_page"]

_MOST_EPOCHS = 200
_REST, _UNNAMED = "other steps", "planning and records"
_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2429; --faint: #66727c; --line: #d5dbe0; --cell: #f1f4f6;
  --live: #2f7fb8; --dead: #c4622d; --c0: #2f7fb8; --c1: #d98a1f; --c2: #2b8f6b; --c3: #b0568f; --c4: #7a6bc4; --c5: #8d7a3d;
  --c6: #4fa6a6; --c7: #9aa5ad; }
@media (prefers-color-scheme: dark) { :root { --paper: #14181b; --ink: #e4e9ec; --faint: #9aa7b0; --line: #333c43;
  --cell: #1e252a; --live: #4fa3dd; --dead: #e0854f; --c0: #4fa3dd; --c1: #e8a54b; --c2: #4cb791; --c3: #d383b6; --c4: #a195e6;
  --c5: #c0ab66; --c6: #6fc7c7; --c7: #7c8891; } }
@media print { :root { color-scheme: light; --paper: #fff; --ink: #000; --faint: #444; --line: #bbb; --cell: #f4f4f4;
  --live: #2f7fb8; --dead: #c4622d; --c0: #2f7fb8; --c1: #d98a1f; --c2: #2b8f6b; --c3: #b0568f; --c4: #7a6bc4; --c5: #8d7a3d;
  --c6: #4fa6a6; --c7: #9aa5ad; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } section, figure { break-inside: avoid; } }
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; } h3 { font-size: 1rem; margin-bottom: .2rem; }
p.note, .legend, figcaption { color: var(--faint); font-size: .9rem; } .failed { color: var(--dead); }
figure { margin: 1rem 0; } svg { width: 100%; height: auto; display: block; } .legend svg { display: inline; width: 12px; }
.legend span { margin-right: 1rem; white-space: nowrap; }
.wide { overflow-x: auto; } table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child, td.text, th.text { text-align: left; }
text { fill: var(--ink); font: 12px system-ui, sans-serif; } text.axis { fill: var(--faint); } text.name { font-weight: 600; }
.cell { fill: var(--cell); stroke: var(--line); } .live { fill: var(--live); } .dead { fill: var(--dead); }
.grid { stroke: var(--line); } .ink { fill: var(--faint); } .edge { fill: none; stroke: var(--faint); stroke-width: 1.3; }
.box { fill: var(--cell); stroke: var(--line); } .line { fill: none !important; stroke-width: 1.8; }
""" + "".join(f".c{each} {{ fill: var(--c{each}); }} .line.c{each} {{ stroke: var(--c{each}); }}\n" for each in range(COLOURS))


def html_page(figures: Figures, name: str) -> str:
    """Return the page.

    Parameters
    ----------
    figures
        What it shows.
    name
        What the warehouse is called.

    """
    title = f"{name}: window time {format_instant(figures.window_time)}"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body>\n<h1>{escape(title)}</h1>\n"
        + "\n".join(_sections(figures))
        + "\n</body></html>\n"
    )


def _sections(figures: Figures) -> Iterator[str]:
    newest = figures.epochs[-1]
    yield (
        f'<p class="note">Epoch {figures.number}, committed {format_instant(newest.committed_at)}; '
        f"{len(figures.epochs)} epochs are readable.</p>"
    )
    yield _section("Tables", _summary(figures.tables))
    yield _section("What reads what", _graph(figures))
    yield _section("Updates", *_updates(figures.epochs[-_MOST_EPOCHS:]))
    for table in figures.tables:
        yield _section(table.name, *_table(table, figures.epochs[-_MOST_EPOCHS:]))


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2>\n" + "\n".join(parts) + "\n</section>"


def _figure(picture: str, caption: str) -> str:
    return f'<figure><div class="wide">{picture}</div><figcaption>{escape(caption)}</figcaption></figure>'


# --- all tables ---


def _summary(tables: Sequence[TableFigures]) -> str:
    head = "".join(f'<th class="text">{each}</th>' for each in ("table", "kind", "pattern"))
    head += "".join(f"<th>{each}</th>" for each in ("live rows", "files", "live", "dead", "probe of a key"))
    rows = []
    for table in tables:
        probes = f"{table.probes.median:.1f} ms" if table.probes else "-"
        numbers = (f"{table.live_rows:,}", f"{table.files:,}", _bytes(table.live_bytes), _bytes(table.dead_bytes), probes)
        cells = "".join(f'<td class="text">{escape(text)}</td>' for text in (table.name, table.kind, table.label))
        rows.append(f"<tr>{cells}{''.join(f'<td>{each}</td>' for each in numbers)}</tr>")
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _graph(figures: Figures) -> str:
    nodes = [(table.name, f"{table.kind}, {table.label}{', stands still' if table.failed else ''}") for table in figures.tables]
    known = {table.name for table in figures.tables}
    edges = [(edge.table, edge.view) for edge in figures.edges if edge.table in known]
    caption = "MON: rows never leave; WKS: after one constant time; WK: at an end known beforehand; STR: when later rows say so"
    return _figure(graph(nodes, edges), caption)


def _updates(epochs: Sequence[EpochFigures]) -> Iterator[str]:
    labels = [_label(epoch) for epoch in epochs]
    totals: dict[str, float] = {}
    for epoch in epochs:
        for step in epoch.steps:
            totals[step.step or _UNNAMED] = totals.get(step.step or _UNNAMED, 0.0) + step.seconds
    names = sorted(totals, key=lambda name: -totals[name])
    shown, rest = names[: COLOURS - 1], set(names[COLOURS - 1 :])
    series = [Series(name, tuple(_seconds(epoch, {name}) for epoch in epochs)) for name in shown]
    if rest:
        series.append(Series(_REST, tuple(_seconds(epoch, rest) for epoch in epochs)))
    titles = [f"epoch {epoch.number} ({epoch.cause}), {_label(epoch)}: {epoch.seconds:.2f} s" for epoch in epochs]
    picture = stacked(labels, series, _in_seconds, titles) + legend([each.name for each in series])
    yield _figure(picture, "Seconds of each update by step")
    lag = Series("lag", tuple(epoch.lag for epoch in epochs))
    yield _figure(lines(labels, [lag], _in_seconds), "Lag: from the window time to the commit")


def _seconds(epoch: EpochFigures, names: set[str]) -> float:
    return sum(step.seconds for step in epoch.steps if (step.step or _UNNAMED) in names)


# --- one table ---


def _table(table: TableFigures, epochs: Sequence[EpochFigures]) -> Iterator[str]:
    if table.failed:
        yield f'<p class="failed">It could not be maintained by the last update: {escape(table.failed)}</p>'
    keyed = table.columns == 1 and table.label == "STR"
    across = "buckets of the search key" if keyed else f"expiration: {table.columns} columns"
    warmest = max((cell.live_bytes + cell.dead_bytes for cell in table.cells), default=0)
    cells = [_heat(cell, warmest) for cell in table.cells]
    grid = f"{table.technique}, {table.rows} rows by {table.columns} columns"
    caption = f"{grid}: live bytes of each sub-index, and below them dead ones"
    yield _figure(heat_map(cells, across=across, down=f"{table.rows} rows"), caption)
    labels = [_label(epoch) for epoch in epochs]
    sizes = [next(((files, size) for name, files, size in epoch.sizes if name == table.name), (0, 0)) for epoch in epochs]
    yield _figure(lines(labels, [Series("bytes", tuple(float(size) for _, size in sizes))], _bytes), "Bytes over epochs")
    yield _figure(lines(labels, [Series("files", tuple(float(files) for files, _ in sizes))], _whole), "Files over epochs")
    yield _lifetimes(table.lifetimes)
    if table.probes:
        taken = table.probes.milliseconds
        yield (
            f'<p class="note">Probes of {len(taken)} keys that are there, one after the other: '
            f"median {table.probes.median:.1f} ms, from {taken[0]:.1f} to {taken[-1]:.1f}.</p>"
        )


def _heat(cell: Cell, warmest: int) -> HeatCell:
    size = cell.live_bytes + cell.dead_bytes
    files = f"{cell.files} file{'' if cell.files == 1 else 's'}"
    texts = (_bytes(cell.live_bytes), f"{_bytes(cell.dead_bytes)} dead") if size else ("",)
    title = f"sub-index {cell.sub_index}: {files}, {cell.live_bytes:,} bytes live, {cell.dead_bytes:,} dead"
    heat = 0.65 * cell.live_bytes / warmest if warmest else 0.0
    return HeatCell(cell.row, cell.column, heat, cell.dead_bytes / size if size else 0.0, texts, title)


def _lifetimes(lifetimes: Lifetimes) -> str:
    ends = [format_duration(_readable(lifetimes.width * (place + 1))) for place in range(len(lifetimes.bins))]
    labels = ["< " + end for end in ends] + ["longer"]
    counts = [*lifetimes.bins, lifetimes.longer]
    titles = [f"{label}: {count:,} rows" for label, count in zip(labels, counts, strict=True)]
    never = f"; {lifetimes.never:,} rows never expire" if lifetimes.never else ""
    return _figure(histogram(labels, counts, titles), f"Live rows by their lifetime{never}")


# --- texts ---


def _label(epoch: EpochFigures) -> str:
    return format_instant(epoch.window_time).replace("T", " ").removesuffix(":00Z").removesuffix("Z")


def _readable(duration: int) -> int:
    """Cut a duration to what one reads: milliseconds, or seconds where there are many."""
    unit = SECOND if duration > 10 * SECOND else SECOND // 1000
    return max(unit, duration // unit * unit)


def _in_seconds(value: float) -> str:
    if value >= 172_800:  # noqa: PLR2004 - two days
        return f"{value / 86_400:,.0f} d"
    return f"{value:,.0f} s" if value >= 10 or value == int(value) else f"{value:.1f} s"  # noqa: PLR2004 - two digits


def _whole(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else ""


def _bytes(value: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:  # noqa: PLR2004 - a prefix is a thousand times the one before
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 or value == int(value) else f"{value:.1f} {unit}"  # noqa: PLR2004
        value /= 1000
    return f"{value:,.1f} TB"
