"""The step that erases: one commit that rewrites the partitions in which rows were found, without these rows.

Run by :mod:`warehouse.steps.work` like every other step. A table of rows keeps its runs sorted: what is left of a partition
is one run. It reads the table as the plan's earlier steps left it.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.ingest.local import local_frame
from warehouse.layout.tasks import FILE_ROWS, largest_file
from warehouse.steps.erased_keys import keys_of_erasure
from warehouse.storage.commit import CommitFacts, commit, stage, unstage
from warehouse.storage.scan import TableFiles
from warehouse.storage.session import table_session
from warehouse.storage.writer import key_settings, write_rows, write_runs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.epochs.records import TableState
    from warehouse.planning.steps import EraseRows, Erasure
    from warehouse.steps.erased_keys import ErasedKeys
    from warehouse.storage.entries import LogEntry

__all__ = ["erase_rows"]


def erase_rows(
    session: SparkSession,
    root: Path,
    step: EraseRows,
    base: LogEntry,
    erasure: Erasure | None,
    state: TableState,
    facts: Mapping[str, object],
    transaction: int,
    target_rows: int,
) -> LogEntry:
    """Commit a table without the rows that a step erases, and return the entry made.

    Parameters
    ----------
    session
        Any session; the table gets one of its own.
    root
        The warehouse's directory.
    step
        What to rewrite.
    base
        The table's newest entry.
    erasure
        The keys; none when expired rows alone go.
    state
        The table at the last epoch.
    facts
        What the commit says of itself.
    transaction
        The epoch, by which Delta's own writers know what was committed.
    target_rows
        Rows of a file.

    """
    table, leaving = root / step.path, set(step.cells)
    commit_facts = CommitFacts(facts, f"{step.table_id}/erase", transaction)
    if step.role == "restored":
        unstage(table)
        return commit(table, base, statistics=(), leaving=lambda _: True, facts=commit_facts)
    columns = (*state.declaration.columns, *_state_columns(state))
    types = {column.name.lower(): column.type for column in columns}
    key = [(name, types[name.lower()]) for name in state.declaration.search_key]
    own = table_session(session, key_settings(key) if step.role == "rows" else {})
    keys = keys_of_erasure(erasure) if erasure is not None and step.keyed else None
    rows = _kept(_stored(own, root, step, base.version, columns), step, keys)
    if step.role == "rows":
        parts = ((part.sub_index, part.exp_block, part.rows) for part in state.partitions)
        return write_runs(
            rows,
            table,
            key=key,
            sizes={(cell, block): count for cell, block, count in parts if (cell, block) in leaving},
            target_rows=target_rows,
            base=base,
            leaving=lambda cell, block: (cell, block) in leaving,
            facts=commit_facts,
        )
    if step.role == "deferred":
        return write_rows(
            rows.coalesce(1),
            table,
            base=base,
            slotted=True,
            leaving=lambda slot: (slot, 0) in leaving,
            facts=commit_facts,
        )
    staged = stage(rows.coalesce(1), table, (), largest_file(FILE_ROWS))
    return commit(table, base, statistics=(), leaving=lambda _: True, facts=commit_facts, staged=staged)


def _stored(
    session: SparkSession, root: Path, step: EraseRows, version: int, columns: Sequence[ColumnRecord]
) -> DataFrame:
    """The rows of the partitions that a step rewrites, as the plan's earlier steps left them."""
    files = TableFiles(root)
    cells = set(step.cells)
    match step.role:
        case "rows":
            return files.read(
                session, step.path, version, columns, lambda file: (file.sub_index, file.exp_block) in cells, placed=True
            )
        case "deferred":
            waiting = files.deferred(session, step.path, version, columns)
            return waiting.where(F.col("_slot").isin([slot for slot, _ in cells]))
        case _:
            return files.rejected(session, step.path, version)


def _kept(rows: DataFrame, step: EraseRows, keys: ErasedKeys | None) -> DataFrame:
    if step.dead_by is not None:
        rows = rows.where(F.unix_micros("_exp") > step.dead_by)
    if keys is None:
        return rows
    return _unshown(rows, keys) if step.role == "rejected" else _others(rows, keys)


def _state_columns(state: TableState) -> tuple[ColumnRecord, ...]:
    return state.view.state if state.view is not None else ()


def _others(rows: DataFrame, keys: ErasedKeys) -> DataFrame:
    """The rows whose search key begins with none of the keys; a null part equals a null."""
    fields = {field.name.lower(): field for field in rows.schema.fields}
    for length, values in keys.by_length().items():
        columns = [fields[column.name.lower()] for column in keys.columns[:length]]
        schema = ", ".join(f"_key{number} {field.dataType.simpleString()}" for number, field in enumerate(columns))
        erased = local_frame(rows.sparkSession, values, schema)
        equal = [
            F.col(f"`{field.name}`").eqNullSafe(F.col(f"_key{number}")) for number, field in enumerate(columns)
        ]
        rows = rows.join(F.broadcast(erased), reduce(and_, equal), "left_anti")
    return rows


def _unshown(rows: DataFrame, keys: ErasedKeys) -> DataFrame:
    """The invalid rows that show none of the keys."""
    text = F.concat_ws("\n", "raw", "message")
    found = [reduce(and_, [text.rlike(pattern) for pattern in patterns]) for patterns in keys.patterns()]
    return rows.where(~reduce(or_, found)) if found else rows
