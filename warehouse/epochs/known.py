"""The landing files that earlier epochs know.

Every epoch records the files that it loaded. A ledger ``<m>.ledger.json`` has the files of all epochs up to ``m``, so that old
records need not be read and can be deleted. The known files are those of the newest ledger, changed by the later epochs in order.

A ledger names shards of the loaded files (:mod:`warehouse.ingest.loaded_files`), each a file ``ledger/<name>`` that is never
changed: the next ledger names the same shards for unchanged files. An update writes a ledger once there are ``_EPOCHS`` later
epochs. Two kinds of ledgers stay: the newest few, and the newest one at or below the oldest readable epoch, from which the known
files of any readable epoch can be derived.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from warehouse.epochs.journal import Kind, encode_record, numbers, read_record, record_path
from warehouse.epochs.records import Loaded  # noqa: TC001 - as above
from warehouse.errors import MissingPartError, TornRecordError
from warehouse.ingest.files import LandingFile, LeftOut  # noqa: TC001 - records are decoded by their types
from warehouse.ingest.landing import KnownFiles
from warehouse.ingest.loaded_files import LoadedFiles, Shard, cut_into_shards, files_of_shard, is_shard_name
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from warehouse.epochs.records import Epoch

__all__ = [
    "KnownStream",
    "LandingLedger",
    "keep_ledger",
    "known_files",
    "ledger_shards",
    "loaded_after",
    "prune_ledgers",
    "write_ledger",
]

_NOTHING = KnownFiles({}, {})
_EPOCHS = 32
"""Epochs above the newest ledger after which an update writes another."""
_FILES = 20_000
"""Landing files in the epochs above the newest ledger after which an update writes another, even if the epochs are few."""
_NEWEST = 2
"""How many of the newest ledgers stay, for processes that are reading them."""
DIRECTORY = "ledger"


@dataclass(frozen=True)
class KnownStream:
    """The known files of one stream's landing directory: shards of the loaded files, left-out files, files to load again."""

    stream: str
    shards: tuple[Shard, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    reload: tuple[str, ...] = ()


@dataclass(frozen=True)
class LandingLedger:
    """The sum of all epochs up to ``epoch``. Ledgers of format 1 have all ``files`` in them, later ones ``streams``."""

    epoch: int
    files: tuple[Loaded, ...] = ()
    streams: tuple[KnownStream, ...] = ()


@dataclass(frozen=True)
class _LandingPart:
    """The part of an epoch's record about landing files; the rest is not decoded."""

    number: int
    files: tuple[Loaded, ...] = ()


def known_files(root: Path, newest: Epoch | None) -> Mapping[str, KnownFiles]:
    """Return the known landing files of each stream at an epoch.

    Raises
    ------
    MissingPartError
        When a record between the ledger and the epoch is gone.

    """
    return {} if newest is None else _Sum(root, newest.number).known()


class _Sum:
    """A ledger and the epochs above it, up to the epoch ``upto``."""

    def __init__(self, root: Path, upto: int) -> None:
        self.base = newest_ledger(root, upto)
        self.epochs = upto - self.base.epoch
        self._root = root
        self._shards: dict[str, KnownStream] = {stream.stream: stream for stream in self.base.streams}
        self._changes: dict[str, dict[str, LandingFile | None]] = {}
        self._left_out = {name: {entry.file.path: entry for entry in stream.left_out} for name, stream in self._shards.items()}
        self._reload = {name: set(stream.reload) for name, stream in self._shards.items()}
        self._add(self.base.files)
        for epoch in _epochs(root, self.base.epoch + 1, upto):
            self._add(epoch.files)

    @property
    def files(self) -> int:
        """How many files the records of the epochs above the ledger name."""
        return sum(map(len, self._changes.values()))

    def _add(self, entries: Iterable[Loaded]) -> None:
        for record in entries:
            files = self._changes.setdefault(record.stream, {})
            left_out = self._left_out.setdefault(record.stream, {})
            reload = self._reload.setdefault(record.stream, set())
            for path in record.gone:
                files[path] = None
                left_out.pop(path, None)
                reload.discard(path)
            for file in record.loaded:
                files[file.path] = file
                left_out.pop(file.path, None)
                reload.discard(file.path)
            for entry in record.left_out:
                left_out[entry.file.path] = entry
                reload.discard(entry.file.path)
            reload.update(record.reload)

    def known(self) -> dict[str, KnownFiles]:
        """Return the known files by stream."""
        return {
            name: KnownFiles(self.loaded(name), self._left_out.get(name, {}), frozenset(self._reload.get(name, ())))
            for name in {**self._shards, **self._changes}
        }

    def loaded(self, stream: str) -> LoadedFiles:
        """Return the loaded files of a stream."""
        shards = self._shards[stream].shards if stream in self._shards else ()
        return LoadedFiles(shards, partial(_read_shard, self._root), self._changes.get(stream, {}))


def loaded_after(root: Path, number: int, upto: int) -> dict[str, set[str]]:
    """Return the paths that the epochs from ``number + 1`` to ``upto`` loaded, by stream; other parts of records are not decoded.

    Raises
    ------
    MissingPartError
        When one of the records is gone.

    """
    paths: dict[str, set[str]] = {}
    for record in _epochs(root, number + 1, upto):
        for entry in record.files:
            paths.setdefault(entry.stream, set()).update(file.path for file in entry.loaded)
    return paths


def newest_ledger(root: Path, upto: int) -> LandingLedger:
    """Return the newest ledger at or before an epoch; an empty one if there is no ledger."""
    ledgers = [number for number in numbers(root, "ledger") if number <= upto]
    return read_record(record_path(root, max(ledgers), "ledger"), LandingLedger) if ledgers else LandingLedger(-1)


def _epochs(root: Path, first: int, last: int) -> Iterator[_LandingPart]:
    past_numbers = set(numbers(root, "past")) if last >= first else set()
    for number in range(first, last + 1):
        kind: Kind = "past" if number in past_numbers else "epoch"
        try:
            yield read_record(record_path(root, number, kind), _LandingPart)
        except FileNotFoundError:
            raise MissingPartError(
                f"the record of epoch {number} is missing, so what was loaded is not known; restore {root / 'epochs'}",
            ) from None


def _shard_path(root: Path, name: str) -> Path:
    return root / DIRECTORY / name


def _read_shard(root: Path, shard: Shard) -> tuple[LandingFile, ...]:
    path = _shard_path(root, shard.name)
    try:
        files = files_of_shard(shard, path.read_bytes())
    except FileNotFoundError:
        raise MissingPartError(f"{path} is missing, so what was loaded is not known; restore it from a backup") from None
    if files is None:
        raise TornRecordError(str(path), "its bytes changed after it was written", "restore it from a backup")
    return files


def write_ledger(root: Path, newest: Epoch) -> None:
    """Write the ledger of an epoch, unless it exists; ``newest`` is the last epoch that it sums up."""
    path = record_path(root, newest.number, "ledger")
    if path.exists():
        return
    streams, total = [], _Sum(root, newest.number)
    for name, files in total.known().items():
        shards, written = cut_into_shards(total.loaded(name))
        for shard, content in written.items():
            if not _shard_path(root, shard).exists():
                store_of(_shard_path(root, shard)).write_exclusive(_shard_path(root, shard), content)
        left_out = tuple(files.left_out.values())
        streams.append(KnownStream(name, shards, left_out, tuple(sorted(files.reload))))
    store_of(path).write_exclusive(path, encode_record(LandingLedger(newest.number, streams=tuple(streams))))


def keep_ledger(root: Path, newest: Epoch, oldest: int) -> None:
    """Write a ledger at the newest epoch when many epochs or files are above the last one; ``oldest`` is the oldest readable one.

    The caller holds the writer lock.
    """
    total = _Sum(root, newest.number)
    if total.epochs >= _EPOCHS or total.files >= _FILES:
        write_ledger(root, newest)
        prune_ledgers(root, oldest)


def prune_ledgers(root: Path, oldest: int) -> None:
    """Remove ledgers that no readable epoch needs, and shards that no ledger names; the caller holds the writer lock."""
    ledgers = numbers(root, "ledger")
    # Without a ledger, the epochs have everything.
    needed = {*[number for number in ledgers if number <= oldest][-1:], *ledgers[-_NEWEST:]}
    for number in ledgers:
        if number not in needed:
            record_path(root, number, "ledger").unlink()
    needed_shards = {shard for number in needed for shard in ledger_shards(root, number)}
    names = store_of(root / DIRECTORY).entry_names(root / DIRECTORY)
    unneeded = [name for name in names if is_shard_name(name) and name not in needed_shards]
    for name in unneeded:
        _shard_path(root, name).unlink()
    if unneeded:
        store_of(root / DIRECTORY).sync_directory(root / DIRECTORY)


def ledger_shards(root: Path, number: int) -> Iterator[str]:
    """Yield the names of a ledger's shards."""
    ledger = read_record(record_path(root, number, "ledger"), LandingLedger)
    return (shard.name for stream in ledger.streams for shard in stream.shards)


def known_of(known: Mapping[str, KnownFiles], stream: str) -> KnownFiles:
    """Return the known files of one stream; empty if it is new."""
    return known.get(stream, _NOTHING)
