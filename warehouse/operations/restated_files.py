"""Selects the landing files that a restatement reads again: loaded since an epoch, or with rejected records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from warehouse.epochs.journal import numbers, read_epoch
from warehouse.errors import RestateError
from warehouse.layout import same_cells
from warehouse.objects.path import parquet_source
from warehouse.storage.fingerprint import naming_damage
from warehouse.storage.replay import replay
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from warehouse.epochs.records import Epoch, SideTable
    from warehouse.ingest.files import LandingFile
    from warehouse.ingest.landing import KnownFiles
    from warehouse.steps.relanding import ArchivedFiles

__all__ = ["Reread", "loaded_since", "rejected_before"]


@dataclass(frozen=True)
class Reread:
    """Files to load again, and files that are missing or changed.

    ``since`` is the epoch whose contents stay (None: the table is emptied). ``retried`` are the paths of files of which only
    rejected records are wanted; None if the table is restored. ``back`` has archived files that return to the landing directory:
    it maps the path of each file to its path relative to ``move_to``.
    """

    files: tuple[LandingFile, ...]
    lost: tuple[str, ...]
    since: Epoch | None = None
    retried: tuple[str, ...] | None = None
    back: Mapping[str, str] = field(default_factory=dict)


def loaded_since(
    root: Path,
    newest: Epoch,
    table: str,
    known: KnownFiles,
    there: Sequence[LandingFile],
    since: int | Literal["first"] | None,
    archived: ArchivedFiles,
) -> Reread:
    """Return the files that were loaded after a window time, and the files that could not be read.

    Parameters
    ----------
    root
        The warehouse's directory.
    newest
        The newest epoch.
    table
        The stream or relation.
    known
        The known landing files of the table.
    there
        The files in its landing directory.
    since
        The window time in microseconds; None: the window time of the oldest readable epoch; ``first``: every known or archived
        file of any epoch, so that no row of the table stays.
    archived
        The files that were archived.

    Raises
    ------
    RestateError
        When epochs of that time fell out of ``retain``.

    """
    if since == "first":
        unchanged, missing = _present(known.loaded, there, archived)
        left_out, _ = _present(_left_out(known), there)
        return Reread((*unchanged, *archived.others(), *left_out), missing, back=archived.back)
    lineage, begins = _lineage(root, newest, table)
    base = None if begins else lineage[-1]
    if since is not None:
        base = next((epoch for epoch in lineage if epoch.window_time <= since), None)
        if base is None and not begins:
            oldest = format_instant(lineage[-1].window_time)
            reason = f"epochs before {oldest} are not readable any more, or of another layout"
            raise RestateError(table, f"{reason}; give --since {oldest} or leave it out")
    loaded: dict[str, LandingFile] = {}
    for epoch in reversed(lineage):
        if epoch.cause != "rollback" and (base is None or epoch.number > base.number):
            loaded.update({file.path: file for entry in epoch.files if entry.stream == table for file in entry.loaded})
    present, lost = _present(loaded, there, archived)
    unread, _ = _present({path: file for path, file in _left_out(known).items() if path not in loaded}, there)
    return Reread((*present, *unread), lost, since=base, back=archived.back)


def rejected_before(
    root: Path, table: str, rejected: SideTable | None, known: KnownFiles, there: Sequence[LandingFile], archived: ArchivedFiles
) -> Reread:
    """Return the files with rejected records, and the files that could not be read.

    The file of a path is known as long as it exists, or if it was archived and an epoch that loaded it is readable.
    """
    paths = _rejected_files(root, rejected)
    files = {**_loaded_once(root, table), **known.loaded}
    present, lost = _present({path: files[path] for path in paths if path in files}, there, archived, renamed=False)
    unread, _ = _present(_left_out(known), there)
    lost = tuple(sorted((*lost, *(path for path in paths if path not in files))))
    return Reread((*present, *unread), lost, retried=tuple(file.path for file in present), back=archived.back)


def _left_out(known: KnownFiles) -> dict[str, LandingFile]:
    return {path: entry.file for path, entry in known.left_out.items()}


def _present(
    wanted: Mapping[str, LandingFile],
    landing_files: Sequence[LandingFile],
    archived: ArchivedFiles | None = None,
    *,
    renamed: bool = True,
) -> tuple[tuple[LandingFile, ...], tuple[str, ...]]:
    """Return the wanted files that are unchanged or archived, and the paths of the other wanted files."""
    by_path = {file.path: file for file in landing_files}
    unchanged, lost = [], []
    for path, file in wanted.items():
        match = file if by_path.get(path) == file else None
        if match is None and archived is not None:
            match = archived.wanted(path, file, renamed=renamed)
        if match is None:
            lost.append(path)
        else:
            unchanged.append(match)
    return tuple(unchanged), tuple(sorted(lost))


def _loaded_once(root: Path, table: str) -> dict[str, LandingFile]:
    """Return the files that readable epochs loaded, by path; a path that meant several files is left out."""
    seen: dict[str, set[LandingFile]] = {}
    for number in numbers(root, "epoch"):
        for entry in read_epoch(root, number).files:
            if entry.stream == table:
                for file in entry.loaded:
                    seen.setdefault(file.path, set()).add(file)
    return {path: next(iter(files)) for path, files in seen.items() if len(files) == 1}


def _rejected_files(root: Path, side: SideTable | None) -> tuple[str, ...]:
    if side is None or not side.rows:
        return ()
    import pyarrow.parquet as pq  # noqa: PLC0415 - only this verb reads rows here

    names: set[str] = set()
    for path in replay(root / side.path, side.version).files:
        with naming_damage(file := root / side.path / path):
            rejected = pq.ParquetFile(parquet_source(file), page_checksum_verification=True)
            batches = list(rejected.iter_batches(columns=["file"]))
        for batch in batches:
            names.update(name for name in batch.column("file").unique().to_pylist() if name)
    return tuple(sorted(names))


def _lineage(root: Path, newest: Epoch, table: str) -> tuple[list[Epoch], bool]:
    """Return the epochs that the table's contents come from, newest first, and whether these are all such epochs.

    Epochs that a rollback undid, or that a restatement of the table replaced, are skipped.
    """
    readable = set(numbers(root, "epoch"))
    lineage = [newest]
    while True:
        epoch = lineage[-1]
        entries = [entry for entry in epoch.files if entry.stream == table]
        if epoch.cause == "restate" and any(entry.first for entry in entries):
            return lineage, True
        goes_back = epoch.starts_from is not None and (epoch.cause == "rollback" or bool(entries))
        before = epoch.starts_from if goes_back and epoch.starts_from is not None else epoch.number - 1
        if before < 0:
            return lineage, True
        if before not in readable:
            return lineage, False
        epoch = read_epoch(root, before)
        if epoch.table(table) is None:
            return lineage, True
        if _migrated(table, epoch, newest):
            return lineage, False
        lineage.append(epoch)


def _migrated(table: str, before: Epoch, newest: Epoch) -> bool:
    """Whether a table was migrated since an epoch: the present layout does not find the files of that epoch."""
    old_state, new_state = before.table(table), newest.table(table)
    if (
        old_state is None
        or new_state is None
        or (before.anchor, before.update_interval) != (newest.anchor, newest.update_interval)
    ):
        return True
    return old_state.layout.base != new_state.layout.base or not same_cells(old_state.layout, new_state.layout)
