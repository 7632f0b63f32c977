"""Finds the rows to erase at an epoch, without a JVM: their tables and partitions, and how many they are."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.operations.erasure.key_matcher import text_matcher
from warehouse.planning.plan import history_of
from warehouse.serving.engine import Resources, connect
from warehouse.serving.pruning import may_hold
from warehouse.serving.statement import Statement, instant
from warehouse.storage.copies import copied_again
from warehouse.storage.duckdb_sql import literal
from warehouse.storage.snapshot import read_snapshot
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import duckdb

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch, SideTable, TableState
    from warehouse.planning.steps import Role
    from warehouse.steps.erased_keys import ErasedKeys
    from warehouse.storage.snapshot import DataFile

__all__ = ["FILES_COPIED", "PLACE", "RowsToErase", "dead_instant", "dead_rows", "rejected_texts", "rows_of_keys"]

PLACE = "_erased_from"
"""The column that names the file of a row: no table has a column of this name."""
_FILES_AT_ONCE = 500
FILES_COPIED = 32
"""Files of a store that are copied to be read, at a time."""
_ROWS_AT_ONCE = 20_000
_SLOT = re.compile(r"_slot=(-?\d+)/[^/]*$")


@dataclass(frozen=True)
class RowsToErase:
    """Rows to erase in one table's directory: how many, in how many files, and the partitions, as a step names them."""

    stream: str
    role: Role
    path: str
    rows: int
    files: int
    cells: tuple[tuple[int, int], ...] = ()


def rows_of_keys(root: Path, state: TableState, keys: ErasedKeys) -> Iterator[RowsToErase]:
    """Yield the places of the rows of keys: a table, its deferred rows, and its rejected rows that show a key."""
    names = tuple(column.name for column in keys.columns)
    files = read_snapshot(root, state.path, state.version, names).files
    candidates = [file for file in files if may_hold(file, names, keys.selection)]
    connection = connect(Resources())
    try:
        counts = _counted(root, connection, candidates, keys.condition)
        yield RowsToErase(state.name, "rows", state.path, sum(counts.values()), len(counts), _cells(candidates, counts))
        if state.deferred is not None:
            waiting = read_snapshot(root, state.deferred.path, state.deferred.version, ()).files
            counts = _counted(root, connection, waiting, keys.condition)
            slots = sorted({int(match[1]) for path in counts if (match := _SLOT.search(path))})
            cells = tuple((slot, 0) for slot in slots)
            yield RowsToErase(state.name, "deferred", state.deferred.path, sum(counts.values()), len(counts), cells)
        if state.rejected is not None:
            test = text_matcher(keys)
            matches = sum(test(text) for text in rejected_texts(root, state.rejected, connection))
            yield RowsToErase(state.name, "rejected", state.rejected.path, matches, int(matches > 0))
    finally:
        connection.close()


def dead_rows(root: Path, state: TableState, dead_by: int, slot: int) -> RowsToErase:
    """Return the places of a table's rows that expired by an instant; ``slot`` is the last slot that had ended by then."""
    files = read_snapshot(root, state.path, state.version, ("_exp_slot",)).files
    candidates = [file for file in files if file.min_exp_slot is None or file.min_exp_slot <= slot + 1]
    connection = connect(Resources())
    try:
        counts = _counted(root, connection, candidates, Statement(f"_exp <= {instant(dead_by)}"))
    finally:
        connection.close()
    return RowsToErase(state.name, "rows", state.path, sum(counts.values()), len(counts), _cells(candidates, counts))


def dead_instant(catalog: Catalog, last: Epoch, state: TableState) -> int | None:
    """Return the instant by which rows must have ended to be useless; None: no row is useless.

    Versions of a relation may still be looked up for a while after their end.
    """
    if state.kind != "relation":
        return last.window_time
    history = history_of(catalog)
    return None if history is None else last.window_time - history


def rejected_texts(root: Path, side: SideTable, connection: duckdb.DuckDBPyConnection) -> Iterator[str]:
    """Yield text and reason of each invalid row."""
    files = [file.path for file in read_snapshot(root, side.path, side.version, ()).files]
    if not files:
        return
    with copied_again(root, files) as paths:
        answer = connection.execute(f"SELECT concat_ws('\n', raw, message) FROM {_scan(paths)}")
        while rows := answer.fetchmany(_ROWS_AT_ONCE):
            yield from (row[0] for row in rows)


def _counted(
    root: Path, connection: duckdb.DuckDBPyConnection, files: Sequence[DataFile], condition: Statement
) -> dict[str, int]:
    """Return the number of rows in each file that satisfy a condition; files without such rows are left out."""
    counts: dict[str, int] = {}
    at_once = _FILES_AT_ONCE if store_of(root).local_paths else FILES_COPIED
    for begin in range(0, len(files), at_once):
        with copied_again(root, [file.path for file in files[begin : begin + at_once]]) as paths:
            counted = connection.execute(
                f"SELECT {PLACE}, count(*) FROM {_scan(paths)} WHERE {condition.sql} GROUP BY {PLACE}",
                list(condition.parameters),
            )
            counts.update({paths[path]: rows for path, rows in counted.fetchall()})
    return counts


def _scan(paths: Iterable[str]) -> str:
    listed = ", ".join(literal(path) for path in paths)
    return f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false, filename = '{PLACE}')"


def _cells(files: Iterable[DataFile], counts: dict[str, int]) -> tuple[tuple[int, int], ...]:
    return tuple(sorted({(file.sub_index, file.exp_block) for file in files if file.path in counts}))
