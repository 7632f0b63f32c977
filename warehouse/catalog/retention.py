"""``erase_within``: what a bound on how long the bytes of a dead row may exist requires, and when it cannot be kept.

A row that ends in slot b is dead from update b on. It may stay in the newest epoch's files until update b + L - 1. Older epochs
name its file for ``retain`` after that, and the next update deletes the file. If every update is less than one interval late, its
bytes are gone ``(L + 2) * interval + retain`` after its end at the latest. L is the largest number for which this is within the
bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.catalog.spelling import FaultError
from warehouse.time import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["DEFAULT_KEEP", "DEFAULT_RETAIN", "as_duration", "bound_faults", "dead_updates", "derived_retain", "widest_block"]

DEFAULT_RETAIN = 7 * 86_400_000_000
"""The default of ``retain``: how long superseded epochs stay readable, in microseconds."""
DEFAULT_KEEP = 90 * 86_400_000_000
"""The default of ``keep``: how long rejected rows and reported short-lived results stay, in microseconds."""


def dead_updates(bound: int, retain: int, interval: int) -> int:
    """Return L: the number of updates after which a dead row may still be in the newest files; the first is the one of its end.

    The parameters are microseconds. If L is below 1, the bound cannot be kept.

    >>> HOUR = 3_600_000_000
    >>> dead_updates(24 * HOUR, 12 * HOUR, HOUR), dead_updates(3 * HOUR, 0, HOUR), dead_updates(2 * HOUR, 0, HOUR)
    (10, 1, 0)
    """
    return (bound - retain) // interval - 2


def widest_block(bound: int | None, retain: int, interval: int) -> int | None:
    """Return the widest expiry block that lets rows leave in time, in slots; None if there is no bound."""
    return None if bound is None else max(1, dead_updates(bound, retain, interval))


def derived_retain(declared: int | None, bounds: Iterable[int], interval: int) -> int:
    """Return ``retain``: as declared, else 7 days, or half of the tightest bound where that is less.

    >>> HOUR = 3_600_000_000
    >>> [derived_retain(None, bounds, HOUR) // HOUR for bounds in ([], [30 * 24 * HOUR], [24 * HOUR], [4 * HOUR])]
    [168, 168, 12, 1]
    """
    if declared is not None:
        return declared
    return max(0, min([DEFAULT_RETAIN, *(min(bound // 2, bound - 3 * interval) for bound in bounds)]))


def bound_faults(
    bound: int, retain: int, interval: int, *, declared: bool, vacuum: str, block: int | None, reports: bool
) -> Iterator[FaultError]:
    """Yield the faults because of which ``erase_within`` cannot be kept, with the numbers.

    Parameters
    ----------
    bound, retain, interval
        ``erase_within``, ``retain`` and ``update_interval`` in microseconds.
    declared
        Whether ``retain`` is declared.
    vacuum
        Whether updates delete files: ``auto`` or ``manual``.
    block
        The declared ``expiry_block``, if there is one.
    reports
        Whether short-lived results are kept.

    """
    bound_text = as_duration(bound)
    least_bound = retain + 3 * interval
    widest = dead_updates(bound, retain, interval)
    if widest < 1:
        retain_text = f"retain = {as_duration(retain)} and " if declared else ""
        yield FaultError(
            bound_text,
            f"at least {as_duration(least_bound)}: {retain_text}three intervals of {as_duration(interval)}, "
            "in which a row ends and leaves, its file is deleted, and updates may be late",
        )
    elif block is not None and block > widest:
        needed = retain + (block + 2) * interval
        yield FaultError(
            f"{bound_text} with layout.expiry_block = {block}",
            f"an expiry_block of at most {widest}, or at least {as_duration(needed)}: "
            f"{block} + 2 intervals of {as_duration(interval)} and retain = {as_duration(retain)}",
        )
    if vacuum == "manual":
        yield FaultError(f'{bound_text} with vacuum = "manual"', 'vacuum = "auto": nothing else deletes files in time')
    if reports:
        allowed = 'short_lived = "drop": reported results are kept after their end'
        yield FaultError(f'{bound_text} with short_lived = "report"', allowed)


def as_duration(duration: int) -> str:
    """Return a duration in quotes, as ``warehouse.toml`` has it."""
    return f'"{format_duration(duration)}"'
