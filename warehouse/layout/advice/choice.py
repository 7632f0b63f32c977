"""Chooses a layout by predicted figures: the few layouts that no other one beats, and the recommended one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.layout.advice.footprint import footprint
from warehouse.layout.advice.work import ProbeWork

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warehouse.layout.advice.footprint_sums import Footprint
    from warehouse.layout.advice.prices import Estimate, Pricing
    from warehouse.layout.advice.workload import Workload
    from warehouse.layout.layout import Layout

__all__ = ["WORTH_IT", "Evaluation", "LayoutChoice", "choose", "evaluate", "pareto", "probe_work"]


# --- predicted costs of a layout under a workload ---


@dataclass(frozen=True)
class Evaluation:
    """A layout with its predicted figures.

    Parameters
    ----------
    layout
        The layout.
    footprint
        The work of its updates, and its files.
    update, probe
        Seconds of a mean update, and of a probe.
    interval
        Seconds for each update interval: the update, the interval's probes, and the time that its scans need to open files
        (reading their rows costs the same in every layout): Q in section 5.4.
    bytes
        Bytes of the newest epoch's files.
    disk
        Bytes on disk, with the superseded files that stay for `retain`.
    """

    layout: Layout
    footprint: Footprint
    update: Estimate
    probe: Estimate
    interval: float
    bytes: float
    disk: float


def evaluate(layout: Layout, load: Workload, pricing: Pricing) -> Evaluation:
    """Predict the costs of a layout with the workload's p."""
    predicted = footprint(layout, load)
    update = pricing.update.cost(predicted.mean_work.vector())
    probe = pricing.probe.cost(probe_work(predicted, load).vector())
    opening = pricing.probe.cost(ProbeWork(probe=0, opened_file=predicted.files).vector())
    size = predicted.rows * load.row_bytes
    return Evaluation(
        layout=layout,
        footprint=predicted,
        update=update,
        probe=probe,
        interval=update.value + load.probes * probe.value + load.scans * opening.value,
        bytes=size,
        disk=size + predicted.written * load.row_bytes * load.retained,
    )


def probe_work(footprint: Footprint, load: Workload) -> ProbeWork:
    """Return the work of a mean probe: the first probe of a process opens every file, later ones only files with the key."""
    files_without_key = footprint.files - footprint.key_files
    return ProbeWork(
        first=load.cold_probes,
        passed_file=files_without_key * (1 - load.cold_probes),
        opened_file=files_without_key * load.cold_probes,
        key_file=footprint.key_files,
        row=load.rows_per_key,
    )


WORTH_IT = 1.05
"""A table keeps its layout unless it costs this much more than another one: a migration has a cost, too."""
_SAME = 0.02
"""Predicted costs that differ by less are the same: the smaller space decides."""
_EXPERIMENTAL = 0.10
"""Assignments that cannot be sealed, or are uneven, must be better by this share to be recommended."""
_CLOSE = 0.10
"""If layouts on the front differ by less than this in every figure, only one is shown."""


@dataclass(frozen=True)
class LayoutChoice:
    """The recommended layout, and its front, by update time."""

    best: Evaluation
    front: tuple[Evaluation, ...]


def choose(evaluations: Sequence[Evaluation], *, shown: int = 6) -> LayoutChoice:
    """Return the layout with the least cost per update interval, and the few layouts that no other one beats.

    Parameters
    ----------
    evaluations
        Evaluations, at least one.
    shown
        The greatest number of layouts of the front to show; the recommended one is always shown.
    """
    least_cost = min(map(_cost, evaluations))
    cheapest = [evaluation for evaluation in evaluations if _cost(evaluation) <= least_cost * (1 + _SAME)]
    best = min(cheapest, key=lambda evaluation: (_is_experimental(evaluation), evaluation.disk, evaluation.interval))
    front = sorted(_without_close_ones(best, pareto(evaluations)), key=_figures)
    while len(front) > shown:
        front.remove(max((other for other in front if other is not best), key=lambda evaluation: evaluation.interval))
    return LayoutChoice(best, tuple(front))


def pareto(evaluations: Iterable[Evaluation]) -> list[Evaluation]:
    """Return the evaluations that no other one beats in update time, probe time and space on disk at once."""
    front: list[Evaluation] = []
    for evaluation in sorted(evaluations, key=_figures):
        if not any(all(a <= b for a, b in zip(_figures(other), _figures(evaluation), strict=True)) for other in front):
            front.append(evaluation)
    return front


def _cost(evaluation: Evaluation) -> float:
    return evaluation.interval * (1 + _EXPERIMENTAL) if _is_experimental(evaluation) else evaluation.interval


def _is_experimental(evaluation: Evaluation) -> bool:
    """Whether the assignments are for experiments: they are recommended only if they are clearly better."""
    usual_assignments = ("staggered", "blocks") if evaluation.layout.technique == "norebuild" else ("round-robin", "round-robin")
    return (evaluation.layout.insertion, evaluation.layout.expiration) != usual_assignments


def _without_close_ones(best: Evaluation, front: Sequence[Evaluation]) -> list[Evaluation]:
    distinct = [best]
    for evaluation in sorted(front, key=lambda candidate: (_is_experimental(candidate), candidate.interval)):
        if not any(_close(evaluation, other) for other in distinct):
            distinct.append(evaluation)
    return distinct


def _close(first: Evaluation, second: Evaluation) -> bool:
    return all(abs(a - b) <= _CLOSE * max(a, b) for a, b in zip(_figures(first), _figures(second), strict=True))


def _figures(evaluation: Evaluation) -> tuple[float, float, float]:
    return evaluation.update.value, evaluation.probe.value, evaluation.disk
