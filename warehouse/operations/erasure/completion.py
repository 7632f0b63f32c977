"""Completes an erasure after its epoch: removes data of older epochs, proves that no key is left, and writes the receipt.

The recorded plan has the keys. It is removed last, after the receipt is written: as long as the plan of an erasure that made the
newest epoch exists, the erasure is unfinished, and the next holder of the writer lock finishes it. So a kill at any point loses
nothing of the request, and no other verb writes before it is finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.epochs.journal import plan_path, read_record
from warehouse.epochs.points import Moment, Observer, Point
from warehouse.errors import RecordDamagedError
from warehouse.ingest.object_copies import drop_copies
from warehouse.operations.erasure.derived_tables import related_tables, remaining_parts
from warehouse.operations.erasure.finding import dead_instant, dead_rows
from warehouse.operations.erasure.landing import landing_files
from warehouse.operations.erasure.proof import Proof, Trace, files_of_epoch, prove
from warehouse.operations.erasure.receipt import Receipt, TableReceipt, beyond_reach, write_receipt
from warehouse.operations.erasure.store import clear_store
from warehouse.operations.unneeded_files import merge_ledgers, retire, sweep
from warehouse.planning.plan_record import Erasure, Plan
from warehouse.planning.steps import CutLog
from warehouse.publishing.live.publish import live_rules, purge_live_tables
from warehouse.steps.erased_keys import keys_of_erasure
from warehouse.storage.companion_files import SUMMARY
from warehouse.storage.logcut import cut_log
from warehouse.storage.store import store_of
from warehouse.storage.tables import FOLDERS
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch
    from warehouse.steps.erased_keys import ErasedKeys

__all__ = ["complete", "is_open"]

_END_OF_TIME = 1 << 62
"""An instant at which every superseded epoch is out of `retain` and every file is old, even if the clock was changed."""


def is_open(root: Path, newest: Epoch | None) -> bool:
    """Whether an erasure made the newest epoch and is not finished."""
    return newest is not None and newest.erased is not None and plan_path(root, newest.number).exists()


def complete(
    catalog: Catalog, newest: Epoch, *, now: int, observer: Observer, spark: Callable[[], SparkSession]
) -> Receipt:
    """Finish an erasure once its epoch is written, and return the receipt.

    The caller holds the writer lock. Older epochs are retired, regardless of ``retain``; all files that the newest epoch does not
    name are deleted; logs are cut; every file is read again. ``spark`` returns the session that reads an object store.
    """
    root = catalog.root
    plan, erasure = _open(plan_path(root, newest.number))
    retired = retire(root, retain=0, now=_END_OF_TIME).epochs
    sweep(root, now=_END_OF_TIME, grace=0)
    purge_live_tables(root, newest, live_rules(catalog))
    merge_ledgers(root)
    observer(Moment(Point.SWEPT, newest.number))
    tables = tuple(_tables(root, plan, newest))
    observer(Moment(Point.LOGS_CUT, newest.number))
    keys = keys_of_erasure(erasure)
    proof = _proof(catalog, plan, newest, keys)
    state = newest.table(erasure.table or "")
    landing = landing_files(catalog, state, keys) if keys is not None and state is not None else ()
    for source in catalog.sources:
        drop_copies(source)
    observer(Moment(Point.PROVED, newest.number))
    store = clear_store(root, spark)
    receipt = Receipt(
        format=1,
        kind="keys" if keys is not None else "expired",
        table=erasure.table,
        keys=tuple(keys.hashes(erasure.table or "", erasure.salt)) if keys is not None else (),
        salt=erasure.salt,
        asked_at=format_instant(erasure.asked_at),
        completed_at=format_instant(now),
        epoch=newest.number,
        window_time=format_instant(newest.window_time),
        rows=sum(entry.rows for entry in newest.erased.rows) if newest.erased else 0,
        tables=tables,
        views_built_anew=erasure.views,
        ended_rows_given_up=dict(erasure.ended),
        epochs_retired=retired,
        proof=proof,
        landing=tuple(str(path) for path in landing),
        store=store,
        beyond_reach="; ".join((beyond_reach(newest.number), *remaining_parts(catalog, newest, erasure))),
    )
    write_receipt(root, receipt)
    observer(Moment(Point.RECEIPT_WRITTEN, newest.number))
    plan_path(root, newest.number).unlink()
    store_of(root / "epochs").sync_directory(root / "epochs")
    return receipt


def _open(path: Path) -> tuple[Plan, Erasure]:
    remedy = "what older epochs held is not removed yet: remove this file and run the same erasure again"
    try:
        plan = read_record(path, Plan)
    except RecordDamagedError as error:
        raise RecordDamagedError(str(path), error.reason, remedy) from error
    if plan.erasure is None:
        raise RecordDamagedError(str(path), "is not the plan of the erasure that made its epoch", remedy)
    return plan, plan.erasure


def _tables(root: Path, plan: Plan, newest: Epoch) -> Iterator[TableReceipt]:
    """Cut the logs, and yield the facts of each table."""
    versions = {state.path: state.version for state in newest.tables}
    versions |= {side.path: side.version for state in newest.tables for side in state.sides}
    removed = {entry.table: entry.files for entry in newest.removed}
    rows = {entry.path: entry.rows for entry in newest.erased.rows} if newest.erased else {}
    for step in plan.steps:
        if isinstance(step, CutLog) and step.path in versions:
            removed_entries = cut_log(root / step.path, versions[step.path])
            yield TableReceipt(
                step.path, rows.get(step.path, 0), removed.get(step.path, ()), len(removed_entries), versions[step.path]
            )


def _is_summary(path: str) -> bool:
    return path.partition("/")[0] in FOLDERS and path.endswith(SUMMARY)


def _proof(catalog: Catalog, plan: Plan, newest: Epoch, keys: ErasedKeys | None) -> Proof:
    """Read all remaining files again.

    Remove summaries that are damaged, or have a key that their file lacks: no reader needs them.
    """
    root = catalog.root
    if keys is not None and plan.erasure is not None:
        named = files_of_epoch(root, newest)
        table = plan.erasure.table or ""
        erased_tables = frozenset((table, *(related.name for related in related_tables(newest, table))))
        passed_over = plan_path(root, newest.number)
        proof = prove(root, erased_tables, keys, named, passed_over=passed_over)
        doubtful = [root / trace.path for trace in proof.traces if _is_summary(trace.path)]
        for path in doubtful:
            store_of(path).remove_file(path)
        return prove(root, erased_tables, keys, named, passed_over=passed_over) if doubtful else proof
    remaining = Proof()
    for step in plan.steps:
        state = newest.table(step.stream)
        dead_by = dead_instant(catalog, newest, state) if state is not None else None
        if isinstance(step, CutLog) and state is not None and step.path == state.path and dead_by is not None:
            dead = dead_rows(root, state, dead_by, newest.slot)
            remaining += Proof(sum(part.files for part in state.partitions), sum(part.bytes for part in state.partitions))
            if dead.rows:
                remaining += Proof(traces=(Trace(state.path, f"{dead.rows} expired rows"),))
    unnamed = sweep(root, now=_END_OF_TIME, grace=0, dry_run=True).files
    return remaining + Proof(traces=(Trace("", f"{unnamed} files that no epoch names"),)) if unnamed else remaining
