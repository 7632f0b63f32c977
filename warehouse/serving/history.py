"""Epochs and files as rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NewType

from warehouse.epochs.journal import epoch_numbers, newest_epoch, read_epoch
from warehouse.serving.owed_results import owed_of
from warehouse.serving.visible_tables import visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from warehouse.epochs.records import Epoch

__all__ = ["EpochRow", "FileRow", "Instant", "epoch_row", "history"]

Instant = NewType("Instant", int)
"""Microseconds since 1970."""


@dataclass(frozen=True)
class EpochRow:
    """One epoch: its window time, its commit, the counts and the seconds of its update.

    Fields are as in :class:`warehouse.epochs.records.Counts`, summed over streams and relations; ``results`` were inserted into
    views, ``rewritten`` and ``bytes_written`` count all tables, operators' state included. ``cause`` is the verb that made it.
    Views under a budget owed ``owed_least`` to ``owed_most`` results then, and each had at least the share ``share_least`` of its
    own. Completing them would have joined at most ``owed_rows`` rows; at least ``incomplete_least`` rows lacked a partner.
    """

    number: int
    window_time: Instant
    committed_at: Instant
    slot: int
    tables: int
    files: int
    rows: int
    taken: int
    inserted: int
    late: int
    over_lifetime: int
    deferred: int
    dead: int
    rejected: int
    lost: int
    expired: int
    results: int
    rewritten: int
    bytes_written: int
    seconds: float
    cause: str
    owed_least: int | None = None
    owed_most: int | None = None
    share_least: float | None = None
    owed_rows: int | None = None
    incomplete_least: int | None = None


@dataclass(frozen=True)
class FileRow:
    """One data file that may hold live rows; ``path`` is relative to the root, ``_exp_slot`` bounds are exact."""

    table_name: str
    path: str
    bytes: int
    rows: int | None
    sub_index: int
    exp_block: int
    min_exp_slot: int | None
    max_exp_slot: int | None


_SUMMED = (
    "files",
    "rows",
    "taken",
    "inserted",
    "late",
    "over_lifetime",
    "deferred",
    "dead",
    "rejected",
    "lost",
    "expired",
)


def epoch_row(epoch: Epoch) -> EpochRow:
    """Return an epoch as a row."""
    kinds = {state.name: state.kind for state in epoch.tables}
    arrived = [counts for counts in epoch.counts if kinds.get(counts.stream, "stream") in ("stream", "relation")]
    owed = [owed_of_table for state in epoch.tables if (owed_of_table := owed_of(state)) is not None]
    sums = {name: sum(getattr(counts, name) for counts in arrived) for name in _SUMMED}
    return EpochRow(
        number=epoch.number,
        window_time=Instant(epoch.window_time),
        committed_at=Instant(epoch.committed_at),
        slot=epoch.slot,
        tables=len(visible(epoch)),
        results=sum(counts.inserted for counts in epoch.counts if kinds.get(counts.stream) == "view"),
        rewritten=sum(counts.rewritten for counts in epoch.counts),
        bytes_written=sum(counts.bytes_written for counts in epoch.counts),
        seconds=sum(step.seconds for step in epoch.seconds),
        cause=epoch.cause,
        owed_least=sum(entry.least for entry in owed) if owed else None,
        owed_most=sum(entry.most for entry in owed) if owed else None,
        share_least=min((entry.share_least for entry in owed), default=None),
        owed_rows=sum(entry.rows for entry in owed) if owed else None,
        incomplete_least=sum(entry.incomplete for entry in owed) if owed else None,
        **sums,
    )


def history(root: Path, limit: int | None = None) -> Iterator[EpochRow]:
    """Yield the readable epochs, newest first."""
    newest = newest_epoch(root)
    if newest is not None:
        numbers = [number for number in epoch_numbers(root) if number <= newest.number]
        for number in numbers[::-1][:limit]:
            yield epoch_row(read_epoch(root, number))
