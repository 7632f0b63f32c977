"""The text of ``explain`` for an aggregate: the synopses that it reads, and when its windows are due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.cli.outcome import Report
from warehouse.time import format_duration, format_instant
from warehouse.units import counted

if TYPE_CHECKING:
    from warehouse.serving.aggregate_explanation import AggregateExplanation, ExplainedSynopsis, WindowDue

__all__ = ["aggregate_report"]


def aggregate_report(explanation: AggregateExplanation) -> Report:
    """Return an explanation as lines for people and as a record."""
    definition = explanation.definition
    groups = ", ".join(name for name, _ in definition.group_by)
    rows = "live rows of " if definition.over == "live" else ""
    head = f"{explanation.name}: windows of {rows}{definition.source}" + (f" by {groups}" if groups else "")
    lines = [head + (f" where {definition.where}" if definition.where else "")]
    lines.append("  reads counts that are kept, not the rows:")
    lines += [f"    {_synopsis(synopsis)}" for synopsis in explanation.synopses]
    lines += [f"  {_window(window)}" for window in explanation.windows]
    lines.append("windows that are due together are answered by one pass over the counts of the longest; these have one row")
    lines.append("for each update interval and group (and value, where values are counted), however many rows arrive")
    return Report(_record(explanation), tuple(lines), data=True)


def _synopsis(synopsis: ExplainedSynopsis) -> str:
    content = f"how often each {synopsis.counted} came" if synopsis.counted else ", ".join(["count of rows", *synopsis.states])
    if synopsis.listed is not None:
        content = f"the {synopsis.listed} most frequent of {synopsis.counted}"
    if synopsis.parts is not None:
        content += f", by the arrival of both parts ({', '.join(synopsis.parts)})"
    if synopsis.levels:
        content += f", also merged for up to {counted(1 << synopsis.levels, 'update interval')}"
    parts = [content if synopsis.where is None else f"{'less ' if synopsis.less else ''}{content}, where {synopsis.where}"]
    if synopsis.rows is None or synopsis.full_from is None:
        parts.append("made by the next update")
    else:
        since = format_instant(max(synopsis.full_from, 0))
        parts.append(f"{counted(synopsis.rows, 'row')} of {counted(synopsis.slots, 'update interval')}, complete from {since}")
    if synopsis.shared_with:
        parts.append(f"shared with {', '.join(synopsis.shared_with)}")
    return "; ".join(parts)


def _window(window: WindowDue) -> str:
    due = "" if window.next_due is None else f"; next {format_instant(window.next_due)}"
    rows = "" if window.pieces is None else f", in {counted(window.pieces, 'part')} where longer ones are kept"
    rows += "" if window.rows is None else f", about {counted(window.rows, 'row')}"
    run = f", in one run with {', '.join(window.together)}" if window.together else ""
    intervals = counted(window.slots, "update interval")
    return f"{window.length}, every {format_duration(window.every)}: reads {intervals}{rows}{due}{run}"


def _record(explanation: AggregateExplanation) -> dict[str, object]:
    definition = explanation.definition
    return {
        "aggregate": explanation.name,
        "epoch": explanation.epoch,
        "from": definition.source,
        "where": definition.where,
        "over": definition.over,
        "group_by": [name for name, _ in definition.group_by],
        "synopses": [
            {
                "table": synopsis.table,
                "counted": synopsis.counted,
                "listed": synopsis.listed,
                "where": synopsis.where,
                "less": synopsis.less,
                "parts": synopsis.parts and list(synopsis.parts),
                "states": list(synopsis.states),
                "shared_with": list(synopsis.shared_with),
                "slots": synopsis.slots,
                "rows": synopsis.rows,
                "levels": synopsis.levels,
                "full_from": None if synopsis.full_from is None else format_instant(synopsis.full_from),
            }
            for synopsis in explanation.synopses
        ],
        "windows": [
            {
                "length": window.length,
                "slots": window.slots,
                "every": format_duration(window.every),
                "rows": window.rows,
                "parts": window.pieces,
                "next_due": None if window.next_due is None else format_instant(window.next_due),
                "together": list(window.together),
            }
            for window in explanation.windows
        ],
    }
