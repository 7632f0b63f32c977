"""Ordinary files with one odd thing each: how times, ends, durations, names and letters are written there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse import Warehouse
from warehouse.catalog.initialise import write_files, write_project
from warehouse.catalog.load import load_catalog
from warehouse.catalog.proposal import proposal
from warehouse.cli.keys import positional_key
from warehouse.errors import UsageError
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

_ROWS = 60
_START = datetime(2024, 5, 13, 8, tzinfo=UTC)
_PLAIN = "%Y-%m-%d %H:%M:%S"


def _moment(row: int, days: int = 0) -> datetime:
    return _START + timedelta(minutes=row, days=days)


def _at(row: int, days: int = 0) -> str:
    return f"{_moment(row, days):{_PLAIN}}"


def _since_1970(row: int) -> int:
    return int(_moment(row).timestamp())


def _csv(path: Path, header: str, line: Callable[[int], str], **written: Any) -> None:  # noqa: ANN401 - as `write_text` takes them
    path.write_text("\n".join([header, *map(line, range(_ROWS))]) + "\n", **written)


def _objects(path: Path, record: Callable[[int], dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record(row)) + "\n" for row in range(_ROWS)))


def _spelt(path: Path, form: str) -> None:
    """Write starts and ends of events as a form of strftime says."""
    _csv(path, "host,start,end", lambda row: f'h{row % 9},"{_moment(row):{form}}","{_moment(row, 2):{form}}"')


def _lasting(path: Path, text: Callable[[int], str]) -> None:
    """Write leases with a duration in text."""
    _csv(path, "host,created_at,ttl", lambda row: f'h{row % 9},{_at(row)},"{text(row)}"')


def _counted(path: Path, size: int) -> None:
    """Write times since 1970 in a unit of which a second has ``size``; every tenth has no end, as 0."""

    def line(row: int) -> str:
        seconds = _since_1970(row)
        return f"h{row % 9},{seconds * size},{(seconds + 3600) * size if row % 10 else 0}"

    _csv(path, "host,ts,expires_at", line)


def _frame(path: Path) -> None:
    """Write a frame as pandas does: times in nanoseconds, a clock, and a duration, which Parquet holds as a number."""
    moments = pa.array([_moment(row).replace(tzinfo=None) for row in range(_ROWS)], pa.timestamp("ns"))
    lives = pa.array([timedelta(minutes=5 + row) for row in range(_ROWS)], pa.duration("ns"))
    clocks = [time(8, row) for row in range(_ROWS)]
    columns = {"sensor": [f"s{row % 9}" for row in range(_ROWS)], "measured_at": moments, "ttl": lives, "clock": clocks}
    pq.write_table(pa.table(columns), path)


def _w3c(path: Path) -> None:
    head = ["#Software: a web server", "#Version: 1.0", "#Fields: date time s-ip cs-method c-ip sc-status time-taken"]
    path.write_text("\n".join(head) + "\n")
    with path.open("a") as log:
        log.writelines(f"{_at(row)} 10.0.0.1 GET 10.1.0.{row % 9} 200 {row}\n" for row in range(_ROWS))


@dataclass(frozen=True)
class Odd:
    """How a file is written, and what is proposed for it; ``columns`` are the types of some of its columns."""

    write: Callable[[Path], None]
    key: str
    arrival: str
    expires: str | None = None
    columns: tuple[tuple[str, str], ...] = ()
    endless: bool = False


TTL = "timestampadd(SECOND, ttl, ts)"
CLOCK = "to_timestamp(concat(date_format({0}, 'yyyy-MM-dd'), ' ', {1}), 'yyyy-MM-dd H:mm[:ss]')"
MIDNIGHT = "date_add(`Datum`, CASE WHEN trim(`Ende`) LIKE '24:%' THEN 1 ELSE 0 END)"


def _times(form: str) -> Odd:
    return Odd(lambda path: _spelt(path, form), "host", "`start`", "`end`", (("start", "timestamp"),))


def _duration(text: Callable[[int], str], expires: str = TTL, kind: str = "bigint") -> Odd:
    return Odd(lambda path: _lasting(path, text), "host", "created_at", expires, (("ttl", kind),))


FILES = {
    "logging.csv": _times("%Y-%m-%d %H:%M:%S,123"),
    "calendar.csv": _times("%Y%m%dT%H%M%SZ"),
    "digits.csv": _times("%Y%m%d%H%M%S"),
    "offsets.csv": _times("%Y-%m-%d %H:%M:%S +0200"),
    "zone_names.csv": _times("%d.%m.%Y %H:%M:%S CEST"),
    "minutes.csv": _times("%Y-%m-%dT%H:%MZ"),
    "camera.csv": _times("%Y:%m:%d %H:%M:%S"),
    "american.csv": _times("%B %d, %Y %H:%M"),
    "american_dashes.csv": _times("%m-%d-%Y %H:%M"),
    "oracle.csv": _times("%d-%b-%y %I.%M.%S %p"),
    "french.csv": _times("%d/%m/%Y %Hh%M"),
    "minutes_in_text.csv": _duration(lambda row: f"{5 + row % 30}m"),
    "hours_in_text.csv": _duration(lambda row: f"{1 + row % 3}h{row % 60}m"),
    "words.csv": _duration(lambda row: f"{5 + row} minutes"),
    "iso_durations.csv": _duration(lambda row: f"PT{5 + row % 30}M"),
    "clocks.csv": _duration(lambda row: f"00:{5 + row % 30:02}:00"),
    "long_clocks.csv": _duration(lambda row: f"{1 + row % 3} days, 30:{row % 60:02}:00".replace("30:", "03:")),
    "parts.csv": _duration(
        lambda row: f"{1 + row % 4}m{row % 60}.5s",
        "timestampadd(MICROSECOND, CAST(round(ttl * 1000000) AS bigint), ts)",
        "double",
    ),
    "durations.jsonl": Odd(
        lambda path: _objects(path, lambda row: {"key": f"k{row % 9}", "created": _at(row), "ttl": f"{5 + row}m"}),
        "key", "created", TTL, (("ttl", "bigint"),),
    ),
    "redis.jsonl": Odd(
        lambda path: _objects(
            path, lambda row: {"key": f"k{row % 9}", "time": _since_1970(row), "ttl": 300 if row % 4 else -1},
        ),
        "key", "time", "timestampadd(SECOND, nullif(ttl, -1), ts)", (("ttl", "bigint"),), endless=True,
    ),
    "epoch_in_text.jsonl": Odd(
        lambda path: _objects(path, lambda row: {"host": f"h{row % 9}", "ts": str(_since_1970(row)), "v": -row}),
        "host", "ts", None, (("v", "bigint"),),
    ),
    "from_to.jsonl": Odd(
        lambda path: _objects(
            path, lambda row: {"ip": f"10.0.0.{row % 9}", "from": _since_1970(row), "to": _since_1970(row) + 600 + row,
                               "to_account": 2_000_000_000 + row},
        ),
        "ip", "`from`", "`to`", (("to_account", "bigint"),),
    ),
    **{
        f"epoch_{size}.csv": Odd(
            lambda path, size=size: _counted(path, size), "host", "ts", "nullif(expires_at, timestamp_seconds(0))", endless=True
        )
        for size in (1, 10**3, 10**6, 10**9)
    },
    "open_ends.csv": Odd(
        lambda path: _csv(path, "device,start_date,end_date", lambda row: f"d{row % 9},{_at(row)},"
                          + (_at(row, 2) if row % 3 else "")),
        "device", "start_date", "end_date", endless=True,
    ),
    "zero_dates.csv": Odd(
        lambda path: _csv(path, "device,start_date,end_date", lambda row: f"d{row % 9},{_at(row)},"
                          + (_at(row, 2) if row % 3 else "0000-00-00 00:00:00")),
        "device", "start_date", "end_date", endless=True,
    ),
    "rooms.csv": Odd(
        lambda path: _csv(path, "Raum;Datum;Beginn;Ende", lambda row: f"R{row % 9};{1 + row % 9:02}.05.2024;{10 + row % 10}:00;"
                          + ("23:30" if row % 5 else "24:00")),
        "Raum", CLOCK.format("`Datum`", "trim(`Beginn`)"), CLOCK.format(MIDNIGHT, "regexp_replace(trim(`Ende`), '^24:', '00:')"),
    ),
    "midnights.csv": Odd(
        lambda path: _csv(path, "room,start,end", lambda row: f"r{row % 9},2024-05-0{1 + row % 9} 10:{row % 60:02},"
                          f"2024-05-0{1 + row % 9} " + ("23:30" if row % 5 else "24:00")),
        "room", "`start`", "`end`",
    ),
    "members.csv": Odd(
        lambda path: _csv(path, "id,sex,active,joined", lambda row: f"p{row % 9},F,{'TF'[row % 2]},{_at(row)}"),
        "id", "joined", None, (("sex", "string"), ("active", "boolean")),
    ),
    "notes.csv": Odd(
        lambda path: _csv(path, 'id,time,"the\nnote"', lambda row: f'n{row % 9},{_at(row)},"line {row}\nand ""{_at(row)}"""'),
        "id", "time", None, (("the_note", "string"),),
    ),
    "twice.csv": Odd(
        lambda path: _csv(path, "id,time,value,value", lambda row: f"s{row % 9},{_at(row)},{row},{row}"), "id", "time"
    ),
    "cases.csv": Odd(
        lambda path: _csv(path, "ID,id,Time", lambda row: f"s{row % 9},{row},{_at(row)}"),
        "ID", "Time", None, (("id_2", "bigint"),),
    ),
    "cases.jsonl": Odd(
        lambda path: _objects(path, lambda row: {"Id": f"x{row % 9}", "id": row, "time": _at(row)}),
        "Id", "time", None, (("id_2", "bigint"),),
    ),
    "trailing.csv": Odd(
        lambda path: _csv(path, "id;time;v;;", lambda row: f"s{row % 9};{_at(row)};{row};;"), "id", "time"
    ),
    "wide.csv": Odd(
        lambda path: _csv(path, "Gerät;Gültig ab;Gültig bis", lambda row: f"Gerät {row % 9};{_moment(row):%d.%m.%Y %H:%M};"
                          f"{_moment(row, 1):%d.%m.%Y %H:%M}", encoding="utf-16", newline="\r\n"),
        "Gerät", "`gültig_ab`", "`gültig_bis`",
    ),
    "years.csv": Odd(
        lambda path: _csv(path, "Entity,Year,Deaths", lambda row: f"{'Flood' if row % 2 else 'Drought'},{1960 + row // 2},{row}"),
        "Entity", "Year", None, (("Year", "timestamp"),),
    ),
    "pretty.json": Odd(
        lambda path: path.write_text("".join(f'{{\n "host": "h{row % 9}",\n "at": "{_at(row)}"\n}}\n' for row in range(_ROWS))),
        "host", "at",
    ),
    "server.log": Odd(_w3c, "c-ip", CLOCK.format("`date`", "trim(`time`)")),
    "frame.parquet": Odd(_frame, "sensor", "measured_at", "timestampadd(MICROSECOND, CAST(round(ttl * 0.001) AS bigint), ts)"),
}  # fmt: skip
QUICK = frozenset(
    {"notes.csv", "minutes.csv", "zone_names.csv", "hours_in_text.csv", "parts.csv", "redis.jsonl", "midnights.csv"}
    | {"twice.csv", "cases.jsonl", "frame.parquet"}
)
"""Files that go the whole road in every run: what updates read in a way of its own."""


@pytest.mark.parametrize(
    ("winter", "summer", "form"),
    [("CET", "CEST", "yyyy-M-d H:mm:ss z"), ("EET", "EEST", "yyyy-M-d H:mm:ss z"), ("CEST", "CET", None), ("XST", "CEST", None)],
)
def test_names_of_zones_are_read_where_they_are_right(tmp_path: Path, winter: str, summer: str, form: str | None) -> None:
    """A name that another season has, or that nobody knows, leaves the text as it is."""

    def line(row: int) -> str:
        return f"h{row % 9},{_at(row)},2024-{'01' if row % 2 else '07'}-10 08:{row:02}:00 {winter if row % 2 else summer}"

    _csv(tmp_path / "x.csv", "host,seen,until", line)
    write_project(tmp_path / "project", source=tmp_path / "x.csv")
    (stream,) = load_catalog(tmp_path / "project").streams
    (until,) = [column for column in stream.columns if column.name == "until"]
    assert (until.type, until.formats) == (("timestamp", (form,)) if form else ("string", ()))


@pytest.mark.parametrize("name", FILES)
def test_what_is_proposed_is_right(tmp_path: Path, name: str) -> None:
    """Key, arrival, end, and the types of columns, without any option."""
    odd = FILES[name]
    odd.write(tmp_path / name)
    write_project(tmp_path / "project", source=tmp_path / name)
    (stream,) = load_catalog(tmp_path / "project").streams
    assert (stream.search_key, stream.arrival, stream.expires) == ((odd.key,), odd.arrival, odd.expires)
    assert (stream.null_expiry == "never") is odd.endless
    assert set(odd.columns) <= {(column.name, column.type) for column in stream.columns}


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in FILES])
def test_the_first_probe_answers(tmp_path: Path, spark: SparkSession, name: str) -> None:
    """The update that is proposed first shows as many rows as foreseen, rejects none, and the proposed probe finds its key's."""
    FILES[name].write(tmp_path / name)
    proposed = proposal(tmp_path / name)
    write_files(tmp_path / "project", proposed.files)
    first = proposed.first
    assert first is not None
    with Warehouse.open(tmp_path / "project") as warehouse:
        (counts,) = warehouse.update(at=format_instant(first.at), spark=spark).epochs[-1].counts
        assert (counts.inserted, counts.deferred, counts.dead, counts.rejected) == (first.live, first.waiting, first.dead, 0)
        probe = positional_key(first.key[0][1], warehouse.reader().key_columns(proposed.stream))
        assert 0 < len(warehouse.probe(proposed.stream, probe)) <= first.live


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("quakes.json", '{"type": "x",\n"features": [\n{"id": "a"}]}', ("several lines", "jq -c '.\"features\"[]'")),
        ("frame.feather", "ARROW1", ("pyarrow.parquet.write_table", "--from frame.parquet")),
    ],
)
def test_what_has_no_record_a_line_is_told_the_way(tmp_path: Path, name: str, text: str, told: tuple[str, ...]) -> None:
    """The refusal names the file and the command that makes something else of it."""
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError) as refused:
        proposal(tmp_path / name)
    assert [part for part in (name, *told) if part not in str(refused.value)] == []
