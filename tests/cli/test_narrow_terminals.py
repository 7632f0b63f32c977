"""Tables and lines for people fit the terminal; files whose ending promises another format are refused."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

import pytest

from warehouse.cli.main import run
from warehouse.cli.output import Figure, Records
from warehouse.cli.output.sink import Sink
from warehouse.cli.output.table import write_table
from warehouse.cli.output.visible import wrapped

if TYPE_CHECKING:
    from pathlib import Path

TOML = '[warehouse]\nroot = "root"\nanchor = "2013-01-01T00:00:00Z"\nupdate_interval = "1h"\n'


@dataclass(frozen=True)
class Row:
    """A line of a table for people."""

    table: str
    live_rows: Figure
    health: str


@dataclass(frozen=True)
class Count:
    """A line whose last column is a number."""

    table: str
    live_rows: Figure


def shown(monkeypatch: pytest.MonkeyPatch, width: int, records: Records) -> list[str]:
    """Return the lines of a table on a terminal of a width."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    stream = BytesIO()
    write_table(records, Sink(stream, terminal=True))
    return stream.getvalue().decode().splitlines()


@pytest.mark.parametrize(("width", "gap"), [(52, 3), (50, 2), (48, 1)])
def test_columns_move_together_before_a_table_becomes_blocks(monkeypatch: pytest.MonkeyPatch, width: int, gap: int) -> None:
    """Three columns of 20, 9 and 17 cells are a grid from 48 cells on."""
    records = Records.of(Row, [Row("a" * 20, Figure("1"), "dead on arrival, x")][:1])
    lines = shown(monkeypatch, width + 1, records)
    assert lines[0].startswith("table" + " " * (15 + gap) + "live_rows")
    assert lines[2].startswith("a" * 20 + " " * (gap + 8) + "1" + " " * gap + "dead on arrival, x")


def test_the_last_words_are_folded_before_a_table_becomes_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line a table, whatever is wrong with it; where not even that fits, a line for each fact."""
    records = Records.of(Row, [Row("a" * 20, Figure("1"), "rejected, dead on arrival, late, standing still")])
    lines = shown(monkeypatch, 50, records)
    assert max(map(len, lines)) <= 50
    assert lines[2].startswith("a" * 20)
    assert " ".join(line[31:].strip() for line in lines[2:]) == "rejected, dead on arrival, late, standing still"
    assert shown(monkeypatch, 40, records)[0] == "row 1"
    assert shown(monkeypatch, 25, Records.of(Count, [Count("a" * 20, Figure("1"))]))[0] == "row 1"


def test_long_lines_are_parted_between_words_and_commands_stay_whole() -> None:
    """With the margin of the line, so that what belongs together is seen."""
    line = "  attention: flights: 26% of the rows were rejected; see `stream-wh rejected flights`, then correct the files"
    parts = wrapped(line, 50).splitlines()
    assert max(map(len, parts)) <= 50
    assert any("`stream-wh rejected flights`" in part for part in parts)
    assert parts[0].startswith("  attention")
    assert all(part.startswith("    ") for part in parts[1:])
    assert " ".join(part.strip() for part in parts) == line.strip()


@pytest.mark.parametrize(
    ("command", "file", "allowed"),
    [("report", "page.pdf", ".html, .htm"), ("metrics", "metrics.json", ".prom, .txt"), ("tables", "x.xlsx", ".csv")],
)
def test_an_ending_of_another_format_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, file: str, allowed: str
) -> None:
    """Before anything is written: nobody wants a page called .pdf."""
    (tmp_path / "warehouse.toml").write_text(TOML)
    assert run(["-C", str(tmp_path), command, "--output-file", str(tmp_path / file)]) != 0
    message = capsys.readouterr().err
    if command != "tables":  # which finds no epoch before it writes
        assert f'"{file}": the ending .{file.rpartition(".")[2]} is of no format; use one of {allowed}' in message
    assert not (tmp_path / file).exists()
