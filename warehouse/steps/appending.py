"""Steps that move a table of rows that end by themselves: a batch is appended as runs, or rewrites its sub-indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warehouse.planning.steps import MoveWindow, RewriteCells
from warehouse.planning.wording import table_text
from warehouse.steps.answers_source import ANSWERED, AnswersSource
from warehouse.steps.kind import Incoming, Kind, StepExplanation, StepResult, Task, always, gained, stored_columns
from warehouse.steps.migrating import cell_sizes, with_cells
from warehouse.steps.node_source import NodeSource
from warehouse.storage.arrow_types import framed, united
from warehouse.storage.lookup import live_at
from warehouse.storage.writer import write_runs
from warehouse.units import counted

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Set as AbstractSet

    from pyspark.sql import DataFrame

    from warehouse.epochs.records import TableState
    from warehouse.planning.steps import FormerCells
    from warehouse.steps.kind import Appending

__all__ = ["MOVE_WINDOW", "REWRITE_CELLS"]

_Cells = dict[tuple[int, int], int]
"""Rows by (sub-index, expiry block)."""


def _move_window(step: MoveWindow, task: Task) -> StepResult:
    source = task.appending()
    batch, layout, sizes = source.batch, source.layout, dict(source.batch.counts.cells)
    merged = {
        seal.sub_index: [block for block, runs in seal.blocks if runs + ((seal.sub_index, block) in sizes) > 1]
        for seal in step.seals
    }
    sealed = {(cell, block) for cell, blocks in merged.items() for block in blocks}
    dead = step.former.leaving.union(step.dead)
    if not (sizes or step.expired or step.dead or sealed or step.former.leaving or _has_facts(source)):
        return StepResult(counts=batch.counts)
    stored = []
    if sealed:
        stored.append(_live_at_base(step, task, lambda cell, block: (cell, block) in sealed))
        _count(sizes, task, sealed)
    rows = _with_former(step, task, stored, sizes)

    def leaving(cell: int, block: int) -> bool:
        passed = step.expired and block < step.expired_below and layout.first_cell <= cell <= layout.last_cell
        return bool(passed) or (cell, block) in sealed or (cell, block) in dead

    task.ready()
    entry = write_runs(
        rows,
        task.runs,
        sizes=sizes,
        leaving=leaving if sealed or dead or step.expired else None,
        facts=task.batch_facts(
            step.table_id, batch, gained=gained(batch), sealed=len(sealed),
            rewritten=_stored_in(task.state, sealed) + _stored_in(task.state, _moved(step.former)),
        ),
    )  # fmt: skip
    return StepResult(entry, batch.counts)


def _rewrite_cells(step: RewriteCells, task: Task) -> StepResult:
    source, former = task.appending(), step.former.leaving
    batch, sizes = source.batch, dict(source.batch.counts.cells)
    if not sizes and not step.rows and not former and not _has_facts(source):
        return StepResult(counts=batch.counts)
    stored = []
    if step.rows:
        stored.append(_live_at_base(step, task, lambda cell, _: cell in step.cells))
        stored_cells = {(part.sub_index, part.exp_block) for part in task.partitions if part.sub_index in step.cells}
        _count(sizes, task, stored_cells)
    rows = _with_former(step, task, stored, sizes)
    task.ready()
    entry = write_runs(
        rows,
        task.runs,
        sizes=sizes,
        leaving=lambda cell, block: cell in step.cells or (cell, block) in former,
        facts=task.batch_facts(
            step.table_id, batch, gained=gained(batch), planned=len(step.cells),
            rewritten=step.rows + _stored_in(task.state, _moved(step.former)),
        ),
    )  # fmt: skip
    return StepResult(entry, batch.counts)


def _has_facts(source: Appending) -> bool:
    """Whether a commit without rows is needed for its metadata.

    The metadata may list answers without a row, if the time for answers is limited, or the ledger of a view under a budget.
    """
    if isinstance(source, AnswersSource):
        return bool(source.commit_metadata.get(ANSWERED))
    return isinstance(source, NodeSource) and bool(source.commit_metadata)


def _live_at_base(
    step: MoveWindow | RewriteCells, task: Task, chosen: Callable[[int, int], bool]
) -> DataFrame | pa.Table:
    """The live rows of chosen (sub-index, expiry block) pairs, at the last epoch's version."""
    source, plan = task.appending(), task.plan
    batch, live = source.batch, live_at(plan.slot, plan.window_time)
    in_driver = None
    arguments = (step.path, step.base_version, source.columns, lambda file: chosen(file.sub_index, file.exp_block))
    if batch.driver_rows is not None:
        in_driver = task.files.to_rewrite(*arguments, live)
    elif batch.table_rows is not None:
        in_driver = task.files.as_many_to_rewrite(*arguments, live)
    if in_driver is not None:
        return in_driver
    rows = task.files.read(source.session, *arguments, placed=True)
    return rows.where(f"_exp_slot > {plan.slot}L AND unix_micros(_exp) > {plan.window_time}L")


def _with_former(
    step: MoveWindow | RewriteCells, task: Task, parts: list[DataFrame | pa.Table], sizes: _Cells
) -> DataFrame | pa.Table:
    """Return the arrived rows with parts of stored rows and the rewritten rows of a former layout; count the last in ``sizes``.

    Rows of a former layout are rewritten in it or in the current layout. If Spark reads a part, it also gets the arrived rows
    if they are many.
    """
    aged, moved = set(step.former.aged), set(step.former.moved)
    if aged:
        parts.append(_live_at_base(step, task, lambda cell, block: (cell, block) in aged))
        partition_rows = (((part.sub_index, part.exp_block), part.rows) for part in task.partitions)
        sizes.update({cell: rows for cell, rows in partition_rows if cell in aged})
    if moved:
        former_rows = _live_at_base(step, task, lambda cell, block: (cell, block) in moved)
        moved_rows = with_cells(framed(former_rows, task.appending()), task.rows().layout)
        for cell, count in cell_sizes(moved_rows).items():
            sizes[cell] = sizes.get(cell, 0) + count
        parts.append(moved_rows)
    source = task.appending()
    arrived = source.batch.live(stored_columns(source), by_spark=any(not isinstance(part, pa.Table) for part in parts))
    return united([arrived, *parts], stored_columns(source), source)


def _count(sizes: _Cells, task: Task, cells: AbstractSet[tuple[int, int]]) -> None:
    """Add the stored rows of some cells to the sizes of the rows to write."""
    for part in task.partitions:
        cell = (part.sub_index, part.exp_block)
        if cell in cells:
            sizes[cell] = sizes.get(cell, 0) + part.rows


def _stored_in(state: TableState | None, cells: AbstractSet[tuple[int, int]]) -> int:
    return sum(part.rows for part in state.partitions if (part.sub_index, part.exp_block) in cells) if state else 0


def _moved(former: FormerCells) -> set[tuple[int, int]]:
    return {*former.aged, *former.moved}


def _sealed(step: MoveWindow) -> set[tuple[int, int]]:
    return {(seal.sub_index, block) for seal in step.seals for block, _ in seal.blocks}


def _explained_move(number: int, step: MoveWindow, come: Incoming) -> StepExplanation:
    merged, moved = len(_sealed(step)), _moved(step.former)
    removed = len(step.expired) + len(step.dead) + len(step.former.gone)
    parts = [come.words]
    if removed:
        parts.append(f"remove {counted(removed, 'expired partition')}")
    if merged:
        parts.append(f"merge up to {counted(merged, 'partition')} to which no more is added")
    detail = "; ".join(parts) + _explained_former(step.former)
    return StepExplanation(number, step.path, "append", detail, len(come.files), come.size, removed, merged + len(moved))


def _explained_rewrite(number: int, step: RewriteCells, come: Incoming) -> StepExplanation:
    former = _explained_former(step.former)
    detail = f"rewrite {len(step.cells)} sub-indices ({step.rows} rows) with {come.words}{former}"
    rewritten = len(step.cells) + len(_moved(step.former))
    return StepExplanation(number, step.path, "rewrite", detail, len(come.files), come.size, len(step.former.gone), rewritten)


def _explained_former(cells: FormerCells) -> str:
    """Describe the changes of a former layout's partitions; an empty text if there are none."""
    parts = []
    if cells.gone or cells.aged:
        parts.append(f"remove {len(cells.gone)} and rewrite {len(cells.aged)} partitions of the former layout")
    if cells.moved:
        parts.append(f"move what is left of the former layout ({len(cells.moved)} partitions)")
    return "".join(f"; {text}" for text in parts)


MOVE_WINDOW = Kind(
    MoveWindow,
    describe=lambda step: f"append to {table_text(step.path)}",
    explain=_explained_move,
    run=_move_window,
    reads=always,
    writes_rows=True,
    rewritten_rows=lambda step, state: _stored_in(state, _sealed(step) | _moved(step.former)),
)
REWRITE_CELLS = Kind(
    RewriteCells,
    describe=lambda step: f"rewrite {len(step.cells)} sub-indices of {table_text(step.path)}",
    explain=_explained_rewrite,
    run=_rewrite_cells,
    reads=always,
    writes_rows=True,
    rewritten_rows=lambda step, state: step.rows + _stored_in(state, _moved(step.former)),
)
