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
    description = _description(best, load)
    if current is not None and current is best:
        return f"the layout that the table has costs least, or within a twentieth of it: it {description}"
    if current is not None:
        saved = 1 - best.interval / current.interval
        where = _main_difference(best, current, load)
        return (
            f"it {description}, and costs {saved:.0%} less for each update interval than the layout that the table has, {where}"
        )
    alternatives = [evaluation for evaluation in front if evaluation is not best]
    if not alternatives:
        return f"it {description}, and no other layout is better in update time, probe time or space"
    alternative = min(alternatives, key=lambda evaluation: evaluation.interval)
    excess = alternative.interval / best.interval - 1
    if excess < _SAME:
        return f"it {description}; others cost as much for each update interval, and take more space or are for experiments"
    return (
        f"it {description}; the next one shown costs {excess:.0%} more for each update interval, "
        f"{_main_difference(best, alternative, load)}"
    )


def _description(evaluation: Evaluation, load: Workload) -> str:
    footprint = evaluation.footprint
    times = footprint.written / load.rate if load.rate else 0.0
    files = f"about {footprint.files:.0f} files, of which {footprint.key_files:.1f} hold the key of a probe"
    return f"writes each row {times:.1f} times and keeps {files}"


def _main_difference(best: Evaluation, compared: Evaluation, load: Workload) -> str:
    update = compared.update.value - best.update.value
    probes = load.probes * (compared.probe.value - best.probe.value)
    if abs(update) >= abs(probes):
        return "mostly by its updates" if update >= 0 else "though its updates take longer"
    return "mostly by its probes" if probes >= 0 else "though its probes take longer"
