"""The report: one HTML page that fetches nothing, for dark and light screens and for paper."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from warehouse.layout.wording import leaving_text
from warehouse.planning.wording import step_text
from warehouse.report.charts import COLOURS, Axis, Series, legend, line_chart, stacked_columns
from warehouse.report.graph import GraphNode, graph
from warehouse.report.html_parts import anchor, figure, rows_table, section
from warehouse.report.scales import COUNT, labels_of_times, seconds_scale
from warehouse.report.style import STYLE
from warehouse.report.table_section import table_parts
from warehouse.time import SECOND, format_duration, format_instant
from warehouse.units import counted, size_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from warehouse.health import Concern, Health
    from warehouse.report.figures import EpochFigures, Figures, TableFigures
    from warehouse.serving.expiring_rows import ExpiringRows

__all__ = ["html_page"]

_MAX_EPOCHS = 200
_MAX_STEPS = 12
_GENERAL_SECTIONS = ("Tables", "What ends next", "What reads what", "Updates")
_OTHER_STEPS, _OUTSIDE_STEPS = "other steps", "plan, and write the records"
_SEARCH_FIELD = (
    '<p class="search" hidden><label>Search <input type="search" autocomplete="off" spellcheck="false"/></label> '
    "<output></output></p>"
)
"""The search field: it hides tables, and rows of tables, that do not have all of the words.

It is hidden until the script shows it: without scripts the page is complete, and the browser's own search works. Browsers read
its output aloud when it changes.
"""
_SCRIPT = """<script>
(() => {
  const bar = document.querySelector(".search"), field = bar.querySelector("input"), output = bar.querySelector("output");
  const rows = [...document.querySelectorAll('section[id^="all-"] tr')].filter((row) => row.querySelector("td"));
  const named = rows.filter((row) => row.querySelector('a[href^="#table-"]'));
  const parts = [...document.querySelectorAll('section[id^="table-"]')];
  const links = [...document.querySelectorAll(".contents li")].filter((each) => each.querySelector('a[href^="#table-"]'));
  const target = (part) => part.querySelector("a").getAttribute("href").slice(1);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(" ").filter(Boolean);
    const fits = (part) => words.every((word) => part.textContent.toLowerCase().includes(word));
    for (const row of rows) row.hidden = !fits(row);
    const found = new Set(named.filter((row) => !row.hidden).map(target));
    for (const part of parts) part.hidden = !found.has(part.id);
    for (const link of links) link.hidden = !found.has(target(link));
    output.textContent = words.length ? `${found.size} of ${named.length} tables` : "";
  });
  bar.hidden = false;
})();
</script>"""
"""The rows of the first table decide whose sections and links are shown."""


def html_page(figures: Figures, name: str, health: Health) -> str:
    """Return the page.

    Parameters
    ----------
    figures
        The figures of the page.
    name
        The name of the warehouse.
    health
        The verdict, at the top of the page.

    """
    title = f"{name}, as of {format_instant(figures.window_time)}"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body>\n<h1>{escape(title)}</h1>\n"
        + _verdict(health, {table.name for table in figures.tables})
        + _contents(figures)
        + "\n".join(_sections(figures))
        + f"\n{_SCRIPT}\n</body></html>\n"
    )


def _verdict(health: Health, linked: Collection[str]) -> str:
    """Return the verdict, each concern with the command that helps, and notes about running work."""
    concerns = "".join(
        f'<li class="{concern.level}"><b>{concern.level}</b> {_concern(concern, linked)}</li>' for concern in health.concerns
    )
    notes = "".join(f"<p>{escape(note)}</p>" for note in health.notes)
    listed = f"<ul>{concerns}</ul>" if concerns else ""
    return f'<div class="verdict {health.level}" role="status"><p><b>{escape(health.headline)}</b></p>{listed}{notes}</div>\n'


def _concern(concern: Concern, linked: Collection[str]) -> str:
    table = f"{escape(concern.table)}: " if concern.table else ""
    if concern.table in linked:
        table = f'<a href="#{anchor(concern.table or "")}">{escape(concern.table or "")}</a>: '
    command = f"; <code>{escape(concern.command)}</code>" if concern.command else ""
    return f"{table}{escape(concern.text)}{command}"


def _contents(figures: Figures) -> str:
    """Return links to the sections, and the search field."""
    titles = [(title, _section_identifier(title)) for title in _GENERAL_SECTIONS]
    titles += [(table.name, anchor(table.name)) for table in figures.tables]
    links = "".join(f'<li><a href="#{identifier}">{escape(title)}</a></li>' for title, identifier in titles)
    return f'<nav aria-label="Contents"><h2>Contents</h2><ul class="contents">{links}</ul>{_SEARCH_FIELD}</nav>\n'


def _section_identifier(title: str) -> str:
    """Return the identifier of a section about all tables."""
    return f"all-{title.lower().replace(' ', '-')}"


def _sections(figures: Figures) -> Iterator[str]:
    epochs = figures.epochs[-_MAX_EPOCHS:]
    readable = len(figures.epochs)
    committed = format_instant(figures.epochs[-1].committed_at // SECOND * SECOND)
    drawn = f", of which the newest {len(epochs)} are drawn" if len(epochs) < readable else ""
    yield (
        f'<p class="note">Live rows are those that had arrived and not expired at the window time, '
        f"{format_instant(figures.window_time)}. The update that moved the tables there made epoch {figures.number} of the "
        f"warehouse at {committed}; the states of {counted(readable, 'epoch')} can still be read{drawn}.</p>"
    )
    parts = ((_summary(figures.tables),), tuple(_endings(figures.endings)), (_graph(figures),), tuple(_updates(epochs)))
    for title, content in zip(_GENERAL_SECTIONS, parts, strict=True):
        yield section(title, *content, identifier=_section_identifier(title))
    for table in figures.tables:
        yield section(table.name, *table_parts(table, epochs), identifier=anchor(table.name))


# --- all tables ---


def _summary(tables: Sequence[TableFigures]) -> str:
    head = ("table", "kind", "its rows", "live rows", "files", "live data", "expired data", "key look-up")
    rows = [
        (
            f'<a href="#{anchor(table.name)}">{escape(table.name)}</a>',
            escape(table.kind),
            leaving_text(table.label),
            f"{table.live_rows:,}",
            f"{table.files:,}",
            size_text(table.live_bytes),
            size_text(table.dead_bytes),
            f"{table.measured_probes.median:.1f} ms" if table.measured_probes else "stands still" if table.failed else "none",
        )
        for table in tables
    ]
    note = (
        "Rows that can leave early do so when later rows say so, as those of a GROUP BY or NOT EXISTS. "
        "Expired data are in no answer; a file goes when all its rows have expired, or when it is written again."
    )
    return rows_table(head, rows, texts=3) + f'<p class="note">{note}</p>'


def _endings(endings: Sequence[ExpiringRows]) -> Iterator[str]:
    """Yield a chart and a table of the rows and bytes that leave with the next update, within six hours and within a day."""
    horizons = tuple(dict.fromkeys(ending.within for ending in endings))
    labels = tuple(
        "next update" if number == 0 else f"within {format_duration(horizon)}" for number, horizon in enumerate(horizons)
    )
    by_key = {(ending.table, ending.within): ending for ending in endings}
    tables = sorted({ending.table for ending in endings}, key=lambda name: (-by_key[name, horizons[-1]].rows, name))
    ending = [name for name in tables if by_key[name, horizons[-1]].rows]
    if not ending:
        yield '<p class="note">No live row ends within a day.</p>'
        return
    drawn_tables, other_tables = ending[: COLOURS - 1], ending[COLOURS - 1 :]
    series = [Series(name, tuple(float(by_key[name, horizon].rows) for horizon in horizons)) for name in drawn_tables]
    if other_tables:
        series.append(
            Series("other tables", tuple(float(sum(by_key[name, horizon].rows for name in other_tables)) for horizon in horizons))
        )
    totals = [sum(by_key[name, horizon].rows for name in ending) for horizon in horizons]
    titles = [f"{label}: {total:,} rows" for label, total in zip(labels, totals, strict=True)]
    colours = legend([(f"c{min(number, COLOURS - 1)}", drawn_series.name) for number, drawn_series in enumerate(series)])
    drawn = stacked_columns(Axis(labels, "after the window time"), series, COUNT, titles) + colours
    rows = [
        (escape(name), *(f"{by_key[name, horizon].rows:,} ({size_text(by_key[name, horizon].bytes)})" for horizon in horizons))
        for name in ending
    ]
    yield '<div class="figures">'
    yield figure("Rows that end", drawn, "Live rows by when they expire. Their files go once every row of them has expired.")
    numbers = rows_table(("table", *labels), rows, texts=1)
    yield figure("Rows and bytes that end", numbers, "Bytes are a file's by the share of its rows.")
    yield "</div>"


def _graph(figures: Figures) -> str:
    nodes = [
        GraphNode(
            table.name,
            f"{table.kind}{', stands still' if table.failed else ''}",
            "failed" if table.failed else "view" if table.kind == "view" else "",
            anchor(table.name),
        )
        for table in figures.tables
    ]
    names = {table.name for table in figures.tables}
    edges = [(edge.table, edge.view) for edge in figures.edges if edge.table in names]
    return figure("", graph(nodes, edges), "An arrow leads from a table to each view that reads it.")


# --- updates ---


def _updates(epochs: Sequence[EpochFigures]) -> Iterator[str]:
    time_labels = labels_of_times([epoch.window_time for epoch in epochs], "window time")
    axis = Axis(time_labels.labels, time_labels.axis)
    totals: dict[str, float] = {}
    for epoch in epochs:
        for step in epoch.steps:
            totals[step.step or _OUTSIDE_STEPS] = totals.get(step.step or _OUTSIDE_STEPS, 0.0) + step.seconds
    names = sorted(totals, key=lambda name: -totals[name])
    drawn, other_steps = names[: COLOURS - 1], set(names[COLOURS - 1 :])
    series = [Series(step_text(name), tuple(_seconds(epoch, {name}) for epoch in epochs)) for name in drawn]
    if other_steps:
        series.append(Series(_OTHER_STEPS, tuple(_seconds(epoch, other_steps) for epoch in epochs)))
    titles = [
        f"epoch {epoch.number} ({epoch.cause}), window time {format_instant(epoch.window_time)}: {epoch.seconds:.2f} s"
        for epoch in epochs
    ]
    scale = seconds_scale(max((epoch.seconds for epoch in epochs), default=0.0))
    colours = legend([(f"c{min(number, COLOURS - 1)}", drawn_series.name) for number, drawn_series in enumerate(series)])
    durations = figure("How long each update took, by step", stacked_columns(axis, series, scale, titles) + colours,
                   f"From its plan to its commit; the {len(drawn)} steps that took most in all, from the foot up.")  # fmt: skip
    if not series:
        durations = figure("How long each update took, by step", "", "No step of these updates was timed.")
    lag = Series("lag", tuple(epoch.lag for epoch in epochs))
    lags = figure("How far behind", line_chart(axis, [lag], seconds_scale(max(lag.values, default=0.0))),
                    "From the window time to the commit (0 where it is ahead); large where the past is replayed.")  # fmt: skip
    yield f'<div class="figures">{durations}{lags}{_longest_steps(epochs[-1])}</div>'


def _seconds(epoch: EpochFigures, names: set[str]) -> float:
    return sum(step.seconds for step in epoch.steps if (step.step or _OUTSIDE_STEPS) in names)


def _longest_steps(epoch: EpochFigures) -> str:
    """Return the longest steps of an update as numbers."""
    if not epoch.steps:
        return ""
    steps = sorted(epoch.steps, key=lambda step: -step.seconds)
    rows = [(escape(step_text(step.step or _OUTSIDE_STEPS)), f"{step.seconds:.2f} s") for step in steps[:_MAX_STEPS]]
    note = f"; {len(steps) - _MAX_STEPS} more took less" if len(steps) > _MAX_STEPS else ""
    caption = f"Epoch {epoch.number} ({epoch.cause}) took {epoch.seconds:.2f} s{note}."
    return figure("The newest update's steps", rows_table(("step", "time"), rows, texts=1), caption)
