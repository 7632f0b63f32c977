"""Deletes files that no readable epoch names, and the records of epochs that are no longer readable.

An epoch stays readable for ``retain`` after its successor was committed. When it falls out it is *retired*: renamed, so that no
reader pins it, and then the files that the next epochs took out of the tables are deleted. Epochs know these files, so no
directory is listed. :func:`sweep` lists directories, and also removes leftovers of crashes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from warehouse.epochs.journal import Kind, epoch_numbers, numbers, read_epoch, read_record, record_path
from warehouse.epochs.known import DIRECTORY, prune_ledgers, write_ledger
from warehouse.epochs.records import Epoch
from warehouse.limits import limits
from warehouse.objects.path import directories_in
from warehouse.storage.companion_files import data_file_of
from warehouse.storage.deltalog import commits_after
from warehouse.storage.entries import entry_path
from warehouse.storage.logcut import cut_log, trim_log
from warehouse.storage.snapshot import stored_files
from warehouse.storage.store import store_of
from warehouse.storage.tables import FOLDERS
from warehouse.time import superseded

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence
    from pathlib import Path

__all__ = ["GRACE", "VacuumReport", "merge_ledgers", "named_files", "retire", "sweep", "tidy_records", "trim_logs"]

GRACE = 600 * 1_000_000
"""Leftovers younger than this (microseconds) stay."""


@dataclass(frozen=True)
class VacuumReport:
    """Files and bytes deleted (of tables, logs, records), epochs retired, landing files moved or deleted."""

    files: int = 0
    bytes: int = 0
    epochs: int = 0
    landing: int = 0

    def __add__(self, other: VacuumReport) -> VacuumReport:
        return VacuumReport(
            self.files + other.files, self.bytes + other.bytes, self.epochs + other.epochs, self.landing + other.landing
        )


def retire(
    root: Path, *, retain: int, now: int, dry_run: bool = False, retired: Callable[[], None] = lambda: None
) -> VacuumReport:
    """Retire the epochs whose successor was committed ``retain`` or longer ago; all in microseconds.

    A successor that was committed while the clock was ahead counts as committed with the next successor that was not.
    The caller holds the writer lock and has finished any open plan. ``retired`` is called when no reader can pin them any
    more and before their files go.
    """
    recorded = epoch_numbers(root)
    retired_numbers = recorded[: superseded((read_epoch(root, number).committed_at for number in recorded[1:]), retain, now)]
    if not retired_numbers:
        return VacuumReport()
    oldest = recorded[len(retired_numbers)]
    doomed = [path for number in range(retired_numbers[0] + 1, oldest + 1) for path in _removed_by(root, number)]
    report = VacuumReport(*_weigh(doomed), len(retired_numbers))
    if dry_run:
        return report
    for number in retired_numbers:
        record_path(root, number, "epoch").rename(record_path(root, number, "past"))
        record_path(root, number, "plan").unlink(missing_ok=True)
    store_of(root / "epochs").sync_directory(root / "epochs")
    retired()
    for path in doomed:
        _delete(path)
    past = numbers(root, "past")
    if len(past) >= limits().past_records:
        merge_ledgers(root)
    return report


def _removed_by(root: Path, number: int) -> Iterator[Path]:
    kind: Kind = "epoch" if record_path(root, number, "epoch").exists() else "past"
    for removed in read_record(record_path(root, number, kind), Epoch).removed:
        if removed.whole:
            yield root / removed.table
        for name in removed.files:
            yield root / removed.table / name


def _weigh(paths: Iterable[Path]) -> tuple[int, int]:
    count = size = 0
    for path in paths:
        files = [entry for entry in path.rglob("*") if entry.is_file()] if path.is_dir() else [path]
        for file in files:
            if file.exists():
                count += 1
                size += file.stat().st_size
    return count, size


def _delete(path: Path) -> None:
    if path.is_dir():
        store_of(path).remove_tree(path)
        return
    store_of(path).remove_file(path)


def merge_ledgers(root: Path) -> None:
    """Merge the lists of files that retired epochs loaded; the list of each readable epoch stays separate, for a rollback."""
    past = numbers(root, "past")
    if not past:
        return
    last = read_record(record_path(root, past[-1], "past"), Epoch)
    write_ledger(root, last)
    for number in past:
        record_path(root, number, "past").unlink()
    prune_ledgers(root, last.number)
    store_of(root / "epochs").sync_directory(root / "epochs")


def sweep(
    root: Path, *, now: int, grace: int = GRACE, dry_run: bool = False, spared: Container[str] = frozenset()
) -> VacuumReport:
    """Delete every file under the tables that is older than ``grace`` and that no readable epoch names.

    The caller holds the writer lock, has finished any open plan and retired epochs beyond ``retain``. ``spared`` directories are
    left out: directories that outsiders changed, whose commits name files that no epoch names, and for a dry run the directories
    of an open plan.
    """
    epochs = [read_epoch(root, number) for number in epoch_numbers(root)]
    if not epochs:
        return VacuumReport()
    named_paths = named_files(root, epochs)
    doomed = [
        path
        for kind in FOLDERS
        for table in directories_in(root / kind)
        if table.relative_to(root).as_posix() not in spared
        for path in _unnamed(table, named_paths.get(table.relative_to(root).as_posix()))
        if (now - path.stat().st_mtime_ns // 1000) > grace
    ]
    report = VacuumReport(*_weigh(doomed))
    if not dry_run:
        for path in doomed:
            _delete(path)
        for kind in FOLDERS:
            for table in directories_in(root / kind):
                if table.relative_to(root).as_posix() not in named_paths:
                    store_of(table).remove_tree(table)
    return report


def _unnamed(table: Path, named_paths: set[str] | None) -> Iterator[Path]:
    for path in table.rglob("*"):
        relative = path.relative_to(table)
        if not path.is_file():
            continue
        if named_paths is None:
            yield path
        elif relative.parts[0] in ("_delta_log", "_schema"):
            if path.name.endswith(".tmp"):
                yield path
        elif (data_file_of(relative) or relative).as_posix() not in named_paths:
            yield path


def named_files(root: Path, epochs: Sequence[Epoch]) -> dict[str, set[str]]:
    """Return the files of each table's directory that an epoch names: the files of its oldest version and all later ones."""
    versions: dict[str, list[int]] = {}
    for epoch in epochs:
        for table in epoch.tables:
            for path, version in (
                (table.path, table.version),
                *((side.path, side.version) for side in table.sides),
            ):
                versions.setdefault(path, []).append(version)
    files_by_directory = {}
    for path, numbers_ in versions.items():
        oldest, newest = min(numbers_), max(numbers_)
        files = {unquote(file.path) for file in stored_files(root / path, oldest)}
        for commit in commits_after(root / path, oldest):
            if commit.version <= newest:
                files.update(file.path for file in commit.added)
        files_by_directory[path] = files
    return files_by_directory


def trim_logs(root: Path, bounded: Container[str], *, dry_run: bool = False) -> VacuumReport:
    """Remove the entries of the tables' logs that no readable epoch needs.

    This writes nothing: it removes entries below a checkpoint at or before the oldest version in use. The logs of ``bounded``
    tables (owners' names) are cut at that version, since statistics of files have keys of expired rows.
    """
    recorded = epoch_numbers(root)
    if not recorded:
        return VacuumReport()
    oldest = read_epoch(root, recorded[0])
    files = size = 0
    for state in oldest.tables:
        for path, version in ((state.path, state.version), *((side.path, side.version) for side in state.sides)):
            table = root / path
            if not entry_path(table, version).exists():
                continue
            before = _log_sizes(table)
            cut = state.owner in bounded and not dry_run and any(name < f"{version:020d}" for name in before)
            removed = cut_log(table, version) if cut else trim_log(table, version, dry_run=dry_run)
            files += len(removed)
            size += sum(before.get(name, 0) for name in removed)
    return VacuumReport(files, size)


def _log_sizes(table: Path) -> dict[str, int]:
    return {entry.name: entry.stat().st_size for entry in (table / "_delta_log").iterdir() if entry.name[0] != "_"}


def tidy_records(root: Path, *, now: int, grace: int = GRACE, dry_run: bool = False) -> VacuumReport:
    """Remove unnecessary records: of retired epochs, plans older than the oldest epoch, and leftovers of crashes.

    The landing files that retired epochs know go into a ledger.
    """
    readable = epoch_numbers(root)
    if not readable:
        return VacuumReport()
    directory = root / "epochs"
    doomed = [record_path(root, number, "plan") for number in numbers(root, "plan") if number < readable[0]]
    leftovers = (path for folder in (directory, root / DIRECTORY) for path in folder.glob(".*.tmp") if path.is_file())
    doomed += [path for path in leftovers if (now - path.stat().st_mtime_ns // 1000) > grace]
    past = [record_path(root, number, "past") for number in numbers(root, "past")]
    report = VacuumReport(*_weigh((*doomed, *past)))
    if not dry_run:
        for path in doomed:
            path.unlink(missing_ok=True)
        if past:
            merge_ledgers(root)
        elif doomed:
            store_of(directory).sync_directory(directory)
    return report
