"""What a layout is predicted to cost under a workload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.layout.advice.footprint import Footprint, footprint
from warehouse.layout.advice.work import ProbeWork

if TYPE_CHECKING:
    from warehouse.layout.advice.prices import Estimate, Pricing
    from warehouse.layout.advice.workload import Workload
    from warehouse.layout.layout import Layout

__all__ = ["Evaluation", "evaluate", "probe_work"]


@dataclass(frozen=True)
class Evaluation:
    """A layout with its predicted figures.

    Parameters
    ----------
    layout
        The layout.
    footprint
        What its updates do and what files it keeps.
    update, probe
        Seconds of a mean update, and of a probe.
    interval
        Seconds for each update interval: the update, the interval's probes, and what its scans spend on opening files
        (their rows cost the same in every layout): Q in section 5.4.
    bytes
        Bytes of the newest epoch's files.
    disk
        Bytes on disk: those, and superseded files that stay for `retain`.
    """

    layout: Layout
    footprint: Footprint
    update: Estimate
    probe: Estimate
    interval: float
    bytes: float
    disk: float


def evaluate(layout: Layout, load: Workload, pricing: Pricing) -> Evaluation:
    """Predict what a layout of the workload's p costs."""
    found = footprint(layout, load)
    update = pricing.update.cost(found.mean_work.vector())
    probe = pricing.probe.cost(probe_work(found, load).vector())
    opening = pricing.probe.cost(ProbeWork(probe=0, opened_file=found.files).vector())
    size = found.rows * load.row_bytes
    return Evaluation(
        layout=layout,
        footprint=found,
        update=update,
        probe=probe,
        interval=update.value + load.probes * probe.value + load.scans * opening.value,
        bytes=size,
        disk=size + found.written * load.row_bytes * load.retained,
    )


def probe_work(found: Footprint, load: Workload) -> ProbeWork:
    """The work of a mean probe: the first of a process opens every file, later ones those that hold the key."""
    without = found.files - found.key_files
    return ProbeWork(
        first=load.cold_probes,
        passed_file=without * (1 - load.cold_probes),
        opened_file=without * load.cold_probes,
        key_file=found.key_files,
        row=load.rows_per_key,
    )
