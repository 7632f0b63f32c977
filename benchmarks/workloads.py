"""Workloads that ``benchmarks.advice`` generates: windows, rates, lifetimes, row sizes and probes drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks import data
from benchmarks.project import instant
from warehouse.time import HOUR

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["Generated", "generated", "land", "land_first"]

KINDS = ("uniform", "short", "exponential", "equal", "bimodal")


@dataclass(frozen=True)
class Generated:
    """One workload.

    ``periods`` is p with updates of an hour; ``batch`` rows arrive for each, with lifetimes of a ``kind``: uniform up to
    S, uniform up to a quarter of S, exponential with mean S/6, all nearly S, or four of five up to S/10 and the others
    above nine tenths of S. ``probes`` are made in each interval.
    """

    number: int
    periods: int
    batch: int
    kind: str
    row_bytes: int
    keys: int
    probes: int
    seed: int

    @property
    def shape(self) -> data.Shape:
        """What its rows look like."""
        return data.Shape(self.row_bytes, self.keys, self.seed)

    @property
    def first_slot(self) -> int:
        """The slot of the first build."""
        return self.periods + 6


def generated(count: int, *, seed: int, scale: float = 1.0, longest: int = 36) -> list[Generated]:
    """Return workloads; every kind of lifetimes occurs, and each number of probes.

    Parameters
    ----------
    count
        How many.
    seed
        Of what is drawn, and of the rows.
    scale
        Of the rows of an update.
    longest
        The largest p.

    """
    rng = random.Random(seed)  # noqa: S311 - which workloads to try
    workloads = []
    for number in range(count):
        batch = round(scale * 10 ** rng.uniform(4.0, 5.2))
        workloads.append(
            Generated(
                number=number,
                periods=rng.choice([p for p in (8, 12, 18, 24, 36) if p <= longest]),
                batch=max(500, batch),
                kind=KINDS[number % len(KINDS)],
                row_bytes=rng.choice((80, 130, 400)),
                keys=max(2000, batch // rng.choice((1, 4, 16))),
                probes=(0, 10, 100)[(number + number // len(KINDS)) % 3],
                seed=seed + number,
            ),
        )
    return workloads


def land_first(load: Generated, landing: Path) -> None:
    """Land the rows that are live at the first slot, as if rows had always arrived at this rate."""
    until = instant(load.first_slot)
    for slot in range(load.first_slot - load.periods + 1, load.first_slot + 1):
        rows = _rows(load, slot)
        live = rows.filter(pa.compute.greater(rows["until"], pa.scalar(until, pa.timestamp("us", "UTC"))))
        if live.num_rows:
            data.write(live, landing / "first", f"{slot:06d}")


def land(load: Generated, landing: Path, slot: int) -> None:
    """Let the rows of a slot land."""
    data.write(_rows(load, slot), landing / f"{slot:06d}", "part", files=2)


def _rows(load: Generated, slot: int) -> pa.Table:
    longest = load.periods * HOUR
    rows = data.arriving(
        load.shape, load.batch, part=(slot,), after=instant(slot - 1), until=instant(slot), lifetime=longest
    )
    at = rows["at"].cast(pa.int64()).to_numpy()
    ends = at + _lifetimes(load, np.random.default_rng([load.seed, slot, 1]), longest)
    return rows.set_column(rows.schema.get_field_index("until"), "until", pa.array(ends, pa.timestamp("us", "UTC")))


def _lifetimes(load: Generated, rng: np.random.Generator, longest: int) -> NDArray[np.int64]:
    count = load.batch
    match load.kind:
        case "uniform":
            return rng.integers(1, longest + 1, count)
        case "short":
            return rng.integers(1, longest // 4 + 1, count)
        case "exponential":
            return np.clip(rng.exponential(longest / 6, count), 1, longest).astype(np.int64)
        case "equal":
            return rng.integers(longest * 19 // 20, longest + 1, count)
        case _:
            soon, late = rng.integers(1, longest // 10 + 1, count), rng.integers(longest * 9 // 10, longest + 1, count)
            return np.where(rng.random(count) < 0.8, soon, late)
