"""What a run of the benchmarks is asked for."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FULL", "PERIODS", "QUICK", "Settings"]

PERIODS = 36
"""p: lifetimes are uniform between 0 and 36 update intervals of an hour."""


@dataclass(frozen=True)
class Settings:
    """The size of a run.

    Parameters
    ----------
    rows
        Live rows before the first measured update.
    batch
        Rows that each update loads.
    row_bytes
        Bytes of a row's values before encoding, the string key (12 bytes) included; at least 60.
    updates
        Measured updates; 36 are one p.
    warm_up
        Updates whose times are not counted.
    files
        Landing files of each update.
    repeat
        How often each read and each process is timed.
    keys
        Keys that are probed, of each kind.
    times
        Live rows of the large warehouse, as a multiple of ``rows``.
    seed
        Of all data.
    driver_memory
        Heap of the JVM.

    """

    rows: int = 2_000_000
    batch: int = 100_000
    row_bytes: int = 130
    updates: int = PERIODS
    warm_up: int = 4
    files: int = 4
    repeat: int = 9
    keys: int = 40
    times: int = 10
    seed: int = 20130101
    driver_memory: str = "6g"


FULL = Settings()
QUICK = Settings(rows=100_000, batch=10_000, updates=12, warm_up=2, repeat=3, keys=10, driver_memory="2g")
