"""DuckDB connections for reading: in memory, UTC, without extensions from outside.

Settings are global: a cursor does not inherit the settings of its parent's session (*measured*: it takes the machine's time
zone). Results of `execute` are streams: one cursor has one open at a time.
"""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from warehouse.errors import DamagedFileError, EpochVacuumedError, MissingPartError, WarehouseError
from warehouse.storage.duckdb_sql import in_memory, literal
from warehouse.storage.fingerprint import damaged_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = [
    "FAILURES",
    "Resources",
    "connect",
    "damaged_error",
    "kept_connection",
    "read_error",
    "sandbox_settings",
    "spill_prefix",
]


@dataclass(frozen=True)
class Resources:
    """The limits of the engine; None: DuckDB's defaults (all cores, four fifths of the memory, nine tenths of the disk).

    The other fields bound statements with text of the user: ``timeout`` is in microseconds (0: none), ``ceiling`` bounds the
    bytes of the whole process (None: it runs more than this query), and ``unstoppable`` ends the process if the engine does not
    stop (see :mod:`warehouse.serving.watch`).
    """

    memory_limit: str | None = None
    threads: int | None = None
    spill_limit: str | None = None
    timeout: int = 0
    ceiling: int | None = None
    unstoppable: Callable[[WarehouseError], None] | None = None

    @property
    def bounded(self) -> bool:
        """Whether the statement has a bound to watch."""
        return bool(self.timeout) or self.ceiling is not None


def connect(resources: Resources) -> duckdb.DuckDBPyConnection:
    """Return a connection to a database in memory; it spills to the system's temporary directory."""
    settings = ["parquet_metadata_cache = true"]
    if resources.memory_limit is not None:
        settings.append(f"memory_limit = {literal(resources.memory_limit)}")
    if resources.spill_limit is not None:
        settings.append(f"max_temp_directory_size = {literal(resources.spill_limit)}")
    if resources.threads is not None:
        settings.append(f"threads = {int(resources.threads)}")
    connection = in_memory(settings)
    spill = f"{spill_prefix()}{id(connection)}"
    connection.execute(f"SET GLOBAL temp_directory = {literal(spill)}")
    return connection


_kept = threading.local()


@contextmanager
def kept_connection(resources: Resources) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield the cached connection of this thread, or a new one after a failure: opening one costs as much as a small query.

    The user must leave nothing attached and no tables. The connection caches no footers, since each task reads other files.
    """
    idle: dict[tuple[int, Resources], duckdb.DuckDBPyConnection] = _kept.__dict__.setdefault("idle", {})
    key = os.getpid(), resources  # a fork must not close its parent's connection: closing waits for the parent's threads
    connection = idle.pop(key, None) or _forgetful(resources)
    try:
        yield connection
    except BaseException:
        connection.close()
        raise
    if key in idle or not _answers(connection):  # a nested use may have returned its connection first
        connection.close()
    else:
        idle[key] = connection


def _forgetful(resources: Resources) -> duckdb.DuckDBPyConnection:
    connection = connect(resources)
    connection.execute("SET GLOBAL parquet_metadata_cache = false")
    return connection


def _answers(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether a connection can be used again; after a fatal error it refuses every query."""
    try:
        connection.execute("SELECT 1").fetchall()
    except duckdb.Error:
        return False
    return True


def spill_prefix() -> str:
    """Return how the paths of this process's spill directories begin."""
    return f"{tempfile.gettempdir()}/stream-wh-{os.getpid()}-"


def sandbox_settings(paths: Sequence[str], directories: Sequence[str] = ()) -> str:
    """Return the statements that permanently restrict a connection to these files and to files below directories."""
    return (
        f"SET GLOBAL allowed_paths = [{', '.join(map(literal, paths))}]; "
        f"SET GLOBAL allowed_directories = [{', '.join(map(literal, directories))}]; "
        "SET GLOBAL enable_external_access = false; SET GLOBAL lock_configuration = true"
    )


FAILURES = (duckdb.Error, OSError, ValueError, RuntimeError)
"""The errors of DuckDB and Arrow over files; in the middle of their rows also Python's own errors."""
_OF_TEXT = (duckdb.ParserException, duckdb.SyntaxException, duckdb.CatalogException, duckdb.InterruptException)
_OF_MEMORY = duckdb.OutOfMemoryException


def damaged_error(error: Exception, files: Iterable[str]) -> DamagedFileError | None:
    """Return the error about a damaged file, if one of the files that were read is damaged."""
    if isinstance(error, (*_OF_TEXT, _OF_MEMORY)):
        return None
    message = str(error)
    paths = [Path(file) for file in files if "://" not in file]
    if isinstance(error, duckdb.BinderException):  # mostly a name that is misspelt
        paths = [path for path in paths if path.name in message]
    return damaged_of(paths, message)


def read_error(error: Exception, files: Iterable[str] = ()) -> WarehouseError:
    """Translate an error of the warehouse's own SQL: a file is missing or damaged. ``files`` are the files that were read."""
    damaged = damaged_error(error, files)
    if damaged is not None:
        return damaged
    text = next(iter(str(error).splitlines()), type(error).__name__)
    if isinstance(error, FileNotFoundError):
        return EpochVacuumedError(f"{text}; run again to read the newest epoch")
    if isinstance(error, duckdb.IOException) and ("No files found" in text or "No such file" in text):
        return EpochVacuumedError(f"{text}; run again to read the newest epoch")
    if isinstance(error, (duckdb.IOException, duckdb.InvalidInputException)):
        return MissingPartError(f"a data file cannot be read: {text}; restore it from a copy of the warehouse")
    return WarehouseError(f"{text}; ask for less at once, or give the reader more memory")
