"""Checks that the records under ``root/epochs`` are whole, follow each other, and agree about landing files.

Invariants: the readable epochs are numbered without a gap; the window time of an epoch is ``anchor + slot * interval`` and
is never before that of the epoch before; at most one plan is above the newest epoch, the plan of its successor; a landing file
is loaded once, unless it was marked to be loaded again, or was gone in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from warehouse.checking.findings import Finding, fault, note
from warehouse.epochs.journal import numbers, read_record, record_path
from warehouse.epochs.known import LandingLedger, known_files
from warehouse.epochs.records import Epoch
from warehouse.errors import NewerFormatError, RecordDamagedError, WarehouseError
from warehouse.planning.plan_record import Plan
from warehouse.storage.store import store_of
from warehouse.time import at_slot, format_instant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from warehouse.epochs.journal import Kind
    from warehouse.epochs.records import Counts, Loaded

__all__ = ["ReadableRecords", "read_records", "records_findings"]

_BODIES = {"plan": Plan, "epoch": Epoch, "past": Epoch, "ledger": LandingLedger}
_RESTORE = "restore the file from a copy of the warehouse"
_REMOVED = "`stream-wh check --repair` removes it"


@dataclass(frozen=True)
class ReadableRecords:
    """The readable epochs in order, the unfinished plan, and unreadable records."""

    epochs: tuple[Epoch, ...]
    open_plan: Plan | None
    damaged: tuple[tuple[Kind, int, str], ...]

    @property
    def incomplete(self) -> bool:
        """Whether a damaged record leaves the tables or landing files of an epoch unknown."""
        return any(kind != "plan" for kind, _, _ in self.damaged)

    @property
    def newest(self) -> Epoch | None:
        """The newest epoch that can be read."""
        return self.epochs[-1] if self.epochs else None


def read_records(root: Path) -> ReadableRecords:
    """Read every record; damaged records are listed, and raise no error."""
    damaged: list[tuple[Kind, int, str]] = []
    bodies: dict[str, dict[int, object]] = {kind: {} for kind in _BODIES}
    kinds: tuple[Kind, ...] = ("epoch", "past", "plan", "ledger")
    for kind in kinds:
        for number in numbers(root, kind):
            try:
                bodies[kind][number] = read_record(record_path(root, number, kind), _BODIES[kind])
            except FileNotFoundError:
                continue  # it was retired or removed meanwhile
            except (RecordDamagedError, OSError) as error:
                reason = error.reason if isinstance(error, RecordDamagedError) else str(error)
                damaged.append((kind, number, reason))
    epochs = tuple(body for _, body in sorted(bodies["epoch"].items()) if isinstance(body, Epoch))
    above = numbers(root, "epoch")[-1] + 1 if numbers(root, "epoch") else 0
    plan = bodies["plan"].get(above)
    return ReadableRecords(epochs, plan if isinstance(plan, Plan) else None, tuple(damaged))


def records_findings(root: Path, records: ReadableRecords) -> Iterator[Finding]:
    """Yield the faults of the records."""
    yield from _damage_findings(root, records)
    yield from _number_findings(root, records)
    yield from _time_findings(records.epochs)
    for epoch in records.epochs:
        yield from _count_findings(epoch)
    if not records.incomplete:
        yield from _loading_findings(root, records)
    yield from _leftover_findings(root, records)


def _name(kind: Kind, number: int) -> str:
    return f"epochs/{number:020d}.{kind}.json"


def _damage_findings(root: Path, records: ReadableRecords) -> Iterator[Finding]:
    committed = numbers(root, "epoch")
    newest = committed[-1] if committed else -1
    for kind, number, reason in records.damaged:
        subject, message = _name(kind, number), f"it {reason}"
        if kind == "plan" and number <= newest:
            # its epoch is written, so nothing reads the plan again
            yield note("old_plan_damaged", subject, message, _REMOVED, repair="repair")
        elif kind == "plan":
            remedy = "the next update makes it again, unless a table has commits of it: then restore it from a copy"
            yield fault("plan_damaged", subject, message, remedy, repair="update")
        elif kind == "epoch" and number == newest and _can_be_recreated(root, records, number):
            remedy = "`stream-wh check --repair` sets it aside and makes it again from its plan and the tables' commits"
            yield fault("epoch_damaged", subject, message, remedy, repair="repair")
        else:
            yield fault(f"{kind}_damaged", subject, message, _RESTORE)


def _roll_back_before(number: int) -> str:
    return f"`stream-wh rollback --to-epoch {number - 1}` goes back to before" if number else "load all under a new root"


def _can_be_recreated(root: Path, records: ReadableRecords, number: int) -> bool:
    """Return whether the newest epoch can be made again: its plan and the epoch before are readable."""
    readable = {epoch.number for epoch in records.epochs}
    damaged_plan = any(kind == "plan" and damaged_number == number for kind, damaged_number, _ in records.damaged)
    return number in numbers(root, "plan") and not damaged_plan and (number == 0 or number - 1 in readable)


def _number_findings(root: Path, records: ReadableRecords) -> Iterator[Finding]:
    committed = numbers(root, "epoch")
    for before, after in pairwise(committed):
        for number in range(before + 1, after):
            yield fault("epoch_missing", _name("epoch", number), "the record of this epoch is not there", _RESTORE)
    for number in (epoch.number for epoch in records.epochs):
        if not record_path(root, number, "epoch").exists():
            yield fault("epoch_number", _name("epoch", number), f"a record says that it is of epoch {number}", _RESTORE)
    newest = committed[-1] if committed else -1
    for number in numbers(root, "plan"):
        if number > newest + 1:
            yield fault("plan_ahead", _name("plan", number), "the plan is not the next one", _RESTORE)
    plan = records.open_plan
    if plan is not None:
        message = f"an update to {format_instant(plan.window_time)} was begun and not finished"
        yield note("unfinished", _name("plan", plan.epoch), message, "the next update completes it", repair="update")


def _time_findings(epochs: Sequence[Epoch]) -> Iterator[Finding]:
    for epoch in epochs:
        expected = at_slot(epoch.slot, epoch.anchor, epoch.update_interval)
        if epoch.window_time != expected:
            message = f"window time {format_instant(epoch.window_time)} is not that of slot {epoch.slot}"
            yield fault("window_time", _name("epoch", epoch.number), message, _RESTORE)
    for before, after in pairwise(epochs):
        subject = _name("epoch", after.number)
        if after.window_time < before.window_time:
            message = f"its window time is before that of epoch {before.number}"
            yield fault("window_time", subject, message, _RESTORE)
        moved = (after.anchor, after.update_interval) != (before.anchor, before.update_interval)
        if moved and after.cause != "migrate":
            message = f"anchor or update interval are not those of epoch {before.number}"
            yield fault("time_grid", subject, message, _RESTORE)


def _count_findings(epoch: Epoch) -> Iterator[Finding]:
    arriving = {state.name for state in epoch.tables if state.kind in ("stream", "relation")}
    for counts in epoch.counts:
        if counts.stream in arriving and not _adds_up(counts):
            message = (
                f"{counts.rows} rows read and {counts.taken} that waited are not the sum of {counts.inserted} inserted, "
                f"{counts.deferred} deferred, {counts.dead} dead and {counts.rejected} rejected"
            )
            yield fault("counts", _name("epoch", epoch.number), message, _RESTORE, table=counts.stream)


def _adds_up(counts: Counts) -> bool:
    return counts.rows + counts.taken == counts.inserted + counts.deferred + counts.dead + counts.rejected


def _loading_findings(root: Path, records: ReadableRecords) -> Iterator[Finding]:
    """Yield the faults of the ledger of landing files, and the files that were loaded twice."""
    newest = records.newest
    if newest is None:
        return
    try:
        for table_files in known_files(root, newest).values():
            for _ in table_files.loaded:  # reading a shard compares it with its name
                pass
    except NewerFormatError:
        raise
    except WarehouseError as error:
        yield fault("ledger", "epochs", str(error), _RESTORE)
        return
    loaded: dict[tuple[str, str], Loaded] = {}
    may_load_again: set[tuple[str, str]] = set()
    for epoch in records.epochs:
        for entry in epoch.files:
            for path in entry.gone:
                loaded.pop((entry.stream, path), None)
            for file in entry.loaded:
                file_key = (entry.stream, file.path)
                if file_key in loaded and file_key not in may_load_again and epoch.cause not in ("rollback", "restate"):
                    message = f"epoch {epoch.number} loaded {file.path}, which an epoch before had loaded already"
                    remedy = f"its rows are there twice until they expire; {_roll_back_before(epoch.number)}"
                    yield fault("loaded_twice", _name("epoch", epoch.number), message, remedy, table=entry.stream)
                loaded[file_key] = entry
                may_load_again.discard(file_key)
            may_load_again.update((entry.stream, path) for path in entry.reload)


def _leftover_findings(root: Path, records: ReadableRecords) -> Iterator[Finding]:
    directory = root / "epochs"
    names: list[str] = sorted(store_of(directory).entry_names(directory))
    for name in names:
        if name.endswith((".tmp", ".damaged")) and (directory / name).is_file():
            kind: Literal["temporary_file", "set_aside"] = "temporary_file" if name.endswith(".tmp") else "set_aside"
            yield note(kind, f"epochs/{name}", "nothing reads this file", _REMOVED, repair="repair")
    readable = {epoch.number for epoch in records.epochs}
    for number in numbers(root, "past"):
        if number in readable:
            message = "the epoch is both retired and readable"
            yield fault("retired_twice", _name("past", number), message, "remove the file that is not whole")
