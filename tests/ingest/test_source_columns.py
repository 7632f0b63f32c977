"""Columns from any name of a file, times in any form: the rows that records of each format become."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.ingest.records import declared, left_out, read

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ODD = ("id.orig_h", "Client IP", "TTL [s]", "Zeitpunkt (lokal)", "ts", "it's", 'say "x"', "a`b", "what?", "select", "é,ü")
"""Names as files have them: with dots, blanks, brackets, quotes, of SQL, of the warehouse."""


def odd_columns() -> dict[str, object]:
    """Return a column for each of the odd names, all of them text, and a time."""
    return {"b": "timestamp", **{f"c{number}": {"type": "string", "from": name} for number, name in enumerate(ODD)}}


def stream_of(directory: Path, kind: str, columns: dict[str, object], **keys: object) -> dict[str, object]:
    """Return the arguments of :func:`declared` for columns of which ``b`` is the arrival."""
    declaration = {"directory": directory, "format": kind, "columns": columns}
    return {**declaration, "arrival": "b", "expires": None, "max_lifetime": None, **keys}


def test_columns_of_any_name_in_every_format(tmp_path: Path, spark: SparkSession) -> None:
    """A name with whatever sign, reserved words among them, is a source like any other: in CSV, JSON and Parquet."""
    values = {name: f"value of {number}" for number, name in enumerate(ODD)}
    quoted = [f'"{name.replace(chr(34), chr(34) * 2)}"' for name in ["b", *ODD]]
    line = ",".join(["2024-01-01T00:00:00Z", *values.values()])
    files: dict[str, dict[str, str | bytes]] = {
        "csv": {"1.csv": ",".join(quoted) + "\n" + line + "\n"},
        "json": {"1.json": json.dumps({"b": "2024-01-01T00:00:00Z", **values}) + "\n"},
    }
    pq.write_table(pa.table({"b": ["2024-01-01T00:00:00Z"], **{name: [text] for name, text in values.items()}}), tmp_path / "f")
    files["parquet"] = {"1.parquet": (tmp_path / "f").read_bytes()}
    expected = {"b": "2024-01-01 00:00:00.000000"} | {f"c{number}": f"value of {number}" for number in range(len(ODD))}
    for kind, content in files.items():
        target = declared(**stream_of(tmp_path / kind, kind, odd_columns(), search_key="c0"))  # type: ignore[arg-type]
        assert read(spark, target, content) == [expected], kind


def test_a_source_is_a_name_or_else_a_path_and_never_both(tmp_path: Path, spark: SparkSession) -> None:
    """``answer.ttl`` is the field of that name, or ttl within answer; a file or record with both is at fault."""
    columns: dict[str, object] = {"k": "string", "b": "timestamp"}
    columns |= {"ttl": {"type": "int", "from": "answer.ttl"}, "z": {"type": "string", "from": "id.a.z"}}
    target = declared(**stream_of(tmp_path / "json", "json", columns))  # type: ignore[arg-type]
    moment = '"b":"2024-01-01T00:00:00Z"'
    lines = [
        f'{{"k":"flat",{moment},"answer.ttl":1}}',
        f'{{"k":"path",{moment},"answer":{{"ttl":2,"other":3}},"id":{{"a":{{"z":"deep"}}}}}}',
        f'{{"k":"both",{moment},"answer":{{"ttl":2}},"answer.ttl":1}}',
        f'{{"k":"none",{moment}}}',
        f'{{"k":"text",{moment},"answer":{{"ttl":"x"}}}}',
        f'{{"k":"list",{moment},"answer":[1]}}',
    ]
    rows = {row["k"]: row for row in read(spark, target, {"1.json": "\n".join(lines)}) if "k" in row}
    assert {key: row.get("ttl") for key, row in rows.items() if "fault" not in row} == {"flat": 1, "path": 2, "none": None}
    assert rows["path"]["z"] == "deep"
    faults = {key: row["fault"] for key, row in rows.items() if "fault" in row}
    assert faults == dict.fromkeys(("both", "text", "list"), "mistyped")
    assert rows["both"]["why"] == 'column "ttl": a field "answer.ttl" and one within "answer" are both there'
    assert '"ttl"' in rows["text"]["why"]

    parquet = declared(**stream_of(tmp_path / "parquet", "parquet", columns))  # type: ignore[arg-type]
    when = [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)]
    tables = {
        "path": {"k": ["p"], "b": when, "answer": [{"ttl": 2, "n": 1}], "id": [{"a": {"z": "deep"}}]},
        "flat": {"k": ["f"], "b": when, "answer.ttl": [1]},
        "case": {"K": ["c"], "b": when, "Answer": [{"TTL": 3}]},
    }
    files: dict[str, str | bytes] = {}
    for name, table in tables.items():
        pq.write_table(pa.table(table), tmp_path / name)
        files[f"{name}.parquet"] = (tmp_path / name).read_bytes()
    parsed = read(spark, parquet, files)
    assert sorted((row["k"], row.get("ttl"), row.get("z")) for row in parsed) == [
        ("c", 3, None),
        ("f", 1, None),
        ("p", 2, "deep"),
    ]


def test_columns_calculated_from_what_a_record_holds(tmp_path: Path, spark: SparkSession) -> None:
    """``expr`` sees source columns by their names in the file; a record that it fails on is rejected, with the column."""
    columns = {
        "client": {"type": "string", "from": "Client"},
        "b": {"type": "timestamp", "from": "ts", "format": "epoch_seconds"},
        "ttl": {"type": "double", "expr": "array_min(TTLs)"},
        "share": {"type": "int", "expr": "CAST(100 div `n.all` AS int)"},
        "upper": {"type": "string", "expr": "upper(client)"},
    }
    keys = stream_of(tmp_path, "json", columns, search_key="client", sources={"TTLs": "array<double>", "n.all": "int"})
    target = declared(**keys)  # type: ignore[arg-type]
    lines = (
        '{"Client":"a","ts":1331901005.51,"TTLs":[300.0,20.5],"n.all":4}',
        '{"Client":"b","ts":1331901005,"TTLs":[],"n":{"all":5}}',
        '{"Client":"c","ts":1331901005,"TTLs":[1],"n.all":0}',
        '{"Client":"d","ts":"yesterday"}',
    )
    rows = read(spark, target, {"1.json": "\n".join(lines)})
    moment = "2012-03-16 12:30:05."
    assert rows[0] == {"client": "a", "b": moment + "510000", "ttl": 20.5, "share": 25, "upper": "A"}
    assert rows[1] == {"client": "b", "b": moment + "000000", "share": 20, "upper": "B"}
    assert (rows[2]["fault"], rows[2]["why"]) == (
        "expr_failed", 'column "share": its expr (CAST(100 div `n.all` AS int)) fails on this record',
    )  # fmt: skip
    assert rows[3]["fault"] == "mistyped"
    assert rows[3]["why"] == 'column "b": "yesterday" is no timestamp of the format epoch_seconds'


TIMES = {
    "epoch_seconds": ("1331901005.510999", "2012-03-16 12:30:05.510999"),
    "epoch_milliseconds": ("1331901005510.5", "2012-03-16 12:30:05.510500"),
    "epoch_microseconds": ("1331901005510999", "2012-03-16 12:30:05.510999"),
    "epoch_nanoseconds": ("1331901005510999999", "2012-03-16 12:30:05.510999"),
    "dd.MM.yyyy HH:mm": ("31.12.2023 23:59", "2023-12-31 23:59:00.000000"),
    "M/d/yyyy h:mm:ss a": ("1/2/2024 3:04:05 PM", "2024-01-02 15:04:05.000000"),
    "dd/MMM/yyyy:HH:mm:ss Z": ("10/Oct/2000:13:55:36 -0700", "2000-10-10 20:55:36.000000"),
    "yyyyMMdd'T'HHmmssX": ("20240102T030405Z", "2024-01-02 03:04:05.000000"),
}


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_times_as_they_come(tmp_path: Path, spark: SparkSession, kind: str) -> None:
    """Numbers since 1970 in four units, and patterns of the usual places: each read to the microsecond, the rest rejected."""
    names = [f"t{number}" for number in range(len(TIMES))]
    columns = {name: {"type": "timestamp", "format": form} for name, form in zip(names, TIMES, strict=True)}
    columns["either"] = {"type": "timestamp", "format": ["dd.MM.yyyy", "epoch_seconds"]}  # type: ignore[dict-item]
    columns["day"] = {"type": "date", "format": "dd.MM.yyyy"}
    target = declared(**stream_of(tmp_path, kind, {"k": "string", **columns}, arrival="t0"))  # type: ignore[arg-type]
    good = [text for text, _ in TIMES.values()]
    records = [
        ["good", *good, "02.01.2024", "03.01.2024"],
        ["other", *good, "0", ""],
        ["bad", *good[:3], "1e99", *good[4:], "", ""],
        ["worse", *good[:4], "32.12.2023 23:59", *good[5:], "", ""],
        ["nan", "NaN", *good[1:], "", ""],
    ]
    header = ["k", *names, "either", "day"]
    if kind == "csv":
        content = "\n".join(",".join(fields) for fields in [header, *records]) + "\n"
    else:
        objects = [{name: _number(value) for name, value in zip(header, fields, strict=True) if value} for fields in records]
        content = "\n".join(json.dumps(value) for value in objects) + "\n"
    rows = {row["k"]: row for row in read(spark, target, {f"1.{kind}": content})}
    assert [rows["good"][name] for name in names] == [expected for _, expected in TIMES.values()]
    assert (rows["good"]["either"], rows["good"]["day"]) == ("2024-01-02 00:00:00.000000", "2024-01-03")
    assert rows["other"]["either"] == "1970-01-01 00:00:00.000000"
    assert {key: row["fault"] for key, row in rows.items() if "fault" in row} == dict.fromkeys(
        ("bad", "worse", "nan"), "mistyped"
    )
    assert rows["bad"]["why"].startswith('column "t3"')
    assert rows["worse"]["why"] == 'column "t4": "32.12.2023 23:59" is no timestamp of the format dd.MM.yyyy HH:mm'


def _number(text: str) -> object:
    return int(text) if text.isdecimal() else text


def test_local_times_are_read_in_the_zone_of_their_column(tmp_path: Path, spark: SparkSession) -> None:
    """Text with an offset keeps it; without one the column's zone holds, the gap and the overlap of its daylight saving too.

    The stream's own zone has its gap in between, which must not matter.
    """
    columns = {
        "k": "string",
        "b": {"type": "timestamp", "timezone": "Europe/Berlin"},
        "c": {"type": "timestamp", "timezone": "Europe/Berlin", "format": "dd.MM.yyyy HH:mm"},
        "d": "timestamp",
    }
    cases = {
        "2024-07-01 12:00": "2024-07-01 10:00",
        "2024-01-01 12:00": "2024-01-01 11:00",
        "2024-03-31 02:30": "2024-03-31 01:30",  # the clocks of Berlin go from 2 to 3
        "2024-10-27 02:30": "2024-10-27 00:30",  # and from 3 to 2: the first 02:30
        "2024-03-10 02:30": "2024-03-10 01:30",  # nothing happens in Berlin, but New York has its gap
        "2024-11-03 01:30": "2024-11-03 00:30",
    }
    for kind in ("csv", "json"):
        target = declared(**stream_of(tmp_path / kind, kind, columns, timezone="America/New_York"))  # type: ignore[arg-type]
        records = [
            {
                "k": local_time,
                "b": f"{local_time}:00",
                "c": f"{local_time[8:10]}.{local_time[5:7]}.{local_time[:4]} {local_time[11:]}",
                "d": "2024-07-01T12:00:00",
            }
            for local_time in cases
        ]
        records.append({"k": "offset", "b": "2024-07-01T12:00:00+05:00", "c": "", "d": "2024-07-01T12:00:00Z"})
        records.append({"k": "named", "b": "2024-07-01 12:00:00 Asia/Tokyo", "c": "", "d": ""})
        records.append({"k": "day", "b": "2024-07-01", "c": "", "d": ""})
        records.append({"k": "clock", "b": "12:30", "c": "", "d": ""})
        lines = [json.dumps({name: value for name, value in record.items() if value}) for record in records]
        if kind == "csv":
            lines = ["k,b,c,d", *(",".join(record.values()) for record in records)]
        rows = {row["k"]: row for row in read(spark, target, {f"1.{kind}": "\n".join(lines) + "\n"})}
        for local, expected in cases.items():
            assert (rows[local]["b"], rows[local]["c"]) == (f"{expected}:00.000000",) * 2, (kind, local)
            assert rows[local]["d"] == "2024-07-01 16:00:00.000000"
        assert rows["offset"]["b"] == "2024-07-01 07:00:00.000000"
        assert rows["offset"]["d"] == "2024-07-01 12:00:00.000000"
        assert rows["named"]["b"] == "2024-07-01 03:00:00.000000"
        assert rows["day"]["b"] == "2024-06-30 22:00:00.000000"
        assert rows["clock"]["fault"] == "mistyped"


def test_parquet_times_of_every_kind(tmp_path: Path, spark: SparkSession) -> None:
    """Integers, decimals, doubles and local timestamps of Parquet become instants as their column says."""
    columns = {
        "k": "string",
        "b": {"type": "timestamp", "format": "epoch_seconds"},
        "c": {"type": "timestamp", "format": "epoch_milliseconds"},
        "d": {"type": "timestamp", "timezone": "Europe/Berlin"},
        "e": "timestamp",
        "f": {"type": "timestamp", "format": "epoch_nanoseconds"},
    }
    target = declared(**stream_of(tmp_path, "parquet", columns, timezone="America/New_York"))  # type: ignore[arg-type]
    local = pa.array([dt.datetime(2024, 7, 1, 12)], pa.timestamp("us"))  # noqa: DTZ001 - what the column holds
    table = pa.table({
        "k": ["x"], "b": [1331901005.5], "c": [1331901005510], "d": local, "e": local, "f": [1331901005510999999],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "f")
    (row,) = read(spark, target, {"1.parquet": (tmp_path / "f").read_bytes()})
    assert (row["b"], row["c"]) == ("2012-03-16 12:30:05.500000", "2012-03-16 12:30:05.510000")
    assert (row["d"], row["e"]) == ("2024-07-01 10:00:00.000000", "2024-07-01 16:00:00.000000")
    assert row["f"] == "2012-03-16 12:30:05.510999"


def test_headers_match_exactly_then_ignoring_case(tmp_path: Path, spark: SparkSession) -> None:
    """Names that differ in case only are two columns where both are declared, and a fault of the file where they are not."""
    columns: dict[str, object] = {"k": {"type": "string", "from": "ID"}, "other": {"type": "string", "from": "id"}}
    columns["b"] = {"type": "timestamp", "from": "When"}
    target = declared(**stream_of(tmp_path / "both", "csv", columns))  # type: ignore[arg-type]
    (row,) = read(spark, target, {"1.csv": "id,ID,WHEN\nlow,high,2024-01-01T00:00:00Z\n"})
    assert (row["k"], row["other"], row["b"]) == ("high", "low", "2024-01-01 00:00:00.000000")
    single = declared(**stream_of(tmp_path / "one", "csv", {"k": "string", "b": "timestamp"}))  # type: ignore[arg-type]
    out = left_out(single, {"twin.csv": "k,K,b\n", "none.csv": "B,x\n", "pair.csv": "K,b,B,k\n", "same.csv": "k,b,b\n"})
    assert {name: reason for name, (reason, _) in out.items()} == {
        "twin.csv": "header", "none.csv": "unknown_columns", "pair.csv": "header", "same.csv": "header",
    }  # fmt: skip
    assert "`from`" in out["twin.csv"][1]


def test_a_column_taken_from_elsewhere_leaves_its_own_name_unknown(tmp_path: Path) -> None:
    """With ``client`` from ``id.orig_h`` a file's own ``client`` is an undeclared column, and cannot be added."""
    columns = {"k": {"type": "string", "from": "id.orig_h"}, "b": "timestamp"}
    for unknown, reason in (("reject", "unknown_columns"), ("add", "unknown_columns"), ("ignore", None)):
        target = declared(**stream_of(tmp_path / unknown, "csv", columns, unknown_columns=unknown))  # type: ignore[arg-type]
        out = left_out(target, {"1.csv": "id.orig_h,b,k\n"})
        assert {name: reason_found for name, (reason_found, _) in out.items()} == ({"1.csv": reason} if reason else {})


def test_month_names_of_another_language_become_english_ones(tmp_path: Path, spark: SparkSession) -> None:
    """As the docs say: by an expression over the file's columns."""
    expression = "to_timestamp(replace(replace(day, 'Okt', 'Oct'), 'Mai', 'May'), 'd MMM yyyy')"
    columns = {"k": "string", "b": {"type": "timestamp", "expr": expression}}
    keys = {"columns": columns, "sources": {"day": "string"}, "expires": None, "max_lifetime": None}
    rows = read(spark, declared(tmp_path / "p", **keys), {"x.csv": "k,day\nx,3 Okt 2024\ny,17 Mai 2024\n"})
    assert [row["b"][:10] for row in rows] == ["2024-10-03", "2024-05-17"]
