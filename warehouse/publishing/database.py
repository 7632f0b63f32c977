"""The file ``warehouse.duckdb`` under the root, replaced whole by every epoch.

Invariant: under the file's name is a database that DuckDB opens, made for an epoch that was newest at some time, or nothing.
It is made under another name, made durable, and renamed over the former one; readers keep the file that they have open. A process
that wrote the former file, and finds it as it left it, copies it and changes in the copy what is different. The
process that commits an epoch holds the writer lock and replaces the file next, before any file of a former epoch is deleted;
after a crash in between, the next verb that writes replaces it.

The file is read-only: a tool that opened it for writing would lock out all others, and the next epoch would discard its changes.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import duckdb

from warehouse.epochs.journal import epoch_numbers, read_epoch
from warehouse.epochs.points import Moment, Observer, Point, nobody
from warehouse.errors import StorageFailedError
from warehouse.publishing.contents import FORM, contents_of, fill_database
from warehouse.serving.engine import Resources, kept_connection
from warehouse.serving.history import EpochRow, epoch_row
from warehouse.serving.pin import Pin
from warehouse.storage.duckdb_sql import literal, quoted
from warehouse.storage.local_disk import file_identity
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.epochs.records import Epoch
    from warehouse.publishing.contents import Contents, Definitions

__all__ = ["DATABASE", "attach_read_only", "make_database", "replace_database", "replace_database_if_needed"]

DATABASE = "warehouse.duckdb"
"""The file's name under the root."""

_STORAGE = "STORAGE_VERSION 'v1.0.0', BLOCK_SIZE 16384"
"""The oldest format that DuckDB still writes, and that every DuckDB since 1.0 reads; the smallest blocks: the file is small."""

_ENGINE = Resources(threads=1)
_NEW, _FORMER = "warehouse", "former"
_MODE = 0o444
_GROWTH = 4
"""How many times the size of a file that is written whole a file may have after many changes."""
_FAILURES = (duckdb.IOException, duckdb.FatalException, duckdb.PermissionException, duckdb.TransactionException)
"""DuckDB's errors for a file that cannot be written: at once, at the commit, or when it is detached."""


@dataclass(frozen=True)
class _Written:
    """A file that this process wrote: its identity, its definitions, and its bytes when it was last written whole."""

    identity: tuple[int, int, int] | None
    definitions: Definitions
    whole_bytes: int


_written: dict[Path, _Written] = {}
"""The file that this process wrote last."""


def replace_database(root: Path, epoch: Epoch, *, observer: Observer = nobody, rebuild: bool = False) -> None:
    """Replace ``warehouse.duckdb`` by the file of the newest epoch; the caller holds the writer lock.

    A root in an object store has no such file, since DuckDB needs a downloaded extension to open it there.

    Parameters
    ----------
    root
        The warehouse's directory.
    epoch
        The newest epoch.
    observer
        Called before and after the file is replaced.
    rebuild
        Whether to read all epochs' records again instead of copying them from the former file.

    Raises
    ------
    StorageFailedError
        When the file cannot be written. The epoch is committed nevertheless.

    """
    if not store_of(root).local_paths:
        return
    root = root.resolve()
    database, temporary = root / DATABASE, root / f".{DATABASE}.tmp"
    _remove(temporary)
    former = None if rebuild else _former(database)
    definitions = None if former is None else _changed_copy(database, temporary, root, epoch, former.definitions)
    if definitions is None:
        former = None
        try:
            _, definitions = make_database(temporary, root, epoch, rebuild=rebuild)
        except _FAILURES as error:
            _remove(temporary)
            raise StorageFailedError(f"{database}: {str(error).partition(chr(10))[0]}") from error
    temporary.chmod(temporary.stat().st_mode & _MODE)
    store_of(temporary).sync_file(temporary)
    observer(Moment(Point.DATABASE_READY, epoch.number))
    _wal_path(database).unlink(missing_ok=True)  # another program wrote into the former file
    temporary.replace(database)
    store_of(root).sync_directory(root)
    _written.clear()
    _written[database] = _Written(
        file_identity(database), definitions, database.stat().st_size if former is None else former.whole_bytes
    )
    observer(Moment(Point.DATABASE_REPLACED, epoch.number))


def replace_database_if_needed(root: Path, newest: Epoch | None, *, observer: Observer = nobody) -> None:
    """Replace ``warehouse.duckdb`` if it is missing, cannot be opened, or was made for another epoch, root or form."""
    if newest is not None and store_of(root).local_paths and not _is_current(root.resolve(), newest):
        replace_database(root, newest, observer=observer, rebuild=True)


def _is_current(root: Path, epoch: Epoch) -> bool:
    try:
        with kept_connection(_ENGINE) as connection:
            attach_read_only(connection, root / DATABASE, _FORMER)
            query = f"SELECT (SELECT max(number) FROM {_FORMER}._epochs), {_FORMER}.main._root(), {_FORMER}.main._form()"
            row = connection.execute(query).fetchone()
            connection.execute(f"DETACH {_FORMER}")
    except duckdb.Error:
        return False
    return row == (epoch.number, str(root), FORM)


def attach_read_only(connection: duckdb.DuckDBPyConnection, path: Path, name: str) -> None:
    """Attach a file, read-only, under a name; DuckDB shares a database that a process opens twice by one path."""
    connection.execute(f"ATTACH {literal(str(path))} AS {quoted(name)} (READ_ONLY)")


def _former(database: Path) -> _Written | None:
    """Return what is known of the file if this process wrote it, nobody changed it since, and it did not grow too much."""
    written = _written.get(database)
    if written is None or _wal_path(database).exists() or file_identity(database) != written.identity:
        return None
    return written if database.stat().st_size <= _GROWTH * written.whole_bytes else None


def _changed_copy(database: Path, temporary: Path, root: Path, epoch: Epoch, definitions: Definitions) -> Definitions | None:
    """Make the file of an epoch from a copy of the former one; None, and no file, if the copy cannot be written or read."""
    try:
        shutil.copyfile(database, temporary)
        return _change_database(temporary, root, epoch, definitions)
    except (OSError, duckdb.Error):
        _remove(temporary)
        return None


def make_database(file: Path, root: Path, epoch: Epoch, *, rebuild: bool) -> tuple[Contents, Definitions]:
    """Write the database of an epoch into ``file``, which must not exist, and return its contents and definitions.

    The other parameters are as for :func:`replace_database`.
    """
    with kept_connection(_ENGINE) as connection:
        pin = Pin(root, epoch)
        contents = contents_of(pin, connection)
        numbers = [number for number in epoch_numbers(root) if number < epoch.number]
        copied = set() if rebuild else _attach_former(connection, root).intersection(numbers)
        missing_rows = [epoch_row(read_epoch(root, number)) for number in numbers if number not in copied]
        connection.execute(f"ATTACH {literal(str(file))} AS {_NEW} ({_STORAGE})")
        definitions = fill_database(connection, _NEW, contents, [*missing_rows, epoch_row(epoch)])
        if copied:
            former = f"SELECT * FROM {_FORMER}._epochs WHERE number IN (SELECT unnest(?::BIGINT[]))"
            connection.execute(f"INSERT INTO {_NEW}._epochs {former}", [sorted(copied)])
        # detaching writes everything, and leaves no write-ahead log
        connection.execute(f"USE memory; DETACH {_NEW}; DETACH DATABASE IF EXISTS {_FORMER}")
        return contents, definitions


def _change_database(file: Path, root: Path, epoch: Epoch, definitions: Definitions) -> Definitions:
    """Change the database of a former epoch, which has these definitions, into that of an epoch, and return its definitions."""
    with kept_connection(_ENGINE) as connection:
        contents = contents_of(Pin(root, epoch), connection)
        connection.execute(f"ATTACH {literal(str(file))} AS {_NEW}")
        numbers = [number for number in epoch_numbers(root) if number < epoch.number]
        connection.execute(f"DELETE FROM {_NEW}._epochs WHERE number NOT IN (SELECT unnest(?::BIGINT[]))", [numbers])
        present = {number for (number,) in connection.execute(f"SELECT number FROM {_NEW}._epochs").fetchall()}
        missing_rows = [epoch_row(read_epoch(root, number)) for number in numbers if number not in present]
        made = fill_database(connection, _NEW, contents, [*missing_rows, epoch_row(epoch)], definitions)
        connection.execute(f"USE memory; DETACH {_NEW}")  # as above
        return made


def _attach_former(connection: duckdb.DuckDBPyConnection, root: Path) -> set[int]:
    """Attach the former file, and return the epochs whose rows it has: their records need not be read again."""
    try:
        attach_read_only(connection, root / DATABASE, _FORMER)
        names = connection.execute(f"SELECT * FROM {_FORMER}._epochs LIMIT 0").description
        if [name for name, *_ in names] != [field.name for field in fields(EpochRow)]:
            return set()  # made by another version
        return {number for (number,) in connection.execute(f"SELECT number FROM {_FORMER}._epochs").fetchall()}
    except duckdb.Error:  # the file is missing or cannot be read: all records are read
        return set()


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    _wal_path(path).unlink(missing_ok=True)


def _wal_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.wal")
