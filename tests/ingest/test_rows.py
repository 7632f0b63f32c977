"""Rows one by one: the meaning of their text, their fate, and their position in the file."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.operations.projects import Project, at, csv, row, stream, text
from warehouse.time import to_micros

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def reasons(project: Project, table: str = "a") -> dict[int, str]:
    """Return the reason for each rejected record of a single file."""
    return {entry["record"]: entry["reason"] for entry in project.rejected(table)}


def test_a_lifetime_beyond_the_bound_is_accepted_clamped_or_rejected(tmp_path: Path, spark: SparkSession) -> None:
    """And rows that expire by T are dead, rows ahead of it wait, however short they live; null expiry is rejected or never.

    ::

        S = 4h, T = 2     b          e
        over              1 -------------------> 9
        dead              1 ----> 2
        at once           1
        ahead at once              3
    """
    lines = (
        row("over", 1, 9),
        row("just", 1, 5),
        row("dead", 1, 2),
        row("at-once", 1, 1),
        row("ahead-at-once", 3, 3),
        row("backwards", 1, 0.5),
        f"endless,{text(1)},",
        f"ever,{text(1)},9999-12-31T23:59:59.999999Z",
    )
    streams = {
        name: stream(landing=f"landing/{name}", **keys)
        for name, keys in {
            "accept": {},
            "clamp": {"over_lifetime": "clamp", "null_expiry": "never"},
            "refuse": {"over_lifetime": "reject"},
        }.items()
    }
    project = Project(tmp_path / "project", spark, streams)
    for name in streams:
        project.land("1.csv", csv(*lines), landing=f"landing/{name}")
    project.update(2)
    assert project.keys("accept") == "ever just over"
    assert project.keys("clamp") == "endless ever just over"
    assert project.keys("refuse") == "ever just"
    assert {name: reasons(project, name) for name in streams} == {
        "accept": {6: "expires_before_arrival", 7: "null_expiry"},
        "clamp": {6: "expires_before_arrival"},
        "refuse": {1: "over_lifetime", 6: "expires_before_arrival", 7: "null_expiry"},
    }
    ends = {entry["k"]: to_micros(entry["_exp"]) for entry in project.live("clamp")}
    assert (ends["over"], ends["just"]) == (at(5), at(5))
    counts = {name: project.counts(name) for name in streams}
    assert {name: (entry.dead, entry.deferred) for name, entry in counts.items()} == dict.fromkeys(streams, (2, 1))
    assert {name: entry.over_lifetime for name, entry in counts.items()} == {"accept": 1, "clamp": 1, "refuse": 0}
    project.update(6)
    counts = {name: project.counts(name) for name in streams}
    assert {name: (entry.dead, entry.taken) for name, entry in counts.items()} == dict.fromkeys(streams, (1, 1))
    assert project.keys("accept") == "ever over"
    assert project.keys("clamp") == "endless ever"


def test_times_beyond_the_calendar_are_rejected_rows(tmp_path: Path, spark: SparkSession) -> None:
    """However far out, in whatever combination: no row makes the job fail."""
    project = Project(tmp_path / "project", spark, {"a": stream(over_lifetime="clamp")})
    far, ancient = "+294247-01-10T04:00:54Z", "-290308-12-21T19:59:06Z"
    project.land(
        "1.csv",
        csv(
            row("good", 0.5, 3),
            f"a,{ancient},{far}",
            f"b,{far},{far}",
            f"c,{ancient},{text(3)}",
            f"d,{text(0.5)},+10000-01-01T00:00:00Z",
            "e,0000-12-31T23:59:59Z,2024-01-01T03:00:00Z",
            "f,0001-01-01T00:00:00Z,2024-01-01T03:00:00Z",
            f"g,{text(0.5)},{ancient}",
        ),
    )
    project.update(1)
    assert project.keys() == "good"
    rejected = reasons(project)
    assert rejected.pop(8) in {"out_of_range", "expires_before_arrival"}
    assert rejected == dict.fromkeys([2, 3, 4, 5, 6], "out_of_range")
    assert project.counts().dead == 1  # f: clamped to four hours in the year 1


def test_a_failing_expression_rejects_its_row_only(tmp_path: Path, spark: SparkSession) -> None:
    """A cast, a division by zero, an overflow, an array index: in arrival as in expires."""
    columns = {"k": "string", "b": "string", "n": "bigint"}
    keys = {
        "columns": columns,
        "arrival": "CASE WHEN n = 3 THEN timestampadd(HOUR, cast(b AS int), timestamp_micros(0)) ELSE cast(b AS timestamp) END",
        "expires": "CASE k WHEN 'zero' THEN timestampadd(HOUR, 1 div n, ts) "
        "WHEN 'over' THEN timestampadd(SECOND, cast(n * 9000000000000000000 AS int), ts) "
        "WHEN 'array' THEN timestampadd(HOUR, array(1, 2)[n], ts) ELSE ts + INTERVAL 2 HOURS END",
    }
    project = Project(tmp_path / "project", spark, {"a": stream(**keys)})
    good = text(0.5)
    project.land(
        "1.csv",
        csv(f"ok,{good},1", "cast,nonsense,1", f"zero,{good},0", f"over,{good},2", f"array,{good},5", header="k,b,n"),
    )
    project.land("2.csv.gz", gzip.compress(csv("arrival,x,3", f"ok2,{good},1", header="k,b,n").encode()))
    project.update(1)
    assert project.keys() == "ok ok2"
    assert {(entry["file"], entry["record"]): entry["reason"] for entry in project.rejected()} == {
        ("1.csv", 2): "arrival_failed",
        ("1.csv", 3): "expires_failed",
        ("1.csv", 4): "expires_failed",
        ("1.csv", 5): "expires_failed",
        ("2.csv.gz", 1): "arrival_failed",
    }
    assert all("fails on this row" in entry["message"] for entry in project.rejected())


def test_waiting_rows_are_judged_anew_when_their_slot_comes(tmp_path: Path, spark: SparkSession) -> None:
    """By the current declaration; each is counted as taken, and keeps the file and the record that it came from."""
    project = Project(tmp_path / "project", spark)
    project.land("x/1.csv", csv("short", row("a", 1.5, 6), row("b", 2.5, 9), row("c", 2.5, 4), row("d", 3.5, 6)))
    project.update(1, allow_dead=True)
    assert [(waiting["k"], waiting["_slot"], waiting["_record"]) for waiting in project.deferred()] == [
        ("a", 2, 2),
        ("b", 3, 3),
        ("c", 3, 4),
        ("d", 4, 5),
    ]
    project.change(over_lifetime="reject")
    project.update(3)
    assert project.keys() == "c"
    counts = project.counts()
    assert (counts.taken, counts.rows, counts.inserted, counts.rejected, counts.late) == (3, 0, 1, 2, 0)
    assert [(entry["file"], entry["record"], entry["reason"], entry["epoch"]) for entry in project.rejected()] == [
        ("x/1.csv", 1, "malformed", 0),
        ("x/1.csv", 2, "over_lifetime", 1),
        ("x/1.csv", 3, "over_lifetime", 1),
    ]
    assert all(entry["raw"] for entry in project.rejected())
    assert [waiting["k"] for waiting in project.deferred()] == ["d"]
    project.update(9)
    assert (project.keys(), project.counts().dead, project.deferred()) == ("", 1, [])


def test_late_rows_are_loaded_now(tmp_path: Path, spark: SparkSession) -> None:
    """They get the load slot after the last processed slot; on a first build nothing is late."""
    project = Project(tmp_path / "project", spark)
    project.land("1.csv", csv(row("old", -9, 5)))
    project.update(2)
    assert [(entry["_load_slot"], project.counts().late) for entry in project.live()] == [(-1, 0)]
    project.land("2.csv", csv(row("late", 1, 6), row("border", 2, 6), row("new", 2.1, 6), row("newer", 4, 7)))
    project.update(4)
    assert {entry["k"]: entry["_load_slot"] for entry in project.live() if entry["k"] != "old"} == {
        "late": 3,
        "border": 3,
        "new": 3,
        "newer": 4,
    }
    assert project.counts().late == 2


def test_local_times_are_read_in_the_time_zone_of_the_stream(tmp_path: Path, spark: SparkSession) -> None:
    """A gap shifts forward, of an overlap the earlier is meant, an offset in the text wins; each stream has its own.

    New York: 2024-03-10 02:00 to 03:00 is not there, 2024-11-03 01:00 to 02:00 is there twice.
    """
    lines = {
        "plain": ("2024-01-01 00:30:00", "2024-01-01T05:30:00Z"),
        "gap": ("2024-03-10 02:30:00", "2024-03-10T07:30:00Z"),
        "overlap": ("2024-11-03 01:30:00", "2024-11-03T05:30:00Z"),
        "offset": ("2024-11-03T01:30:00-05:00", "2024-11-03T06:30:00Z"),
        "zulu": ("2024-11-03T01:30:00Z", "2024-11-03T01:30:00Z"),
        "micro": ("2024-01-01 00:30:00.123456", "2024-01-01T05:30:00.123456Z"),
    }
    zone = {"timezone": "America/New_York", "expires": None, "max_lifetime": None}
    streams = {
        "text": stream(landing="landing/text", columns={"k": "string", "b": "timestamp"}, **zone),
        "json": stream(landing="landing/json", columns={"k": "string", "b": "timestamp"}, format="json", **zone),
        "parquet": stream(landing="landing/parquet", columns={"k": "string", "b": "timestamp"}, format="parquet", **zone),
        "utc": stream(landing="landing/utc", columns={"k": "string", "b": "timestamp"}, **{**zone, "timezone": "UTC"}),
        "made": stream(
            landing="landing/made", columns={"k": "string", "d": "string"}, **{**zone, "arrival": "to_timestamp(d)"}
        ),
        "form": stream(
            landing="landing/form",
            columns={"k": "string", "b": "timestamp"},
            options={"timestampFormat": "dd/MM/yyyy HH:mm", "delimiter": ";"},
            **zone,
        ),
    }
    project = Project(tmp_path / "project", spark, streams)
    project.land("1.csv", csv(*(f"{key},{written}" for key, (written, _) in lines.items()), header="k,b"), landing="landing/text")
    project.land("1.csv", csv(*(f"{key},{written}" for key, (written, _) in lines.items()), header="k,d"), landing="landing/made")
    project.land("1.csv", csv("plain,2024-01-01 00:30:00", header="k,b"), landing="landing/utc")
    project.land("1.csv", csv("gap;10/03/2024 02:30", "bad;2024-03-10 02:30", header="k;b"), landing="landing/form")
    project.land(
        "1.json",
        "".join(f'{{"k":"{key}","b":"{written}"}}\n' for key, (written, _) in lines.items()),
        landing="landing/json",
    )
    local = pa.array([to_micros_of("2024-03-10T02:30:00"), to_micros_of("2024-11-03T01:30:00")], pa.timestamp("us"))
    pq.write_table(
        pa.table({"k": ["gap", "overlap"], "b": local}),
        project.land("1.parquet", "", landing="landing/parquet"),
    )
    project.clock = at(24 * 400)
    project.update(24 * 366)
    expected = {key: to_micros_of(meant) for key, (_, meant) in lines.items()}

    def found(table: str) -> dict[str, int]:
        return {entry["k"]: to_micros(entry["_ts"]) for entry in project.live(table)}

    assert found("text") == expected
    assert found("made") == expected
    assert found("json") == expected
    assert found("parquet") == {key: expected[key] for key in ("gap", "overlap")}
    assert found("utc") == {"plain": at(0.5)}
    assert found("form") == {"gap": expected["gap"]}
    assert reasons(project, "form") == {2: "mistyped"}


def to_micros_of(moment: str) -> int:
    """Return the microseconds of ISO text."""
    from warehouse.time import parse_instant  # noqa: PLC0415 - one use

    return parse_instant(moment)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_records_are_numbered_through_splits_and_blank_lines(tmp_path: Path, spark: SparkSession, form: str) -> None:
    """From 1, without the header and without blank lines, though Spark reads a file in several tasks."""
    project = Project(tmp_path / "project", spark, {"a": stream(format=form)})
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    number = 600

    def line(index: int) -> str:
        if form == "csv":
            return "bad" if index % 100 == 0 else row(f"k{index}", 0.5, 3)
        return "bad" if index % 100 == 0 else f'{{"k":"k{index}","b":"{text(0.5)}","e":"{text(3)}"}}'

    lines = [line(index) for index in range(1, number + 1)]
    for index in (500, 250, 60, 0):
        lines.insert(index, "")
    content = "\n".join((["k,b,e"] if form == "csv" else []) + lines) + "\n"
    project.land(f"1.{form}", content)
    project.land(f"0.{form}.gz", gzip.compress(content.encode()))
    spark.conf.set("spark.sql.files.maxPartitionBytes", "4096")
    try:
        project.update(1)
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before or "128m")
    hundreds = [100, 200, 300, 400, 500, 600]
    assert [(entry["file"], entry["record"]) for entry in project.rejected()] == [
        (name, record) for name in (f"0.{form}.gz", f"1.{form}") for record in hundreds
    ]
    assert project.counts().rows == 2 * number
    assert project.counts().inserted == 2 * number - 2 * len(hundreds)


def test_text_of_a_csv_file_means_what_the_standard_says(tmp_path: Path, spark: SparkSession) -> None:
    """Doubled quotes, separators in quotes, empty and missing fields; a record ends with its line, quotes or not."""
    columns = {"k": "string", "b": "timestamp", "e": "timestamp", "v": "string"}
    project = Project(tmp_path / "project", spark, {"a": stream(columns=columns)})
    times = f"{text(0.5)},{text(3)}"
    values = {
        "plain": ("plain", "plain"),
        "separator": ('"a,b"', "a,b"),
        "doubled": ('"say ""hi"", twice"', 'say "hi", twice'),
        "empty": ('""', ""),
        "missing": ("", None),
        "spaces": ("  kept ", "  kept "),
        "backslash": (r'"C:\dir\"', "C:\\dir\\"),
        "null": ("NULL", "NULL"),
        "umlaut": ("größe", "größe"),
    }
    lines = [f"{key},{times},{written}" for key, (written, _) in values.items()]
    project.land("1.csv", csv(*lines, f'broken,{times},"one', 'two"', header="k,b,e,v"))
    project.land("2.csv", csv(f"{text(3)},other,{text(0.5)}", header=" E ,K,b"))
    project.update(1)
    texts = {entry["k"]: entry["v"] for entry in project.live() if entry["k"] != "broken"}
    assert texts == {**{key: meant for key, (_, meant) in values.items()}, "other": None}
    assert reasons(project)[len(values) + 2] == "malformed"


def test_delimiters_encodings_and_null_words(tmp_path: Path, spark: SparkSession) -> None:
    """Options mean the same for the header as for the rows, whatever their spelling."""
    columns = {"größe": "string", "b": "timestamp", "e": "timestamp", "n": "int"}
    times = (text(0.5), text(3))
    variants: dict[str, tuple[dict[str, str], str, str]] = {
        "tab": ({"sep": "\t"}, "\t", "utf-8"),
        "pipe": ({"Delimiter": "|"}, "|", "utf-8"),
        "twofold": ({"delimiter": "||"}, "||", "utf-8"),
        "latin": ({"encoding": "ISO-8859-1", "delimiter": ";"}, ";", "latin-1"),
        "words": ({"charset": "ISO-8859-1", "nullValue": "NA"}, ",", "latin-1"),
        "quote": ({"quote": "'", "comment": "#"}, ",", "utf-8"),
    }
    streams = {
        name: stream(landing=f"landing/{name}", columns=columns, search_key="größe", options=options)
        for name, (options, _, _) in variants.items()
    }
    project = Project(tmp_path / "project", spark, streams)
    for name, (_, separator, encoding) in variants.items():
        null = "NA" if name == "words" else ""
        key = f"'ä{separator}ö'" if name == "quote" else "äö"
        lines = [["größe", "b", "e", "n"], [key, *times, null], ["x", *times, "7"]]
        written = "\n".join(separator.join(parts) for parts in lines) + "\n"
        project.land("1.csv", (("# a note\n" if name == "quote" else "") + written).encode(encoding), landing=f"landing/{name}")
    report = project.update(1)
    assert [(name, entry.message) for name, entry in report.left_out] == []
    for name in variants:
        key = "ä,ö" if name == "quote" else "äö"
        assert sorted((entry["größe"], entry["n"]) for entry in project.live(name)) == [("x", 7), (key, None)], name


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_unknown_columns_may_be_ignored(tmp_path: Path, spark: SparkSession, form: str) -> None:
    """Their values are passed over, wherever they stand; a column that is missing is null."""
    project = Project(tmp_path / "project", spark, {"a": stream(format=form, unknown_columns="ignore", null_expiry="never")})
    if form == "csv":
        project.land("1.csv", csv(f"9,a,zz,{text(0.5)}", header="more,k,yet more,b"))
    elif form == "json":
        project.land("1.json", f'{{"more":{{"x":[1]}},"k":"a","b":"{text(0.5)}","K":"other"}}\n')
    else:
        stamps = pa.array([at(0.5)], pa.timestamp("us", "UTC"))
        pq.write_table(pa.table({"more": [[1]], "K": ["a"], "b": stamps}), project.land("1.parquet", ""))
    report = project.update(1)
    assert [entry.message for _, entry in report.left_out] == []
    assert [(entry["k"], entry["e"]) for entry in project.live()] == [("a", None)]


def test_files_are_found_by_name_wherever_they_are(tmp_path: Path, spark: SparkSession) -> None:
    """A pattern is for the name, or for the path when it has a slash; a file that another program still writes is left alone."""
    streams = {
        "names": stream(landing="landing/names", files="*.csv"),
        "paths": stream(landing="landing/paths", files="in/*/*.csv"),
    }
    project = Project(tmp_path / "p:r#o %41ject", spark, streams)
    for landing in streams:
        for name in ("a.csv", "in/b.csv", "in/x/c.csv", "in/x/{d},[e]?*.csv", "in/k=v/f#1.csv", "in/y/100%.csv", "n.txt"):
            project.land(name, csv(row(name, 0.5, 3)), landing=f"landing/{landing}")
        project.land("in/x/part.csv._COPYING_", csv(row("copying", 0.5, 3)), landing=f"landing/{landing}")
        project.land("in/x/_tmp/g.csv", csv(row("g", 0.5, 3)), landing=f"landing/{landing}")
    outside = project.land("outside/secret.csv", csv(row("secret", 0.5, 3)), landing="elsewhere")
    (project.directory / "landing/names/link.csv").symlink_to(outside)
    (project.directory / "landing/names/inside.csv").symlink_to(project.directory / "landing/names/a.csv")
    (project.directory / "landing/names/up").symlink_to(project.directory / "elsewhere")
    report = project.update(1)
    assert report.left_out == ()
    deep = {"in/x/c.csv", "in/x/{d},[e]?*.csv", "in/k=v/f#1.csv", "in/y/100%.csv"}
    all_files = {"a.csv", "in/b.csv", *deep}
    loaded = {entry.stream: {file.path for file in entry.loaded} for entry in project.epoch.files}
    assert loaded == {"names": all_files | {"inside.csv"}, "paths": deep}


def test_a_file_that_spark_would_skip_is_never_counted_as_loaded(tmp_path: Path, spark: SparkSession) -> None:
    """Spark passes over names of copies in progress; they are left alone until they have their own name."""
    project = Project(tmp_path / "project", spark)
    copying = project.land("a.csv._COPYING_", csv(row("a", 0.5, 3)))
    project.update(1)
    assert project.counts().files == 0
    copying.rename(copying.with_name("a.csv"))
    project.update(2)
    assert project.keys() == "a"


def test_a_poisonous_line_costs_its_own_row_or_file_only(tmp_path: Path, spark: SparkSession) -> None:
    """A line of thousands of fields, of megabytes, of bytes that are no text; the kept part of it is bounded."""
    project = Project(tmp_path / "project", spark)
    long = "x" * 3_000_000
    project.land("many.csv", csv(row("m", 0.5, 3), "," * 30_000))
    project.land("long.csv", csv(row("l", 0.5, 3), f"{long},{text(0.5)},{text(3)}", f"{'ä' * 200_000},1"))
    project.land("bytes.csv", b"k,b,e\n" + row("b", 0.5, 3).encode() + b"\n\x00\xff\xfe,\x00,\x01\n")
    project.land("good.csv", csv(row("g", 0.5, 3)))
    report = project.update(1)
    assert {entry.file.path for _, entry in report.left_out} <= {"many.csv"}
    assert {"b", "g", "l"} <= set(project.keys().split())
    rejected = {(entry["file"], entry["record"]): entry for entry in project.rejected()}
    assert rejected["long.csv", 2]["reason"] == "key_too_long"
    assert rejected["bytes.csv", 2]["reason"] == "mistyped"
    assert all(len(entry["raw"].encode()) <= 64 * 1024 for entry in rejected.values())
