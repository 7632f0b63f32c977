"""Whether ``warehouse.duckdb``, which other tools open, is what the newest epoch makes of it.

Invariant: its views, comments and tables are those of the newest epoch, and its paths begin with the root it lies in. It is
replaced right after an epoch is written, so it may be of the epoch before for a moment.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from warehouse.checking.findings import Finding, fault, note
from warehouse.epochs.journal import newest_epoch
from warehouse.errors import MissingPartError
from warehouse.publishing.database import DATABASE
from warehouse.publishing.difference import Difference, difference

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["database_findings"]

_LOOKS, _PAUSE_SECONDS = 10, 0.2


def database_findings(root: Path) -> list[Finding]:
    """Return what is wrong with the file, having given an update that is at work some time to replace it."""
    found: Difference | None = None
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
        remedy = "the next update that moves the window or `check --repair` makes it again; or `SET VARIABLE stream_wh_root`"
        return [note("database_moved", DATABASE, found.message, remedy, repair="repair")]
    remedy = "the next update or `check --repair` makes it again"
    return [fault(f"database_{found.kind}", DATABASE, found.message, remedy, repair="repair")]
