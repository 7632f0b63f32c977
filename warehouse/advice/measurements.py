"""Measures a table: its workload, and prices that are fitted to its updates and probes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from math import exp, log
from typing import TYPE_CHECKING

from warehouse.advice.row_sample import sample_rows
from warehouse.advice.update_history import target_rows_of, update_history
from warehouse.errors import UsageError
from warehouse.layout.advice import DEFAULT_PRICES, Pricing, ProbeWork, Workload
from warehouse.serving.read_log import reads_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.advice.update_history import UpdateHistory
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.layout.advice import LayoutPrices
    from warehouse.serving.read_log import Read
    from warehouse.serving.reader import Reader

__all__ = ["MIN_PROBES", "MIN_UPDATES", "Measurements", "measure_table", "workers_of"]

MIN_UPDATES = 5
"""The least number of updates for fitting prices; fewer say too little about this storage."""
MIN_PROBES = 10
_UNKNOWN_PROBES = 1.0
"""Probes for each update if there is no read log: the experiments of the source probe once after each update."""


@dataclass(frozen=True)
class Measurements:
    """The workload of a table, the prices, and how both were measured.

    ``probes`` counts the logged probes. ``update_seconds`` (of updates of one slot) and ``probe_seconds`` are means, or None if
    nothing was measured. ``notes`` name the facts that were not measured.
    """

    load: Workload
    pricing: Pricing
    history: UpdateHistory
    probes: int
    update_seconds: float | None
    probe_seconds: float | None
    notes: tuple[str, ...]


def measure_table(
    reader: Reader,
    state: TableState,
    epochs: Sequence[Epoch],
    *,
    workers: int,
    retain: int,
    now: int,
    keys: bool = True,
    target_file_size: int | None = None,
) -> Measurements:
    """Return the measurements of a table from the epochs, the read log and the table's files.

    ``retain`` and ``now`` are microseconds. Without ``keys`` the rows of a key are not counted.

    Raises
    ------
    UsageError
        When the table holds no live row.
    """
    history = update_history(epochs, state.name, workers, target_file_size)
    reads = tuple(read for read in reads_of(reader.root) if read.table == state.name)
    probes = tuple(read for read in reads if read.kind == "probe" and read.keys == 1)
    sample = sample_rows(reader, state, keys=keys and not probes)
    if not sample.rows_read:
        raise UsageError(
            f'"{state.name}" holds no live row that expires within max_lifetime; update first, or suppose a load with --what-if'
        )
    periods, notes = state.layout.periods, []
    mean_distance = sum(distance * share for distance, share in enumerate(sample.shares, start=1))
    if history.per_slot("inserted"):
        rate, arriving, landing_files = history.per_slot("inserted"), history.per_slot("rows"), history.per_slot("files")
    else:
        rate = sum(part.rows for part in state.partitions) / mean_distance
        arriving, landing_files = rate, 1.0
        notes.append("no rows since the first build: what arrives is taken from the live rows and their lifetimes")
    pricing, probe_works = DEFAULT_PRICES, [_probe_work(read) for read in probes]
    if len(history.updates) >= MIN_UPDATES:
        pricing = replace(pricing, update=_fitted(pricing.update, *_update_works(history)))
    else:
        notes.append(
            f"{len(history.updates)} updates of this layout are too few to fit prices of updates ({MIN_UPDATES} or more): "
            "those of the benchmarks' machine are used, and may be off by half"
        )
    if len(probe_works) >= MIN_PROBES:
        seconds = [read.seconds for read in probes]
        pricing = replace(pricing, probe=_fitted(pricing.probe, [work.vector() for work in probe_works], seconds))
    else:
        notes.append(
            f"{len(probe_works)} probes in the read log are too few to fit prices of probes ({MIN_PROBES} or more): "
            "those of the benchmarks' machine are used, and may be off by half"
        )
    reads_per_interval = _reads_per_interval(reads, epochs, now)
    if reads_per_interval is None:
        notes.append("no probe was logged on this machine: one for each update is assumed")
    rows, size = (sum(getattr(part, name) for part in state.partitions) for name in ("rows", "bytes"))
    interval = reader.epoch.update_interval
    load = Workload(
        periods=periods,
        rate=rate,
        shares=sample.shares,
        arriving=max(arriving, rate),
        landing_files=landing_files,
        row_bytes=size / rows if rows else 100.0,
        rows_per_key=max(1.0, sum(read.rows for read in probes) / len(probes)) if probes else max(1.0, sample.rows_per_key),
        probes=_UNKNOWN_PROBES if reads_per_interval is None else reads_per_interval[0],
        scans=0.0 if reads_per_interval is None else reads_per_interval[1],
        cold_probes=sum(read.first for read in probes) / len(probes) if probes else 0.0,
        retained=retain / interval,
        workers=workers,
        target_rows=target_rows_of(state, target_file_size),
    )
    return Measurements(
        load=load,
        pricing=pricing,
        history=history,
        probes=len(probes),
        update_seconds=_robust_mean([update.seconds for update in history.updates if update.slots == 1]),
        probe_seconds=_robust_mean([read.seconds for read in probes]),
        notes=tuple(notes),
    )


def _fitted(prices: LayoutPrices, work: list[tuple[float, ...]], seconds: list[float]) -> LayoutPrices:
    from warehouse.advice.fitting import fit_prices  # noqa: PLC0415 - numpy is slow to import, and few commands fit

    return fit_prices(prices, work, seconds)


def _update_works(history: UpdateHistory) -> tuple[list[tuple[float, ...]], list[float]]:
    return [update.work.vector() for update in history.updates], [update.seconds for update in history.updates]


def _probe_work(read: Read) -> ProbeWork:
    """Return the work of a logged probe.

    The first probe of a process also opens files without the key. How many files have the key follows from the number of rows:
    rows that are distributed over n files at random are in n(1 - (1 - 1/n)^rows) of them.
    """
    with_key = float(read.opened)
    if read.first and read.opened:
        with_key = read.opened * (1 - (1 - 1 / read.opened) ** read.rows) if read.opened > 1 else float(read.rows > 0)
    return ProbeWork(
        first=float(read.first),
        passed_file=float(max(0, read.files - read.opened)),
        opened_file=read.opened - with_key,
        key_file=with_key,
        row=float(read.rows),
    )


def _reads_per_interval(reads: Sequence[Read], epochs: Sequence[Epoch], now: int) -> tuple[float, float] | None:
    """Return probes and scans for each slot by which the windows moved, or for each update interval if they did not move."""
    if not reads:
        return None
    since = max(reads[0].at, epochs[0].committed_at)
    is_scan = [read.kind == "scan" for read in reads if read.at >= since]
    slots_before = [epoch.slot for epoch in epochs if epoch.committed_at <= since]
    slots = epochs[-1].slot - (max(slots_before) if slots_before else epochs[0].slot)
    intervals = max(1.0, slots, 0.0 if slots else (now - since) / epochs[-1].update_interval)
    return is_scan.count(False) / intervals, is_scan.count(True) / intervals


def _robust_mean(values: Sequence[float]) -> float | None:
    """Return the mean of the values that are within a factor of five of the median; None if there are no values."""
    if not values:
        return None
    logs = sorted(log(value) for value in values)
    middle = logs[len(logs) // 2]
    near = [value for value in values if abs(log(value) - middle) <= log(_OUTLIER_FACTOR)]
    return sum(near) / len(near) if near else exp(middle)


_OUTLIER_FACTOR = 5.0


def workers_of(spark: Mapping[str, str]) -> int:
    """Return how many tasks of an update run at the same time, by `spark.master` and this machine's processors."""
    match = re.fullmatch(r"local\[(\d+)(?:,\d+)?\]", spark.get("spark.master", "local[*]"))
    return max(1, int(match[1])) if match else max(1, len(os.sched_getaffinity(0)))
