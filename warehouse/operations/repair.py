"""Repairs that need no decision: they repair files that are not needed, or whose content exists in other files.

* A damaged record of the newest epoch is set aside. Then its plan is unfinished; finishing it finds the commits in the tables'
  logs and writes the record again.
* Damaged plans of written epochs, temporary files, and records that were set aside before are removed.
* A checkpoint is removed if the commits contradict it and are complete.
* A table's zero-row file is written again from the epoch's record.
* A key summary that contradicts its file is removed: no answer needs it.

Data is never invented: a missing or damaged data file or commit needs a person.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.epochs.journal import epoch_numbers, numbers, read_epoch, read_record, record_path
from warehouse.errors import RecordDamagedError
from warehouse.objects.path import parquet_source
from warehouse.operations.context import WriteContext, locked
from warehouse.operations.execution import finish
from warehouse.operations.publication import free_live_tables, publish, publish_live_tables
from warehouse.operations.unneeded_files import sweep
from warehouse.planning.plan_record import Plan
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from warehouse.epochs.records import Epoch

__all__ = ["repair"]

_SET_ASIDE = ".damaged"


def repair(context: WriteContext) -> tuple[str, ...]:
    """Make the repairs that need no decision, and return them in words.

    An unfinished update is completed, and leftovers are removed as by ``vacuum``.
    """
    from warehouse.publishing.database import DATABASE  # noqa: PLC0415 - rarely needed
    from warehouse.publishing.difference import database_difference  # noqa: PLC0415 - same

    root = context.root
    with locked(context):
        done = list(_repair_records(root))
        current = finish(context)
        last = current.last
        done += [f"finished the update to epoch {epoch.number}" for epoch in current.finished]
        if last is None:
            return tuple(done)
        done += _repair_checkpoints(root, last)
        for number in epoch_numbers(root):
            done += _repair_schema_files(root, read_epoch(root, number))
        done += [f"moved live/{name} to epoch {last.number}" for name in publish_live_tables(context, last, rebuild=True)]
        if database_difference(root, last) is not None:
            publish(context, last, rebuild=True)
            done.append(f"wrote {DATABASE} again")
        done += _repair_summaries(root)
        swept = sweep(root, now=context.clock(), spared=current.stopped) + free_live_tables(context, last)
        if swept.files:
            done.append(f"removed {swept.files} left-over file(s), {swept.bytes} bytes")
        return tuple(done)


def _repair_records(root: Path) -> Iterator[str]:
    """Repair the files under ``root/epochs``, and yield the repairs."""
    directory = root / "epochs"
    for path in sorted(directory.iterdir()) if directory.is_dir() else ():
        if path.name.endswith((".tmp", _SET_ASIDE)) and path.is_file():
            path.unlink()
            yield f"removed epochs/{path.name}"
    committed = numbers(root, "epoch")
    newest = committed[-1] if committed else -1
    for number in numbers(root, "plan"):
        path = record_path(root, number, "plan")
        if (number < newest or (number == newest and _is_done(root, number))) and not _readable(path):
            path.unlink()
            yield f"removed the damaged plan of epoch {number}, which is written"
    if newest >= 0 and not _is_whole(root, newest) and _can_be_rebuilt(root, newest):
        path = record_path(root, newest, "epoch")
        path.rename(path.with_name(path.name + _SET_ASIDE))
        yield f"set the damaged record of epoch {newest} aside, to make it again from its plan"
    if directory.is_dir():
        store_of(directory).sync_directory(directory)


def _readable(plan: Path) -> bool:
    try:
        read_record(plan, Plan)
    except RecordDamagedError:
        return False
    return True


def _is_done(root: Path, number: int) -> bool:
    """Whether an epoch is written and asks for nothing more: the plan of an erasure is needed until that is carried out."""
    return _is_whole(root, number) and read_epoch(root, number).erased is None


def _is_whole(root: Path, number: int) -> bool:
    try:
        read_epoch(root, number)
    except RecordDamagedError:
        return False
    return True


def _can_be_rebuilt(root: Path, number: int) -> bool:
    """Whether its plan is whole, and the epoch that the plan starts from can be read."""
    plan = record_path(root, number, "plan")
    has_previous = number == 0 or (record_path(root, number - 1, "epoch").exists() and _is_whole(root, number - 1))
    return plan.exists() and _readable(plan) and has_previous


def _repair_checkpoints(root: Path, epoch: Epoch) -> Iterator[str]:
    """Remove the checkpoints that the commits of the newest epoch's tables contradict, and yield the repairs."""
    from warehouse.steps.foreign import named_directories  # noqa: PLC0415 - same
    from warehouse.storage.leftover import drop_wrong  # noqa: PLC0415 - repairing alone needs it

    for directory in named_directories(epoch):
        for name in drop_wrong(root / directory.path, directory.version):
            yield f"removed {directory.path}/_delta_log/{name}, which is not what the commits lead to"


def _repair_summaries(root: Path) -> Iterator[str]:
    """Remove the key summaries that differ from their files' rows, and yield the repairs."""
    from warehouse.checking.files import files_findings, named_files  # noqa: PLC0415 - repairing alone needs it
    from warehouse.checking.logs import named_tables  # noqa: PLC0415 - same
    from warehouse.checking.summaries import summary_findings  # noqa: PLC0415 - same
    from warehouse.storage.replay import replayed  # noqa: PLC0415 - same

    for table in named_tables([read_epoch(root, number) for number in epoch_numbers(root)]):
        if table.role != "rows":
            continue
        versions = sorted({state.version for _, state, _ in table.epochs})
        table.states.update({log_state.version: log_state for log_state in replayed(root / table.path, versions)})
        _, intact_files = files_findings(root, named_files(table))
        for finding in summary_findings(root, intact_files):
            (root / finding.subject).unlink(missing_ok=True)
            yield f"removed {finding.subject}, which is not of its file's rows"


def _repair_schema_files(root: Path, epoch: Epoch) -> Iterator[str]:
    """Write unreadable zero-row files of an epoch's tables again, and yield the repairs."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - repairing alone needs it

    from warehouse.storage.tables import rows_schema, write_schema_file  # noqa: PLC0415 - same

    for state in epoch.tables:
        columns = state.stored_columns
        file = root / state.schema_file
        try:
            is_intact = pq.read_schema(parquet_source(file)).names == [field["name"] for field in rows_schema(columns)["fields"]]
        except Exception:  # noqa: BLE001 - reading a damaged file may raise any error: it is written again
            is_intact = False
        if not is_intact:
            write_schema_file(file, columns)
            yield f"wrote {state.schema_file} again"
