"""Supposed workloads: what follows from what, and what is refused with the way out."""

from __future__ import annotations

import pytest

from warehouse.advice.what_if import KEYS, parse_what_if, with_assumptions, workload_of
from warehouse.errors import UsageError
from warehouse.layout.advice import Workload
from warehouse.time import DAY, HOUR, MINUTE

ANY = {"interval": HOUR, "retain": DAY, "workers": 2}


def supposed(text: str) -> Workload:
    """Return a supposed workload in a project of one-hour updates."""
    return workload_of(parse_what_if(text), interval=HOUR, retain=DAY, workers=2)


def test_rows_follow_from_rate_and_lifetimes() -> None:
    """Uniform lifetimes up to 24 updates: rows live for about half of that."""
    load = supposed("lifetimes=1d,rate=1000")
    assert (load.periods, load.rate, load.retained) == (24, 1000.0, 24.0)
    assert load.live == pytest.approx(1000 * 12.25, rel=0.01)


def test_the_rate_follows_from_rows_and_lifetimes() -> None:
    """And the other way round."""
    load = supposed("lifetimes=uniform:1d, rows=12_250")
    assert load.rate == pytest.approx(1000, rel=0.01)


def test_lifetimes_follow_from_rate_and_rows() -> None:
    """Twelve updates' rows live: uniform up to 24."""
    load = supposed("rate=1000,rows=12000")
    assert load.periods == 24
    assert load.live == pytest.approx(12_000, rel=0.05)


def test_every_key_is_used() -> None:
    """Each key changes the workload."""
    load = supposed(
        "lifetimes=exponential:30m,rate=5,max_lifetime=6h,interval=10m,"
        "probes=7,scans=2,row_bytes=2KB,rows_per_key=3,retain=1h"
    )
    assert (load.periods, load.probes, load.scans, load.retained) == (36, 7.0, 2.0, 6.0)
    assert (load.row_bytes, load.rows_per_key) == (2000.0, 3.0)
    assert load.mean_lifetime == pytest.approx(3.5, rel=0.05)
    assert set(KEYS) == {
        "lifetimes", "rate", "rows", "max_lifetime", "interval", "probes", "scans", "row_bytes", "rows_per_key", "retain",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "supposes nothing"),
        ("rate=10", "needs two of"),
        ("lifetimes=1d", "needs two of"),
        ("rte=10,rows=1", 'did you mean "rate"?'),
        ("rate", "is none of"),
        ("rate=-1,rows=1", "above 0"),
        ("rate=nan,rows=1", "above 0"),
        ("rate=1,rate=2", "given twice"),
        ("lifetimes=normal:1h,rate=1", "no distribution"),
        ("lifetimes=0s,rate=1", "longer than nothing"),
        ("lifetimes=1d,rate=1000,rows=10", "leave one out"),
        ("lifetimes=4000d,rate=1000,interval=1m", "longer interval="),
        ("lifetimes=1h,rate=10,max_lifetime=1m", "below the update interval"),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(text: str, says: str) -> None:
    """Exit code 2, and a text that says what to do."""
    with pytest.raises(UsageError) as raised:
        supposed(text)
    assert says in str(raised.value)


def test_a_measured_workload_is_changed_where_something_is_supposed() -> None:
    """Twice the rate is twice of what arrives; the rest stays; p and the interval cannot be supposed."""
    load = Workload(4, 100.0, (0.25,) * 4, arriving=120.0, probes=5.0, row_bytes=50.0)
    changed = with_assumptions(load, parse_what_if("rate=200,probes=0"), 10 * MINUTE)
    assert (changed.rate, changed.arriving, changed.probes, changed.row_bytes) == (200.0, 240.0, 0.0, 50.0)
    assert with_assumptions(load, parse_what_if("rows=500"), HOUR).live == pytest.approx(500.0)
    assert with_assumptions(load, parse_what_if("lifetimes=constant:2h"), HOUR).mean_lifetime == pytest.approx(2.0)
    for text in ("max_lifetime=1d", "interval=1h", "rate=1,rows=2"):
        with pytest.raises(UsageError):
            with_assumptions(load, parse_what_if(text), HOUR)


def test_a_month_of_minutes_can_be_supposed() -> None:
    """Of 43 200 updates in a window, as of any other number up to a million."""
    load = supposed("lifetimes=exponential:2h,rate=1000,max_lifetime=30d,interval=1m")
    assert (load.periods, round(load.live / load.rate)) == (43_200, 121)
