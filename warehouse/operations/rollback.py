"""Rolls back: makes a new epoch with the contents of an earlier one, at the newest window time.

Window time never goes back. The new epoch has the rows of epoch N that are still live: exactly the rows of streams, relations and
views that would exist if the updates after N had found no file. Landing files that were loaded since are forgotten, so the next
update that moves the window loads them again, if they still exist, in their current state. Epochs in between stay readable for
``retain``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from warehouse.catalog.drift import differences, effective_layout
from warehouse.epochs.journal import nothing_loaded, numbers, read_epoch
from warehouse.epochs.known import known_files
from warehouse.epochs.records import Epoch, Loaded
from warehouse.errors import MissingPartError, RollbackError
from warehouse.ingest.landing import KnownFiles
from warehouse.ingest.loaded_files import differing_files
from warehouse.operations.context import WriteContext, locked
from warehouse.operations.execution import begin, finish, require_unchanged_declarations
from warehouse.operations.standing_still import stopped_of
from warehouse.planning.coalesced_plans import without_points
from warehouse.planning.declared_nodes import declared_nodes, with_columns
from warehouse.planning.inputs import landed_before, present
from warehouse.planning.node_plans import unbuilt
from warehouse.planning.plan import StreamInput, make_plan
from warehouse.planning.restoring import Restoring, missing_files_of
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from warehouse.catalog.model import Catalog
    from warehouse.planning.node_plans import NodeInput
    from warehouse.planning.plan_record import Plan
    from warehouse.planning.steps import ReplaceTable, RestoreTable

__all__ = ["Forgotten", "RollbackReport", "rollback"]

_NOTHING = KnownFiles({}, {})


@dataclass(frozen=True)
class Forgotten:
    """A landing file that the next update loads again, if it is still ``there``."""

    stream: str
    path: str
    there: bool


@dataclass(frozen=True)
class RollbackReport:
    """The result of a rollback: the epoch that it made, the epoch that it restored, and the landing files that it forgot."""

    epoch: Epoch
    target: Epoch
    forgotten: tuple[Forgotten, ...]
    finished: tuple[Epoch, ...] = ()
    warnings: tuple[str, ...] = ()


def rollback(context: WriteContext, to_epoch: int) -> RollbackReport:
    """Write an epoch with the contents of an earlier one, at the newest window time.

    Raises
    ------
    RollbackError, MissingPartError
        When the epoch cannot be gone back to; nothing was written then.

    """
    catalog = context.catalog
    with locked(context):
        current = finish(context)
        last = current.last
        if last is None:
            raise nothing_loaded(context.root, "there is nothing to go back to")
        declared = declared_nodes(catalog)
        for name, reason in stopped_of(last).items():
            raise RollbackError(to_epoch, f'table "{name}" stands still: {reason}')
        target = _target_epoch(catalog.root, last, to_epoch)
        _require_declared_as(catalog, target)
        base, steps, notes = _base_of(last, target, declared)
        warnings = require_unchanged_declarations(catalog, base)
        forgotten = _forgotten_files(catalog.root, last, target)
        nodes = with_columns(declared, catalog, base, last.slot, context.writing_spark)
        plan = _rollback_plan(catalog, last, target, nodes, (base, steps), forgotten, clock=context.clock())
        epoch = begin(context, current, plan)
    return RollbackReport(epoch, target, _loadable(forgotten, present(catalog)), current.finished, (*warnings, *notes))


def _require_declared_as(catalog: Catalog, target: Epoch) -> None:
    """Raise RollbackError if the file declares other columns, keys, layouts or times than an epoch's tables have."""
    changes = differences(catalog, target)
    if not changes:
        return
    remedy = (
        "slots are numbered otherwise since then; go back to an epoch after the migration"
        if any(change.kind == "time" for change in changes)
        else "write in the file what it was then (the keys of a layout can also be left out) and go back again"
    )
    listed = "; ".join(f"{change.dotted_key} is {change.new} in {catalog.file.name}, and was {change.old}" for change in changes)
    raise RollbackError(target.number, f"its tables have other columns, keys or layouts than are declared: {listed}; {remedy}")


def _target_epoch(root: Path, newest: Epoch, number: int) -> Epoch:
    """Return the epoch to go back to.

    Raises
    ------
    RollbackError
        When it does not exist, was retired, or is the newest; with the reason.
    MissingPartError
        When files that it names are gone.

    """
    readable = numbers(root, "epoch")
    oldest = readable[0]
    if number > newest.number or number < 0:
        raise RollbackError(number, f"there is none; the newest is epoch {newest.number}")
    if number == newest.number:
        raise RollbackError(number, "it is the newest epoch, so its contents are what there is")
    if number not in readable:
        window_time = format_instant(read_epoch(root, oldest).window_time)
        raise RollbackError(
            number,
            f"it fell out of `retain`, and files that only it named are deleted; the oldest epoch to go back to is {oldest}, "
            f"of window time {window_time}",
        )
    target = read_epoch(root, number)
    lost = missing_files_of(root, target)
    if lost:
        raise MissingPartError(
            f"epoch {number} names {len(lost)} file(s) that are not there or damaged ({', '.join(lost[:3])}); nothing was "
            f"written. Restore them from a copy, or go back to another epoch"
        )
    return target


def _base_of(
    newest: Epoch, target: Epoch, nodes: Sequence[NodeInput]
) -> tuple[Epoch, tuple[RestoreTable | ReplaceTable, ...], tuple[str, ...]]:
    """Return the base of a rollback, the steps that lead to it, and a note on each table that cannot go back.

    A view whose declaration differs from the target epoch's is rebuilt over its inputs.
    """
    restoring, states, notes = Restoring(), [], []
    rebuilt = unbuilt(nodes, target)
    for state in newest.tables:
        old = target.table(state.name)
        is_same = old is not None and old.table_id == state.table_id
        owner = state.view.spare_of or state.name if state.view else state.name
        if owner in rebuilt:
            states.append(restoring.rebuilt(state))
        elif is_same and old is not None:
            states.append(restoring.restored(state, old))
        else:
            notes.append(f'table "{state.name}" did not exist in epoch {target.number}; it is empty now')
            states.append(restoring.emptied(state))
    names = {state.name for state in newest.tables}
    dropped = [old.name for old in target.tables if old.name not in names and old.kind != "state"]
    notes += [f'table "{name}" of epoch {target.number} was dropped since; it stays so' for name in dropped]
    base = replace(
        newest,
        tables=tuple(states),
        slot=target.slot,
        window_time=target.window_time,
        previous_slot=target.previous_slot,
        files=(),
        counts=(),
        seconds=(),
        removed=(),
        warnings=(),
    )
    return base, tuple(restoring.steps), tuple(notes)


def _forgotten_files(root: Path, newest: Epoch, target: Epoch) -> tuple[Loaded, ...]:
    """Return the changes from the landing files known now to the files known at the target epoch, as an epoch records them.

    Raises
    ------
    RollbackError
        When the records of the epochs up to the target are already merged into a ledger.

    """
    try:
        known_then = known_files(root, target)
    except MissingPartError as error:
        raise RollbackError(target.number, f"what was loaded up to it is not recorded one by one any more ({error})") from error
    known_now = known_files(root, newest)
    return tuple(
        _difference(stream, known_now.get(stream, _NOTHING), known_then.get(stream, _NOTHING))
        for stream in dict.fromkeys((*known_now, *known_then))
    )


def _difference(stream: str, known_now: KnownFiles, known_then: KnownFiles) -> Loaded:
    """``gone`` forgets a path; the former record of a path is repeated, which also removes a mark for ``reload``."""
    marked = known_now.left_out.keys() | (known_now.reload - known_then.reload)
    loaded_now, loaded_then = differing_files(known_now.loaded, known_then.loaded, sorted(marked | known_then.left_out.keys()))
    gone = (loaded_now.keys() - loaded_then.keys()) | (marked - loaded_then.keys() - known_then.left_out.keys())
    repeated = gone | marked
    return Loaded(
        stream,
        loaded=tuple(file for path, file in loaded_then.items() if loaded_now.get(path) != file or path in repeated),
        left_out=tuple(
            entry
            for path, entry in known_then.left_out.items()
            if known_now.left_out.get(path) != entry or path in repeated
        ),
        reload=tuple(sorted(known_then.reload)),
        gone=tuple(sorted(gone)),
    )


def _rollback_plan(
    catalog: Catalog,
    newest: Epoch,
    target: Epoch,
    nodes: Sequence[NodeInput],
    base: tuple[Epoch, tuple[RestoreTable | ReplaceTable, ...]],
    forgotten: tuple[Loaded, ...],
    *,
    clock: int,
) -> Plan:
    """Return the plan: tables go back, then move to the newest epoch's slot as in an update that finds no file.

    ``nodes`` are the nodes of the declared views with their columns; ``clock`` is in microseconds.
    """
    start, steps = base
    inputs = []
    for stream in catalog.sources:
        state = start.table(stream.name)
        stopped = state.stopped if state else None
        layout = effective_layout(stream, state.layout if state else None, catalog.update_interval)
        inputs.append(StreamInput(stream, layout, (), continues=(stopped.slot, stopped.first) if stopped else None))
    landed = landed_before(catalog, target, without_points(catalog, start))
    plan = make_plan(catalog, start, inputs, slot=newest.slot, clock=clock, nodes=nodes, landed=landed)
    return msgspec.structs.replace(
        plan, steps=(*steps, *plan.steps), base=start, cause="rollback", starts_from=target.number, known=forgotten
    )


def _loadable(forgotten: Sequence[Loaded], landing_files: Mapping[str, frozenset[str]]) -> tuple[Forgotten, ...]:
    """Return the landing files that a rollback forgets; ``there`` are the paths in each stream's landing directory."""
    return tuple(
        Forgotten(entry.stream, path, path in landing_files.get(entry.stream, frozenset()))
        for entry in forgotten
        for path in entry.gone
    )
