"""Files of every day: what ``init --from`` proposes for each, and that the first probe after one update answers."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.everyday.made import MADE
from warehouse import Warehouse
from warehouse.catalog.init_options import InitOptions
from warehouse.catalog.initialise import write_files, write_project
from warehouse.catalog.load import load_catalog
from warehouse.catalog.proposal import proposal
from warehouse.cli.keys import positional_key
from warehouse.time import format_instant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = Path(__file__).parent / "files"


@dataclass(frozen=True)
class Road:
    """What is right for a file. Of two columns that could as well be the key, ``said`` tells which: the one option given."""

    key: str
    arrival: str
    expires: str | None = None
    said: bool = False

    @property
    def choices(self) -> InitOptions:
        """The option."""
        return InitOptions(key=(self.key,)) if self.said else InitOptions()


MOMENT = "CAST({} AS TIMESTAMP)"
LEAST = "timestampadd(MICROSECOND, CAST(round(array_min(TTLs) * 1000000) AS bigint), ts)"
TOGETHER = "to_timestamp(concat(date_format({0}_datum, 'yyyy-MM-dd'), ' ', trim({0}_zeit)), 'yyyy-MM-dd H:mm[:ss]')"
ROADS = {
    "airline-passengers.csv": Road("month", "month"),
    "birdstrikes.csv": Road("airport_name", MOMENT.format("flight_date")),
    "co2.csv": Road("date", "`date`"),
    "earthquakes.csv": Road("place", "time"),
    "example_transactions.csv": Road("id", "`date`"),
    "flights-2k.json": Road("origin", "`date`", said=True),
    "sea_surface_temperature.csv.gz": Road("time_utc", "time_utc"),
    "unemployment-across-industries.json": Road("series", "`date`"),
    "water-flow.csv": Road("Time", "Time"),
    "weather.csv": Road("location", MOMENT.format("`date`")),
    "bookings.csv": Road("Room", "starts_at", "ends_at"),
    "cache.tsv": Road("url", "fetched", "timestampadd(SECOND, `max-age`, ts)"),
    "cookies.json": Road("domain", "creationDate", "expirationDate"),
    "dns.log": Road("id_orig_h", "ts", LEAST),
    "leases.csv": Road("mac_address", "lease_start", "lease_end"),
    "readings.jsonl": Road("sensor", "ts", "timestampadd(MILLISECOND, ttl_ms, ts)"),
    "sessions.parquet": Road("username", "session_start", "session_end"),
    "tickets.csv": Road("Kunde", "`Eröffnet`", "`fällig_bis`"),
    "tokens.jsonl.gz": Road("userId", "issuedAt", "timestampadd(SECOND, expiresIn, ts)"),
    "trips.csv": Road("start_station_name", "started_at", "ended_at"),
}
ROADS |= {
    "access.log": Road("client", "to_timestamp(substring(concat(moment, offset), 2, 25), 'dd/MMM/yyyy:HH:mm:ssZ')"),
    "appointments.csv": Road("Raum", TOGETHER.format("beginn"), TOGETHER.format("ende")),
    "jwt.csv": Road("user", "iat", "exp"),
    "pods.ndjson": Road(
        "metadata_podid", "metadata_creationtimestamp", "timestampadd(SECOND, spec_ttlsecondsafterfinished, ts)"
    ),
    "prices.txt": Road("SKU", MOMENT.format("VALID_FROM"), MOMENT.format("date_add(VALID_TO, 1)")),
    "queue.csv": Road(
        "queue_id",
        "to_timestamp(substring(arrival_time, 6), 'd MMM yyyy H:mm:ss Z')",
        "timestampadd(SECOND, retry_timeout_s, ts)",
    ),
    "messages": Road("host", "moment"),
    "service.log.gz": Road("host", "time"),
}
QUICK = frozenset({"access.log", "dns.log", "appointments.csv", "flights-2k.json"})
"""Files that go the whole road in every run: fields between spaces, tabs, times in two columns, an array."""


def landed(name: str, folder: Path) -> Path:
    """Put a file into a folder of its own, and return it."""
    path = folder / name
    if name in MADE:
        MADE[name](path)
    else:
        shutil.copy(FILES / name, path)
    return path


def test_ten_of_them_come_from_elsewhere() -> None:
    """Each of them has its source and its licence in the folder's README."""
    brought = {path.name for path in FILES.iterdir()}
    table = (FILES.parent / "README.md").read_text()
    assert (len(brought), len(MADE), brought | MADE.keys()) == (10, 18, ROADS.keys())
    assert [name for name in brought if f"| `{name}` |" not in table] == []


@pytest.mark.parametrize("name", ROADS)
def test_what_is_proposed_is_right(tmp_path: Path, name: str) -> None:
    """Key, arrival and end, without any option."""
    write_project(tmp_path / "project", source=landed(name, tmp_path), choices=ROADS[name].choices)
    (stream,) = load_catalog(tmp_path / "project").streams
    road = ROADS[name]
    assert (stream.search_key, stream.arrival, stream.expires) == ((road.key,), road.arrival, road.expires)


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in ROADS])
def test_the_first_probe_answers(tmp_path: Path, spark: SparkSession, name: str) -> None:
    """The update that is proposed first shows as many rows as foreseen, rejects none, and the proposed probe finds its key's."""
    proposed = proposal(landed(name, tmp_path), ROADS[name].choices)
    write_files(tmp_path / "project", proposed.files)
    first = proposed.first
    assert first is not None
    assert first.live > 0
    with Warehouse.open(tmp_path / "project") as warehouse:
        (counts,) = warehouse.update(at=format_instant(first.at), spark=spark).epochs[-1].counts
        assert (counts.inserted, counts.deferred, counts.dead, counts.rejected) == (first.live, first.waiting, first.dead, 0)
        probe = positional_key(first.key[0][1], warehouse.reader().key_columns(proposed.stream))
        assert 0 < len(warehouse.probe(proposed.stream, probe)) <= first.live
