"""Logs whose lines are no records: the command that ``init --from`` names makes records of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import datetime
from typing import TYPE_CHECKING

import duckdb
import pytest

from warehouse.catalog.log_lines import way_of_log
from warehouse.catalog.proposal import proposal
from warehouse.errors import UsageError
from warehouse.time import parse_instant

if TYPE_CHECKING:
    from pathlib import Path


def converted(source: Path) -> None:
    """Run the command of the refusal, as a person pastes it, in the file's directory."""
    with pytest.raises(UsageError) as refused:
        proposal(source)
    command = re.findall(r"`([^`]+)`", str(refused.value))[0]
    line = command.replace("python -c", f"{sys.executable} -c")
    subprocess.run(line, shell=True, cwd=source.parent, check=True)  # noqa: S602 - as above


@pytest.mark.parametrize(
    ("changed", "first", "last"),
    [
        ("2026-01-02T12:00:00Z", 2025, 2026),  # the turn of the year lies within the file
        ("2025-12-31T23:30:00Z", 2025, 2026),  # a clock that is a little ahead
        ("2024-02-29T12:00:00Z", 2023, 2024),
    ],
)
def test_syslog_has_the_latest_year_that_is_past(tmp_path: Path, changed: str, first: int, last: int) -> None:
    """A day is left for zones and clocks; messages keep their signs, and a day that only leap years have its place."""
    source = tmp_path / "sys log"
    leap = ["Feb 29 08:00:00 web1 CRON: leap"] if "02-29" in changed else []
    lines = ["Dec 31 23:00:10 web1 sshd[17]: Accepted: key for bob's \"x\"", "Jan  1 00:00:00 web1 CRON: done", *leap]
    source.write_text("\n".join(lines) + "\n")
    os.utime(source, (0, parse_instant(changed) / 10**6))
    converted(source)
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT * FROM '{tmp_path}/sys log.parquet'").fetchall()
    assert rows[0] == (datetime(first, 12, 31, 23, 0, 10), "web1", "sshd", "Accepted: key for bob's \"x\"")  # noqa: DTZ001 - local
    assert [row[0].year for row in rows[1:]] == [last] * (len(rows) - 1)
    assert len(rows) == len(lines)


def test_logfmt_becomes_an_object_a_line(tmp_path: Path) -> None:
    """Texts in quotes, apostrophes, empty values; what comes out is what `init --from` takes."""
    source = tmp_path / "app.log"
    row = 'ts=2024-05-13T08:{:02}:00Z host=h{} level=info msg="GET \\"/\\" it\'s" empty= path=/x?a=1'
    source.write_text("".join(row.format(number, number % 7) + "\n" for number in range(60)))
    converted(source)
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    expected = {"ts": "2024-05-13T08:01:00Z", "host": "h1", "level": "info", "msg": "GET \"/\" it's"}
    assert (len(rows), rows[1]) == (60, {**expected, "empty": "", "path": "/x?a=1"})
    assert proposal(tmp_path / "rows.jsonl").arrival == "ts"


def test_lines_of_syslog_without_a_program_are_whole(tmp_path: Path) -> None:
    """A repetition and a mark have a time and a text; so do lines that are not in UTF-8."""
    source = tmp_path / "messages"
    lines = ("kernel: \xfcber [1.0] up", "last message repeated 3 times", "-- MARK --", "last seen at 10:20: x", "a[7] (b): c")
    source.write_bytes("".join(f"Nov 24 08:00:0{number} web1 {line}\n" for number, line in enumerate(lines)).encode("latin-1"))
    converted(source)
    with duckdb.connect() as connection:
        rows = connection.execute(f"SELECT program, message, second(logged_at) FROM '{tmp_path}/messages.parquet'").fetchall()
    parts = [("kernel", "\xfcber [1.0] up"), *((None, line) for line in lines[1:4]), ("a", "c")]
    assert rows == [(*part, number) for number, part in enumerate(parts)]


def test_escapes_of_logfmt_that_json_does_not_know_stay(tmp_path: Path) -> None:
    """Programs in Go write colours as ``x1b``, and paths of Windows come with single backslashes."""
    source = tmp_path / "app.log"
    source.write_text('n=1 msg="\\x1b[31mred \\"q\\" \\u00fc"\nn=2 msg="C:\\Users\\path"\nn=3 msg="C:\\\\dir\t"\n')
    converted(source)
    rows = [json.loads(line)["msg"] for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert rows == ['\\x1b[31mred "q" \xfc', "C:\\Users\\path", "C:\\dir\t"]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "k=v\nk=w\n",
        "a=1 b=2\nfoo bar\n",
        "url,at\nhttp://x?a=1&b=2,2024-05-13\nhttp://x?a=1&b=2,2024-05-13\n",
        "Nov 25 14:38:17 host a: b\nno time\n",
        "Nov 25,14:38:17,host\nNov 26,14:38:17,host\n",
    ],
)
def test_other_files_are_left_alone(tmp_path: Path, text: str) -> None:
    """Tables with an equals sign or a month in them."""
    (tmp_path / "x").write_text(text)
    assert way_of_log(tmp_path / "x") is None
