"""``windows`` and ``every`` of an aggregate: the lengths of windows (for a join one of each input), and when answers are due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.aggregates.definition import Window
from warehouse.catalog.retention import as_duration
from warehouse.catalog.spelling import FaultError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.catalog.config import AggregateSection
    from warehouse.catalog.view_facts import ViewFacts

__all__ = ["longest_length", "part_fault", "parts_of", "windows_of"]


def windows_of(section: AggregateSection, interval: int) -> Iterator[Window | tuple[str, FaultError]]:
    """Yield each window, or the key ``windows`` or ``every`` with its fault; ``interval`` is the update interval."""
    windows, periods = section.windows, section.every or ((as_duration(interval), interval),)
    if len(periods) not in (1, len(windows)):
        yield "every", FaultError(f"{len(periods)} periods for {len(windows)} windows", "one, or one for each window")
        return
    if len({tuple(length for _, length in window) for window in windows}) < len(windows):
        yield "windows", FaultError("a length twice", "each length once")
        return
    lengths = [*(("windows", *length) for window in windows for length in window), *(("every", *period) for period in periods)]
    faults = [(key, text) for key, text, length in lengths if length <= 0 or length % interval]
    for key, text in faults:
        yield key, FaultError(f'"{text}"', f"multiples of update_interval = {as_duration(interval)}")
    for number, window in enumerate(windows if not faults else ()):
        _, period = periods[number if len(periods) > 1 else 0]
        slots = [length // interval for _, length in window]
        parts = (slots[0], slots[1]) if len(slots) > 1 else None
        yield Window(", ".join(text for text, _ in window), min(slots), period // interval, parts)


def longest_length(section: AggregateSection) -> int:
    """Return the longest length of a window, in microseconds; 0 if there is none."""
    return max((length for window in section.windows for _, length in window), default=0)


def parts_of(section: AggregateSection, view: ViewFacts | None) -> tuple[str, str] | None:
    """Return the columns with the arrival times of both parts of a result, if a window has a length for each input; else None."""
    if view is None or view.parts is None or all(len(window) == 1 for window in section.windows):
        return None
    (_, first), (_, second) = view.parts
    return None if first is None or second is None else (first, second)


def part_fault(section: AggregateSection, view: ViewFacts | None) -> FaultError | None:
    """Return a fault if a window has a length for each input of a join and must not have them; None otherwise."""
    pair = next((window for window in section.windows if len(window) > 1), None)
    if pair is None or (parts_of(section, view) is not None and section.over == "live"):
        return None
    listed, source = ", ".join(f'"{text}"' for text, _ in pair), section.source
    found = f"[{listed}], a length for each input"
    if section.over != "live":
        allowed = 'over = "live", or one length: a result arrives with its later part'
        return FaultError(f'{found}, with over = "arrivals"', allowed)
    if view is None or view.parts is None:
        return FaultError(f"{found} of {source}", "one length; only a view that joins two inputs whose rows all end has two")
    unseen = next(name for name, column in view.parts if column is None)
    remedy = f"in the SQL of {source}, the column that is the `arrival` of {unseen}, as it is; or one length"
    return FaultError(f"{found} of {source}, which does not show when rows of {unseen} arrive", remedy)
