"""Measures a table: its workload, prices fitted to its updates and probes, and the sources of both."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from math import exp, log
from typing import TYPE_CHECKING

from warehouse.advice.past import past_of, target_rows_of
from warehouse.advice.stored import stored_rows
from warehouse.errors import UsageError
from warehouse.layout.advice import DEFAULT_PRICES, Pricing, ProbeWork, Workload
from warehouse.serving.read_log import reads_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.advice.past import Past
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.layout.advice import LayoutPrices
    from warehouse.serving.read_log import Read
    from warehouse.serving.reader import Reader

__all__ = ["MIN_PROBES", "MIN_UPDATES", "Measured", "measured", "workers_of"]

MIN_UPDATES = 5
"""The least number of updates for fitting prices; fewer say too little about this storage."""
MIN_PROBES = 10
_UNKNOWN_PROBES = 1.0
"""Probes for each update if there is no read log: the source's experiments probe once after each."""


@dataclass(frozen=True)
class Measured:
    """The workload of a table, the prices, and how both were measured.

    ``update_seconds`` (of updates of one slot) and ``probe_seconds`` are means, or None if nothing was measured.
    """

    load: Workload
    pricing: Pricing
    past: Past
    probes: int
    update_seconds: float | None
    probe_seconds: float | None
    notes: tuple[str, ...]


def measured(
    reader: Reader,
    state: TableState,
    epochs: Sequence[Epoch],
    *,
    workers: int,
    retain: int,
    now: int,
    keys: bool = True,
    target_file_size: int | None = None,
) -> Measured:
    """Return the measurements from the epochs, the read log and the table's files.

    Raises
    ------
    UsageError
        When the table holds no live row.
    """
    past = past_of(epochs, state.name, workers, target_file_size)
    reads = tuple(read for read in reads_of(reader.root) if read.table == state.name)
    probes = tuple(read for read in reads if read.kind == "probe" and read.keys == 1)
    stored = stored_rows(reader, state, keys=keys and not probes)
    if not stored.looked_at:
        raise UsageError(
            f'"{state.name}" holds no live row that expires within max_lifetime; update first, or suppose a load with --what-if'
        )
    periods, notes = state.layout.periods, []
    mean = sum(distance * share for distance, share in enumerate(stored.shares, start=1))
    if past.per_slot("inserted"):
        rate, arriving, files = past.per_slot("inserted"), past.per_slot("rows"), past.per_slot("files")
    else:
        rate = sum(part.rows for part in state.partitions) / mean
        arriving, files = rate, 1.0
        notes.append("no rows since the first build: what arrives is taken from the live rows and their lifetimes")
    pricing, works = DEFAULT_PRICES, [_probe_work(read) for read in probes]
    if len(past.updates) >= MIN_UPDATES:
        pricing = replace(pricing, update=_fitted(pricing.update, *_works(past)))
    else:
        notes.append(
            f"{len(past.updates)} updates of this layout are too few to fit prices of updates ({MIN_UPDATES} or more): "
            "those of the benchmarks' machine are used, and may be off by half"
        )
    if len(works) >= MIN_PROBES:
        seconds = [read.seconds for read in probes]
        pricing = replace(pricing, probe=_fitted(pricing.probe, [work.vector() for work in works], seconds))
    else:
        notes.append(
            f"{len(works)} probes in the read log are too few to fit prices of probes ({MIN_PROBES} or more): "
            "those of the benchmarks' machine are used, and may be off by half"
        )
    asked = _reads_per_interval(reads, epochs, now)
    if asked is None:
        notes.append("no probe was logged on this machine: one for each update is assumed")
    rows, size = (sum(getattr(part, name) for part in state.partitions) for name in ("rows", "bytes"))
    interval = reader.epoch.update_interval
    load = Workload(
        periods=periods,
        rate=rate,
        shares=stored.shares,
        arriving=max(arriving, rate),
        landing_files=files,
        row_bytes=size / rows if rows else 100.0,
        rows_per_key=max(1.0, sum(read.rows for read in probes) / len(probes)) if probes else max(1.0, stored.rows_per_key),
        probes=_UNKNOWN_PROBES if asked is None else asked[0],
        scans=0.0 if asked is None else asked[1],
        cold_probes=sum(read.first for read in probes) / len(probes) if probes else 0.0,
        retained=retain / interval,
        workers=workers,
        target_rows=target_rows_of(state, target_file_size),
    )
    return Measured(
        load=load,
        pricing=pricing,
        past=past,
        probes=len(probes),
        update_seconds=_robust_mean([update.seconds for update in past.updates if update.slots == 1]),
        probe_seconds=_robust_mean([read.seconds for read in probes]),
        notes=tuple(notes),
    )


def _fitted(brought: LayoutPrices, work: list[tuple[float, ...]], seconds: list[float]) -> LayoutPrices:
    from warehouse.advice.fitting import fitted  # noqa: PLC0415 - numpy takes its time, and few commands fit

    return fitted(brought, work, seconds)


def _works(past: Past) -> tuple[list[tuple[float, ...]], list[float]]:
    return [update.work.vector() for update in past.updates], [update.seconds for update in past.updates]


def _probe_work(read: Read) -> ProbeWork:
    """The work of a logged probe.

    The first probe of a process opens files without the key, too; the number of rows gives how many.

    Rows thrown into files at random lie in n(1 - (1 - 1/n)^rows) of n files.
    """
    holding = float(read.opened)
    if read.first and read.opened:
        holding = read.opened * (1 - (1 - 1 / read.opened) ** read.rows) if read.opened > 1 else float(read.rows > 0)
    return ProbeWork(
        first=float(read.first),
        passed_file=float(max(0, read.files - read.opened)),
        opened_file=read.opened - holding,
        key_file=holding,
        row=float(read.rows),
    )


def _reads_per_interval(reads: Sequence[Read], epochs: Sequence[Epoch], now: int) -> tuple[float, float] | None:
    """Probes and scans for each slot that the windows moved meanwhile, or where they did not, for each update interval."""
    if not reads:
        return None
    since = max(reads[0].at, epochs[0].committed_at)
    counted = [read.kind == "scan" for read in reads if read.at >= since]
    before = [epoch.slot for epoch in epochs if epoch.committed_at <= since]
    slots = epochs[-1].slot - (max(before) if before else epochs[0].slot)
    intervals = max(1.0, slots, 0.0 if slots else (now - since) / epochs[-1].update_interval)
    return counted.count(False) / intervals, counted.count(True) / intervals


def _robust_mean(values: Sequence[float]) -> float | None:
    """The mean without values far above the others, as in the fit of prices; distances are ratios, since times are skewed."""
    if not values:
        return None
    logs = sorted(log(value) for value in values)
    middle = logs[len(logs) // 2]
    kept = [value for value in values if abs(log(value) - middle) <= log(_FAR)]
    return sum(kept) / len(kept) if kept else exp(middle)


_FAR = 5.0


def workers_of(spark: Mapping[str, str]) -> int:
    """Return how many tasks of an update run side by side, by `spark.master` and this machine's processors."""
    found = re.fullmatch(r"local\[(\d+)(?:,\d+)?\]", spark.get("spark.master", "local[*]"))
    return max(1, int(found[1])) if found else max(1, len(os.sched_getaffinity(0)))
