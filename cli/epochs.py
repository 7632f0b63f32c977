"""An epoch in reports: lines about it for people, and a record with its facts for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from warehouse.serving.visible_tables import counts_of, visible
from warehouse.time import format_instant
from warehouse.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.epochs.records import Counts, Epoch

__all__ = ["epoch_lines", "epoch_record"]


def epoch_record(epoch: Epoch) -> dict[str, object]:
    """Return the facts of an epoch for programs."""
    return {
        "epoch": epoch.number,
        "cause": epoch.cause,
        "window_time": format_instant(epoch.window_time),
        "committed_at": format_instant(epoch.committed_at),
        "slot": epoch.slot,
        "previous_slot": epoch.previous_slot,
        "counts": msgspec.to_builtins(counts_of(epoch)),
        "seconds": round(sum(step.seconds for step in epoch.seconds), 3),
        "steps": msgspec.to_builtins(epoch.seconds),
    }


def epoch_lines(epoch: Epoch) -> Iterator[str]:
    """Yield a line about the epoch, and a line about the counts of each table."""
    seconds = sum(step.seconds for step in epoch.seconds)
    yield f"epoch {epoch.number}: window time {format_instant(epoch.window_time)}, {seconds:.1f} s"
    kinds = {state.name: state.kind for state in visible(epoch)}
    for counts in counts_of(epoch):
        match kinds.get(counts.stream):
            case "view":
                yield f"  {counts.stream}: {_view_text(counts)}"
            case "aggregate":
                yield f"  {counts.stream}: {counted(counts.inserted, 'answer')}"
            case "coalesced":
                yield f"  {counts.stream}: {_coalesced_text(counts)}"
            case "archive":
                yield f"  {counts.stream}: {counted(counts.inserted, 'expired row')} kept"
            case _:
                yield f"  {counts.stream}: {_stream_text(counts)}"


def _view_text(counts: Counts) -> str:
    """Return the text for the row counts of a view; its rows come from no landing file."""
    notes = [f"{getattr(counts, name)} {text}" for name, text in _RESULT_COUNTS.items() if getattr(counts, name)]
    return ", ".join([f"{counted(counts.inserted, 'result')} came", *notes])


def _coalesced_text(counts: Counts) -> str:
    """Return the text for the row counts of a coalesced table; its rows are made from points of its stream."""
    notes = [f"{getattr(counts, name)} {text}" for name, text in _RESULT_COUNTS.items() if getattr(counts, name)]
    return ", ".join([f"{counted(counts.inserted, 'interval')} written", *notes])


def _stream_text(counts: Counts) -> str:
    """Return the text for the row counts of a stream or relation, whose rows come from landing files."""
    notes = [f"{getattr(counts, name)} {text}" for name, text in _INSERTED_NOTES.items() if getattr(counts, name)]
    inserted = f"{counts.inserted} inserted" + (f" ({', '.join(notes)})" if notes else "")
    other_notes = [f"{getattr(counts, name)} {text}" for name, text in _OTHER_COUNTS.items() if getattr(counts, name)]
    waited = f" and {counts.taken} that waited" if counts.taken else ""
    rows = f"{counted(counts.rows, 'row')} of {counted(counts.files, 'file')}{waited}"
    return "; ".join([rows, ", ".join([inserted, *other_notes])])


_INSERTED_NOTES = {"late": "late", "over_lifetime": "over max_lifetime"}
_RESULT_COUNTS = {"dead": "short-lived", "expired": "expired", "sealed": "sealed"}
_OTHER_COUNTS = {
    "deferred": "deferred",
    "dead": "dead on arrival",
    "rejected": "rejected",
    "lost": "lost",
    "expired": "expired",
    "sealed": "sealed",
}
