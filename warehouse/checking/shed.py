"""Checks that the ledgers of shed tables balance at the newest epoch.

Invariants: the members of an exact run are the members of its fragments and its shed members. Each fragment ends where its last
member ends, so that lengths add up: shed = exact - kept. The record's members and accuracy agree with the rows and the ledger.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from warehouse.checking.findings import Finding, fault
from warehouse.coalescing.definition import LEDGER, STAMPS
from warehouse.epochs.journal import newest_epoch
from warehouse.serving.accuracy import ShedFigures, is_shed, shed_figures
from warehouse.serving.engine import Resources, connect
from warehouse.serving.pin import Pin
from warehouse.serving.statement import select
from warehouse.time import to_micros

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    import duckdb

    from warehouse.epochs.records import TableState

__all__ = ["entry_fault", "shed_findings"]

_TOLERANCE = 1e-9
_REMEDY = "tables are written by updates only; go back to an epoch before it with `stream-wh rollback --to-epoch EPOCH`"
_Group = tuple[object, ...]
_Row = tuple[list[int], int]
"""The stamps of a row, and where it ends."""


def shed_findings(root: Path, resources: Resources) -> Iterator[Finding]:
    """Yield the faults of the ledgers and records of shed tables."""
    newest = newest_epoch(root)
    states = [] if newest is None else [state for state in newest.tables if _is_maintained(state)]
    if newest is None or not states:
        return
    pin, connection = Pin(root, newest), connect(resources)
    try:
        for state in states:
            faults = [*_run_faults(pin, connection, state), *_record_faults(state, shed_figures(pin, connection, state))]
            if faults:
                first, note = faults[0], f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
                yield fault("ledger", state.path, f"{first}{note}", _REMEDY, table=state.name)
    finally:
        connection.close()
        pin.close()


def _is_maintained(state: TableState) -> bool:
    """Return whether each update rewrites the ledger of a table; the ledger of a frozen table stays while its rows expire."""
    return is_shed(state) and state.declared and state.stopped is None


def _run_faults(pin: Pin, connection: duckdb.DuckDBPyConnection, state: TableState) -> Iterator[str]:
    """Yield, in words, the runs for which ledger and rows disagree."""
    groups = [] if state.coalesced is None else [*state.coalesced.definition.groups]
    tau = pin.epoch.window_time
    source = pin.read_source(connection, state, pin.live_files(state, tau), tau, hot=False)
    rows: dict[_Group, list[_Row]] = defaultdict(list)
    ledgers: dict[_Group, list[dict[str, Any]]] = {}
    for *group, stamps, until, ledger in connection.execute(select(source, [*groups, STAMPS, "valid_to", LEDGER])).fetchall():
        rows[tuple(group)].append((stamps, to_micros(until)))
        if ledger:
            ledgers[tuple(group)] = ledger
    for key, entries in ledgers.items():
        for entry in entries:
            if fault_text := entry_fault(entry, rows[key]):
                yield f"the run of {key} from {entry['stamps'][0]}: {fault_text}"


def entry_fault(entry: dict[str, Any], rows: list[_Row]) -> str:
    """Return the fault of a ledger's entry in words, given the rows of its group; an empty text if there is none."""
    stamps, shed, until = entry["stamps"], set(entry["shed"]), entry["until"]
    fragments = [(stamps_of_row, end) for stamps_of_row, end in rows if stamps[0] <= stamps_of_row[0] <= stamps[-1]]
    kept_stamps = sorted(stamp for stamps_of_row, _ in fragments for stamp in stamps_of_row)
    if stamps != sorted(set(stamps)) or not shed <= set(stamps) or not shed:
        return "its members are not in order, or none of them was shed"
    if kept_stamps != [stamp for stamp in stamps if stamp not in shed]:
        return f"{len(stamps)} members are not {len(kept_stamps)} kept and {len(shed)} shed ones"
    next_stamp = dict(zip(stamps, [*stamps[1:], until], strict=True))
    exact_length, shed_length = until - stamps[0], sum(next_stamp[stamp] - stamp for stamp in shed)
    kept_length = sum(end - stamps_of_row[0] for stamps_of_row, end in fragments)
    if shed_length == exact_length - kept_length:
        return ""
    return f"{shed_length} microseconds were shed of {exact_length}, and {kept_length} are kept"


def _record_faults(state: TableState, figures: ShedFigures) -> Iterator[str]:
    """Yield the differences between the epoch's record and the counted members."""
    record = None if state.coalesced is None else state.coalesced.shed
    if record is None:
        return
    if (record.kept, record.shed) != (figures.kept, figures.shed):
        yield f"its record says {record.kept} members kept and {record.shed} shed, there are {figures.kept} and {figures.shed}"
    if abs(record.accuracy - figures.accuracy) > _TOLERANCE:
        yield f"its record says an accuracy of {record.accuracy}, it is {figures.accuracy}"
