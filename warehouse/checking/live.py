"""Whether the live tables are what the newest epoch makes of them.

Invariant: ``live/NAME`` of each published table is a Delta table whose newest version holds exactly the rows that are live at
the newest epoch's window time. It is moved right after an epoch is written, so it may be of the epoch before for a moment.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from warehouse.checking.findings import Finding, fault
from warehouse.epochs.journal import newest_epoch
from warehouse.errors import MissingPartError
from warehouse.publishing.live.difference import LiveDifference, live_difference
from warehouse.publishing.live.log import LIVE
from warehouse.publishing.live.publish import live_states
from warehouse.serving.engine import Resources, connect
from warehouse.serving.pin import Pin

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

__all__ = ["live_findings"]

_LOOKS, _PAUSE_SECONDS = 10, 0.2


def live_findings(root: Path, names: Collection[str], *, rows: bool, resources: Resources) -> list[Finding]:
    """Return what is wrong with the live tables of published tables, having given an update that is at work some time."""
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
