"""Which instant a task's update moves the windows to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from airflow_stream_wh.update_time import SOURCES, update_time
from warehouse.errors import UsageError
from warehouse.time import parse_instant

HOURS = {source: datetime(2024, 1, 1, hour, tzinfo=UTC) for hour, source in enumerate(SOURCES, 1)}


def test_the_argument_comes_first() -> None:
    """Then the partition date, the end of the data interval, the logical date, in this order."""
    context: dict[str, object] = dict(HOURS)
    assert update_time("2013-01-01T12:00:00Z", context) == (parse_instant("2013-01-01T12:00:00Z"), "at")
    for hour, source in enumerate(SOURCES, 1):
        assert update_time(None, context) == (parse_instant(f"2024-01-01T{hour:02}:00:00Z"), source)
        context[source] = None
    assert SOURCES == ("partition_date", "data_interval_end", "logical_date")


def test_a_run_without_a_date_is_an_error() -> None:
    """A run triggered by hand without a logical date has none; the wall clock is no substitute."""
    with pytest.raises(UsageError, match=r"no update time.*Give the argument"):
        update_time(None, {"logical_date": None, "run_id": "manual", "dag_run": object()})


@pytest.mark.parametrize("empty", [None, "", "  "])
def test_an_empty_argument_is_none(empty: str | None) -> None:
    """A template may render to nothing."""
    assert update_time(empty, HOURS)[1] == "partition_date"


@pytest.mark.parametrize("wrong", ["now", "yesterday", "None", "2024-13-01"])
def test_an_argument_that_is_no_instant_is_refused(wrong: str) -> None:
    """Never is another time taken in its place; `now` would be of another time at each try."""
    with pytest.raises(UsageError, match="cannot be read"):
        update_time(wrong, HOURS)


def test_times_are_instants() -> None:
    """An offset counts, and none means UTC, in text and in datetimes."""
    east = timezone(timedelta(hours=2))
    assert update_time(datetime(2024, 1, 1, 2, tzinfo=east), {})[0] == parse_instant("2024-01-01T00:00:00Z")
    assert update_time("2024-01-01T02:00:00+02:00", {})[0] == parse_instant("2024-01-01T00:00:00Z")
    assert update_time("2024-01-01T00:00:00", {})[0] == parse_instant("2024-01-01T00:00:00Z")
    assert update_time(None, {"logical_date": datetime(2024, 1, 1, 2, tzinfo=east)})[0] == parse_instant("2024-01-01T00:00:00Z")
