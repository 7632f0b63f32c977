"""Says in one sentence why a layout is recommended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.layout.advice import Evaluation, Workload

__all__ = ["reason_for"]

_SAME = 0.02
"""Costs that differ by less count as the same."""


def reason_for(best: Evaluation, current: Evaluation | None, front: Sequence[Evaluation], load: Workload) -> str:
    """Return a sentence about the recommended layout and its savings, compared with the current layout or the next best."""
    does = _description(best, load)
    if current is not None and current is best:
        return f"the layout that the table has costs least, or within a twentieth of it: it {does}"
    if current is not None:
        saved = 1 - best.interval / current.interval
        where = _main_difference(best, current, load)
        return f"it {does}, and costs {saved:.0%} less for each update interval than the layout that the table has, {where}"
    others = [each for each in front if each is not best]
    if not others:
        return f"it {does}, and no other layout is better in update time, probe time or space"
    other = min(others, key=lambda each: each.interval)
    more = other.interval / best.interval - 1
    if more < _SAME:
        return f"it {does}; others cost as much for each update interval, and take more space or are for experiments"
    return f"it {does}; the next one shown costs {more:.0%} more for each update interval, {_main_difference(best, other, load)}"


def _description(each: Evaluation, load: Workload) -> str:
    found = each.footprint
    times = found.written / load.rate if load.rate else 0.0
    files = f"about {found.files:.0f} files, of which {found.key_files:.1f} hold the key of a probe"
    return f"writes each row {times:.1f} times and keeps {files}"


def _main_difference(best: Evaluation, other: Evaluation, load: Workload) -> str:
    update = other.update.value - best.update.value
    probes = load.probes * (other.probe.value - best.probe.value)
    if abs(update) >= abs(probes):
        return "mostly by its updates" if update >= 0 else "though its updates take longer"
    return "mostly by its probes" if probes >= 0 else "though its probes take longer"
