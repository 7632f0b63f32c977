"""The section of one table in the report: its grid, files and bytes over epochs, lifetimes, latencies of probes."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from warehouse.layout.wording import leaving_text
from warehouse.report.charts import Axis, Bin, Series, histogram, legend, line_chart
from warehouse.report.heat_map import HeatCell, heat_map
from warehouse.report.html_parts import figure
from warehouse.report.scales import COUNT, bytes_scale, labels_of_times
from warehouse.time import SECOND, format_duration
from warehouse.units import counted, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.report.figures import Cell, EpochFigures, LifetimeBins, TableFigures

__all__ = ["table_parts"]

_TECHNIQUES = {
    "norebuild": "an update adds files and removes those that expired",
    "rebuild": "an update rewrites the parts that change",
}


def table_parts(table: TableFigures, epochs: Sequence[EpochFigures]) -> Iterator[str]:
    """Yield a line about a table, and its figures."""
    if table.failed:
        yield f'<p class="failed">It stands still: {escape(table.failed)}</p>'
    lives = f", within {format_duration(table.periods * table.interval)}" if table.label in ("WK", "WKS") else ""
    yield (
        f'<p class="note">{escape(table.kind.capitalize())}, whose rows {leaving_text(table.label)}{lives}; '
        f"{_TECHNIQUES[table.technique]}. {counted(table.live_rows, 'live row')} in {counted(table.files, 'file')}: "
        f"{size_text(table.live_bytes)} live, {size_text(table.dead_bytes)} expired.</p>"
    )
    over_time = [*_sizes(table.name, epochs), *_owed(table, epochs)]
    figures = [_grid(table), *over_time, _lifetimes(table.lifetimes, table.live_rows), _latencies(table)]
    yield f'<div class="figures">{"".join(figures)}</div>'


def _is_keyed(table: TableFigures) -> bool:
    return table.kind == "relation" or (table.columns == 1 and table.label == "STR")


# --- the grid ---


def _grid(table: TableFigures) -> str:
    warmest = max((cell.live_bytes for cell in table.cells), default=0)
    cells = [_heat_cell(cell, warmest) for cell in table.cells]
    if _is_keyed(table):
        title, horizontal, vertical = f"Its {table.rows} buckets, by a hash of the search key", "", "bucket"
    else:
        title = f"Its grid, {table.rows} by {table.columns}"
        horizontal, vertical = "expires", "arrived"
    former = max((cell.row for cell in table.cells), default=0) >= table.rows
    strongest = f"live data: the stronger, the more, up to {size_text(warmest)}"
    colours = legend([("live", strongest), ("dead", "share that has expired")])
    caption = "Each cell is a set of files (a sub-index), sorted by the search key"
    caption += "." if _is_keyed(table) else ": a row of the table lies in it by when it arrived and when it expires."
    caption += " Rows of the grid below are of former layouts." if former else ""
    return figure(title, heat_map(cells, horizontal=horizontal, vertical=vertical) + colours, caption)


def _heat_cell(cell: Cell, warmest: int) -> HeatCell:
    size = cell.live_bytes + cell.dead_bytes
    files = f"{cell.files} file{'' if cell.files == 1 else 's'}"
    texts = (size_text(cell.live_bytes), *([f"{size_text(cell.dead_bytes)} expired"] if cell.dead_bytes else [])) if size else ()
    title = f"sub-index {cell.sub_index}: {files}, {cell.live_bytes:,} bytes live, {cell.dead_bytes:,} expired"
    heat = cell.live_bytes / warmest if warmest else 0.0
    return HeatCell(cell.row, cell.column, heat, cell.dead_bytes / size if size else 0.0, texts, title)


# --- over epochs ---


def _sizes(name: str, epochs: Sequence[EpochFigures]) -> Iterator[str]:
    sizes = [(epoch.window_time, files, size) for epoch in epochs for table, files, size in epoch.sizes if table == name]
    time_labels = labels_of_times([window_time for window_time, _, _ in sizes], "window time")
    axis = Axis(time_labels.labels, time_labels.axis)
    size = Series("bytes", tuple(float(size_at) for _, _, size_at in sizes))
    files = Series("files", tuple(float(files_at) for _, files_at, _ in sizes))
    scale = bytes_scale(max(size.values, default=0.0))
    yield figure("Bytes over time", line_chart(axis, [size], scale), "Of live and expired rows.")
    yield figure("Files over time", line_chart(axis, [files], COUNT, "files"), "A look-up opens those that may hold its key.")


def _owed(table: TableFigures, epochs: Sequence[EpochFigures]) -> Iterator[str]:
    """Yield the results that a view under a budget lacks, over epochs."""
    if table.owed is None:
        return
    counts = [(epoch.window_time, float(count)) for epoch in epochs for name, count in epoch.owed if name == table.name]
    time_labels = labels_of_times([window_time for window_time, _ in counts], "window time")
    owed = Series("owed", tuple(count for _, count in counts))
    picture = line_chart(Axis(time_labels.labels, time_labels.axis), [owed], COUNT, "results")
    caption = "It has all results of its query." if table.owed.complete else f"{table.owed.text}. "
    if table.owed.units:
        caption += f"It has {table.owed.share_least:.0%} of its results or more; {table.owed.cost}."
    yield figure("Results that are owed", picture, caption)


# --- lifetimes ---


def _lifetimes(lifetimes: LifetimeBins, live: int) -> str:
    title = "How long its rows live"
    ending = live - lifetimes.never
    if ending <= 0:
        return figure(title, "", f"All {live:,} live rows never expire." if live else "There is no live row.")
    ends = [format_duration(_rounded(lifetimes.width * position)) for position in range(len(lifetimes.bins) + 1)]
    bins = [
        Bin(ends[position] if position % 6 == 0 else "", count, f"{ends[position]} to {ends[position + 1]}: {count:,} rows")
        for position, count in enumerate(lifetimes.bins)
    ]
    bins.append(Bin(f"≥ {ends[-1]}", lifetimes.longer, f"{ends[-1]} or longer: {lifetimes.longer:,} rows", "c5"))
    never = f"; {lifetimes.never:,} more never expire" if lifetimes.never else ""
    picture = histogram(bins, "lifetime: from arrival to expiration", "live rows")
    return figure(title, picture, f"{ending:,} live rows by their lifetime{never}.")


def _rounded(duration: int) -> int:
    """Round a duration down to readable units: milliseconds, seconds for long ones, minutes for hours."""
    unit = next(size for least, size in ((7200, 60 * SECOND), (10, SECOND), (0, SECOND // 1000)) if duration >= least * SECOND)
    return duration // unit * unit


# --- latencies ---


def _latencies(table: TableFigures) -> str:
    title = "How long look-ups of a key (probes) take"
    measured_text = (
        f"For this page {len(table.measured_probes.milliseconds)} keys that are there were probed, one after the other: "
        f"median {table.measured_probes.median:.1f} ms, the slowest {table.measured_probes.milliseconds[-1]:.1f} ms."
        if table.measured_probes
        else "For this page no key was probed."
    )
    latencies = table.logged_probes or table.measured_probes
    if latencies is None:
        return figure(title, "", "No probe of one key is in the read log of this user. " + measured_text)
    bins = [
        Bin(f"{begins:g}", count, f"{begins:g} ms or more, and less than the next: {count:,} probes")
        for begins, count in latencies.bins()
    ]
    picture = histogram(bins, "milliseconds, each column from its number on", "probes")
    if table.logged_probes is None:
        return figure(title, picture, measured_text + " The read log of this user has none.")
    log = table.logged_probes
    caption = (
        f"{len(log.milliseconds):,} probes of one key in the read log of this user: "
        f"median {log.median:.1f} ms, 95 of 100 within {log.quantile(0.95):.1f} ms. "
    )
    return figure(title, picture, caption + measured_text)
