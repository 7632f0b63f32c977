"""Bad files are left out and bad rows kept with their reason; the good rows beside them are loaded."""

from __future__ import annotations

import bz2
import gzip
import lzma
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.operations.projects import Project, StoppedError, at, csv, row, stop_at, stream, text
from warehouse.epochs.points import Moment, Point
from warehouse.errors import LandingError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.operations.update import UpdateReport

WIDE = {
    "k": "string",
    "b": "timestamp",
    "ttl": "int",
    "v": "double",
    "flag": "boolean",
    "day": "date",
    "n": "decimal(5,2)",
}
HEADER = "ttl,k,b,v,flag,day,n"


def wide(**changes: object) -> dict[str, object]:
    """Return a stream with a column of each simple type and an expiry that divides by zero where ttl is 7."""
    expires = "timestampadd(SECOND, (3600 div (ttl - 7)) * 0 + ttl, ts)"
    return stream(columns=WIDE, expires=expires, **changes)


def left_out(report: UpdateReport) -> dict[str, str]:
    """Return the reason for each file that an update left out."""
    return {entry.file.path: entry.reason for _, entry in report.left_out}


def reasons(project: Project) -> dict[tuple[str, int], str]:
    """Return the reason for each rejected record."""
    return {(entry["file"], entry["record"]): entry["reason"] for entry in project.rejected()}


def test_every_bad_csv_record_is_kept_with_its_reason(tmp_path: Path, spark: SparkSession) -> None:
    """Short, long and mistyped records, failing expressions and impossible times are rejected one by one."""
    project = Project(tmp_path / "project", spark, {"a": wide()})
    good = text(0.9)
    records = {
        f"3600,ok,{good},1.5,true,2024-01-01,1.25": None,
        f"3600,short,{good}": "malformed",
        f"3600,long,{good},1,true,2024-01-01,1,9,9": "malformed",
        f"x,ttl,{good},1,true,2024-01-01,1": "mistyped",
        f"99999999999,ttl,{good},1,true,2024-01-01,1": "mistyped",
        f"3600,v,{good},zz,true,2024-01-01,1": "mistyped",
        f"3600,flag,{good},1,maybe,2024-01-01,1": "mistyped",
        f"3600,day,{good},1,true,someday,1": "mistyped",
        f"3600,n,{good},1,true,2024-01-01,123456": "mistyped",
        "3600,b,yesterday,1,true,2024-01-01,1": "mistyped",
        "3600,b,12:30,1,true,2024-01-01,1": "mistyped",  # Spark would take it for today's
        "3600,b, T7:30:05,1,true,2024-01-01,1": "mistyped",
        f"7,zero,{good},1,true,2024-01-01,1": "expires_failed",
        f"-5,negative,{good},1,true,2024-01-01,1": "expires_before_arrival",
        "3600,late,,1,true,,": "null_arrival",
        f",never,{good},1,true,,": "null_expiry",
        f"3600,{'x' * 9000},{good},,,,": "key_too_long",
        f"3600,ahead,{text(24 * 365 * 30)},,,,": "too_far_ahead",
        f'3600,"",{good},"","",,': None,
        f"3600,,{good},,,,": None,
    }
    project.land("k=1/sp ace[1]%20ü.csv", csv(*records, header=HEADER))
    project.land("g.csv.gz", gzip.compress(csv(f"x,gz,{good},1,true,,", header=HEADER).encode()))
    project.update(1)
    expected = {
        ("k=1/sp ace[1]%20ü.csv", number): reason for number, reason in enumerate(records.values(), 1) if reason
    } | {("g.csv.gz", 1): "mistyped"}
    assert reasons(project) == expected
    rejected = {entry["record"]: entry for entry in project.rejected() if entry["file"] != "g.csv.gz"}
    assert rejected[2]["raw"] == f"3600,short,{good}"
    assert rejected[4]["message"] == 'column "ttl": "x" is no int'
    assert all(entry["message"] and entry["raw"] and entry["epoch"] == 0 for entry in rejected.values())
    live = project.live()
    assert sorted((entry["k"] is None, entry["k"] or "") for entry in live) == [(False, ""), (False, "ok"), (True, "")]
    counts = project.counts()
    assert (counts.rows, counts.inserted, counts.rejected) == (len(records) + 1, 3, len(expected))


def test_unreadable_csv_files_are_left_out_and_block_nothing(tmp_path: Path, spark: SparkSession) -> None:
    """Damaged gzip, foreign, doubled or missing columns: each file is named with its reason, the good files are loaded."""
    project = Project(tmp_path / "project", spark)
    whole = gzip.compress(csv(*(row(f"t{number}", 0.9, 3) for number in range(20_000))).encode(), mtime=0)
    project.land("good.csv", csv(row("good", 0.9, 3)))
    project.land("cut.csv.gz", whole[: len(whole) * 3 // 4])
    project.land("garbage.csv.gz", b"this is no gzip")
    project.land("unknown.csv", csv(row("u", 0.9, 3) + ",1", header="k,b,e,zz"))
    project.land("doubled.csv", csv(row("d", 0.9, 3) + ",1", header="k,b,e,K"))
    project.land("keyless.csv", csv(f"{text(0.9)},{text(3)}", header="b,e"))
    project.land("zero.csv", "")
    project.land("zero.csv.gz", b"")
    project.land("header.csv", csv())
    project.land("windows.csv", "\ufeffb,k,e\r\n" + f"{text(0.9)},crlf,{text(3)}\r\n")
    project.land("blank.csv", "\n\nk,b,e\n\n" + row("blank", 0.9, 3) + "\n")
    for name in (".hidden.csv", "_started.csv", "writing.tmp", "_dir/x.csv"):
        project.land(name, csv(row(name, 0.9, 3)))
    (project.directory / "landing/a/link.csv").symlink_to("/etc/passwd")
    report = project.update(1)
    assert left_out(report) == {
        "cut.csv.gz": "unreadable",
        "garbage.csv.gz": "unreadable",
        "unknown.csv": "unknown_columns",
        "doubled.csv": "header",
        "keyless.csv": "header",
    }
    assert project.keys() == "blank crlf good"
    second = project.update(2)
    assert left_out(second) == {}
    assert len(second.landing[0].unreadable) == 5
    project.land("unknown.csv", csv(row("mended", 1.5, 6)))
    project.update(2.5)
    assert project.keys() == "blank crlf good", "the window does not move, so nothing is loaded"
    assert left_out(project.update(3)) == {}
    assert project.keys() == "mended"


def test_bad_json_lines_and_files(tmp_path: Path, spark: SparkSession) -> None:
    """A line that is not one whole object of the declared types is rejected; undeclared names reject the file."""
    project = Project(tmp_path / "project", spark, {"a": wide(format="json")})
    good = f'"b":"{text(0.9)}","ttl":3600'
    lines = {
        f'{{"k":"a",{good},"v":1,"flag":true,"day":"2024-01-01","n":1.25}}': None,
        f'{{"k":"ttl","b":"{text(0.9)}","ttl":"x"}}': "mistyped",
        '{"k":"b","b":"12:30","ttl":3600}': "mistyped",
        f'{{"k":"12:30",{good}}}': None,
        '[{"k":"list"}]': "malformed",
        '"text"': "malformed",
        '{"k":': "malformed",
        "12": "malformed",
        "null": "malformed",
        f"{{{good}}}": None,
    }
    project.land("a.json", "".join(line + "\n" for line in lines))
    project.land("b.json.gz", gzip.compress(f'{{"k":"b",{good}}}\n'.encode()))
    project.land("c.json", f'{{"k":"c",{good},"zz":1}}\n')
    project.land("d.json", f'{{"K":"d",{good}}}\n')
    project.land("cut.json.gz", gzip.compress(b'{"k":"a"}\n' * 5000, mtime=0)[:60])
    project.land("e.json.xz", lzma.compress(f'{{"k":"e",{good}}}\n'.encode()))
    for name, compress in (("bzip2.json.bz2", bz2.compress), ("zstd.json.zst", partial(pa.compress, codec="zstd", asbytes=True))):
        line = f'{{"k":"{name}",{good}}}\n'.encode()
        project.land(name, compress(line) + compress(b"{}\n"))
        project.land(f"cut.{name}", compress(line * 5000)[:60])
        project.land(f"foreign.{name}", line)
    report = project.update(1)
    assert left_out(report) == {
        "c.json": "unknown_columns", "d.json": "unknown_columns", "cut.json.gz": "unreadable", "e.json.xz": "name",
        "cut.bzip2.json.bz2": "unreadable", "cut.zstd.json.zst": "unreadable",
        "foreign.bzip2.json.bz2": "unreadable", "foreign.zstd.json.zst": "unreadable",
    }  # fmt: skip
    bad = {("a.json", number): reason for number, reason in enumerate(lines.values(), 1) if reason}
    assert reasons(project) == bad | {("bzip2.json.bz2", 2): "null_arrival", ("zstd.json.zst", 2): "null_arrival"}
    assert sorted(str(entry["k"]) for entry in project.live()) == [
        "12:30", "None", "a", "b", "bzip2.json.bz2", "zstd.json.zst",
    ]  # fmt: skip


def test_bad_parquet_files_and_values(tmp_path: Path, spark: SparkSession) -> None:
    """A file with a bad footer, damaged pages, a nested or an undeclared column is left out; a bad value rejects its row."""
    project = Project(tmp_path / "project", spark, {"a": wide(format="parquet")})

    def land(name: str, key: Any, ttl: Any, stamp: pa.DataType | None = None, **more: Any) -> None:  # noqa: ANN401 - values
        kind = stamp or pa.timestamp("us", "UTC")
        table = pa.table({"k": [key], "b": pa.array([at(0.9)], kind), "ttl": [ttl], **more})
        pq.write_table(table, project.land(name, ""))

    land("a.parquet", "a", 3600)
    land("local.parquet", "local", "3600", pa.timestamp("us"))
    land("bad.parquet", "bad", "x")
    for name, stamp in (("text.parquet", text(0.9)), ("just.parquet", "12:30")):
        pq.write_table(pa.table({"k": [name[:4]], "b": [stamp], "ttl": [3600]}), project.land(name, ""))
    land("nested.parquet", [1], 3600)
    land("extra.parquet", "extra", 3600, more=[1])
    project.land("footer.parquet", b"PAR1 and then nothing")
    project.land("zero.parquet", b"")
    many = 20_000
    table = pa.table({"k": [f"x{n}" for n in range(many)], "b": pa.array([at(0.9)] * many, pa.timestamp("us", "UTC"))})
    damaged = project.land("damaged.parquet", "")
    pq.write_table(table, damaged, compression="none", use_dictionary=False)
    content = bytearray(damaged.read_bytes())
    content[200:4000] = b"\xff" * 3800
    damaged.write_bytes(bytes(content))
    report = project.update(1)
    assert left_out(report) == {
        "nested.parquet": "mistyped",
        "extra.parquet": "unknown_columns",
        "footer.parquet": "unreadable",
        "damaged.parquet": "unreadable",
    }
    assert reasons(project) == {("bad.parquet", 1): "mistyped", ("just.parquet", 1): "mistyped"}
    assert project.keys() == "a local text"


@pytest.mark.parametrize("change", ["grow", "vanish"])
def test_a_file_that_changes_between_plan_and_read_is_left_out(
    tmp_path: Path, spark: SparkSession, change: str
) -> None:
    """The file is no longer the planned file, so it is left out, and the next update loads it as it is then."""
    project = Project(tmp_path / "project", spark)
    project.land("stays.csv", csv(row("stays", 0.9, 4)))
    path = project.land("moves.csv", csv(row("moves", 0.9, 4)))

    def observe(moment: Moment) -> None:
        if moment.point == Point.PLAN_WRITTEN:
            path.unlink() if change == "vanish" else path.write_text(csv(row("moves", 0.9, 4), row("more", 0.9, 4)))

    report = project.update(1, observer=observe)
    assert left_out(report) == {"moves.csv": "changed" if change == "grow" else "vanished"}
    assert project.keys() == "stays"
    project.update(2)
    assert project.keys() == ("more moves stays" if change == "grow" else "stays")


def test_a_loaded_file_is_loaded_once_and_again_only_on_request(tmp_path: Path, spark: SparkSession) -> None:
    """A changed file is reported and not loaded until ``reload``; an unchanged file is never loaded again."""
    project = Project(tmp_path / "project", spark)
    project.land("a.csv", csv(row("a", 0.9, 4)), mtime=at(0))
    project.update(1)
    project.land("a.csv", csv(row("b", 1.5, 4)), mtime=at(1))
    report = project.update(2)
    assert [file.path for file in report.landing[0].changed] == ["a.csv"]
    assert project.keys() == "a"
    project.updater().reload("landing/a/a.csv")
    assert project.keys() == "a"
    project.update(3)
    assert project.keys() == "a b"
    assert project.update(3.5).landing[0].changed == ()
    (project.directory / "landing/a/a.csv").unlink()
    assert [project.update(hour).landing[0].vanished for hour in (4, 5)] == [1, 0]


def test_a_missing_landing_directory_is_an_error_and_nothing_is_written(tmp_path: Path, spark: SparkSession) -> None:
    """It is not nothing to do: the message names the directory."""
    project = Project(tmp_path / "project", spark)
    (project.directory / "landing/a").rmdir()
    with pytest.raises(LandingError, match="landing/a does not exist"):
        project.update(1)
    assert project.numbers == []


def test_many_files_are_loaded_in_several_epochs_with_the_same_rows(
    tmp_path: Path, spark: SparkSession, set_limits: Callable[..., object]
) -> None:
    """A plan names a bounded number of files; the rest follow at the same window time, with the same load slots."""
    lines = [row(f"k{number}", 0.5 + number / 10, 4) for number in range(5)]
    pictures = []
    for cap in (100, 2):
        set_limits(files_per_plan=cap)
        project = Project(tmp_path / str(cap), spark)
        for number, line in enumerate(lines):
            project.land(f"{number}.csv", csv(line))
        report = project.update(1)
        assert len(report.epochs) == (1 if cap == 100 else 3)
        pictures.append([{**entry, "_load_slot": entry["_load_slot"]} for entry in project.live()])
    assert pictures[0] == pictures[1]


def test_a_file_that_settles_waits(tmp_path: Path, spark: SparkSession) -> None:
    """With ``landing_settle`` a file younger than that is left for a later update."""
    project = Project(tmp_path / "project", spark, {"a": stream(landing_settle="10m")}, clock=at(1))
    project.land("old.csv", csv(row("old", 0.5, 4)), mtime=at(0.5))
    project.land("young.csv", csv(row("young", 0.5, 4)), mtime=at(0.95))
    report = project.update(1)
    assert (project.keys(), report.landing[0].settling) == ("old", 1)
    project.clock = at(2)
    project.update(2)
    assert project.keys() == "old young"


def test_a_stop_while_reading_leaves_no_trace(tmp_path: Path, spark: SparkSession) -> None:
    """A row rejected in an update that is stopped and finished is kept once."""
    project = Project(tmp_path / "project", spark)
    project.land("a.csv", csv(row("a", 0.5, 4), "short"))
    with pytest.raises(StoppedError):
        project.update(1, observer=stop_at(Point.STEP_COMMITTED, 1))
    project.update(1)
    assert reasons(project) == {("a.csv", 2): "malformed"}
