"""Files made to break a load: what is good beside them is loaded, each of them is left out or its rows are kept with a reason.

One update for each format takes in all of them, so that each is also tried beside the others.
"""

from __future__ import annotations

import gzip
import json
import os
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.operations.projects import Project, at, csv, row, stream, text
from warehouse.checking.check import check
from warehouse.epochs.points import Point

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.epochs.points import Moment
    from warehouse.operations.update import UpdateReport

MB = 1_000_000
STRANGE_NAMES = (
    "per%20cent.csv", "hash#.csv", "quest?.csv", "star*.csv", "{a,b}.csv", "[x].csv", "quo'te.csv", 'dou"ble.csv',
    "sp ace.csv", "plus+.csv", "am&p.csv", "$HOME.csv", "$(id).csv", "`id`.csv", ";rm.csv", "-rf.csv", "~.csv", "emoji😀.csv",
    "a=b/c=d.csv", "dir.csv/x.csv", "...csv/x", "C:/x.csv", "x" * 251 + ".csv",
)  # fmt: skip


def left_out(report: UpdateReport) -> dict[str, str]:
    """Return the reason for each file that an update left out."""
    return {entry.file.path: entry.reason for _, entry in report.left_out}


def test_names_of_files(tmp_path: Path, spark: SparkSession) -> None:
    """A file of any name is loaded as that one file, or left out because of its name."""
    project = Project(tmp_path / "project", spark)
    loadable = [name for name in STRANGE_NAMES if not name.startswith(".")]
    for number, name in enumerate(loadable):
        project.land(name, csv(row(f"n{number}", 0.9, 3), "short"))
    for name in (b"bad\xff.csv", b"new\nline.csv", b"back\\slash.csv", b"esc\x1b[31m.csv", b"colon:in.csv"):
        (tmp_path / "project/landing/a" / name.decode(errors="surrogateescape")).write_text(csv(row("bad", 0.9, 3)))
    report = project.update(1)
    bad = ("bad\\xff.csv", "new\nline.csv", "back\\slash.csv", "esc\x1b[31m.csv", "colon:in.csv")
    assert left_out(report) == dict.fromkeys(bad, "name")
    assert project.keys().split() == sorted(f"n{number}" for number in range(len(loadable)))
    assert sorted(rejected_row["file"] for rejected_row in project.rejected()) == sorted(loadable)
    assert left_out(project.update(2)) == {}


def test_csv_made_to_break_a_load(tmp_path: Path, spark: SparkSession) -> None:
    """Endless lines, bombs, thousands of fields, quotes that never close and bytes of every value break no load."""
    project = Project(tmp_path / "project", spark, {"a": stream(max_record="1MB", max_expansion=50)})
    good = row("good", 0.9, 3)
    project.land("good.csv", csv(good))
    project.land("line.csv", csv(good, "x" * 3 * MB, good))
    project.land("line.csv.gz", gzip.compress(csv("x" * 3 * MB).encode()))
    project.land("bomb.csv.gz", gzip.compress(b"k,b,e\n" + b"x\n" * 40 * MB, 9, mtime=0))
    project.land("two.csv.gz", gzip.compress(b"k,b,e\n") + gzip.compress(b"y" * 2 * MB))
    project.land("header.csv", "k" * 200_000 + "\n")
    project.land("fields.csv", csv("," * 30_000, row("f", 0.9, 3)))
    project.land("quote.csv", csv('"never closed', row("q", 0.9, 3)))
    project.land("nul.csv", b"k,b,e\n\0\0\0\n" + row("nul", 0.9, 3).encode() + b"\n")
    project.land("bytes.csv", b"k,b,e\n" + bytes(range(256)) + b"\n" + row("bytes", 0.9, 3).encode() + b"\n")
    project.land("utf.csv", b"k,b,e\n\xed\xa0\x80\xff\xfe,x,y\n" + row("utf", 0.9, 3).encode() + b"\n")
    project.land("formula.csv", csv(row("=cmd|' /C calc'!A0", 0.9, 3)))
    project.land("times.csv", csv("t,9999999-01-01T00:00:00Z,-1", "t,infinity,infinity", "t,now,tomorrow", "t,1e400,0x10"))
    report = project.update(1)
    out = left_out(report)
    assert out.pop("header.csv") in ("unknown_columns", "unreadable")  # whichever Spark or the header's reader meets first
    assert out == {
        "line.csv": "record_too_long",
        "line.csv.gz": "record_too_long",
        "two.csv.gz": "record_too_long",
        "bomb.csv.gz": "expands_too_much",
        "fields.csv": "unreadable",
    }
    messages = {entry.file.path: entry.message for _, entry in report.left_out}
    assert messages["line.csv"] == "line 3 is longer than max_record (1000000 bytes); cut it, or raise max_record"
    assert "max_expansion (50)" in messages["bomb.csv.gz"]
    keys = {key for key in (entry["k"] for entry in project.live()) if key}
    assert {"good", "q", "nul", "bytes", "utf", "=cmd|' /C calc'!A0"} <= keys
    assert all(entry["reason"] in ("malformed", "mistyped", "null_arrival", "null_expiry") for entry in project.rejected())
    project.change(max_record="16MB", max_expansion=100_000)
    (project.directory / "landing" / "a" / "bomb.csv.gz").unlink()  # else it is tried again: forty million rows
    project.land("line.csv", csv(good, "x" * 3 * MB, row("long", 1.5, 3)))
    assert left_out(project.update(2)).keys() <= {"header.csv", "fields.csv"}
    assert "long" in project.keys().split()


HOSTILE_JSON = {
    "deep": "[" * 5000 + "]" * 5000,
    "deep object": '{"k":' * 3000 + "1" + "}" * 3000,
    "deep value": f'{{"k":"d","b":"{text(0.9)}","e":"{text(3)}","x":' + "[" * 3000 + "]" * 3000 + "}",
    "digits": f'{{"k":"n","b":"{text(0.9)}","e":"{text(3)}","n":' + "9" * 5000 + "}",
    "exponent": f'{{"k":"n","b":"{text(0.9)}","e":"{text(3)}","n":1e999999999}}',
    "long name": '{"' + "k" * 100_000 + '":1}',
    "many names": "{" + ",".join(f'"c{number}":1' for number in range(20_000)) + "}",
    "twice": f'{{"k":"one","k":"two","b":"{text(0.9)}","e":"{text(3)}"}}',
    "surrogate": f'{{"k":"\\ud800","b":"{text(0.9)}","e":"{text(3)}"}}',
    "nul": f'{{"k":"\\u0000","b":"{text(0.9)}","e":"{text(3)}"}}',
    "open string": '{"k":"',
    "trailing": f'{{"k":"t","b":"{text(0.9)}","e":"{text(3)}"}}{{"k":"u"}}',
    "comment": f'/* */{{"k":"c","b":"{text(0.9)}","e":"{text(3)}"}}',
    "proto": f'{{"__proto__":{{"k":1}},"constructor":1,"k":"p","b":"{text(0.9)}","e":"{text(3)}"}}',
    "path": f'{{"k":"$[\'e\']","b":"{text(0.9)}","e":"{text(3)}"}}',
    "nan": '{"k":NaN,"b":Infinity,"e":-Infinity}',
    "types": '{"k":{"a":1},"b":[1],"e":true,"n":"x"}',
    "blank": "   \t",
}


def test_json_made_to_break_a_load(tmp_path: Path, spark: SparkSession) -> None:
    """Lines deeper, longer or stranger than a parser takes are rejected rows; none of them fails the file, or the job."""
    columns = {"k": "string", "b": "timestamp", "e": "timestamp", "n": "double"}
    project = Project(tmp_path / "project", spark, {"a": stream(format="json", unknown_columns="ignore", columns=columns)})
    good = json.dumps({"k": "good", "b": text(0.9), "e": text(3)})
    for name, line in HOSTILE_JSON.items():
        project.land(f"{name}.json", f"{line}\n{good}\n")
    project.land("bom.json", "\ufeff" + good + "\n")
    project.land("bytes.json", b"\xff\xfe" + good.encode("utf-16-le") + b"\n" + good.encode() + b"\n")
    project.land("bomb.json.gz", gzip.compress(b"{}\n" * 40 * MB, 9, mtime=0))
    report = project.update(1)
    assert left_out(report) == {"bomb.json.gz": "expands_too_much"}
    files = {entry["file"] for entry in project.rejected()}
    assert len([entry for entry in project.live() if entry["k"] == "good"]) >= len(HOSTILE_JSON) + 1
    assert {f"{name}.json" for name in ("deep", "deep object", "open string", "nan", "types", "long name")} <= files


def test_parquet_made_to_break_a_load(tmp_path: Path, spark: SparkSession) -> None:
    """Files of a few kilobytes with millions of equal rows, and footers that lie, are left out."""
    project = Project(tmp_path / "project", spark, {"a": stream(format="parquet", max_expansion=20)})
    kind = pa.timestamp("us", "UTC")

    def table(key: str, rows: int) -> pa.Table:
        times = [pa.repeat(pa.scalar(at(hour), kind), rows) for hour in (0.9, 3)]
        return pa.table({"k": pa.repeat(key, rows), "b": times[0], "e": times[1]})

    pq.write_table(table("good", 2), project.land("good.parquet", ""))
    pq.write_table(table("bomb", 5 * MB), project.land("bomb.parquet", ""))
    pq.write_table(table("x" * 30 * MB, 3), project.land("wide.parquet", ""), compression="zstd")
    whole = (tmp_path / "project/landing/a/good.parquet").read_bytes()
    chance = random.Random(6)  # noqa: S311 - bytes of a test
    for number in range(20):
        damaged = bytearray(whole)
        for _ in range(8):
            damaged[chance.randrange(4, len(damaged) - 8)] = chance.randrange(256)
        project.land(f"damaged{number}.parquet", bytes(damaged))
    project.land("magic.parquet", b"PAR1" + b"\xff" * 100 + b"\xff\xff\xff\x7fPAR1")
    report = project.update(1)
    reasons = left_out(report)
    assert reasons["bomb.parquet"] == "expands_too_much"
    assert reasons["magic.parquet"] == "unreadable"
    assert reasons["wide.parquet"] == "record_too_long"
    expected = {"expands_too_much", "record_too_long", "unreadable", "mistyped", "header", "unknown_columns"}
    assert set(reasons.values()) <= expected
    assert [entry["k"] for entry in project.live()].count("good") >= 2


def test_parquet_swapped_while_it_is_read(tmp_path: Path, spark: SparkSession) -> None:
    """Rows of Parquet are read once to be counted and once to be written: what is another file by then is not loaded."""
    project = Project(tmp_path / "project", spark, {"a": stream(format="parquet")})
    landing, outside = project.directory / "landing/a", tmp_path / "outside.parquet"

    def write(path: Path, *keys: str) -> None:
        times = [pa.array([at(hour)] * len(keys), pa.timestamp("us", "UTC")) for hour in (0.9, 4)]
        pq.write_table(pa.table({"k": list(keys), "b": times[0], "e": times[1]}), path)

    for name in ("good", "linked", "replaced"):
        write(landing / f"{name}.parquet", name)
    write(outside, "secret")
    facts = (landing / "linked.parquet").stat()
    os.utime(outside, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    def swap(moment: Moment) -> None:
        if moment.point == Point.STEP_READY and not (landing / "linked.parquet").is_symlink():
            (landing / "linked.parquet").unlink()
            (landing / "linked.parquet").symlink_to(outside)
            write(landing / "replaced.parquet", "other", "another")

    report = project.update(1, observer=swap)
    assert left_out(report) == {"linked.parquet": "vanished", "replaced.parquet": "changed"}
    assert (project.keys(), project.counts().rows, project.counts().inserted) == ("good", 1, 1)
    assert left_out(project.update(2)) == {}
    assert project.keys() == "another good other"
    assert check(project.root).findings == ()


@pytest.mark.parametrize("form", ["csv", "json"])
def test_random_bytes_beside_good_rows(tmp_path: Path, spark: SparkSession, form: str) -> None:
    """Whatever lines of bytes a file holds, the good line after them is loaded and nothing stops the update."""
    chance = random.Random(7)  # noqa: S311 - bytes of a test
    signs: Any = b'{}[]",:\\\n\r\t\x00 kbe0123456789-+.eE\xc3\xa4\xff/*#'
    project = Project(tmp_path / "project", spark, {"a": stream(format=form)})
    good = csv(row("good", 0.9, 3)) if form == "csv" else json.dumps({"k": "good", "b": text(0.9), "e": text(3)}) + "\n"
    for number in range(60):
        noise = bytes(chance.choice(signs) for _ in range(chance.randrange(400)))
        lines = good.encode().split(b"\n") if form == "csv" else [b"", good.encode().strip()]
        project.land(f"{number}.{form}", b"\n".join([lines[0], noise.replace(b'"', b"'"), lines[1], b""]).lstrip(b"\n"))
    report = project.update(1)
    assert set(left_out(report).values()) <= {"unknown_columns"}
    assert project.keys().split().count("good") == 60 - len(left_out(report))


@pytest.mark.parametrize("value", ["/x: No space left on device", "[SPARK_JOB_CANCELLED] Job 1 cancelled"])
def test_a_value_that_reads_like_a_failure_of_the_machine(tmp_path: Path, spark: SparkSession, value: str) -> None:
    """A view that fails on it is set aside as on any other value: what a row says is never taken for what the machine did."""
    views = {"numbers": {"sql": "SELECT k, CAST(k AS int) AS n FROM a", "search_key": "k"}}
    project = Project(tmp_path / "project", spark, views=views)
    project.land("1.csv", csv(row(f'"{value}"', 0.5, 4)))
    report = project.update(1)
    assert [view for view, _ in report.failed_views] == ["numbers"]
    assert project.keys() == value
