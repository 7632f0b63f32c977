"""The step that writes all live rows of a table again, under another layout or with other columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.layout import exp_block_sql, slot_sql, sub_index_sql
from warehouse.layout.columns import CELL, SLOTS
from warehouse.planning.steps import MigrateTable
from warehouse.planning.wording import table_text
from warehouse.steps.coalesced_source import CoalescedSource
from warehouse.steps.definitions import table_metadata
from warehouse.steps.kind import Kind, StepExplanation, StepResult, Task, always, gained, stored_columns
from warehouse.steps.stream_source import StreamSource, reshaped
from warehouse.steps.synopsis_source import SynopsisSource
from warehouse.storage.arrow_types import united
from warehouse.storage.writer import write_runs
from warehouse.time import NEVER

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from warehouse.layout import Layout

__all__ = ["MIGRATE_TABLE", "cell_sizes", "with_cells"]


@dataclass(frozen=True)
class Slots:
    """A grid of times (anchor and interval, microseconds), and its last processed slot."""

    anchor: int
    interval: int
    last: int


def reslotted(rows: DataFrame, layout: Layout, slots: Slots) -> DataFrame:
    """Return rows with their slots counted on another grid of times: load slots as on a first build, within the last p."""
    arrival = slot_sql("_ts", slots.anchor, slots.interval)
    load = f"greatest(least({arrival}, {slots.last}L), {slots.last - layout.periods + 1}L)"
    expiry = slot_sql("_exp", slots.anchor, slots.interval)
    names = [name for name in rows.columns if name not in SLOTS]
    return rows.selectExpr(*[quoted(name) for name in names], f"{load} AS _load_slot", f"{expiry} AS _exp_slot")


def with_cells(rows: DataFrame, layout: Layout) -> DataFrame:
    """Return rows with the sub-index and expiry block that a layout gives for their slots."""
    own = [quoted(name) for name in rows.columns if name not in CELL]
    never = f"(_exp = timestamp_micros({NEVER}))"
    return rows.selectExpr(
        *own,
        f"{sub_index_sql(layout, '_load_slot', '_exp_slot', never)} AS sub_index",
        f"{exp_block_sql(layout, '_load_slot', '_exp_slot', never)} AS exp_block",
    )


def cell_sizes(rows: DataFrame) -> dict[tuple[int, int], int]:
    """Return how many rows there are of each (sub-index, expiry block)."""
    counted = rows.groupBy(*CELL).agg(F.expr("count(*)")).collect()
    return {(cell, block): count for cell, block, count in counted}


def _migrate(step: MigrateTable, task: Task) -> StepResult:
    source, plan = task.rows(), task.plan
    versions = isinstance(source, StreamSource) and source.stream.changes is not None
    layout, keyed = source.layout, versions or isinstance(source, CoalescedSource)
    stored = task.files.read(source.session, step.path, step.base_version, step.columns, lambda _: True, placed=True)
    if not versions:  # a relation keeps versions that have ended
        stored = stored.where(f"unix_micros(_exp) > {plan.window_time}L")
    if isinstance(source, SynopsisSource):
        rows = source.regridded(stored)
    else:
        rows = reshaped(stored, source.columns, step.renamed)
        if step.reslotted:
            rows = reslotted(rows, layout, Slots(plan.anchor, plan.update_interval, plan.slot))
        if not keyed:
            rows = with_cells(rows, layout)
    columns, sizes = stored_columns(source), cell_sizes(rows)
    more: dict[str, object] = {"rewritten": sum(sizes.values()), "planned": layout.cells}
    batch = task.stream().batch if step.takes else None
    parts = [rows] if batch is None else [rows, batch.live(columns)]
    if batch is not None:
        for cell, count in batch.counts.cells.items():
            sizes[cell] = sizes.get(cell, 0) + count
        more["gained"] = gained(batch)
    metadata = table_metadata(step, "rows", task)
    task.ready()
    entry = write_runs(
        united(parts, columns, source),
        task.runs,
        sizes=sizes,
        leaving=lambda *_: True,
        facts=task.facts(step.table_id, **more) if batch is None else task.batch_facts(step.table_id, batch, **more),
        table_metadata=metadata,
    )
    return StepResult(entry, None if batch is None else batch.counts)


MIGRATE_TABLE = Kind(
    MigrateTable,
    describe=lambda step: f"write {table_text(step.path)} again in its new layout",
    explain=lambda number, step, _: StepExplanation(
        number, step.path, "migrate", f"the live ones of {step.rows} rows, written again in the new layout"
    ),
    run=_migrate,
    reads=always,
    writes_rows=True,
    by_spark=True,
    rewritten_rows=lambda _, state: sum(part.rows for part in state.partitions),
)
