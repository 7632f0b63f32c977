"""Latencies of probes of one key: from the read log, and of a few probes that the report makes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

from warehouse.serving.read_log import reads_of
from warehouse.serving.statement import select
from warehouse.storage.duckdb_sql import quoted

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.epochs.records import TableState
    from warehouse.serving.pin import Pin
    from warehouse.serving.reader import Reader

__all__ = ["Latencies", "logged_probes", "measured_probes"]

_PROBES = 20


@dataclass(frozen=True)
class Latencies:
    """Milliseconds of at least one probe, ascending."""

    milliseconds: tuple[float, ...]

    def quantile(self, share: float) -> float:
        """Return the smallest latency that at least this share of the probes does not exceed.

        >>> Latencies((1.0, 2.0, 3.0, 40.0)).quantile(0.5), Latencies((1.0, 2.0, 3.0, 40.0)).quantile(0.95)
        (2.0, 40.0)
        """
        return self.milliseconds[max(ceil(share * len(self.milliseconds)) - 1, 0)]

    @property
    def median(self) -> float:
        """The median, in milliseconds."""
        return self.quantile(0.5)

    def bins(self) -> tuple[tuple[float, int], ...]:
        """Return bins 1, 2, 5, 10, ... from about the least to about the greatest latency: where each begins, and its count.

        The first bin also has lower latencies, the last (20 000 seconds) higher ones.

        >>> Latencies((0.7, 3.0, 4.0, 11.0)).bins()
        ((0.2, 0), (0.5, 1), (1.0, 0), (2.0, 2), (5.0, 0), (10.0, 1), (20.0, 0))
        """
        edges = [round(digit * 10.0**power, 6) for power in range(-3, 8) for digit in (1, 2, 5)]
        clamped = [min(max(latency, edges[0]), edges[-2]) for latency in self.milliseconds]
        counts = [(low, sum(low <= latency < high for latency in clamped)) for low, high in pairwise(edges)]
        filled = [position for position, (_, count) in enumerate(counts) if count]
        return tuple(counts[max(filled[0] - 1, 0) : filled[-1] + 2]) if filled else ()


def logged_probes(root: Path) -> dict[str, Latencies]:
    """Return the latencies of logged probes of one key in this user's read log of a root, by table."""
    latencies: dict[str, list[float]] = {}
    for read in reads_of(root):
        if read.kind == "probe" and read.keys == 1:
            latencies.setdefault(read.table, []).append(read.seconds * 1000)
    return {table: Latencies(tuple(sorted(milliseconds))) for table, milliseconds in latencies.items()}


def measured_probes(reader: Reader, pin: Pin, state: TableState) -> Latencies | None:
    """Probe for some keys of a table, one after the other, and return the latencies; None if the table has no key."""
    key = [quoted(name) for name in state.declaration.search_key]
    source = select(pin.live_source(state, pin.epoch.window_time), state.declaration.search_key)
    sample = f"SELECT DISTINCT {', '.join(key)} FROM ({source}) WHERE {key[0]} IS NOT NULL USING SAMPLE {_PROBES} ROWS"
    keys = reader.connection.execute(sample).fetchall()
    milliseconds = []
    for key_values in keys:
        start = time.perf_counter()
        reader.probe(state.name, [key_values if len(key_values) > 1 else key_values[0]]).all()
        milliseconds.append((time.perf_counter() - start) * 1000)
    return Latencies(tuple(sorted(milliseconds))) if milliseconds else None
