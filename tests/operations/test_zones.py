"""The machine's time zone changes between updates, and clocks go forward: tables and answers are as if it were UTC throughout.

In New York 2024-03-10 02:00 is followed by 03:00, which is 07:00 UTC, slot 1663::

    slot      1661 .... 1662 .... 1663 .... 1664 .... 1665
    local     00:00     01:00     03:00     04:00     05:00
    updates               |                   |         |
    zones               Kolkata           New York  Lord Howe
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from tests.behaviour.test_time import process_zone
from warehouse import Warehouse
from warehouse.checking.check import check
from warehouse.operations.verification import verdicts_of
from warehouse.storage import lookup

from .projects import Project, csv, stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

ZONES = {1662: "Asia/Kolkata", 1664: "America/New_York", 1665: "Australia/Lord_Howe"}
VIEWS: dict[str, dict[str, object]] = {
    "days": {"sql": "SELECT date_trunc('DAY', b) AS d, count(*) AS n FROM a GROUP BY date_trunc('DAY', b)", "search_key": "d"},
    "parts": {"sql": "SELECT k, CAST(b AS DATE) AS d, hour(b) AS h, CAST(b AS STRING) AS t FROM a", "search_key": "k"},
    "hours": {"sql": "SELECT window.start AS s, count(*) AS n FROM a GROUP BY window(b, '1 hour')", "search_key": "s"},
    "late": {"sql": "SELECT k, b FROM a WHERE b >= TIMESTAMP '2024-03-10 07:00:00'", "search_key": "k"},
}
ROWS = {
    1662: ["x,2024-03-09 23:59:59,2024-03-10 05:00:00", "y,2024-03-10 01:30:00,2024-03-10 03:30:00", "w,2024-03-10 03:10:00,"],
    1664: ["x,2024-03-10 02:30:00,2024-03-10 08:00:00", "z,2024-03-10 03:00:00,2024-03-10 04:00:00"],
    1665: ["u,2024-03-10 04:30:00,2024-03-11 00:00:00"],
}
"""Local times of New York: an arrival before the clocks go forward, one in the hour that is left out, ends behind it."""
ASKED = "SELECT k, date_trunc('day', b) AS d, hour(b) AS h, b::VARCHAR AS t FROM a ORDER BY ALL"

EXPECTED: dict[int, dict[str, list[str]]] = {
    1662: {
        "a": ["'x' 2024-03-10 04:59:59+00:00 2024-03-10 09:00:00+00:00"],
        "days": ["2024-03-10 00:00:00+00:00 1"],
        "parts": ["'x' datetime.date(2024, 3, 10) 4 '2024-03-10 04:59:59'"],
        "hours": ["2024-03-10 04:00:00+00:00 1"],
        "late": [],
        "asked": ["'x' 2024-03-10 00:00:00+00:00 4 '2024-03-10 04:59:59+00'"],
        "waiting": ["2024-03-10 06:30:00+00:00"],
    },
    1664: {
        "a": [
            "'x' 2024-03-10 04:59:59+00:00 2024-03-10 09:00:00+00:00",
            "'x' 2024-03-10 07:30:00+00:00 2024-03-10 12:00:00+00:00",
        ],
        "days": ["2024-03-10 00:00:00+00:00 2"],
        "parts": [
            "'x' datetime.date(2024, 3, 10) 4 '2024-03-10 04:59:59'",
            "'x' datetime.date(2024, 3, 10) 7 '2024-03-10 07:30:00'",
        ],
        "hours": ["2024-03-10 04:00:00+00:00 1", "2024-03-10 07:00:00+00:00 1"],
        "late": ["'x' 2024-03-10 07:30:00+00:00"],
        "asked": [
            "'x' 2024-03-10 00:00:00+00:00 4 '2024-03-10 04:59:59+00'",
            "'x' 2024-03-10 00:00:00+00:00 7 '2024-03-10 07:30:00+00'",
        ],
        "waiting": [],
    },
    1665: {
        "a": [
            "'u' 2024-03-10 08:30:00+00:00 2024-03-11 04:00:00+00:00",
            "'x' 2024-03-10 07:30:00+00:00 2024-03-10 12:00:00+00:00",
        ],
        "days": ["2024-03-10 00:00:00+00:00 2"],
        "parts": [
            "'u' datetime.date(2024, 3, 10) 8 '2024-03-10 08:30:00'",
            "'x' datetime.date(2024, 3, 10) 7 '2024-03-10 07:30:00'",
        ],
        "hours": ["2024-03-10 07:00:00+00:00 1", "2024-03-10 08:00:00+00:00 1"],
        "late": ["'u' 2024-03-10 08:30:00+00:00", "'x' 2024-03-10 07:30:00+00:00"],
        "asked": [
            "'u' 2024-03-10 00:00:00+00:00 8 '2024-03-10 08:30:00+00'",
            "'x' 2024-03-10 00:00:00+00:00 7 '2024-03-10 07:30:00+00'",
        ],
        "waiting": [],
    },
}
"""The rows of tables and answers at each update, of a machine in UTC; a row waits over the change of the clocks."""


@contextmanager
def machine_zone(spark: SparkSession, name: str) -> Iterator[None]:
    """Set the time zone of this process and Java to a zone with other clocks."""
    zones: Any = spark._jvm.java.util.TimeZone  # type: ignore[union-attr] # the zone that Java took from the machine
    before = zones.getDefault()
    zones.setDefault(zones.getTimeZone(name))
    try:
        with process_zone(name):
            yield
    finally:
        zones.setDefault(before)


def _shown(row: Sequence[object]) -> str:
    return " ".join(str(value) if isinstance(value, datetime) else repr(value) for value in row)


def _moved(project: Project, spark: SparkSession, slot: int) -> dict[str, list[str]]:
    """Update on a machine in the zone of a slot, and return the answers there; `check` finds no fault."""
    project.land(f"{slot}.csv", csv(*ROWS[slot], header="k,b,e"))
    with machine_zone(spark, ZONES[slot]):
        report = project.update(slot)
        assert (report.failed_views, report.left_out) == ((), ())
        with Warehouse.open(project.directory) as warehouse:
            answers = {name: sorted(map(_shown, warehouse.scan(name).all())) for name in ("a", *VIEWS)}
            answers["asked"] = [*map(_shown, warehouse.sql(ASKED).all())]
        answers["waiting"] = sorted(str(row["b"]) for row in project.deferred())
        if slot == max(ZONES):
            verdicts = [verdict.outcome for verdict in verdicts_of(project.root, project.epoch, spark)]
            assert verdicts == ["same"] * len(VIEWS)
        assert check(project.root).faults == ()
    return answers


@pytest.mark.parametrize("large", [False, True], ids=["few rows", "many rows"])
def test_the_machines_zone_is_nowhere_in_the_tables(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, *, large: bool
) -> None:
    """Rows, views, waiting rows and query results equal what a machine in UTC has at each update, from both engines."""
    if large:
        monkeypatch.setattr(lookup, "LARGE", -1)
    streams = {"a": stream(timezone="America/New_York", max_lifetime="2d")}
    project = Project(tmp_path / "moved", spark, streams, views=VIEWS)
    assert {slot: _moved(project, spark, slot) for slot in ZONES} == EXPECTED
