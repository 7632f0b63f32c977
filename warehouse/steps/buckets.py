"""Steps of keyed tables, which rewrite the buckets of changed keys: relations and keyed views."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.ingest.batch_counts import BatchCounts
from warehouse.planning.steps import MoveRelation, RewriteBuckets
from warehouse.steps.coalesced_source import CoalescedSource
from warehouse.steps.kind import Incoming, Kind, StepExplanation, StepResult, Task, always, stored_columns
from warehouse.steps.node_source import move_of
from warehouse.storage.arrow_types import united
from warehouse.storage.writer import write_runs
from warehouse.views.maintenance.keyed import Replacement
from warehouse.views.maintenance.placement import bucket_sql
from warehouse.views.maintenance.versions import changes_of, rewritten, versions_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.steps.stream_source import StreamSource

__all__ = ["MOVE_RELATION", "REWRITE_BUCKETS"]


def _move_relation(step: MoveRelation, task: Task) -> StepResult:
    source = task.stream()
    try:
        return _moved(step, task, source)
    finally:
        source.cache.release()


def _moved(step: MoveRelation, task: Task, source: StreamSource) -> StepResult:
    batch = source.batch
    content = _content(step, source) if batch.counts.live else None
    if content is None or content.rows is None:
        return StepResult(counts=batch.counts)
    task.ready()
    entry = write_runs(
        united([content.rows], stored_columns(source), source),
        task.runs,
        sizes={(bucket, 0): count for bucket, count in content.sizes.items()},
        leaving=lambda bucket, _: bucket in content.sizes,
        facts=task.batch_facts(
            step.table_id, batch, gained=list(content.fresh.items()), planned=len(content.sizes)
        ),
    )  # fmt: skip
    return StepResult(entry, batch.counts)


def _content(step: MoveRelation, source: StreamSource) -> Replacement:
    """The new content of the buckets that a batch of changes touches."""
    stream, planned = source.stream, source.planned
    names, key = [column.name for column in stream.columns], stream.search_key
    move, stored = move_of(source.plan, planned), source.versions()
    retroactive = stream.changes is not None and stream.changes.retroactive
    changes = changes_of(source.batch.rows.where("_fate = 'live'"), names, move, retroactive=retroactive)
    keys = changes.select(*[quoted(name) for name in key]).distinct()
    versions = versions_of(changes, stored, names, key)
    rows = rewritten(versions, stored, names, key, keys, planned.layout, move, step.history)
    bucket = bucket_sql(key, planned.layout)
    touched = [row[0] for row in keys.selectExpr(f"{bucket} AS bucket").distinct().collect()]
    content = source.cache.add(rows.where(f"sub_index IN ({', '.join(map(str, touched))})"))
    sizes = dict.fromkeys(touched, 0) | {row[0]: row[1] for row in content.groupBy("sub_index").count().collect()}
    before = {row[0]: row[1] for row in stored.groupBy(F.expr(bucket)).count().collect()}
    fresh = {number: max(0, count - before.get(number, 0)) for number, count in sizes.items()}
    return Replacement(content, sizes, fresh, 0)


def _explained_relation(number: int, step: MoveRelation, come: Incoming) -> StepExplanation:
    detail = f"take the changes of {len(come.files)} files as versions, in the buckets of their keys"
    return StepExplanation(number, step.path, "rewrite", detail, len(come.files), come.size)


MOVE_RELATION = Kind(
    MoveRelation,
    explain=_explained_relation,
    run=_move_relation,
    reads=always,
    writes_rows=True,
    by_spark=True,
    rewritten_rows=lambda _, state: sum(part.rows for part in state.partitions),
)


def _rewrite_buckets(step: RewriteBuckets, task: Task) -> StepResult:
    source = task.keyed()
    result = source.replacement
    if result.rows is None:
        return StepResult(counts=BatchCounts(dead=source.dead_rows))  # no commit says so
    task.ready()
    fresh = sum(result.fresh.values())
    counts = {"inserted": fresh, "rows": fresh, "dead": source.dead_rows}
    entry = write_runs(
        united([result.rows], stored_columns(source), source),
        task.runs,
        sizes=_sizes(result, task),
        leaving=lambda bucket, block: _leaves(result, bucket, block),
        facts=task.replaced_facts(
            step.table_id, counts=counts, gained=list(result.fresh.items()), planned=len(result.sizes)
        ),
        encoded=source.encoded if isinstance(source, CoalescedSource) else None,
    )
    return StepResult(entry)


def _sizes(result: Replacement, task: Task) -> Mapping[tuple[int, int], int]:
    """Rows to expect in each cell that is written."""
    if result.cells is not None:
        return result.cells.sizes
    sizes = {(bucket, 0): count for bucket, count in result.sizes.items()}
    for part in task.partitions:
        if part.sub_index in result.sizes:
            sizes[part.sub_index, 0] = max(sizes[part.sub_index, 0], part.rows)
    return sizes


def _leaves(result: Replacement, bucket: int, block: int) -> bool:
    return bucket in result.sizes if result.cells is None else (bucket, block) in result.cells.leaving


REWRITE_BUCKETS = Kind(
    RewriteBuckets,
    explain=lambda number, step, _: StepExplanation(number, step.path, "rewrite", "the buckets in which rows changed"),
    run=_rewrite_buckets,
    reads=always,
    writes_rows=True,
)
