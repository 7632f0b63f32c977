"""Logs of which each line is a record: ``init --from`` knows them, reads their times, and copies them with the file's time."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING

import pytest

from warehouse.catalog.initialise import write_project
from warehouse.catalog.load import load_catalog
from warehouse.catalog.log_lines import log_format_of
from warehouse.catalog.proposal import proposal
from warehouse.time import parse_instant

if TYPE_CHECKING:
    from pathlib import Path

CHANGED = parse_instant("2026-01-02T12:00:00Z")


def test_a_log_of_syslog_is_declared_with_its_years(tmp_path: Path) -> None:
    """The copy in the landing has the time of the file, by which an update tells the year that lines do not say."""
    source = tmp_path / "sys log"
    lines = [f"Dec 31 23:{minute:02}:10 web{minute % 4} sshd[{minute}]: Accepted: key for bob's \"x\"" for minute in range(60)]
    lines += ["Jan  1 00:00:00 web1 CRON: done", "Jan  1 00:00:01 web1 last message repeated 3 times", "\ta trace"]
    source.write_text("\n".join(lines) + "\n")
    os.utime(source, (0, CHANGED / 10**6))
    proposed = proposal(source)
    assert (proposed.arrival, proposed.key.columns) == ("moment", ("host",))
    assert proposed.first is not None
    assert (proposed.first.at, proposed.first.live) == (parse_instant("2026-01-01T01:00:00Z"), 62)
    written = write_project(tmp_path / "project", source=source)
    assert written[1].stat().st_mtime_ns == CHANGED * 1000
    (stream,) = load_catalog(tmp_path / "project").streams
    assert (stream.format, stream.options) == ("syslog", ())
    assert {column.name: column.type for column in stream.columns if column.type != "string"} == {"moment": "timestamp"}
    assert {column.name for column in stream.columns} == {"moment", "host", "program", "pid", "message"}
    assert "1 line would be rejected, for they do not match the format syslog" in written[0].read_text()


def test_a_log_of_pairs_is_declared_with_its_types(tmp_path: Path) -> None:
    """Texts in quotes, over several lines once they are read; names that no table has; lines that have but some of them."""
    source = tmp_path / "app.log.gz"
    row = 'ts=2024-05-13T08:{0:02}:00Z host=h{1} level=info msg="GET \\"/\\"\\nit\'s" empty= path=/x?a=1 http.code={2}\n'
    lines = [row.format(number, number % 7, 200 + number % 3) for number in range(60)]
    source.write_bytes(gzip.compress(("".join(lines) + 'ts=2024-05-13T09:00:00Z host=h1 retry=true err=""\n').encode()))
    write_project(tmp_path / "project", source=source)
    (stream,) = load_catalog(tmp_path / "project").streams
    assert (stream.format, stream.options, stream.search_key, stream.arrival) == ("logfmt", (), ("host",), "ts")
    assert {column.name: (column.source, column.type) for column in stream.columns} == {
        "ts": (None, "timestamp"), "host": (None, "string"), "level": (None, "string"), "msg": (None, "string"),
        "empty": (None, "string"), "path": (None, "string"), "http_code": ("http.code", "bigint"),
        "retry": (None, "boolean"), "err": (None, "string"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("a,b\n1,2\n3,4\n", None),
        ("k=v\nk=w\n", None),
        ("a=1 b=2\nfoo bar\n", None),
        ("url,at\nhttp://x?a=1&b=2,2024-05-13\nhttp://x?a=1&b=2,2024-05-13\n", None),
        ("Nov 25 14:38:17 host a: b\nno time\n", None),
        ("Nov 25 14:38:17 host a: b\nNov 25 14:38:18 host a: b\nno time\n", "syslog"),
        ("Nov 25,14:38:17,host\nNov 26,14:38:17,host\n", None),
        ("2024-05-01T08:00:00Z 1 2\n2024-05-01T08:00:00Z 1 2\n", None),
        ("<13>Nov 25 14:38:17 host a\n<13>Nov 25 14:38:17 host a\n", "syslog"),
        ('\ufeffa=1 b=2\na=1 b="2 3"\n', "logfmt"),
        ("Nov 5 14:38:17 host a: the only line\n", "syslog"),
        ("-- Logs begin at Mon 2024-05-13. --\nMay 13 14:38:17 host a: b\n-- Boot 0c1a --\n", "syslog"),
        ("<166>2024-05-13T08:00:00Z: %ASA-6-1: a\n<166>2024-05-13T08:00:00Z fw : %ASA-6-1: a b\n", "syslog"),
        ("<13>1 - - - - - -\n<13>1 2024-05-13T08:00:00Z h p 1 - - a\n", "syslog"),
    ],
)
def test_other_files_are_left_alone(tmp_path: Path, text: str, form: str | None) -> None:
    """Tables with an equals sign or a month in them."""
    (tmp_path / "x").write_text(text)
    format_found = log_format_of(tmp_path / "x")
    assert (format_found and format_found[0]) == form


def test_what_else_stands_in_logs_is_no_hindrance(tmp_path: Path) -> None:
    """Zeros where a machine lost power, half a pair of surrogates, a very long text; durations are not looked for."""
    source = tmp_path / "app.log"
    row = 'ts=2024-05-13T08:{0:02}:00Z level=info worker=w{1} took={2}ms msg="{3}"\n'
    lines = [row.format(number, number % 3, number % 29, "GET /") for number in range(58)]
    lines += [row.format(58, 1, 7, "\\ud800"), row.format(59, 1, 7, '\\"x' * 1_000_000)]
    lines.insert(30, "\0" * 512 + "\n")
    source.write_text("".join(lines))
    proposed = proposal(source)
    assert (proposed.arrival, proposed.key.columns) == ("ts", ("worker",))
    written, _ = write_project(tmp_path / "project", source=source)
    assert "1 line would be rejected, for they do not match the format logfmt" in written.read_text()
