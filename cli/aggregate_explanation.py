"""The text of ``explain`` for an aggregate: the synopses that it reads, and when its windows are due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.cli.outcome import Report
from warehouse.time import format_duration, format_instant
from warehouse.units import counted

if TYPE_CHECKING:
    from warehouse.serving.aggregate_explanation import AggregateExplanation, ExplainedSynopsis, WindowDue

__all__ = ["of_aggregate"]


def of_aggregate(found: AggregateExplanation) -> Report:
    """Return an explanation as lines for people and as a record."""
    asked = found.definition
    groups = ", ".join(name for name, _ in asked.group_by)
    rows = "live rows of " if asked.over == "live" else ""
    head = f"{found.name}: windows of {rows}{asked.source}" + (f" by {groups}" if groups else "")
    lines = [head + (f" where {asked.where}" if asked.where else "")]
    lines.append("  reads counts that are kept, not the rows:")
    lines += [f"    {_synopsis(each)}" for each in found.synopses]
    lines += [f"  {_window(each)}" for each in found.windows]
    lines.append("windows that are due together are answered by one pass over the counts of the longest; these have one row")
    lines.append("for each update interval and group (and value, where values are counted), however many rows arrive")
    return Report(_record(found), tuple(lines), data=True)


def _synopsis(each: ExplainedSynopsis) -> str:
    held = f"how often each {each.counted} came" if each.counted else ", ".join(["count of rows", *each.states])
    if each.listed is not None:
        held = f"the {each.listed} most frequent of {each.counted}"
    if each.parts is not None:
        held += f", by the arrival of both parts ({', '.join(each.parts)})"
    if each.levels:
        held += f", also merged for up to {counted(1 << each.levels, 'update interval')}"
    parts = [held if each.where is None else f"{'less ' if each.less else ''}{held}, where {each.where}"]
    if each.rows is None or each.full_from is None:
        parts.append("made by the next update")
    else:
        since = format_instant(max(each.full_from, 0))
        parts.append(f"{counted(each.rows, 'row')} of {counted(each.slots, 'update interval')}, complete from {since}")
    if each.shared_with:
        parts.append(f"shared with {', '.join(each.shared_with)}")
    return "; ".join(parts)


def _window(each: WindowDue) -> str:
    due = "" if each.next_due is None else f"; next {format_instant(each.next_due)}"
    rows = "" if each.pieces is None else f", in {counted(each.pieces, 'part')} where longer ones are kept"
    rows += "" if each.rows is None else f", about {counted(each.rows, 'row')}"
    run = f", in one run with {', '.join(each.together)}" if each.together else ""
    return f"{each.length}, every {format_duration(each.every)}: reads {counted(each.slots, 'update interval')}{rows}{due}{run}"


def _record(found: AggregateExplanation) -> dict[str, object]:
    asked = found.definition
    return {
        "aggregate": found.name,
        "epoch": found.epoch,
        "from": asked.source,
        "where": asked.where,
        "over": asked.over,
        "group_by": [name for name, _ in asked.group_by],
        "synopses": [
            {
                "table": each.table,
                "counted": each.counted,
                "listed": each.listed,
                "where": each.where,
                "less": each.less,
                "parts": each.parts and list(each.parts),
                "states": list(each.states),
                "shared_with": list(each.shared_with),
                "slots": each.slots,
                "rows": each.rows,
                "levels": each.levels,
                "full_from": None if each.full_from is None else format_instant(each.full_from),
            }
            for each in found.synopses
        ],
        "windows": [
            {
                "length": each.length,
                "slots": each.slots,
                "every": format_duration(each.every),
                "rows": each.rows,
                "parts": each.pieces,
                "next_due": None if each.next_due is None else format_instant(each.next_due),
                "together": list(each.together),
            }
            for each in found.windows
        ],
    }
