"""What earlier epochs know of the landing directories.

Every epoch records what it loaded; a ledger ``<m>.ledger.json`` sums up the epochs up to ``m``, so that old records can
go. Known now = the newest ledger, then the epochs above it, in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.errors import MissingPartError
from warehouse.ingest.landing import Known
from warehouse.storage.durable import write_exclusive
from warehouse.updates.journal import Kind, encode_record, numbers, read_record, record_path
from warehouse.updates.records import Epoch, Loaded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from warehouse.ingest.files import LandingFile, LeftOut

__all__ = ["Ledger", "known_files", "write_ledger"]

_NOTHING = Known({}, {})


@dataclass(frozen=True)
class Ledger:
    """The sum of all epochs up to ``epoch``: per stream what is loaded, left out and to be loaded again."""

    epoch: int
    files: tuple[Loaded, ...]


def known_files(root: Path, newest: Epoch | None) -> Mapping[str, Known]:
    """Return what is known of each stream's landing files at the newest epoch.

    Raises
    ------
    MissingPartError
        When a record between the ledger and the newest epoch is gone.

    """
    if newest is None:
        return {}
    ledgers = [number for number in numbers(root, "ledger") if number <= newest.number]
    base = read_record(record_path(root, max(ledgers), "ledger"), Ledger) if ledgers else Ledger(-1, ())
    history = [base.files]
    past = set(numbers(root, "past"))
    for number in range(base.epoch + 1, newest.number + 1):
        kind: Kind = "past" if number in past else "epoch"
        try:
            history.append(read_record(record_path(root, number, kind), Epoch).files)
        except FileNotFoundError:
            raise MissingPartError(
                f"the record of epoch {number} is missing, so what was loaded is not known; restore {root / 'epochs'}",
            ) from None
    return _summed(history)


def _summed(history: Iterable[Iterable[Loaded]]) -> dict[str, Known]:
    loaded: dict[str, dict[str, LandingFile]] = {}
    left_out: dict[str, dict[str, LeftOut]] = {}
    reload: dict[str, set[str]] = {}
    for record in (entry for entries in history for entry in entries):
        files = loaded.setdefault(record.stream, {})
        failed = left_out.setdefault(record.stream, {})
        again = reload.setdefault(record.stream, set())
        for path in record.gone:
            files.pop(path, None)
            failed.pop(path, None)
            again.discard(path)
        for file in record.loaded:
            files[file.path] = file
            failed.pop(file.path, None)
            again.discard(file.path)
        for entry in record.left_out:
            failed[entry.file.path] = entry
            again.discard(entry.file.path)
        again.update(record.reload)
    return {name: Known(loaded[name], left_out[name], frozenset(reload[name])) for name in loaded}


def write_ledger(root: Path, newest: Epoch) -> None:
    """Write the ledger of an epoch, unless it is there; ``newest`` is the last one that it sums up."""
    path = record_path(root, newest.number, "ledger")
    if path.exists():
        return
    files = tuple(
        Loaded(
            stream=name,
            loaded=tuple(known.loaded.values()),
            left_out=tuple(known.left_out.values()),
            reload=tuple(sorted(known.reload)),
        )
        for name, known in known_files(root, newest).items()
    )
    write_exclusive(path, encode_record(Ledger(newest.number, files)))


def known_of(known: Mapping[str, Known], stream: str) -> Known:
    """Return what is known of one stream; nothing when it is new."""
    return known.get(stream, _NOTHING)
