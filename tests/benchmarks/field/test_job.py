"""The job is the same for the same seed, and as large as asked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.field.digest import digest_of
from benchmarks.field.job import LIFETIMES, RATES, Job, Lifetimes, Rate
from warehouse.time import HOUR


@pytest.mark.parametrize("lifetimes", LIFETIMES)
def test_live_rows_are_as_many_as_asked(lifetimes: Lifetimes) -> None:
    """In a steady state the rate holds the number of live rows, whatever the lifetimes; no lifetime is longer than S."""
    job = Job(rows=20_000, keys=100, lifetimes=lifetimes)
    now = job.instant(job.first_slot)
    arrived = pa.concat_tables(job.arriving(number) for number in range(1, job.first_slot + 1))
    at, until = (arrived[name].cast(pa.int64()).to_numpy() for name in ("at", "until"))
    assert (until - at).min() >= 1
    assert (until - at).max() <= job.longest
    assert int((until > now).sum()) == pytest.approx(20_000, rel=0.05)


@pytest.mark.parametrize("rate", RATES)
def test_rates_keep_their_mean(rate: Rate) -> None:
    """Every rate loads as much in the long run; all but the constant rate vary."""
    job = Job(rows=20_000, keys=100, rate=rate)
    rows = [job.rows_of(number) for number in range(1, 361)]
    assert np.mean(rows) == pytest.approx(job.batch, rel=0.05)
    assert (len(set(rows)) > 1) == (rate != "constant")


def test_a_slot_is_a_function_of_the_seed() -> None:
    """Rows arrive within their slot, and another seed gives others."""
    job = Job(rows=1_000, keys=100)
    rows = job.arriving(3)
    assert rows.equals(job.arriving(3))
    assert not rows.equals(Job(rows=1_000, keys=100, seed=1).arriving(3))
    at = rows["at"].cast(pa.int64())
    assert job.instant(2) < pc.min(at).as_py() <= pc.max(at).as_py() <= job.instant(3) == job.instant(2) + HOUR


def test_a_digest_is_of_a_bag() -> None:
    """Order and form do not matter; a row more, less or other does."""
    rows = Job(rows=1_000, keys=100).arriving(3)
    plain = [tuple(row.values()) for row in rows.to_pylist()]
    assert digest_of(rows) == digest_of(plain) == digest_of(plain[::-1])
    assert digest_of(plain[1:]) != digest_of(plain)
    assert digest_of([*plain[1:], plain[1]]) != digest_of(plain)
    assert digest_of([]) == digest_of(rows.slice(0, 0)) == (0, 0)
