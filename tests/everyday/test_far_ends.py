"""Ends in the year 9999, by which many systems say that there is no end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from warehouse import Warehouse
from warehouse.catalog.initialise import write_files, write_project
from warehouse.catalog.load import load_catalog
from warehouse.catalog.proposal import proposal
from warehouse.time import DAY, format_instant

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

TIMES = ("valid_from;valid_to", "{:02}.05.2024 08:00", "{:02}.05.2024 08:00", "31.12.9999 00:00")
DAYS = ("start,ends", "2024-05-{:02}", "2024-05-{:02}", "9999-12-31")
SECONDS = ("start,expires_at", "2024-05-{:02}T00:00:00Z", "2024-05-{:02}T00:00:00Z", "9999-12-31T23:59:59Z")


@pytest.mark.parametrize("form", [TIMES, DAYS, SECONDS], ids=["times", "days", "seconds"])
def test_they_are_no_end(tmp_path: Path, spark: SparkSession, form: tuple[str, str, str, str]) -> None:
    """Rows with one stay for ever, and the other ones alone say how long rows live; the first update shows what is foreseen."""
    header, begin, end, never = form
    separator = ";" if ";" in header else ","
    ends = [never if day % 3 == 0 else end.format(day + 2) for day in range(1, 25)]
    lines = [separator.join((f"k{day % 5}", begin.format(day), text)) for day, text in enumerate(ends, 1)]
    source = tmp_path / "rows.csv"
    source.write_text("\n".join([f"key{separator}{header}", *lines]) + "\n")
    proposed = proposal(source)
    write_files(tmp_path / "project", proposed.files)
    (stream,) = load_catalog(tmp_path / "project").streams
    assert stream.expires is not None
    assert "nullif" in stream.expires
    assert stream.null_expiry == "never"
    assert stream.max_lifetime is not None
    assert stream.max_lifetime <= 7 * DAY
    first = proposed.first
    assert first is not None
    with Warehouse.open(tmp_path / "project") as warehouse:
        (counts,) = warehouse.update(at=format_instant(first.at), spark=spark).epochs[-1].counts
        assert (counts.inserted, counts.dead, counts.deferred, counts.rejected) == (first.live, first.dead, first.waiting, 0)
        endless = warehouse.sql("SELECT count(*) FROM system.rows WHERE _exp IS NULL").all()
    assert [tuple(row) for row in endless] == [(8,)]


def test_a_file_without_other_ends_keeps_them(tmp_path: Path) -> None:
    """No row of the sample ends: that the column has ends is all that it shows."""
    source = tmp_path / "rows.csv"
    source.write_text("key,start,ends\n" + "".join(f"k{day},2024-05-{day:02},9999-12-31\n" for day in range(1, 20)))
    write_project(tmp_path / "project", source=source)
    (stream,) = load_catalog(tmp_path / "project").streams
    assert stream.expires == "CAST(date_add(ends, 1) AS TIMESTAMP)"
