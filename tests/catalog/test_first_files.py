"""``init --from`` with the files of every day: odd headers, numbers for times, ends in whatever column, keys that come again."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import duckdb
import pytest

from tests.catalog.test_initialise import proposed
from tests.hostile.test_bounds import COMPRESS
from warehouse.catalog.model import Column
from warehouse.catalog.proposal import propose
from warehouse.catalog.sniff import sniff
from warehouse.errors import UsageError
from warehouse.ingest.landing import name_problem
from warehouse.time import HOUR, MINUTE, SECOND

if TYPE_CHECKING:
    from pathlib import Path


def test_a_parking_log(tmp_path: Path) -> None:
    """The plate is the key, not the number of the ticket; what is paid until is the end, though some end before they begin."""
    source = tmp_path / "parking.csv"
    lines = ["Ticket No.;Plate;Zone;Paid At;Paid Until;Amount (EUR)"]
    for i in range(400):
        begin, long = 480 + i % 600, -5 if i % 50 == 7 else 30 + i % 90
        at, until = (f"0{1 + i % 3}.05.2024 {m // 60:02}:{m % 60:02}" for m in (begin, begin + long))
        lines.append(f"{90_000 + i};B-XY {i % 130};{i % 4};{at};{until};{i % 9},50")
    source.write_text("\n".join(lines))
    catalog = proposed(source)
    stream = catalog.streams[0]
    assert (stream.search_key, stream.arrival, stream.expires) == (("Plate",), "paid_at", "paid_until")
    assert stream.columns[0] == Column("ticket_no", "bigint", "Ticket No.")
    assert "amount_eur" in [column.name for column in stream.columns]
    assert Column("paid_at", "timestamp", "Paid At", None, ("d.M.yyyy H:mm",)) in stream.columns
    assert catalog.update_interval <= 30 * MINUTE


def test_numbers_for_times_and_the_least_of_an_array(tmp_path: Path) -> None:
    """A log in JSON lines: names with dots, seconds with decimals, TTLs of each answer; most rows are seen at the interval."""
    source = tmp_path / "dns.json"
    rows = [
        f'{{"ts":{1331901000 + i * 1.5:.6f},"uid":"C{i}","id.orig_h":"192.168.202.{i % 40}","id.orig_p":{2000 + i},'
        f'"query":"h{i % 5}.example","TTLs":[{60 + i % 500}.0,{900 + i % 50}.5]}}'
        for i in range(500)
    ]
    source.write_text("\n".join(rows))
    catalog = proposed(source)
    stream = catalog.streams[0]
    columns = {column.name: column for column in stream.columns}
    assert columns["ts"] == Column("ts", "timestamp", None, None, ("epoch_seconds",))
    assert columns["id_orig_h"] == Column("id_orig_h", "string", "id.orig_h")
    assert (stream.search_key, stream.arrival) == (("id_orig_h",), "ts")
    assert stream.expires == "timestampadd(MICROSECOND, CAST(round(array_min(TTLs) * 1000000) AS bigint), ts)"
    text = catalog.file.read_text()
    assert '(in the file "id.orig_h")' in text
    assert "of the rows that live at all" in text
    assert 10 * SECOND <= catalog.update_interval <= MINUTE


@pytest.mark.parametrize(
    ("values", "pattern"),
    [
        (["31.12.2023 23:59", "1.1.2024 0:05"], "d.M.yyyy H:mm"),
        (["31/12/2023 23:59:01", "01/01/2024 00:05:00"], "dd/MM/yyyy HH:mm:ss"),
        (["12/31/2023 11:59 PM", "1/1/2024 1:05 AM"], "M/d/yyyy h:mm a"),
        (["10/Oct/2000:13:55:36 -0700", "11/Oct/2000:13:55:36 +0000"], "d/MMM/yyyy:H:mm:ss Z"),
        (["31.12.23, 23:59", "01.01.24, 00:05"], "d.M.yy, H:mm"),
        (["Dec-31-2023", "Jan-1-2024"], "MMM-d-yyyy"),
        (["20 Dec 2023 10:00:00", "2 Jan 2024 10:00:00"], "d MMM yyyy H:mm:ss"),
    ],
)
def test_times_of_the_usual_places(tmp_path: Path, values: list[str], pattern: str) -> None:
    """Each gets the pattern by which every sampled value can be read."""
    source = tmp_path / "times.csv"
    source.write_text("name;seen\n" + "".join(f"n{i};{value}\n" for i, value in enumerate(values * 3)))
    stream = proposed(source).streams[0]
    assert stream.arrival == "seen"
    assert pattern in (*stream.columns[1].formats, *(value for _, value in stream.options))


def test_no_column_has_more_values_than_rows(tmp_path: Path) -> None:
    """Values are counted by an estimate, which may say more than there are."""
    source = tmp_path / "wide.csv"
    rows = [",".join(f"{column}x{row}" for column in range(40)) for row in range(63)]
    source.write_text("\n".join([",".join(f"c{column}" for column in range(40)), *rows]))
    assert max(column.distinct for column in sniff(source).columns) == 63


@pytest.mark.parametrize("outlier", [1, 10**6])
def test_the_interval_shows_nearly_all_rows(tmp_path: Path, outlier: int) -> None:
    """At least 95 % of the rows are live at one update, whether or not one row lives a thousand times longer."""
    source = tmp_path / "sessions.parquet"
    life = f"CASE WHEN i = 7 THEN {outlier * 3600} ELSE 5 + (i * 7919) % 3000 END"
    duckdb.connect().sql(
        f"COPY (SELECT 'u' || i % 300 AS user_id, TIMESTAMPTZ '2024-05-01 00:00:00+00' + to_seconds(i) AS started, {life} AS ttl"
        f" FROM range(3000) t(i)) TO '{source}'"
    )
    catalog = proposed(source)
    assert catalog.streams[0].search_key == ("user_id",)
    lives = [life for (life,) in duckdb.connect().sql(f"SELECT ttl FROM '{source}'").fetchall()]
    share = sum(min(1.0, life * SECOND / catalog.update_interval) for life in lives) / len(lives)
    assert share >= 0.95
    assert (catalog.streams[0].max_lifetime or 0) <= HOUR, "one row of thousands does not say how the table is cut"


@pytest.mark.parametrize(
    ("header", "name"),
    [("Client IP", "client_ip"), ("TTL [s]", "ttl_s"), ("a.b", "a_b"), ("_x", "x"), ("sub_index", "sub_index_2")],
)
def test_odd_headers_get_a_name_and_keep_their_own(tmp_path: Path, header: str, name: str) -> None:
    """A column that no table can have under its own name is taken `from` there."""
    source = tmp_path / "odd.csv"
    source.write_text(f'"{header}","{header}x",at\n' + "".join(f"v{i},w,2024-05-01T00:00:0{i}Z\n" for i in range(5)))
    column = proposed(source).streams[0].columns[0]
    assert (column.name, column.source) == (name, header)


def test_a_new_name_is_none_that_another_column_has(tmp_path: Path) -> None:
    """Names made of two headers, or of a header whose name is taken, get different names."""
    source = tmp_path / "alike.csv"
    source.write_text("a b,a.b,a_b,at\n" + "".join(f"v{i},w,x,2024-05-01T00:00:0{i}Z\n" for i in range(5)))
    columns = proposed(source).streams[0].columns
    assert [(column.name, column.source) for column in columns[:3]] == [("a_b_2", "a b"), ("a_b_3", "a.b"), ("a_b", None)]


def test_a_name_of_a_file_is_never_toml(tmp_path: Path) -> None:
    """A key with line feeds in it stays a comment and a text."""
    source = tmp_path / "x.jsonl"
    evil = 'a\n[spark]\n"spark.jars" = "x.jar"\n#'
    source.write_text("".join(json.dumps({evil: i % 7, "at": f"2024-01-01T00:{i % 60:02}:00Z"}) + "\n" for i in range(100)))
    catalog = proposed(source)
    assert catalog.spark == ()
    assert evil in [column.source for column in catalog.streams[0].columns]


def test_numbers_of_orders_are_no_times(tmp_path: Path) -> None:
    """Numbers in the range of seconds since 1970 are times only if no other number has a time's name."""
    source = tmp_path / "orders.csv"
    lines = [f"{2_000_000_001 + i},{1_700_000_000 + 60 * i},n{i % 9}" for i in range(200)]
    source.write_text("\n".join(["order_id,createdAt,name", *lines]))
    stream = proposed(source).streams[0]
    kinds = {column.source_name: column.type for column in stream.columns}
    assert (kinds["order_id"], kinds["createdAt"]) == ("bigint", "timestamp")


@pytest.mark.parametrize(
    "content", [b"not gzip", gzip.compress(b"#fields\tts\n" * 100)[:-12]], ids=["another kind", "cut short"]
)
def test_a_damaged_log_is_an_error_that_says_what_to_do(tmp_path: Path, content: bytes) -> None:
    """Cut short, or of another kind than its name says."""
    source = tmp_path / "dns.log.gz"
    source.write_bytes(content)
    with pytest.raises(UsageError, match=r"is damaged, or not compressed as its name says"):
        proposed(source)


def test_a_rotated_log_is_copied_under_a_name_that_updates_take(tmp_path: Path) -> None:
    """Zeek names archived logs by the time of day, with colons, which Hadoop does not take."""
    source = tmp_path / "dns.00:00:00-01:00:00.log"
    source.write_text("#separator \\x09\n#fields\tts\thost\n#types\ttime\tstring\n1331901000.5\ta\n1331901060.5\tb\n")
    files = propose(source)
    (landed,) = [name for name in files if name.startswith("landing/")]
    assert name_problem(landed) is None


@pytest.mark.parametrize(
    ("values", "declared"),
    [
        (["2010/01/01 00:00", "2010/01/01 13:00"], "yyyy/M/d H:mm"),
        (["Jan 1 2000", "Dec 31 2000"], "MMM d yyyy"),
    ],
)
def test_times_that_another_reader_takes_for_granted(tmp_path: Path, values: list[str], declared: str) -> None:
    """DuckDB reads some of them without a format; Spark, which loads the file, gets the format."""
    source = tmp_path / "temps.csv"
    source.write_text("date,temp\n" + "".join(f"{values[i % 2]},{i}\n" for i in range(50)))
    (column,) = [candidate for candidate in proposed(source).streams[0].columns if candidate.name == "date"]
    assert (column.type, column.formats) == ("timestamp", (declared,))


def test_times_as_they_should_be_need_no_pattern(tmp_path: Path) -> None:
    """Dates and times of ISO 8601 are read as they are."""
    source = tmp_path / "temps.csv"
    source.write_text("at,day\n" + "".join(f"2010-01-01 0{i}:00,2010-01-0{i + 1}\n" for i in range(9)))
    kinds = {column.name: (column.type, column.formats) for column in proposed(source).streams[0].columns}
    assert kinds == {"at": ("timestamp", ()), "day": ("date", ())}


@pytest.mark.parametrize("name", ["rows.json", "rows.json.gz", "rows.json.zst"])
def test_objects_behind_a_byte_order_mark(tmp_path: Path, name: str) -> None:
    """Windows writes the mark; updates read such lines too."""
    source = tmp_path / name
    lines = '{"a": 1, "at": "2024-05-01T00:00:00Z"}\n' * 2
    source.write_bytes(COMPRESS[source.suffix.removeprefix(".json")](f"\ufeff{lines}".encode()))
    stream = proposed(source).streams[0]
    assert (stream.format, [column.name for column in stream.columns], stream.arrival) == ("json", ["a", "at"], "at")


def test_a_field_that_stands_twice_is_named(tmp_path: Path) -> None:
    """An object with two fields of one name is an error that names them."""
    source = tmp_path / "rows.json"
    source.write_text('{"a": 1, "at": "2024-05-01T00:00:00Z"}\n{"a": 1, "b": {"c": 1, "c": 2}}\n')
    with pytest.raises(UsageError, match='an object has the field "c" twice; write one of them under another name'):
        propose(source)


@pytest.mark.parametrize("encoding", ["utf-32-le", "utf-32-be"])
def test_a_file_in_utf_32_is_refused(tmp_path: Path, encoding: str) -> None:
    """Updates cannot read it; the message has the command that makes another file."""
    source = tmp_path / "rows.csv"
    source.write_bytes("\ufeffa,at\n1,2024-05-01T00:00:00Z\n".encode(encoding))
    with pytest.raises(UsageError, match=r"is in UTF-32, which updates do not read; convert it \(`iconv -f UTF-32 -t UTF-8 "):
        propose(source)


@pytest.mark.parametrize("ending", ["", ".zst"])
def test_an_array_of_objects(tmp_path: Path, ending: str) -> None:
    """Each object is a row, as in JSON lines; the message for a file too large for a task names the remedy."""
    source = tmp_path / f"cars.json{ending}"
    text = '[\n  {"a": 1, "at": "2024-05-01T00:00:00Z"},\n  {"a": 2, "at": "2024-05-01T00:01:00Z"}\n]\n'
    source.write_bytes(COMPRESS[ending](text.encode()))
    stream = proposed(source).streams[0]
    assert (stream.format, [column.name for column in stream.columns], stream.arrival) == ("json", ["a", "at"], "at")
    source.write_bytes(COMPRESS[ending](text.encode() + b" " * 16_000_000))
    with pytest.raises(UsageError, match=r"`jq -c '\.\[\]'`"):
        propose(source)


def test_rows_without_an_end_do_not_shorten_lives(tmp_path: Path) -> None:
    """The quartiles are of rows that end."""
    source = tmp_path / "leases.csv"
    ends = [f"2024-05-0{i + 2}T00:00:00Z" if i % 2 else "" for i in range(1, 8)]
    source.write_text("host,start,end\n" + "".join(f"h{i},2024-05-0{i}T00:00:00Z,{end}\n" for i, end in enumerate(ends, 1)))
    (lives,) = sniff(source).gaps.values()
    assert set(lives) == {2 * 86_400 * 1_000_000}
