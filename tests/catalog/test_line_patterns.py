"""Patterns of lines: only patterns that Python and Java read alike are accepted; the logs for which ``init`` has one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.catalog.project import problems
from warehouse.catalog.initialise import write_project
from warehouse.catalog.line_patterns import line_pattern, pattern_fault
from warehouse.catalog.load import load_catalog

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STREAM = "streams.flights"
_CLOCK = "2024-05-01T08:{:02}:{:02}"


@pytest.mark.parametrize(
    "text",
    [
        r"(?P<a>\S+) (?P=a)",
        r"(?P<a>\p{L}+)",
        r"(?P<a>\w+\b)",
        r"(?i)(?P<a>x)",
        r"(?<=x)(?P<a>y)",
        "(?P<a>[a[b]]+)",
        "(?P<a>[a&&b]+)",
        "(?P<a>[]a]+)",
        "(?P<a>x{,3}y)",
        "(?P<a>x{y)",
        r"(?P<a>x)\1",
        "(?P<a>x",
        "(x+)",
        "(?P<a>x*)",
        "(?P<a>x)(?P<a>y)",
        "(?P<a>x\\",
        "(?P<a>(?:x|y)+)",
        "(?P<a>x(?:y|zz){2,500})",
        "(?P<a>.*),(?P<b>.*),x",
        "(?P<a>.*?),(?P<b>[^;]*)x",
        r"(?P<a>\d+)(?:ms)?(?P<b>\d*)x",
        "(?P<a>(?:.*,){5}x)",
        "(?P<a>x|(?:[a-z]+b[^0-9]{2,})?)y",
        r"(?P<a>\S*)(?=.*x)z",
        "(?P<a>(?:a|aa){1,20})b",
        r"(?P<a>(?:\d{1,3}\.?){1,20})x",
        "(?P<a>(?:a?b?a?){1,20})x",
    ],
)
def test_what_is_refused(text: str) -> None:
    """What Java does not know, reads otherwise or by a stack that lines can take, names no field, or matches nothing."""
    fault = pattern_fault(text)
    assert fault is not None
    assert text.replace("\\", "\\\\")[:4] in str(fault)


@pytest.mark.parametrize(
    "text",
    [
        "(?P<a>[^,]*),(?P<b>[^,]*),(?P<c>.*)",
        r"(?P<a>.*) (?P<b>\d+) (?P<c>\d+)",
        r"(?P<a>\d*+)(?P<b>\d*)x",
        "(?P<a>.*) - (?P<b>.*)",
        r"(?P<a>\S+)(?: (?P<b>[a-z]+))?(?: (?P<c>.*))?",
        r'"(?P<a>[^"\\]*(?:\\.[^"\\]*)*+)"',
        "^(?P<a>.{0,50}),(?P<b>.{0,50}),x$",
        "(?P<a>(?:[^,]{1,20},){10})(?P<b>.*)",
        "(?P<a>(?:ab|ac){1,20})x",
        "(?P<a>(?:a|aa){1,20}+)b",
        r"(?P<a>(?:\d{1,3}\.?){4})x",
    ],
)
def test_what_takes_no_longer_than_a_line_is_long(text: str) -> None:
    """One repeat knows where it ends, or what follows takes the rest: a line is not divided again and again."""
    assert pattern_fault(text) is None
    assert line_pattern(text).fields(("1, - " * 200_000) + "\n") is None or ".*)" in text


def test_fields() -> None:
    """By their names, in the order of their groups; others are counted too."""
    pattern = line_pattern(r"(?<at>\d+)(?:ms)? (\[)(?P<level>[A-Z\]]{1,5}+)\]?(?P<more>.*)")
    assert (pattern.names, pattern.group_numbers) == (("at", "level", "more"), (1, 3, 4))
    assert pattern.java == r"(?s)\A(?:(\d+)(?:ms)? (\[)([A-Z\]]{1,5}+)\]?(.*))\z"
    assert pattern.fields("12 [INFO") == {"at": "12", "level": "INFO", "more": None}
    assert pattern.fields("12 INFO") is None
    assert line_pattern(r"\(?<b> [(?<b>]* (?<a>(?:x|y)*+)").java == r"(?s)\A(?:\(?<b> [(?<b>]* ((?:x|y)*+))\z"


def test_a_stream_of_text_needs_one(tmp_path: Path) -> None:
    """The key is named, with an example."""
    (problem,) = problems(tmp_path, {f"{STREAM}.format": "text", f"{STREAM}.options": {}})
    assert (problem.key, "(?P<at>" in problem.allowed) == (f"{STREAM}.options.pattern", True)


def _application(row: int) -> str:
    at = f"2024-05-01 08:{row // 60:02}:{row % 60:02},{row:03}"
    return f"{at} [worker-{row % 7}] {'ERROR' if row % 9 else 'INFO'}  it's done: {row}"


def _daemon(row: int) -> str:
    return f"{_CLOCK.format(row // 60, row % 60)}.123456+02:00 web{row % 4} sshd[{row}]: Accepted key"


def _syslog(row: int) -> str:
    return f'<34>1 {_CLOCK.format(row // 60, row % 60)}.003Z web{row % 4} su - ID47 [x y="z"] failed {row}'


@pytest.mark.parametrize(
    ("line", "form", "key", "names"),
    [
        (_application, "text", "thread", {"moment", "thread", "level", "message"}),
        (_daemon, "syslog", "host", {"moment", "host", "program", "pid", "message"}),
        (_syslog, "syslog", "host", {"priority", "moment", "host", "program", "message_id", "data", "message"}),
    ],
)
def test_logs_that_are_known(tmp_path: Path, line: Callable[[int], str], form: str, key: str, names: set[str]) -> None:
    """Lines that programs and daemons write become a stream with a pattern, or of syslog, whose moment is the arrival."""
    source = tmp_path / "x.log"
    source.write_text("".join(line(row) + ("\n\tat x.y\n" if row % 40 == 1 else "\n") for row in range(120)))
    write_project(tmp_path / "project", source=source)
    (stream,) = load_catalog(tmp_path / "project").streams
    assert (stream.format, stream.search_key, stream.arrival) == (form, (key,), "moment")
    assert {column.name for column in stream.columns} == names
    (written,) = (tmp_path / "project").glob("*.toml")
    syntax = "the pattern" if form == "text" else "the format syslog"
    assert f"3 lines would be rejected, for they do not match {syntax}" in written.read_text()
