"""Logfmt and syslog: fields of lines with the types of columns, the year that syslog does not say; misfits with their reason."""

from __future__ import annotations

import bz2
import gzip
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.catalog.project import problems
from tests.ingest.records import declared, left_out, read
from tests.operations.erasure.test_landing import _found
from tests.operations.projects import Project, stream, text
from warehouse.catalog.logfmt import logfmt_fields
from warehouse.catalog.syslog import syslog_fields
from warehouse.ingest.landing import list_landing
from warehouse.ingest.lines import FAULT, line_records
from warehouse.objects.path import ObjectPath
from warehouse.time import parse_instant

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

NEVER: dict[str, Any] = {"expires": None, "max_lifetime": None}
LOGFMT: dict[str, Any] = {
    "format": "logfmt",
    "arrival": "ts",
    "search_key": "host",
    "columns": {
        "ts": "timestamp",
        "host": {"type": "string", "from": "http.host"},
        "msg": "string",
        "took": {"type": "double", "format": "duration"},
        "code": "int",
    },
    **NEVER,
}
SYSLOG: dict[str, Any] = {
    "format": "syslog",
    "arrival": "moment",
    "search_key": "host",
    "columns": {"moment": "timestamp", "host": "string", "program": "string", "pid": "string", "message": "string"},
    **NEVER,
}
TS = "ts=2024-05-13T08:00:00Z http.host=h1"
QUOTED = (
    r'"GET \"/\" it\'s"', r'"\x1b[31mred \u00fc \\x1b"', r'"C:\Users\\n"', '"a=1 b=\t2"', '""', '"\\', "plain=x", '"two"words',
    "", "-", r'"\ud800 \ud83d\ude00"',
)  # fmt: skip


def test_spark_and_python_read_the_same_pairs(tmp_path: Path, spark: SparkSession) -> None:
    """Quotes, escapes of JSON and others, empty and missing values; lines that are no pairs are rejected with that reason."""
    target = declared(tmp_path, **LOGFMT, unknown_columns="ignore", options={"nullValue": "-"})
    lines = [f"{TS} msg={value} code={number} other=x" for number, value in enumerate(QUOTED)]
    lines += [f"{TS} two words", f"{TS} msg=a msg=b", f"{TS} other=a other=b took=1m", f"{TS} took=12ms code=x", f"{TS} CODE=1"]
    rows = read(spark, target, {"a.log": "\n\n".join(lines)})
    for row, line in zip(rows[: len(QUOTED)], lines, strict=False):
        fields = logfmt_fields(line)
        assert ("fault" in row) == (fields is None)
        assert fields is None or row.get("msg") == (fields["msg"] if fields["msg"] != "-" else None)
    assert [row["msg"] for row in rows[:5]] == [
        'GET "/" it\\\'s', "\\x1b[31mred \xfc \\x1b", "C:\\Users\\n", "a=1 b=\t2", "",
    ]  # fmt: skip
    others = rows[len(QUOTED) :]
    assert [(row.get("fault"), row.get("why", "")[-28:]) for row in others] == [
        ("malformed", 's level=info msg="two words"'), ("malformed", "the line has twice: msg"), (None, ""),
        ("mistyped", 'column "code": "x" is no int'), (None, ""),
    ]  # fmt: skip
    assert [row.get("took") for row in others[2:4]] == [60.0, 0.012]
    assert "code" not in others[4]


FORMS = (
    '<34>1 2024-05-01T08:00:00.003Z web su - ID47 [x y="a\\]b"][z q="[in]"] \ufefffailed - x',
    "<165>1 - - - - - -",
    "2024-05-01T08:00:00+02:00 web sshd[7]: Accepted: key",
    "<13>Dec 31 23:00:10 web sshd[17]: Accepted: key",
    "Jan  1 00:00:00.5 web CRON: done",
    "Jan  3 11:00:00 web a: ahead by less than a day",
    "Jan  4 12:00:00 web a: of the year before",
    "Feb 29 08:00:00 web CRON: leap",
    "Feb 29 2023 08:00:00 web CRON: no day",
    "Nov 25 2021 08:00:00 web %ASA-6-1: a device that says its year",
    "Dec 31 23:00:10 web last message repeated 3 times",
    "Dec 31 23:00:10 web a[7] (b): c",
    "Nov 5 08:00:00 web a: a day of one digit",
    "<166>Nov 25 2021 08:00:00: %ASA-6-1: no host",
    "<166>2021-11-25T08:00:00Z fw : %ASA-6-1: a host",
)


def test_forms_of_syslog(tmp_path: Path, spark: SparkSession) -> None:
    """Each form of a line; a year that is not said is the latest in which no line is a day ahead of its file's change."""
    changed = parse_instant("2026-01-02T12:00:00Z")
    project = Project(tmp_path, None)
    project.land("x.log.gz", gzip.compress("\n".join((*FORMS, "Nov 25,14:38:17,host", "x y")).encode()), mtime=changed)
    target = declared(tmp_path, **SYSLOG, timezone="Europe/Berlin")
    rows = read(spark, target, {})
    moments = [row.get("moment", "")[:19] for row in rows]
    assert moments == [
        "2024-05-01 08:00:00", "", "2024-05-01 06:00:00", "2025-12-31 22:00:10", "2025-12-31 23:00:00", "2026-01-03 10:00:00",
        "2025-01-04 11:00:00", "2024-02-29 07:00:00", "", "2021-11-25 07:00:00", "2025-12-31 22:00:10", "2025-12-31 22:00:10",
        "2025-11-05 07:00:00", "2021-11-25 07:00:00", "2021-11-25 08:00:00", "", "",
    ]  # fmt: skip
    parts = [(row.get("program"), row.get("pid"), row.get("message")) for row in rows]
    assert parts[:4] == [
        ("su", None, "failed - x"), (None, None, None), ("sshd", "7", "Accepted: key"), ("sshd", "17", "Accepted: key"),
    ]  # fmt: skip
    assert parts[10:12] == [(None, None, "last message repeated 3 times"), ("a", "7", "c")]
    assert [(row.get("host"), *part) for row, part in zip(rows[13:15], parts[13:15], strict=True)] == [
        (None, "%ASA-6-1", None, "no host"), ("fw", "%ASA-6-1", None, "a host"),
    ]  # fmt: skip
    assert [row.get("fault") for row in rows] == [None] * 8 + ["mistyped", *[None] * 6, "malformed", "malformed"]
    assert "a time, a host" in rows[-1]["why"]
    named = declared(tmp_path / "year", **SYSLOG, options={"year": "1999"})
    assert [row["moment"][:4] for row in read(spark, named, {"y.log": "\n".join(FORMS[3:5])})] == ["1999", "1999"]
    of_store = replace(named, options=(), store=ObjectPath("s3://bucket/logs"))
    (file,) = list_landing(named.landing, "*")
    wrong = line_records(spark, of_store, ("moment", "host"), [str(of_store.landing / file.path)]).select(FAULT, "_c1").collect()
    assert [("has no year" in row[0], row[1]) for row in wrong] == [(True, "web")] * 2


def test_python_reads_syslog_in_the_same_way() -> None:
    """By which the files with a key are found, and ``init --from`` looks at them."""
    parsed = [syslog_fields(line) for line in FORMS]
    assert [fields and (fields["host"], fields["program"]) for fields in parsed[13:]] == [(None, "%ASA-6-1"), ("fw", "%ASA-6-1")]
    assert [fields and (fields["program"], fields["pid"]) for fields in parsed[:4]] == [
        ("su", None), (None, None), ("sshd", "7"), ("sshd", "17"),
    ]  # fmt: skip
    assert parsed[0] is not None
    assert parsed[0]["data"] == '[x y="a\\]b"][z q="[in]"]'
    assert syslog_fields("Nov 25,14:38:17,host") is None


def test_lines_become_rows(tmp_path: Path, spark: SparkSession, set_limits: Callable[..., None]) -> None:
    """Few in the driver, many by Spark: the same rows; compressed; rejected with line and number; undeclared names."""
    keys = {"a": stream(**LOGFMT, max_record="1KB"), "b": stream(**SYSLOG, landing="landing/b")}
    project = Project(tmp_path, spark, keys)
    rows_of_turns = []
    for number, limits in enumerate(({}, {"driver_rows": 0, "driver_bytes": -1})):
        set_limits(**limits)
        ts = f"ts={text(0.5 + number)}"
        project.land(f"{number}.log", f'{ts} http.host=h{number} msg="a b"\nno pairs\n{ts} http.host=c code=x\n')
        project.land(f"{number}.log.bz2", bz2.compress(f"{ts} http.host=z{number} took=2s\n".encode()))
        project.land(f"strange{number}.log", f"{ts} http.host=h level=info\n")
        project.land(f"long{number}.log", f'{ts} http.host=h msg="{"x" * 2000}"\n')
        lines = f"Jan  1 0{number}:30:00 web{number} a[1]: b\nnone\n"
        project.land(f"{number}.log", lines, landing="landing/b", mtime=parse_instant("2024-01-02T00:00:00Z"))
        report = project.update(number + 1)
        out = {entry.file.path: (entry.reason, entry.message[:30]) for _, entry in report.left_out}
        assert out[f"strange{number}.log"] == ("unknown_columns", "undeclared columns: level")
        assert out[f"long{number}.log"][0] == "record_too_long"
        rows_of_turns.append(sorted((row["host"], row["msg"], row["took"]) for row in project.live()))
        entries = [row for row in project.rejected() if row["file"] == f"{number}.log"]
        outcomes = [(row["record"], row["reason"], row["raw"][:8]) for row in entries]
        assert outcomes == [(2, "malformed", "no pairs"), (3, "mistyped", ts[:8])]
        assert [row["host"] for row in project.live("b")][-1] == f"web{number}"
        assert [row["raw"] for row in project.rejected("b")] == ["none"] * (number + 1)
    assert rows_of_turns == [[("h0", "a b", None), ("z0", None, 2.0)], [
        ("h0", "a b", None), ("h1", "a b", None), ("z0", None, 2.0), ("z1", None, 2.0),
    ]]  # fmt: skip


def test_names_that_nobody_declared_are_added(tmp_path: Path) -> None:
    """Of every line, as with JSON; nothing is looked for where they are ignored."""
    target = declared(tmp_path, **LOGFMT, unknown_columns="add")
    out = left_out(target, {"a.log": f"{TS} level=info\n", "b.log": f"{TS} level=info\n{TS} x.y=1\n"})
    assert [(name, reason, message[:36]) for name, (reason, message) in out.items()] == [
        ("b.log", "unknown_columns", 'its column "x.y" cannot be added: it'),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "key", "words"),
    [
        ({"columns": {"moment": "timestamp", "hots": "string"}}, "columns.hots", "host"),
        ({"columns": {"host": "string", "moment": "timestamp", "x": {"type": "string", "from": "msg"}}}, "columns.x", "message"),
        ({"options": {"year": "26"}}, "options.year", "2026"),
        ({"options": {"pattern": "(?P<a>x)"}}, "options.pattern", "nullValue"),
        ({"columns": {"host": "array<string>", "moment": "timestamp"}}, "columns.host", "types without parts"),
    ],
)
def test_what_is_declared_is_checked(tmp_path: Path, changes: dict[str, object], key: str, words: str) -> None:
    """A column that no line could fill is named with the fields that there are."""
    base = {**SYSLOG, "search_key": "moment", "options": {}, **changes}
    found_problems = problems(tmp_path, {f"streams.flights.{name}": value for name, value in base.items()})
    assert [(problem.key, words in str(problem)) for problem in found_problems] == [(f"streams.flights.{key}", True)]


def test_keys_in_lines_are_found(tmp_path: Path) -> None:
    """Erasure finds them: as a field where the line is a record, else anywhere in the line."""
    files = {"held.log": b"tailnum=N1 x=1\n", "other.log": b'tailnum=N2 x="N1"\n', "doubt.log": b"N1\n"}
    files["quoted.log"] = b'tailnum="N1"\n'
    assert sorted(_found(tmp_path, files, format="logfmt", options={})) == ["doubt.log", "held.log", "quoted.log"]
    lines = {"held.log": b"Nov 25 10:00:00 N1 a: b\n", "other.log": b"Nov 25 10:00:00 N2 a: N1\n", "doubt.log": b"N1\n"}
    keys = {"format": "syslog", "options": {}, "columns": {"host": "string", "moment": "timestamp"}, "arrival": "moment"}
    declaration = {**keys, "search_key": "host", "expires": None, "max_lifetime": None}
    assert sorted(_found(tmp_path / "s", lines, **declaration)) == ["doubt.log", "held.log"]
