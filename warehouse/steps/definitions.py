"""Steps that write no row: they create, empty, define or restore a table, or mark where its log is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warehouse.catalog.declaration import stream_of
from warehouse.layout.columns import CELL
from warehouse.planning.steps import AddColumns, CreateTable, CutLog, MigrateTable, ReplaceTable, RestoreTable, SetProperties
from warehouse.planning.wording import table_text
from warehouse.steps.kind import Incoming, Kind, StepExplanation, StepResult, Task, always
from warehouse.storage.commit import CommitFacts
from warehouse.storage.definition_commits import create_table, replace_table, set_columns, set_properties
from warehouse.storage.logcut import commit_mark
from warehouse.storage.reshaping import reshape
from warehouse.storage.restore import restore_table
from warehouse.storage.table_commit import metadata_action
from warehouse.storage.tables import (
    FOUND_BY,
    deferred_schema,
    key_types,
    rejected_schema,
    restored_schema,
    rows_schema,
    schema_file,
    statistics_columns,
    table_properties,
    write_schema_file,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.catalog.declaration import ColumnRecord
    from warehouse.catalog.model import Column
    from warehouse.epochs.records import TableState
    from warehouse.planning.plan_record import Plan
    from warehouse.planning.steps import Role

__all__ = [
    "ADD_COLUMNS",
    "CREATE_TABLE",
    "CUT_LOG",
    "REPLACE_TABLE",
    "RESTORE_TABLE",
    "SET_PROPERTIES",
    "table_metadata",
    "zero_row_file",
]


def _declared(name: str, task: Task) -> tuple[Sequence[Column | ColumnRecord], Sequence[str], str]:
    """The columns of a stream's or view's table of rows, its search key and its zero-row file."""
    node = task.plan.node(name)
    if node is not None:
        return (*node.columns, *node.state), node.node.search_key, node.schema_file
    planned = task.plan.stream(name)
    file = zero_row_file(task.plan, name, task.state)
    if planned.coalesced is not None:
        return planned.stored_columns, planned.declaration.search_key, file
    stream = stream_of(planned.declaration, name, task.root)
    return stream.columns, stream.search_key, file


def zero_row_file(plan: Plan, name: str, state: TableState | None) -> str:
    """Return the zero-row file of the columns of a table that is no view's; if the table gets other columns, a new file.

    ``state`` is the table as the plan finds it. Earlier epochs keep their file, also while the plan is not finished.
    """
    path = f"tables/{name}"
    if state is None:
        return schema_file(path)
    changed = any(isinstance(step, AddColumns | MigrateTable | ReplaceTable) and step.path == path for step in plan.steps)
    return schema_file(path, plan.epoch) if changed else state.schema_file


def _stored(name: str, role: Role, task: Task) -> tuple[Mapping[str, Any], list[str], Mapping[str, str]]:
    """The schema, the partition columns and the properties of a table."""
    columns, key, _ = _declared(name, task)
    node = task.plan.node(name)
    schemas: dict[Role, tuple[Mapping[str, Any], list[str]]] = {
        "rows": (rows_schema(columns), list(CELL)),
        "deferred": (deferred_schema(columns), ["_slot"]),
        "rejected": (rejected_schema(), []),
        "restored": (restored_schema(columns, owed=node is not None and node.budget is not None), []),
    }
    statistics = statistics_columns(key_types(key, columns)) if role == "rows" else []
    return *schemas[role], table_properties(statistics, task.plan.retain)


def _write_zero_rows(name: str, role: Role, task: Task) -> None:
    """Write the file from which other tools read the columns of a table of rows."""
    columns, _, file = _declared(name, task)
    if role == "rows":
        write_schema_file(task.root / file, columns)


def table_metadata(step: AddColumns | MigrateTable, role: Role, task: Task) -> dict[str, Any]:
    """Return the action that gives a table the columns and the key of its declaration; its zero-row file is written."""
    if role == "rows":
        write_schema_file(task.root / schema_file(step.path, task.plan.epoch), _declared(step.stream, task)[0])
    return metadata_action(step.table_id, *_stored(step.stream, role, task), task.plan.clock)


def _create(step: CreateTable, task: Task) -> StepResult:
    counts = None
    if step.role == "restored":
        rows = task.node().dead_rows
    elif step.role != "rows":
        counts = task.stream().batch.counts
        rows = counts.deferred if step.role == "deferred" else counts.rejected
    if step.role != "rows" and not rows:
        return StepResult(counts=counts)
    _write_zero_rows(step.stream, step.role, task)
    schema, partitions, properties = _stored(step.stream, step.role, task)
    entry = create_table(
        task.table,
        table_id=step.table_id,
        schema=schema,
        partition_columns=partitions,
        properties=properties,
        metadata=task.metadata(),
        created_at=task.plan.clock,
        base=task.head,
    )
    return StepResult(entry, counts)


def _explained_creation(number: int, step: CreateTable, _: Incoming) -> StepExplanation:
    detail = "an empty table with its properties" if step.role == "rows" else "only if such rows arrive"
    return StepExplanation(number, step.path, "create", detail)


CREATE_TABLE = Kind(
    CreateTable,
    explain=_explained_creation,
    run=_create,
    reads=lambda step: step.role != "rows",
    runs_for_failed_views=always,
)


def _replace(step: ReplaceTable, task: Task) -> StepResult:
    """Empty a table for its new declaration."""
    _write_zero_rows(step.stream, step.role, task)
    schema, partitions, properties = _stored(step.stream, step.role, task)
    entry = replace_table(
        task.table,
        task.head,
        table_id=step.table_id,
        schema=schema,
        partition_columns=partitions,
        properties=properties,
        metadata=task.metadata(),
        at=task.plan.clock,
    )
    return StepResult(entry)


REPLACE_TABLE = Kind(
    ReplaceTable,
    describe=lambda step: f"empty {table_text(step.path)} for its new declaration",
    explain=lambda number, step, _: StepExplanation(
        number, step.path, "empty", "the declaration changed, so it is filled again"
    ),
    run=_replace,
    runs_for_failed_views=lambda plan: plan.erasure is not None,  # rows to erase must leave a failed view, too
)


def _add_columns(step: AddColumns, task: Task) -> StepResult:
    if step.role == "restored":  # the rows of a changed view's other tables are computed again, these are not
        schema, _, _ = _stored(step.stream, step.role, task)
        entry = reshape(
            task.table,
            task.head,
            schema,
            statistics=(FOUND_BY[step.role],),
            facts=CommitFacts(task.metadata()),
            at=task.plan.clock,
            staged=task.staged,
        )
        return StepResult(entry)
    action = table_metadata(step, step.role, task)
    return StepResult(set_columns(task.table, task.head, action, task.metadata(), task.plan.clock))


ADD_COLUMNS = Kind(
    AddColumns,
    explain=lambda number, step, _: StepExplanation(
        number, step.path, "add columns", "rows that are there have null in them"
    ),
    run=_add_columns,
)


def _set_properties(step: SetProperties, task: Task) -> StepResult:
    role: Role = "rows" if step.path == f"tables/{step.stream}" else "rejected"  # side tables have no statistics
    _, _, properties = _stored(step.stream, role, task)
    return StepResult(set_properties(task.table, task.head, properties, task.metadata(), task.plan.clock))


SET_PROPERTIES = Kind(
    SetProperties,
    explain=lambda number, step, _: StepExplanation(
        number, step.path, "set properties", "those of this build, and how long its log is kept"
    ),
    run=_set_properties,
    runs_for_failed_views=always,
)


def _restore(step: RestoreTable, task: Task) -> StepResult:
    entry = restore_table(
        task.table, task.head, step.to_version, epoch=task.plan.epoch, metadata=task.metadata(), at=task.plan.clock
    )
    return StepResult(entry)


def _explained_restoring(number: int, step: RestoreTable, _: Incoming) -> StepExplanation:
    detail = "empty it" if step.to_version < 0 else f"its files of version {step.to_version}, by further links to them"
    return StepExplanation(number, step.path, "restore", detail)


RESTORE_TABLE = Kind(
    RestoreTable,
    explain=_explained_restoring,
    run=_restore,
)


def _cut_log(_: CutLog, task: Task) -> StepResult:
    return StepResult(commit_mark(task.table, task.head, task.metadata(), task.plan.clock))


CUT_LOG = Kind(
    CutLog,
    describe=lambda step: f"cut the log of {table_text(step.path)}",
    explain=lambda number, step, _: StepExplanation(
        number, step.path, "cut log", "keep of its log what the newest epoch needs"
    ),
    run=_cut_log,
    runs_for_failed_views=always,
)
