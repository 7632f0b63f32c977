"""Proves an erasure: every remaining file under the root is read again and searched for the keys.

It reads all rows of all data files (of tables, deferred, rejected and restored rows, named by an epoch or not), all logs with
their checkpoints and sums, and all records. A key is a *trace*, which must not exist, if it is in a file of the erased table or
of its log, in a message of a record, or in a data file that no epoch names. Rows of other tables with the same value belong to
those tables and are reported as *elsewhere*. ``warehouse.duckdb`` names files and has no rows, so it must equal the file of the
newest epoch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import duckdb

from warehouse.epochs.journal import newest_epoch
from warehouse.epochs.known import DIRECTORY as LEDGER
from warehouse.epochs.lock import LOCK_FILES
from warehouse.ingest.loaded_files import paths_in
from warehouse.objects.path import parquet_source
from warehouse.operations.erasure.finding import FILES_COPIED, PLACE
from warehouse.operations.erasure.key_matcher import text_matcher
from warehouse.operations.unneeded_files import named_files
from warehouse.promise.summaries import stored_part
from warehouse.publishing.database import DATABASE
from warehouse.publishing.difference import database_difference
from warehouse.publishing.live.publish import live_data_files
from warehouse.serving.engine import Resources, connect
from warehouse.serving.key_conditions import where_key
from warehouse.serving.keys import KeyColumn
from warehouse.serving.pruning import Keys
from warehouse.storage.companion_files import SUMMARY, data_file_of
from warehouse.storage.copies import copied_again
from warehouse.storage.duckdb_sql import literal
from warehouse.storage.entries import entry_lines
from warehouse.storage.key_summaries import FILTER_SHOWS, filter_exceeds, key_shown
from warehouse.storage.store import store_of
from warehouse.storage.tables import FOLDERS, LIVE_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from warehouse.epochs.records import Epoch
    from warehouse.steps.erased_keys import ErasedKeys

__all__ = ["Proof", "Trace", "files_of_epoch", "prove"]

_FILES_AT_ONCE = 200
_ROWS_AT_ONCE = 20_000
_SUMS = b"crc\0"
_BOUNDS = ("minValues", "maxValues")
_TOLD = ("message", "failed", "warnings", "reason", "left_out")


@dataclass(frozen=True)
class Trace:
    """A file, relative to the root, that shows a key, and the part of the file that shows it."""

    path: str
    found: str


@dataclass(frozen=True)
class Proof:
    """The number of files and bytes that were read, traces that must not exist, and rows of other tables."""

    files: int = 0
    bytes: int = 0
    traces: tuple[Trace, ...] = ()
    elsewhere: tuple[Trace, ...] = ()

    def __add__(self, other: Proof) -> Proof:
        return Proof(
            self.files + other.files, self.bytes + other.bytes, self.traces + other.traces, self.elsewhere + other.elsewhere
        )


def files_of_epoch(root: Path, epoch: Epoch) -> dict[str, set[str]]:
    """Return the files below the root that an epoch or ``live/`` names, by directory."""
    return named_files(root, [epoch]) | live_data_files(root)


def prove(
    root: Path, tables: Collection[str], keys: ErasedKeys, named: Mapping[str, set[str]], *, passed_over: Path | None = None
) -> Proof:
    """Read every file under the root and return where keys of a table are found.

    Parameters
    ----------
    root
        The warehouse's directory, absolute.
    tables
        The names of the table whose rows are erased, and of its archive.
    keys
        The keys.
    named
        The data files that readable epochs name, by table directory, each relative to it.
    passed_over
        The plan of the erasure itself, which holds the keys until all is done.

    """
    test = text_matcher(keys)
    data: dict[str, list[Path]] = {}
    newest = newest_epoch(root)
    search_keys = {state.path: state.declaration.search_key for state in (newest.tables if newest else ())}
    result = Proof()
    for path in sorted(root.rglob("*")):
        if not path.is_file() or path.is_symlink() or path.name in LOCK_FILES or path == passed_over:
            continue
        result += Proof(1, path.stat().st_size)
        if _is_sum(path):
            continue
        parts = path.relative_to(root).parts
        if parts == (DATABASE,):
            result += _of_database(root)
            continue
        is_log = "_delta_log" in parts
        if path.suffix == ".parquet" and not is_log and parts[0] in (*FOLDERS, LIVE_FOLDER):
            data.setdefault("/".join(parts[:2]), []).append(path)
        elif is_log or path.suffix == ".json":
            result += _of_record(root, path, tables, keys, test)
        elif path.name.endswith(SUMMARY) and parts[0] in (*FOLDERS, LIVE_FOLDER):
            result += _of_summary(root, path, tables, keys, named, search_keys)
        elif parts[0] == LEDGER:
            result += _of_shard(root, path, test)
        elif test(path.read_bytes().decode(errors="replace")):
            result += Proof(traces=(Trace(path.relative_to(root).as_posix(), "bytes"),))
    connection = connect(Resources())
    try:
        for directory, files in data.items():
            result += _of_rows(root, directory, files, tables, keys, test, connection, named.get(directory, set()))
    finally:
        connection.close()
    return result


def _of_shard(root: Path, path: Path, test: Callable[[str], bool]) -> Proof:
    """Search the names of landing files in a shard of the ledger; it is compressed, so its bytes cannot be searched."""
    content = path.read_bytes()
    name = path.relative_to(root).as_posix()
    try:
        has_key = any(test(name_in_shard) for name_in_shard in paths_in(content))
    except ValueError:
        return Proof(traces=(Trace(name, "bytes that cannot be read"),))
    return Proof(elsewhere=(Trace(name, "a file's name"),)) if has_key else Proof()


def _of_summary(
    root: Path,
    path: Path,
    tables: Collection[str],
    keys: ErasedKeys,
    named: Mapping[str, set[str]],
    search_keys: Mapping[str, tuple[str, ...]],
) -> Proof:
    """Search the keys of a summary. In another table these are keys of the data file, and the search of that file reports them.

    A summary without a data file is a trace also if only its filter may have a key, since no row can show more. If the file
    exists, its rows are read too, and the filter must have no bits except those that the file's keys set.
    """
    relative = path.relative_to(root)
    directory, (_, table, *_) = "/".join(relative.parts[:2]), relative.parts
    data = data_file_of(relative)
    named_data = data is not None and data.relative_to(directory).as_posix() in named.get(directory, set())
    if table not in tables and named_data:
        return Proof()
    content, search_key = path.read_bytes(), search_keys.get(directory)
    stored = [tuple(stored_part(part) for part in key) for key in keys.keys]
    names = [column.name.lower() for column in keys.columns]
    comparable = search_key is None or table not in tables or [name.lower() for name in search_key] == names
    description = key_shown(content, stored, len(names) if comparable else len(names) + 1)
    file = root / data if data is not None and (root / data).is_file() else None
    if description == FILTER_SHOWS and file is not None and search_key and not filter_exceeds(content, file, search_key):
        return Proof()
    return Proof(traces=(Trace(relative.as_posix(), description),)) if description else Proof()


def _of_database(root: Path) -> Proof:
    """Compare ``warehouse.duckdb`` with the newest epoch: it has no rows, so if it is equal, it has no trace."""
    newest = newest_epoch(root)
    problem = database_difference(root, newest) if newest is not None else None
    return (
        Proof()
        if problem is None or problem.kind in ("missing", "moved")
        else Proof(traces=(Trace(DATABASE, problem.message),))
    )


def _is_sum(path: Path) -> bool:
    """Whether it is a checksum file of Hadoop, which does not reveal the content of a file."""
    if not (path.name.startswith(".") and path.name.endswith(".crc")):
        return False
    with path.open("rb") as stream:
        return stream.read(len(_SUMS)) == _SUMS


# --- rows ---


def _of_rows(
    root: Path,
    directory: str,
    files: list[Path],
    tables: Collection[str],
    keys: ErasedKeys,
    test: Callable[[str], bool],
    connection: duckdb.DuckDBPyConnection,
    named: set[str],
) -> Proof:
    kind, name = directory.split("/")

    def look(chunk: list[str]) -> dict[str, str]:
        with copied_again(root, chunk) as originals:
            if kind == "rejected":
                traces = _texts(connection, originals, test)
            else:
                traces = _rows(connection, originals, keys, own=kind != "restored" and name in tables)
            return {originals[copy]: trace for copy, trace in traces.items()}

    result, at_once = Proof(), _FILES_AT_ONCE if store_of(root).local_paths else FILES_COPIED
    for begin in range(0, len(files), at_once):
        chunk = [str(path) for path in files[begin : begin + at_once]]
        for path, description in sorted(_traces_in(chunk, look).items()):
            relative = path.removeprefix(f"{root}/")
            trace = Trace(relative, description)
            is_own = name in tables or relative.removeprefix(f"{directory}/") not in named
            result += Proof(traces=(trace,)) if is_own else Proof(elsewhere=(trace,))
    return result


def _traces_in(files: list[str], look: Callable[[list[str]], dict[str, str]]) -> dict[str, str]:
    """Search files together; if one cannot be read, search them one by one: an unreadable file proves nothing."""
    try:
        return look(files)
    except duckdb.Error:
        if len(files) == 1:
            return {files[0]: "cannot be read"}
        return {path: trace for file in files for path, trace in _traces_in([file], look).items()}


def _rows(connection: duckdb.DuckDBPyConnection, files: Iterable[str], keys: ErasedKeys, *, own: bool) -> dict[str, str]:
    paths = ", ".join(map(literal, files))
    scan = f"read_parquet([{paths}], union_by_name = true, hive_partitioning = false, filename = '{PLACE}')"
    types = {str(row[0]).lower(): str(row[1]) for row in connection.execute(f"DESCRIBE SELECT * FROM {scan}").fetchall()}
    del types[PLACE]
    has_key_columns = own and all(column.name.lower() in types for column in keys.columns)  # otherwise equal values are counted
    conditions = [keys.condition] if has_key_columns else [*_same_value(types, keys)]
    if not conditions:
        return {}
    text = " OR ".join(condition.sql for condition in conditions)
    values = [value for condition in conditions for value in condition.parameters]
    counts = connection.execute(f"SELECT {PLACE}, count(*) FROM {scan} WHERE {text} GROUP BY {PLACE}", values).fetchall()
    return {path: f"{rows} rows" for path, rows in counts}


def _same_value(types: Mapping[str, str], keys: ErasedKeys) -> Iterator[Any]:
    """Yield conditions on another table: a text in any text column, any other value in the column of that name."""
    single_keys = Keys(tuple(key for key in keys.keys if len(key) == 1 and key[0] is not None))
    first = keys.columns[0]
    for name, kind in types.items():
        fits = kind == first.type and (kind == "VARCHAR" or name == first.name.lower())
        if single_keys.keys and fits:
            yield where_key(single_keys, (KeyColumn(name, kind),))
    composite_keys = Keys(tuple(key for key in keys.keys if len(key) > 1))
    if composite_keys.keys and all(types.get(column.name.lower()) == column.type for column in keys.columns):
        yield where_key(composite_keys, keys.columns)


def _texts(connection: duckdb.DuckDBPyConnection, files: Iterable[str], test: Callable[[str], bool]) -> dict[str, str]:
    counts: dict[str, int] = {}
    for path in files:
        answer = connection.execute(f"SELECT concat_ws('\n', raw, message) FROM read_parquet({literal(path)})")
        while rows := answer.fetchmany(_ROWS_AT_ONCE):
            if matches := sum(test(row[0]) for row in rows):
                counts[path] = counts.get(path, 0) + matches
    return {path: f"{rows} rows" for path, rows in counts.items()}


# --- logs and records ---


def _of_record(root: Path, path: Path, tables: Collection[str], keys: ErasedKeys, test: Callable[[str], bool]) -> Proof:
    relative = path.relative_to(root)
    table = relative.parts[1] if relative.parts[0] in (*FOLDERS, LIVE_FOLDER) else None
    result = Proof()
    for description in dict.fromkeys(_traces_of_documents(_documents(path), keys, test)):
        trace = Trace(relative.as_posix(), description)
        if (table is None or table in tables) and description != "a file's name":
            result += Proof(traces=(trace,))
        else:
            result += Proof(elsewhere=(trace,))
    return result


def _documents(path: Path) -> Iterator[Any]:
    """Yield the JSON documents of a log's file or of a record; of anything else its text."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415 - checkpoints alone

        yield from pq.ParquetFile(parquet_source(path), page_checksum_verification=True).read().to_pylist(maps_as_pydicts="lossy")
        return
    text = path.read_bytes().decode(errors="replace")
    try:
        yield json.loads(text)
    except ValueError:
        for line in entry_lines(text):
            try:
                yield json.loads(line)
            except ValueError:
                yield {"message": line}


def _traces_of_documents(documents: Iterator[Any], keys: ErasedKeys, test: Callable[[str], bool]) -> Iterator[str]:
    single = [(key[0], texts[0]) for key, texts in zip(keys.keys, keys.texts(), strict=True) if len(key) == 1 and texts[0]]
    parts, texts, key_column = {part for part, _ in single}, {text for _, text in single}, keys.columns[0]
    for document in documents:
        for names, value in _leaves(document, ()):
            bounded = next((names[position + 1 :] for position, name in enumerate(names) if name in _BOUNDS), None)
            if bounded:
                may_be_key = key_column.type == "VARCHAR" or key_column.name.lower() == bounded[-1].lower()
                if may_be_key and (value in parts or str(value) in texts):
                    yield f"a bound of {bounded[-1]}"
            elif isinstance(value, str) and any(name in _TOLD for name in names) and test(value):
                yield "a message"
            elif isinstance(value, str) and names and names[-1] == "path" and "loaded" in names and test(value):
                yield "a file's name"


def _leaves(value: Any, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401 - JSON
    """Yield the plain values of a document with the names above them; a text that is JSON is parsed too."""
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _leaves(child, (*names, str(name)))
    elif isinstance(value, list):
        for child in value:
            yield from _leaves(child, names)
    elif isinstance(value, str) and value[:1] in ("{", "["):
        try:
            inner = json.loads(value)
        except ValueError:
            yield names, value
        else:
            yield from _leaves(inner, names)
    elif value is not None:
        yield names, value

