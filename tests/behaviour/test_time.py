"""Instants are instants: local times of a stream, boundaries of slots, times before the anchor, the process's zone."""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tests.operations.projects import Project, csv, parquet, stream
from warehouse import Warehouse
from warehouse.testing import Model, Row, Rules, bag
from warehouse.time import MINUTE, format_instant, parse_instant

from .placement import check_placement
from .project import Layouts, stored_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

LOCAL = {
    "winter": ("2013-03-10 01:59:59.999999", "2013-03-10T06:59:59.999999Z"),
    "gap": ("2013-03-10 02:30:00.000000", "2013-03-10T07:30:00Z"),
    "summer": ("2013-03-10 03:30:00.000000", "2013-03-10T07:30:00Z"),
    "before the overlap": ("2013-11-03 00:59:59.999999", "2013-11-03T04:59:59.999999Z"),
    "overlap": ("2013-11-03 01:30:00.000000", "2013-11-03T05:30:00Z"),
    "after the overlap": ("2013-11-03 02:00:00.000000", "2013-11-03T07:00:00Z"),
}
"""Local time in New York, and the instant that is meant.

    EST 01:59:59.999999 | 02:30 does not exist: 03:30 EDT      EDT 01:30 | EST 01:30: the earlier is meant
"""
WITH_OFFSET = {"second 01:30": ("2013-11-03 01:30:00-05:00", "2013-11-03T06:30:00Z")}

DAYS = {"anchor": "2013-01-01T00:00:00Z", "update_interval": "1d"}
LOCAL_STREAMS: dict[str, dict[str, object]] = {
    "text": {"format": "csv"},
    "formatted": {"format": "csv", "options": {"timestampFormat": "yyyy-MM-dd HH:mm:ss.SSSSSS"}},
    "expression": {
        "format": "csv",
        "arrival": "CAST(t AS TIMESTAMP)",
        "expires": "CAST(t AS TIMESTAMP) + INTERVAL 300 DAYS",
        "columns": {"k": "string", "t": "string"},
    },
    "lines": {"format": "json"},
    "files": {"format": "parquet"},
}


def local_stream(name: str) -> dict[str, object]:
    """Return the keys of one of the streams with local times."""
    times = {"arrival": "t", "expires": None, "columns": {"k": "string", "t": "timestamp"}}
    own = {**times, **LOCAL_STREAMS[name]}
    return stream(landing=f"landing/{name}", timezone="America/New_York", max_lifetime="365d", **own)


@contextmanager
def process_zone(name: str) -> Iterator[None]:
    """Let the process be in another time zone."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = name
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


@pytest.fixture(scope="module")
def local(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Load the same local times as text, as formatted text, through an expression, as JSON and as local Parquet."""
    project = Project(tmp_path_factory.mktemp("local"), spark, {name: local_stream(name) for name in LOCAL_STREAMS}, DAYS)
    texts = {name: text for name, (text, _) in LOCAL.items()}
    offsets = texts | {name: text for name, (text, _) in WITH_OFFSET.items()}
    for name, keys in LOCAL_STREAMS.items():
        rows = texts if name in ("formatted", "files") else offsets
        if keys["format"] == "csv":
            content = csv(*(f"{key},{text}" for key, text in rows.items()), header="k,t").encode()
        elif keys["format"] == "json":
            content = "\n".join(json.dumps({"k": key, "t": text.replace(" ", "T")}) for key, text in rows.items()).encode()
        else:
            local = pa.array([datetime.fromisoformat(text) for text in rows.values()], pa.timestamp("us"))
            content = parquet(pa.table({"k": list(rows), "t": local}))
        project.land(f"1.{keys['format']}", content, landing=f"landing/{name}")
    warehouse = Warehouse.open(project.directory)
    with process_zone("Asia/Kolkata"):
        warehouse.update("2013-12-01T00:00:00Z", spark=spark)
    return warehouse


@pytest.mark.parametrize("stream", LOCAL_STREAMS)
@pytest.mark.parametrize("zone", ["UTC", "America/Los_Angeles", "Australia/Lord_Howe"])
def test_local_times_are_read_in_the_stream_s_zone(local: Warehouse, stream: str, zone: str) -> None:
    """Gaps shift forward, an overlap means its earlier time, offsets are obeyed, in any zone of the updater and reader."""
    expected = LOCAL if stream in ("formatted", "files") else LOCAL | WITH_OFFSET
    with process_zone(zone):
        answer = local.scan(stream, columns=["k", "_ts"]).arrow()
        instants = answer["_ts"].cast(pa.int64()).to_pylist()
        assert dict(zip(answer["k"].to_pylist(), map(format_instant, instants), strict=True)) == {
            key: instant for key, (_, instant) in expected.items()
        }
        assert answer.schema.metadata[b"stream_wh.window_time"] == b"2013-12-01T00:00:00Z"
        assert len(local.scan(stream, where="_ts >= TIMESTAMPTZ '2013-11-03 05:30:00Z'", columns=["k"]).all()) == (
            sum(instant >= "2013-11-03T05:30:00Z" for _, instant in expected.values())
        )


ANCHOR = parse_instant("2013-01-01T00:00:00.000003Z")
RULES = Rules(anchor=ANCHOR, interval=10 * MINUTE, max_lifetime=30 * MINUTE)
LAYOUTS: dict[str, dict[str, object]] = {
    "rebuilt": {"technique": "rebuild", "grid": [2, 3], "insertion": "chronological", "expiration": "permuted"},
    "appended": {"grid": [2, 3]},
    "mixed": {"grid": [3, 2], "insertion": "permuted", "expiration": "blocks", "expiry_block": 2},
}


@pytest.fixture(scope="module")
def edges(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Layouts, Model]:
    """Land every pair of arrival and expiry at, just before and just after slot ends; update to 0, 1, 3."""
    # slot       -4   -3   -2   -1    0 |  1 |  2    3 |  4
    # update                            U0   U1       U2
    # instants  -.+  -.+  -.+  -.+  -.+  -.+  -.+  -.+  -.+      one microsecond around each end
    project, model = Layouts(tmp_path_factory.mktemp("edges"), RULES, LAYOUTS, spark), Model(RULES)
    instants = [RULES.time(slot) + around for slot in range(-4, 5) for around in (-1, 0, 1)]
    pairs = [(ts, exp) for ts in instants for exp in instants if ts <= exp]
    rows = [Row(ts, exp, f"{number % 7}", number) for number, (ts, exp) in enumerate(pairs)]
    for slot, landing in ((0, rows[::2]), (1, rows[1::2]), (3, rows[::3])):
        project.land(landing)
        model.arrive(*landing)
        model.update(RULES.time(slot))
        # One microsecond before the next grid point is still this one.
        project.update(RULES.time(slot + 1) - 1)
    return project, model


@pytest.mark.parametrize("stream", LAYOUTS)
def test_rows_at_the_ends_of_slots(edges: tuple[Layouts, Model], stream: str) -> None:
    """A row at the end of a slot belongs to the slot, one microsecond later to the next; slots continue before the anchor."""
    project, model = edges
    assert {row.load_slot for row in model.states[0].live} == {-2, -1, 0}
    for number, state in enumerate(model.states):
        epoch = project.epoch(number)
        assert epoch.window_time == state.window_time
        table = epoch.table(stream)
        assert table is not None
        files = stored_files(project.warehouse.root, epoch, stream)
        check_placement(files, table.layout, epoch, state.live)
        for now in (state.window_time, state.window_time + 1, state.window_time + 10 * MINUTE):
            expected = bag(model.scan(as_of=state.window_time, now=now))
            assert project.scan(stream, as_of=state.window_time, now=now) == expected
        assert project.scan(stream, as_of=RULES.time(state.slot + 1) - 1) == project.scan(stream, as_of=state.window_time)


def test_now_is_to_the_microsecond(edges: tuple[Layouts, Model]) -> None:
    """A reader sees a row until one microsecond before its expiry, and not at its expiry."""
    project, model = edges
    for instant in (RULES.time(4) - 1, RULES.time(4), RULES.time(4) + 1):
        for now in (instant - 1, instant):
            rows = project.scan("appended", now=now)
            assert rows == bag(model.scan(now=now))
        assert any(exp == instant for _, _, _, exp in project.scan("appended", now=instant - 1))
        assert not any(exp == instant for _, _, _, exp in project.scan("appended", now=instant))
