"""Checks that the files for other tools, ``warehouse.duckdb`` and the live tables, agree with the newest epoch.

Invariant: ``live/NAME`` of each published table is a Delta table whose newest version holds exactly the rows that are live at
the newest epoch's window time. It is moved right after an epoch is written, so it may be of the epoch before for a moment.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from warehouse.checking.findings import Finding, fault, note
from warehouse.epochs.journal import newest_epoch
from warehouse.errors import MissingPartError
from warehouse.publishing.database import DATABASE
from warehouse.publishing.difference import DatabaseDifference, difference
from warehouse.publishing.live.difference import LiveDifference, live_difference
from warehouse.publishing.live.log import LIVE
from warehouse.publishing.live.publish import live_states
from warehouse.serving.engine import Resources, connect
from warehouse.serving.pin import Pin

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

__all__ = ["database_findings", "live_findings"]


_LOOKS, _PAUSE_SECONDS = 10, 0.2


def live_findings(root: Path, names: Collection[str], *, rows: bool, resources: Resources) -> list[Finding]:
    """Return the faults of the live tables of published tables, after waiting some time for a running update."""
    found: dict[str, LiveDifference] = {}
    for look in range(_LOOKS if names else 0):
        if look:
            time.sleep(_PAUSE_SECONDS)
        try:
            found = _differences(root, names, rows=rows, resources=resources)
        except MissingPartError:
            continue  # an epoch was retired meanwhile
        if all(each.kind != "stale" for each in found.values()):
            break
    return [
        fault(f"live_{each.kind}", f"{LIVE}/{name}", each.message, each.remedy, table=name, repair="repair")
        for name, each in found.items()
    ]


def _differences(root: Path, names: Collection[str], *, rows: bool, resources: Resources) -> dict[str, LiveDifference]:
    newest = newest_epoch(root)
    if newest is None:
        return {}
    pin, connection = Pin(root, newest), connect(resources) if rows else None
    try:
        states = [state for state in live_states(newest, names) if state.view is None or state.view.failed is None]
        found = {state.name: live_difference(pin, state, connection) for state in states}
    finally:
        if connection is not None:
            connection.close()
        pin.close()
    return {name: each for name, each in found.items() if each is not None}


# --- ``warehouse.duckdb``, which other tools open --- Invariant: its views, comments and tables are those of the newest epoch,
# and its paths begin with its own root. It is replaced right after an epoch is written, so it may be of the epoch before for a
# moment.

_LOOKS, _PAUSE_SECONDS = 10, 0.2


def database_findings(root: Path) -> list[Finding]:
    """Return the faults of the file, after waiting some time for a running update to replace it."""
    found: DatabaseDifference | None = None
    for look in range(_LOOKS):
        if look:
            time.sleep(_PAUSE_SECONDS)
        newest = newest_epoch(root)
        if newest is None:
            return []
        try:
            found = difference(root, newest)
        except MissingPartError:
            continue  # an epoch was retired meanwhile
        if found is None or found.kind != "stale":
            break
    if found is None:
        return []
    if found.kind == "moved":
        remedy = (
            "the next update that moves the window or `stream-wh check --repair` makes it again; or `SET VARIABLE stream_wh_root`"
        )
        return [note("database_moved", DATABASE, found.message, remedy, repair="repair")]
    remedy = "the next update or `stream-wh check --repair` makes it again"
    return [fault(f"database_{found.kind}", DATABASE, found.message, remedy, repair="repair")]
