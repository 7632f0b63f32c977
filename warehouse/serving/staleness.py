"""Whether a table's data is older than its declaration allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.time import SECOND, format_duration, format_instant, rough

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.epochs.records import Epoch

__all__ = ["stale_tables", "why_stale"]


def why_stale(newest: int | None, committed_at: int, stale_after: int, now: int) -> str | None:
    """Return why a table is stale, or None.

    Parameters
    ----------
    newest
        The largest ``_ts`` that the table ever held; None: no row has come yet.
    committed_at
        When the newest epoch was committed.
    stale_after
        How old both may be. All are microseconds.
    now
        The wall-clock instant.

    Examples
    --------
    >>> from warehouse.time import HOUR
    >>> why_stale(0, 2 * HOUR, 2 * HOUR, 2 * HOUR)
    >>> why_stale(0, 2 * HOUR, HOUR, 2 * HOUR)
    'its newest row is of 1970-01-01T00:00:00Z, 2h ago; stale_after is 1h'

    """
    allowed = f"stale_after is {format_duration(stale_after)}"
    if now - committed_at > stale_after:
        return f"the last update was committed at {_instant_and_age(committed_at, now)}; {allowed}"
    if newest is None:
        return f"no row has come yet; {allowed}"
    if now - newest > stale_after:
        return f"its newest row is of {_instant_and_age(newest, now)}; {allowed}"
    return None


def stale_tables(epoch: Epoch, stale_after: Mapping[str, int], now: int) -> dict[str, str]:
    """Return why each stale table of an epoch is stale; ``stale_after`` has the greatest age by table."""
    reasons = {}
    for name, allowed in stale_after.items():
        state = epoch.table(name)
        reason = why_stale(state.newest if state else None, epoch.committed_at, allowed, now)
        if reason is not None:
            reasons[name] = reason
    return reasons


def _instant_and_age(instant: int, now: int) -> str:
    return f"{format_instant(instant // SECOND * SECOND)}, {rough(max(0, now - instant))} ago"
