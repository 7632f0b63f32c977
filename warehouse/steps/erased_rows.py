"""The step that erases: one commit that rewrites the partitions in which rows were found, without these rows.

The remaining rows of a partition are one sorted run. The step reads the table as the plan's earlier steps left it.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.layout.tasks import FILE_ROWS, largest_file
from warehouse.planning.steps import EraseRows
from warehouse.steps.erased_keys import keys_of_erasure
from warehouse.steps.kind import Incoming, Kind, StepExplanation, StepResult, Task, always
from warehouse.storage.arrow_types import local_frame
from warehouse.storage.commit import CommitFacts, commit, stage, unstage
from warehouse.storage.scan import TableFiles
from warehouse.storage.session import table_session
from warehouse.storage.tables import FOUND_BY
from warehouse.storage.writer import RunTable, key_settings, write_rows, write_runs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.steps.erased_keys import ErasedKeys

__all__ = ["ERASE_ROWS"]


def _erase_rows(step: EraseRows, task: Task) -> StepResult:
    if task.state is None or task.session is None:
        raise KeyError(step.stream)
    state, erasure, table, leaving = task.state, task.plan.erasure, task.table, set(step.cells)
    task.ready()
    facts = CommitFacts(task.metadata(erased=step.rows), f"{step.table_id}/erase", task.plan.epoch)
    if step.role == "restored":
        unstage(table)
        return StepResult(commit(table, task.head, statistics=(), leaving=lambda _: True, facts=facts))
    columns = state.stored_columns
    types = {column.name.lower(): column.type for column in columns}
    key = [(name, types[name.lower()]) for name in state.declaration.search_key]
    own = table_session(task.session, key_settings(key) if step.role == "rows" else {})
    keys = keys_of_erasure(erasure) if erasure is not None and step.keyed else None
    keys = None if keys is None else keys.within(state)
    rows = _kept(_stored(own, task.root, step, task.head.version, columns), step, keys)
    if step.role == "rows":
        parts = ((part.sub_index, part.exp_block, part.rows) for part in state.partitions)
        entry = write_runs(
            rows,
            RunTable(table, key, task.head, task.target_rows),
            sizes={(cell, block): count for cell, block, count in parts if (cell, block) in leaving},
            leaving=lambda cell, block: (cell, block) in leaving,
            facts=facts,
        )
    elif step.role == "deferred":
        entry = write_rows(
            rows.coalesce(1), table, base=task.head, slotted=True, leaving=lambda slot: (slot, 0) in leaving, facts=facts
        )
    else:
        staged = stage(rows.coalesce(1), table, (), largest_file(FILE_ROWS))
        entry = commit(
            table, task.head, statistics=(FOUND_BY["rejected"],), leaving=lambda _: True, facts=facts, staged=staged
        )
    return StepResult(entry)


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
    return _rejected_without_keys(rows, keys) if step.role == "rejected" else _rows_without_keys(rows, keys)


def _rows_without_keys(rows: DataFrame, keys: ErasedKeys) -> DataFrame:
    """Return the rows whose search key begins with none of the keys; null equals null."""
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


def _rejected_without_keys(rows: DataFrame, keys: ErasedKeys) -> DataFrame:
    """Return the rejected rows that contain none of the keys."""
    text = F.concat_ws("\n", "raw", "message")
    conditions = [reduce(and_, [text.rlike(pattern) for pattern in patterns]) for patterns in keys.patterns()]
    return rows.where(~reduce(or_, conditions)) if conditions else rows


def _explained(number: int, step: EraseRows, _: Incoming) -> StepExplanation:
    where = f"{len(step.cells)} partitions" if step.cells else "the table"
    detail = f"rewrite {where} without {f'{step.rows} rows of the keys' if step.keyed else 'expired rows'}"
    return StepExplanation(number, step.path, "erase", detail, partitions_rewritten=len(step.cells))


ERASE_ROWS = Kind(
    EraseRows,
    explain=_explained,
    run=_erase_rows,
    reads_stored=True,
    runs_for_failed_views=always,
)
