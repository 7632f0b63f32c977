"""The durable records under ``root/epochs``: write-ahead plans and epochs, each written once and never changed.

A record is a JSON document ``{"format", "written_by", "checksum", "body"}``; the checksum is the SHA-256 of the body's bytes. It
is written under a temporary name, made durable, linked into place (which fails if the name exists), and the directory is made
durable: a reader sees the whole record or no record.

``format`` increases if an older build would go wrong because it ignores a new part; that build then refuses the record and names
the build that wrote it. A part that may be ignored, such as a new field with a default, needs no new format. Every build reads
all formats from 1 to its own. Format 2: ledgers name shards of landing files. Format 3: answers of aggregates wait for time,
synopses have live rows and lists of items, there are coalesced tables. A build of format 2 would never give waiting answers, and
would take a coalesced table of a plan for a stream.

``plan`` is the write-ahead record of an epoch, ``epoch`` the epoch, ``past`` an epoch whose files may be deleted (renamed, so
that no reader pins it), ``ledger`` the landing files known up to an epoch.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from warehouse.epochs.records import Epoch, PinnedEntry
from warehouse.errors import (
    LockHeldError,
    MissingPartError,
    NewerFormatError,
    NoEpochError,
    RecordDamagedError,
    TornRecordError,
)
from warehouse.storage.entries import entry_at
from warehouse.storage.store import store_of
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from warehouse.storage.entries import LogEntry

__all__ = [
    "FORMAT",
    "Kind",
    "encode_record",
    "epoch_at",
    "epoch_numbers",
    "epoch_path",
    "newest_epoch",
    "nothing_loaded",
    "numbers",
    "plan_path",
    "read_epoch",
    "read_record",
    "record_epoch",
    "record_path",
    "this_build",
    "write_record",
]

FORMAT = 3
"""The format that this build writes, and the newest one that it reads."""
_DIGITS = 20
_Body = TypeVar("_Body")
Kind = Literal["plan", "epoch", "past", "ledger"]


class _Head(msgspec.Struct):
    """The part of a record that every build can read, even if the rest changes."""

    format: int
    written_by: str = ""


class _Envelope(msgspec.Struct):
    format: int
    checksum: str
    body: msgspec.Raw
    written_by: str = ""


def record_path(root: Path, number: int, kind: Kind) -> Path:
    """Return where a record of that kind and epoch number is."""
    return root / "epochs" / f"{number:0{_DIGITS}d}.{kind}.json"


def numbers(root: Path, kind: Kind) -> list[int]:
    """Return the epoch numbers for which a record of that kind exists, ascending."""
    return sorted(_numbers(root, f".{kind}.json"))


def epoch_path(root: Path, number: int) -> Path:
    """Return where epoch ``number`` is recorded."""
    return record_path(root, number, "epoch")


def plan_path(root: Path, number: int) -> Path:
    """Return where the plan of epoch ``number`` is recorded."""
    return record_path(root, number, "plan")


def epoch_numbers(root: Path) -> list[int]:
    """Return the numbers of the epochs that can be read, ascending."""
    return numbers(root, "epoch")


def _numbers(root: Path, ending: str) -> Iterator[int]:
    for name in store_of(root / "epochs").entry_names(root / "epochs"):
        stem = name.removesuffix(ending)
        if name.endswith(ending) and len(stem) == _DIGITS and stem.isdigit():
            yield int(stem)


def read_record(path: Path, kind: type[_Body]) -> _Body:
    """Return the body of a record.

    Raises
    ------
    RecordDamagedError
        When it is cut short or fails its checksum.
    NewerFormatError
        When a newer build wrote it, in a format that this one does not know.

    """
    return decode_record(path.read_bytes(), kind, str(path))


def _refuse_newer(text: bytes, path: str) -> None:
    """Raise if bytes that this build cannot read as a record say that a newer build wrote them."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        head = msgspec.json.decode(text, type=_Head)
        if head.format > FORMAT:
            raise NewerFormatError(path, head.format, head.written_by, FORMAT, this_build())


def decode_record(text: bytes, kind: type[_Body], path: str) -> _Body:
    """Return the body of a record's bytes; ``path`` names it in errors."""
    remedy = "`stream-wh check --repair` repairs it if it can be repaired; else restore it from a copy of the warehouse"
    try:
        envelope = msgspec.json.decode(text, type=_Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        _refuse_newer(text, path)
        raise TornRecordError(path, f"is not a whole record ({error})", remedy) from error
    if hashlib.sha256(bytes(envelope.body)).hexdigest() != envelope.checksum:
        raise TornRecordError(path, "fails its checksum", remedy)
    if envelope.format < 1:
        raise TornRecordError(path, f"has format {envelope.format}, which there never was", remedy)
    if envelope.format > FORMAT:
        raise NewerFormatError(path, envelope.format, envelope.written_by, FORMAT, this_build())
    try:
        return msgspec.json.decode(envelope.body, type=kind)
    except msgspec.DecodeError as error:
        raise RecordDamagedError(path, f"does not decode ({error})", remedy) from error


@cache
def this_build() -> str:
    """Return the name and version of this build, as records say who wrote them."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - readers do not write records

    try:
        return f"stream-wh {version('stream-wh')}"
    except PackageNotFoundError:  # run from a directory of files that was never installed
        return "stream-wh"


def encode_record(body: object) -> bytes:
    """Return the bytes of a record."""
    text = msgspec.json.encode(body)
    return msgspec.json.encode(
        _Envelope(FORMAT, hashlib.sha256(text).hexdigest(), msgspec.Raw(text), this_build()),
    )


def write_record(path: Path, body: object) -> None:
    """Write a record durably and exclusively.

    Raises
    ------
    LockHeldError
        When a record of that name exists: another process wrote it, which the lock did not keep out.

    """
    try:
        store_of(path).write_exclusive(path, encode_record(body))
    except FileExistsError:
        raise LockHeldError(f"another process, which wrote {path} first") from None


def record_epoch(root: Path, epoch: Epoch, last: Epoch | None, heads: Mapping[str, LogEntry]) -> Epoch:
    """Write an epoch with the log entries that it names, and return it; the next plan starts from these entries.

    { (path, version, sha256) : path is a directory of the epoch, version the one it names, sha256 the sum of that entry }

    ``heads`` are the newest entries of the tables that its plan wrote; the entries of other tables are in ``last``, or are read.
    """
    entries = []
    for state in epoch.tables:
        for path, version in ((state.path, state.version), *((side.path, side.version) for side in state.sides)):
            former_entry, head = last.entry(path) if last else None, heads.get(path)
            if head is not None and head.version == version:
                sum_ = head.sha256
            elif former_entry is not None and former_entry.version == version:
                sum_ = former_entry.sha256
            else:
                sum_ = entry_at(root / path, version).sha256
            entries.append(PinnedEntry(path, version, sum_ or ""))
    completed = replace(epoch, entries=tuple(entries))
    write_record(epoch_path(root, completed.number), completed)
    return completed


def read_epoch(root: Path, number: int) -> Epoch:
    """Return one epoch."""
    path = epoch_path(root, number)
    try:
        return _epoch_of(path.read_bytes(), str(path))
    except FileNotFoundError:
        raise MissingPartError(f"epoch {number} is not recorded under {root}; name one of those that `history` lists") from None


@lru_cache(maxsize=4)  # an update reads the newest and the oldest record several times
def _epoch_of(text: bytes, path: str) -> Epoch:
    return decode_record(text, Epoch, path)


def newest_epoch(root: Path) -> Epoch | None:
    """Return the newest epoch, or None if nothing was committed.

    A damaged newest record counts as not written if there is an epoch before it: the next update writes it again
    (:mod:`warehouse.operations.damaged_epoch`).
    """
    return next(_whole_epochs(root), None)


def _whole_epochs(root: Path) -> Iterator[Epoch]:
    """Yield the epochs, newest first."""
    numbers = epoch_numbers(root)
    for number in reversed(numbers):
        try:
            yield read_epoch(root, number)
        except TornRecordError:
            if number != numbers[-1] or len(numbers) == 1:
                raise


def nothing_loaded(root: Path, consequence: str = "") -> NoEpochError:
    """Return the error of a warehouse without an epoch; ``consequence`` is a text about the work that the command cannot do."""
    so = f", so {consequence}" if consequence else ""
    return NoEpochError(f"nothing has been loaded under {root} yet{so}; run `stream-wh update` first")


def epoch_at(root: Path, as_of: int | None) -> Epoch:
    """Return the newest epoch whose window time is at or before ``as_of`` (microseconds; None: the newest).

    Raises
    ------
    NoEpochError
        When there is no epoch, or no readable epoch at or before that time.

    """
    numbers = epoch_numbers(root)
    if not numbers:
        raise nothing_loaded(root)
    for epoch in _whole_epochs(root):
        if as_of is None or epoch.window_time <= as_of:
            return epoch
    first = read_epoch(root, numbers[0])
    raise NoEpochError(
        f"no readable epoch at or before {format_instant(as_of or 0)}: "
        f"the oldest one kept is of {format_instant(first.window_time)} (`retain` decides how long they stay); "
        f"ask for that time or a later one",
    )
