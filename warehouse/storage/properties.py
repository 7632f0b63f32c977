"""The properties of the Delta tables: which columns have statistics, how often logs are summed up, how long they stay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.limits import Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CHECKPOINT_INTERVAL", "PROPERTIES", "log_properties", "table_properties"]

CHECKPOINT_INTERVAL = Limits.checkpoint_interval
"""After so many commits the log is summed up."""
PROPERTIES = 2
"""The number of the set of properties that this build gives its tables. An epoch records it for each table, and an update sets
the properties of a table that has those of a lower number: raise it with each change of :func:`table_properties`. 1: no boolean
column in ``delta.dataSkippingStatsColumns``. 2: ``delta.enableExpiredLogCleanup`` is false."""
_DAY = 86_400


def table_properties(statistics: Sequence[str], retain: int) -> dict[str, str]:
    """Return the properties of a table; ``retain`` is in microseconds."""
    return {
        "delta.dataSkippingStatsColumns": ",".join(f"`{name}`" for name in statistics),
        "delta.checkpointInterval": str(CHECKPOINT_INTERVAL),
        **log_properties(retain),
    }


def log_properties(retain: int) -> dict[str, str]:
    """Return how long Delta keeps a table's log and removed files: long enough to open every version an epoch pins.

    No writer cuts the log after a commit, since that goes by the age of its files alone: a table that rests for longer than
    the log is to be kept would lose the version that the newest epoch names.
    """
    seconds = -(-retain // 1_000_000)
    return {
        "delta.deletedFileRetentionDuration": f"interval {max(seconds, 7 * _DAY)} seconds",
        "delta.logRetentionDuration": f"interval {max(seconds + 2 * _DAY, 30 * _DAY)} seconds",
        "delta.enableExpiredLogCleanup": "false",
    }
