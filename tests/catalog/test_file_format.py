"""``init --from`` with files whose names say little: their beginning says what they are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tomllib
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.catalog.test_initialise import proposed
from warehouse.catalog.init_options import InitOptions
from warehouse.catalog.initialise import write_files
from warehouse.catalog.load import load_catalog
from warehouse.catalog.proposal import proposal, propose
from warehouse.errors import UsageError
from warehouse.ingest.landing import list_landing
from warehouse.time import DAY, HOUR, MINUTE, format_instant, parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

WEB = '10.0.0.{} - - [01/Jul/2024:08:{:02}:00 +0200] "GET /{} HTTP/1.1" 200 {} "-" "curl \\"8\\""\n'


@pytest.mark.parametrize("name", ["access.log", "access.log.1", "ssl-access"])
def test_the_log_of_a_web_server(tmp_path: Path, name: str) -> None:
    """Fields between spaces, the time in two of them, quotes after a backslash, no header: its columns are known."""
    source = tmp_path / name
    source.write_text("".join(WEB.format(i % 7, i % 60, i % 9, i) for i in range(50)))
    stream = proposed(source).streams[0]
    assert (stream.format, stream.search_key) == ("csv", ("client",))
    assert stream.arrival == "to_timestamp(substring(concat(moment, offset), 2, 25), 'dd/MMM/yyyy:HH:mm:ssZ')"
    options = dict(stream.options)
    assert (options["delimiter"], options["escape"], options["nullValue"]) == (" ", "\\", "-")
    assert options["names"].split(",") == [column.name for column in stream.columns]
    assert {column.name: column.type for column in stream.columns}["bytes"] == "bigint"


@pytest.mark.parametrize(
    ("text", "delimiter", "key"),
    [
        ("1719822000 00:16:3e:{0:02x}:00:01 192.168.1.{0} pc-{0} *\n", " ", "column3"),
        ("2024-07-01T08:00:{0:02}Z;a{0};5\n", ";", "column2"),
    ],
)
def test_a_file_without_a_header(tmp_path: Path, text: str, delimiter: str, key: str) -> None:
    """Its columns get numbers, which the configuration says is a guess; the option names them."""
    source = tmp_path / "dhcp.leases"
    source.write_text("".join(text.format(i % 10) for i in range(40)))
    catalog = proposed(source, InitOptions(key=(key,)))
    options = dict(catalog.streams[0].options)
    assert options["delimiter"] == delimiter
    assert options["names"].startswith("column1,column2,column3")
    assert "(?) names: the sample does not decide" in catalog.file.read_text()
    assert (catalog.streams[0].arrival, catalog.streams[0].files) == ("column1", "*.leases")


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("app.log", '{{"at": "2024-07-01T00:00:{0:02}Z", "host": "a{0}"}}\n', "json"),
        ("app", '{{"at": "2024-07-01T00:00:{0:02}Z", "host": "a{0}"}}\n', "json"),
        ("prices.dat", "2024-07-01T00:00:{0:02}Z|a{0}|1\n", "csv"),
    ],
)
def test_an_ending_that_says_nothing(tmp_path: Path, name: str, text: str, kind: str) -> None:
    """Objects are JSON, other text is CSV."""
    source = tmp_path / name
    head = "at|host|n\n" if kind == "csv" else ""
    source.write_text(head + "".join(text.format(i) for i in range(20)))
    stream = proposed(source).streams[0]
    assert (stream.format, stream.search_key, stream.arrival) == (kind, ("host",), "at")


def test_one_object_that_holds_the_rows(tmp_path: Path) -> None:
    """The message has a command that makes lines of them, and the command works."""
    source = tmp_path / "the events.json"
    items = [{"metadata": {"name": f"p{i % 3}", "creationTimestamp": f"2024-07-01T00:00:{i:02}Z"}} for i in range(20)]
    source.write_text(json.dumps({"kind": "List", "items": items}))
    with pytest.raises(UsageError, match=r'whose rows seem to stand in "items"') as refused:
        propose(source)
    command = str(refused.value).split("`")[1]
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    stream = proposed(tmp_path / "rows.jsonl").streams[0]
    assert (stream.search_key, stream.arrival) == (("metadata_name",), "metadata_creationtimestamp")


def test_fields_of_objects_are_columns(tmp_path: Path) -> None:
    """Key, arrival and duration may lie in objects within objects; a field with a dot in its name stays out."""
    source = tmp_path / "dump.jsonl"
    rows = [
        {"device": {"id": f"d{i % 5}"}, "meta": {"sent_at": f"2024-07-01T00:{i:02}:00Z", "a": {"ttl_ms": 60_000}},
         "odd": {"x.y": 1}} for i in range(50)
    ]  # fmt: skip
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    stream = proposed(source).streams[0]
    assert [(column.name, column.source) for column in stream.columns] == [
        ("device_id", "device.id"), ("meta_sent_at", "meta.sent_at"), ("meta_a_ttl_ms", "meta.a.ttl_ms"),
    ]  # fmt: skip
    assert (stream.search_key, stream.arrival) == (("device_id",), "meta_sent_at")
    assert stream.expires == "timestampadd(MILLISECOND, meta_a_ttl_ms, ts)"
    assert stream.max_lifetime == MINUTE


@pytest.mark.parametrize(
    ("header", "row", "arrival", "expires", "longest"),
    [
        (
            "Start Date,Start Time,End Date,End Time,Room", "07/{0:02}/2024,08:{0:02} AM,07/{0:02}/2024,09:{0:02} AM,r{1}",
            "to_timestamp(concat(date_format(start_date, 'yyyy-MM-dd'), ' ', trim(start_time)), 'yyyy-MM-dd h:mm a')",
            "to_timestamp(concat(date_format(end_date, 'yyyy-MM-dd'), ' ', trim(end_time)), 'yyyy-MM-dd h:mm a')", HOUR,
        ),
        (
            "Datum;Uhrzeit;Raum;Dauer_min", "{0:02}.07.2024;08:{0:02}:00;r{1};30",
            "to_timestamp(concat(date_format(`Datum`, 'yyyy-MM-dd'), ' ', trim(`Uhrzeit`)), 'yyyy-MM-dd H:mm[:ss]')",
            "timestampadd(MINUTE, Dauer_min, ts)", 30 * MINUTE,
        ),
        (
            "host,sent,ttl", 'h{1},"Mon, {0} Jul 2024 08:00:00 +0200",3600',
            "to_timestamp(substring(sent, 6), 'd MMM yyyy H:mm:ss Z')", "timestampadd(SECOND, ttl, ts)", HOUR,
        ),
        ("sku,valid_from,valid_to", "s{1},2024-07-{0:02},2024-07-{0:02}", "CAST(valid_from AS TIMESTAMP)",
         "CAST(date_add(valid_to, 1) AS TIMESTAMP)", DAY),
        ("user,iat,exp", "u{1},{2},{3}", "iat", "exp", HOUR),
    ],
)  # fmt: skip
def test_times_in_pieces(tmp_path: Path, header: str, row: str, arrival: str, expires: str, longest: int) -> None:
    """A day and a clock in two columns, a weekday before the day, days as ends, which last until they end."""
    source = tmp_path / "rows.csv"
    at = 1719822000
    lines = [row.format(1 + i % 28, i % 5, at + i, at + i + 3600) for i in range(60)]
    source.write_text("\n".join([header, *lines]) + "\n")
    catalog = proposed(source)
    stream = catalog.streams[0]
    assert (stream.arrival, stream.expires, stream.max_lifetime) == (arrival, expires, longest)
    assert "would show" in catalog.file.read_text()


def test_a_folder_of_files(tmp_path: Path) -> None:
    """``init`` reads the newest file with the most frequent ending, and all files are loaded from where they are."""
    landing = tmp_path / "my logs"
    (landing / "2024" / "07").mkdir(parents=True)
    for number, path in enumerate(["a.csv", "2024/07/b.csv", "2024/c.csv"]):
        (landing / path).write_text("host,at\n" + "".join(f"h{i % 4},2024-07-0{1 + number}T00:00:0{i}Z\n" for i in range(9)))
        os.utime(landing / path, (number, number))
    (landing / "README.txt").write_text("notes")
    (landing / "_part.csv").write_text("host\n")
    (landing / "empty.csv").write_text("")
    files = propose(landing)
    assert list(files) == ["warehouse.toml"]
    write_files(tmp_path / "project", files)
    catalog = load_catalog(tmp_path / "project")
    stream = catalog.streams[0]
    assert (stream.name, stream.landing, stream.files, stream.arrival) == ("my_logs", landing, "*.csv", "at")
    listed = [file.path for file in list_landing(stream.landing, stream.files)]
    assert listed == ["2024/07/b.csv", "2024/c.csv", "a.csv", "empty.csv"]
    text = catalog.file.read_text()
    assert "Looked at 2024/c.csv, the newest of 3 files that end alike in" in text
    assert "1 with other endings are left alone" in text
    (tmp_path / "nothing").mkdir()
    with pytest.raises(UsageError, match="holds no file with rows"):
        propose(tmp_path / "nothing")
    (tmp_path / "of * signs").mkdir()
    (tmp_path / "of * signs" / "a.csv").write_text("host,at\na,2024-07-01T00:00:00Z\n")
    with pytest.raises(UsageError, match="rename the folder"):
        propose(tmp_path / "of * signs")


def test_years_of_two_digits_stand_last(tmp_path: Path) -> None:
    """01.07.24 is no day of 2001, in any column."""
    source = tmp_path / "werte.csv"
    source.write_text("Zeit;Wert\n" + "".join(f"{1 + i % 28:02}.07.24 08:00:0{i % 9};{i}\n" for i in range(40)))
    catalog = proposed(source, InitOptions(key=("Wert",)))
    assert catalog.streams[0].columns[0].formats == ("d.M.yy H:mm:ss",)
    assert "2024-07" in catalog.file.read_text()


def test_a_time_that_is_an_end_alone(tmp_path: Path) -> None:
    """Nothing says when rows arrive, and the proposal says so."""
    source = tmp_path / "keys.csv"
    source.write_text("key,expiry\n" + "".join(f"k{i % 9},2024-07-01T00:00:{i:02}Z\n" for i in range(40)))
    assert "The sample does not show when rows arrive: expiry is called like an end" in proposed(source).file.read_text()


def test_a_column_without_a_name_is_left_out(tmp_path: Path) -> None:
    """As where each line of an export ends with the delimiter."""
    source = tmp_path / "export.csv"
    source.write_text("host;at;\n" + "".join(f"h{i % 4};2024-07-01T00:00:0{i % 9}Z;\n" for i in range(20)))
    catalog = proposed(source)
    assert [column.name for column in catalog.streams[0].columns] == ["host", "at"]
    assert catalog.streams[0].unknown_columns == "ignore"
    assert "ignored (it has no name in the header)" in catalog.file.read_text()


def test_an_end_that_stands_for_none(tmp_path: Path) -> None:
    """Rows until the end of the calendar: a lifetime that can be declared, and no update every ten years."""
    source = tmp_path / "prices.csv"
    rows = (f"a{i % 4},2024-05-{i + 1:02} 08:00:00,9999-12-31 23:59:59\n" for i in range(20))
    source.write_text("sku,since,until\n" + "".join(rows))
    catalog = proposed(source)
    assert (catalog.streams[0].expires, catalog.update_interval) == ("until", HOUR)


def test_a_life_of_more_than_a_thousand_years(tmp_path: Path) -> None:
    """What is proposed can be loaded, whatever interval is wished."""
    source = tmp_path / "prices.csv"
    source.write_text("sku,since,ttl_days\n" + "".join(f"a{i % 4},2024-05-{i + 1:02} 08:00:00,{10**7}\n" for i in range(20)))
    assert proposed(source, InitOptions(interval=3650 * DAY)).streams[0].max_lifetime == 400_000 * DAY


def test_times_that_no_calendar_has(tmp_path: Path) -> None:
    """A row with one is counted as rejected, as updates do; the others say when windows move."""
    source = tmp_path / "times.parquet"
    days = [-(2**62), *(1_704_067_200_000_000 + i * DAY for i in range(20))]
    pq.write_table(pa.table({"at": pa.array(days, pa.timestamp("us")), "device": [f"d{i % 3}" for i in range(21)]}), source)
    first = proposal(source).first
    assert first is not None
    assert (format_instant(first.at), first.live, first.rejected) == ("2024-01-20T00:00:00Z", 20, 1)
    assert format_instant(proposed(source).anchor) == "2024-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("now", "at", "live", "waiting"),
    [
        ("2024-05-20T15:00:00Z", "2024-05-20T00:00:00Z", 19, 1),  # the newest row arrived today, and today has not ended
        ("2024-05-21T00:00:00Z", "2024-05-21T00:00:00Z", 20, 0),
        ("2024-06-30T15:00:00Z", "2024-05-21T00:00:00Z", 20, 0),
        ("2024-04-30T15:00:00Z", "2024-05-21T00:00:00Z", 20, 0),  # no row would be live by then
    ],
)
def test_the_first_update_is_not_after_the_present(tmp_path: Path, now: str, at: str, live: int, waiting: int) -> None:
    """An update does not pass the present, so the file must not promise the rows that it does not show yet."""
    source = tmp_path / "days.csv"
    source.write_text("sku,since\n" + "".join(f"a{i % 4},2024-05-{i + 1:02} 08:00:00\n" for i in range(20)))
    first = proposal(source, InitOptions(interval=DAY), parse_instant(now)).first
    assert first is not None
    assert (format_instant(first.at), first.live, first.waiting) == (at, live, waiting)


@pytest.mark.parametrize(
    ("days", "max_ahead", "counts"),
    [
        (range(-10, 10), "30d", (1, 9, 10, 0)),  # further ahead than rows live: by default they would be rejected
        ([*range(-10, 10), 90_000], None, (1, 0, 10, 10)),  # a mistake is no reason to accept rows
        (range(-10, 1), None, (1, 0, 10, 0)),
    ],
)
def test_rows_that_arrive_far_ahead(
    tmp_path: Path, days: Iterable[int], max_ahead: str | None, counts: tuple[int, int, int, int]
) -> None:
    """What "arrive later" counts is not rejected by an update of today."""
    now, source = parse_instant("2024-05-20T00:00:00Z"), tmp_path / "bookings.csv"
    stays = [(format_instant(now + day * DAY), format_instant(now + day * DAY + 10 * HOUR)) for day in days]
    source.write_text("room,since,until\n" + "".join(f"r{i % 3},{since},{until}\n" for i, (since, until) in enumerate(stays)))
    made = proposal(source, InitOptions(interval=HOUR), now)
    assert made.first is not None
    assert (made.first.live, made.first.waiting, made.first.dead, made.first.rejected) == counts
    assert format_instant(made.first.at) == "2024-05-20T00:00:00Z"
    declared = tomllib.loads(bytes(made.files["warehouse.toml"]).decode())["streams"]["bookings"]
    assert declared.get("max_ahead") == max_ahead


def test_no_row_is_live_at_any_update(tmp_path: Path) -> None:
    """Then the first update is that of the present."""
    now, source = parse_instant("2024-05-20T15:00:00Z"), tmp_path / "calls.csv"
    calls = [(f"2024-05-{day} 01:00:00", f"2024-05-{day} 02:00:00") for day in (17, 18, 19, 21, 22)]
    source.write_text("line,since,until\n" + "".join(f"l{i % 3},{since},{until}\n" for i, (since, until) in enumerate(calls)))
    first = proposal(source, InitOptions(interval=DAY), now).first
    assert first is not None
    assert (format_instant(first.at), first.live, first.waiting, first.dead) == ("2024-05-20T00:00:00Z", 0, 2, 3)


def test_the_first_probe_of_a_file_of_times(tmp_path: Path) -> None:
    """Where `ts` is the key, too, it is written as a time."""
    source = tmp_path / "beats.csv"
    source.write_text("ts\n" + "2024-05-01 08:00:00\n" * 3)
    first = proposal(source).first
    assert first is not None
    assert first.probe("beats") == "stream-wh probe beats 2024-05-01T08:00:00.000000Z"


@pytest.mark.parametrize(("name", "sql"), [("null", "`null`"), ("true", "`true`"), ("end", "`end`"), ("order", "order")])
def test_a_column_that_is_called_like_a_word_of_sql(tmp_path: Path, name: str, sql: str) -> None:
    """It is the column, and no constant; a day in one of two pieces, too."""
    source = tmp_path / "words.csv"
    source.write_text(f"{name},v\n" + "".join(f"2024-05-01 08:00:{i:02},a{i % 3}\n" for i in range(20)))
    assert proposed(source).streams[0].arrival == sql
    pieces = tmp_path / "other" / "pieces.csv"
    pieces.parent.mkdir()
    pieces.write_text(f"{name},clock,v\n" + "".join(f"2024-05-{i + 1:02},08:00:00,a{i % 3}\n" for i in range(20)))
    assert f"date_format({sql}, " in proposed(pieces).streams[0].arrival


def test_values_of_several_kinds(tmp_path: Path) -> None:
    """A text among them has no quotes in the first probe, as the table has it without."""
    source = tmp_path / "mixed.jsonl"
    rows = [{"id": [1, "a b", "a b"][i % 3], "at": f"2024-05-01T08:00:{i:02}Z"} for i in range(20)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    first = proposal(source).first
    assert first is not None
    assert first.probe("mixed") == "stream-wh probe mixed 'a b'"


def test_objects_with_few_fields_in_common(tmp_path: Path) -> None:
    """Each field is a column, however many there are."""
    source = tmp_path / "events.jsonl"
    rows = [{f"field{i}": i, "device": f"d{i % 4}", "at": f"2024-05-01T08:{i // 60:02}:{i % 60:02}Z"} for i in range(300)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    stream = proposed(source).streams[0]
    assert (stream.search_key, stream.arrival, len(stream.columns)) == (("device",), "at", 302)


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    """It is named, since updates leave such a file out."""
    source = tmp_path / os.fsdecode(b"caf\xe9.csv")
    source.write_text("id,at\na,2024-05-01 08:00:00\n")
    with pytest.raises(UsageError, match="no UTF-8"):
        propose(source)


def test_a_wished_arrival_beside_a_column_ts(tmp_path: Path) -> None:
    """`ts` is the arrival time, so the column gets another name; it can be the key, or the end."""
    source = tmp_path / "orders.csv"
    source.write_text("id,ts,paid\n" + "".join(f"o{i},2024-05-02 08:00:{i:02},2024-05-01 08:00:{i:02}\n" for i in range(20)))
    stream = proposed(source, InitOptions(arrival="paid", expires="ts")).streams[0]
    assert (stream.arrival, stream.expires, stream.max_lifetime) == ("paid", "ts_value", DAY)
    assert [(column.name, column.source) for column in stream.columns] == [("id", None), ("ts_value", "ts"), ("paid", None)]


def test_rows_that_all_arrive_later(tmp_path: Path) -> None:
    """Windows move from today on: an update before the first of them would be before the anchor."""
    source = tmp_path / "bookings.csv"
    source.write_text("id,at\n" + "".join(f"b{i},2090-05-02 08:00:{i:02}\n" for i in range(20)))
    lines = proposal(source, now=1_704_103_200_000_000).files["warehouse.toml"]
    assert b'anchor = "2024-01-01T00:00:00Z"' in lines


@pytest.mark.parametrize(
    ("names", "kind", "words"),
    [
        (["at", "k", "K"], pa.string(), "K, k differ in case"),
        (["at", "k", "v"], pa.decimal256(60, 2), "k, v has more than 38 digits"),
    ],
)
def test_a_parquet_file_that_updates_leave_out(tmp_path: Path, names: list[str], kind: pa.DataType, words: str) -> None:
    """It is refused, for the same reason, although DuckDB reads it."""
    at = pa.array([1_704_067_200_000_000 + i * DAY for i in range(9)], pa.timestamp("us"))
    values = pa.array([None] * 9, kind)
    pq.write_table(pa.Table.from_arrays([at, values, values], names=names), tmp_path / "odd.parquet")
    with pytest.raises(UsageError, match=words):
        propose(tmp_path / "odd.parquet")
