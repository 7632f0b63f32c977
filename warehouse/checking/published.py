"""Checks that the files for other tools, ``warehouse.duckdb`` and the live tables, agree with the newest epoch.

Invariants: ``live/NAME`` of each published table is a Delta table whose newest version has exactly the rows that are live at the
newest epoch's window time. Views, comments and tables of ``warehouse.duckdb`` are those of the newest epoch, and its paths begin
with its own root. Both are replaced right after an epoch is written, so they may be of the epoch before for a short time.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from warehouse.checking.findings import Finding, fault, note
from warehouse.epochs.journal import newest_epoch
from warehouse.errors import MissingPartError
from warehouse.publishing.database import DATABASE
from warehouse.publishing.difference import DatabaseDifference, database_difference
from warehouse.publishing.live.difference import LiveDifference, live_difference
from warehouse.publishing.live.log import LIVE
from warehouse.publishing.live.publish import published_states
from warehouse.serving.engine import Resources, connect
from warehouse.serving.pin import Pin

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

__all__ = ["database_findings", "live_findings"]


_ATTEMPTS, _PAUSE_SECONDS = 10, 0.2
"""How often a file is read while a running update may be about to replace it, and the pause in between."""


def live_findings(root: Path, names: Collection[str], *, rows: bool, resources: Resources) -> list[Finding]:
    """Return the faults of the live tables of published tables, after waiting up to two seconds for a running update."""
    differences: dict[str, LiveDifference] = {}
    for attempt in range(_ATTEMPTS if names else 0):
        if attempt:
            time.sleep(_PAUSE_SECONDS)
        try:
            differences = _live_differences(root, names, rows=rows, resources=resources)
        except MissingPartError:
            continue  # an epoch was retired meanwhile
        if all(difference.kind != "stale" for difference in differences.values()):
            break
    return [
        fault(f"live_{difference.kind}", f"{LIVE}/{name}", difference.message, difference.remedy, table=name, repair="repair")
        for name, difference in differences.items()
    ]


def _live_differences(root: Path, names: Collection[str], *, rows: bool, resources: Resources) -> dict[str, LiveDifference]:
    newest = newest_epoch(root)
    if newest is None:
        return {}
    pin, connection = Pin(root, newest), connect(resources) if rows else None
    try:
        states = [state for state in published_states(newest, names) if state.view is None or state.view.failed is None]
        differences = {state.name: live_difference(pin, state, connection) for state in states}
    finally:
        if connection is not None:
            connection.close()
        pin.close()
    return {name: difference for name, difference in differences.items() if difference is not None}


def database_findings(root: Path) -> list[Finding]:
    """Return the faults of ``warehouse.duckdb``, after waiting up to two seconds for a running update to replace it."""
    difference: DatabaseDifference | None = None
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(_PAUSE_SECONDS)
        newest = newest_epoch(root)
        if newest is None:
            return []
        try:
            difference = database_difference(root, newest)
        except MissingPartError:
            continue  # an epoch was retired meanwhile
        if difference is None or difference.kind != "stale":
            break
    if difference is None:
        return []
    if difference.kind == "moved":
        remedy = (
            "the next update that moves the window or `stream-wh check --repair` makes it again; or `SET VARIABLE stream_wh_root`"
        )
        return [note("database_moved", DATABASE, difference.message, remedy, repair="repair")]
    remedy = "the next update or `stream-wh check --repair` makes it again"
    if difference.kind == "other_build":
        return [note("database_other_build", DATABASE, difference.message, remedy, repair="repair")]
    return [fault(f"database_{difference.kind}", DATABASE, difference.message, remedy, repair="repair")]
