"""Which tables have a layout to choose: those cut on a grid of lifetimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.advice.what_if import MOST_PERIODS
from warehouse.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.epochs.records import TableState
    from warehouse.layout.advice import Evaluation, Workload

__all__ = ["reason_for", "refuse_unsuitable", "unsuitable"]


def refuse_unsuitable(state: TableState) -> None:
    """Raise for a table whose layout is no choice."""
    why = unsuitable(state)
    if why is not None:
        raise UsageError(f'"{state.name}" {why}; name one of the streams and views whose rows expire at their own time')
    if state.layout.periods > MOST_PERIODS:
        raise UsageError(
            f'"{state.name}" has a window of p = {state.layout.periods} update intervals, and up to {MOST_PERIODS} are '
            "compared; look with --what-if and a longer interval= at what fits then"
        )


def unsuitable(state: TableState) -> str | None:
    """Return why a table is not cut on a grid of lifetimes, or None if it is."""
    if state.kind == "relation":
        return "is a relation, which is cut by its key"
    if state.kind == "coalesced":
        return "is a coalesced table, which is cut by its search key"
    if state.kind == "state":
        return "keeps the state of a view's operator"
    match state.declaration.label:
        case "STR":
            return "is a view whose rows can leave before their own end, so it is cut by its search key"
        case "MON":
            return "has rows that never expire"
        case _:
            return None


_SAME = 0.02
"""Costs that differ by less are called the same."""

# --- why a layout is recommended, in a sentence ---


def reason_for(best: Evaluation, current: Evaluation | None, front: Sequence[Evaluation], load: Workload) -> str:
    """Return a sentence about the recommended layout and its savings, compared with the current layout or the next best."""
    does = _does(best, load)
    if current is not None and current is best:
        return f"the layout that the table has costs least, or within a twentieth of it: it {does}"
    if current is not None:
        saved = 1 - best.interval / current.interval
        where = _where(best, current, load)
        return f"it {does}, and costs {saved:.0%} less for each update interval than the layout that the table has, {where}"
    others = [each for each in front if each is not best]
    if not others:
        return f"it {does}, and no other layout is better in update time, probe time or space"
    other = min(others, key=lambda each: each.interval)
    more = other.interval / best.interval - 1
    if more < _SAME:
        return f"it {does}; others cost as much for each update interval, and take more space or are for experiments"
    return f"it {does}; the next one shown costs {more:.0%} more for each update interval, {_where(best, other, load)}"


def _does(each: Evaluation, load: Workload) -> str:
    found = each.footprint
    times = found.written / load.rate if load.rate else 0.0
    files = f"about {found.files:.0f} files, of which {found.key_files:.1f} hold the key of a probe"
    return f"writes each row {times:.1f} times and keeps {files}"


def _where(best: Evaluation, other: Evaluation, load: Workload) -> str:
    update = other.update.value - best.update.value
    probes = load.probes * (other.probe.value - best.probe.value)
    if abs(update) >= abs(probes):
        return "mostly by its updates" if update >= 0 else "though its updates take longer"
    return "mostly by its probes" if probes >= 0 else "though its probes take longer"
