"""Rows in every format, to a file, a pipe and a terminal."""

from __future__ import annotations

import io
import os
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from warehouse.cli.output import Destination, Records, emit
from warehouse.cli.output.emit import _write
from warehouse.cli.output.sink import ClosedPipeError, Sink, open_sink
from warehouse.cli.output.visible import json_visible, lines_visible, visible
from warehouse.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.cli.output.records import Result

PEOPLE = Records(
    (("name", "VARCHAR"), ("n", "BIGINT")),
    (("a", 1), (None, 2), ("", None), ('x,"y"\nz', 4)),
)
EVIL = Records((("na\x1bme", "VARCHAR"),), (("\x1b]0;owned\x07\x9b31m\u202e",), ("line\r\nbreak\rover",)))


def rendered(result: Result, chosen: str, *, terminal: bool = False) -> str:
    """Return the text of a result."""
    stream = io.BytesIO()
    _write(result, chosen, Sink(stream, terminal=terminal), {})
    return stream.getvalue().decode()


def test_csv() -> None:
    """A header, CR LF, null empty, the empty string quoted."""
    assert rendered(PEOPLE, "csv") == 'name,n\r\na,1\r\n,2\r\n"",\r\n"x,""y""\nz",4\r\n'


def test_json_is_one_array() -> None:
    """Nulls are written, and no rows are an empty array."""
    assert msgspec.json.decode(rendered(PEOPLE, "json")) == [
        {"name": "a", "n": 1},
        {"name": None, "n": 2},
        {"name": "", "n": None},
        {"name": 'x,"y"\nz', "n": 4},
    ]
    assert msgspec.json.decode(rendered(Records(PEOPLE.columns, ()), "json")) == []


def test_jsonl_is_one_object_a_line() -> None:
    """Each line stands alone."""
    lines = rendered(PEOPLE, "jsonl").splitlines()
    assert [msgspec.json.decode(line)["n"] for line in lines] == [1, 2, None, 4]
    assert rendered(Records(PEOPLE.columns, ()), "jsonl") == ""


def test_a_repeated_column_name_is_numbered_in_objects() -> None:
    """No value hides another of the same name."""
    twice = Records((("a", "BIGINT"), ("a", "BIGINT"), ("a_1", "BIGINT")), ((1, 2, 3),))
    assert msgspec.json.decode(rendered(twice, "json")) == [{"a": 1, "a_1": 2, "a_1_1": 3}]
    assert rendered(twice, "csv").startswith("a,a,a_1\r\n")


def test_a_table_shows_null_apart_from_text() -> None:
    """A table has a header, aligned columns and no escape sequences in a pipe."""
    text = rendered(PEOPLE, "table")
    assert text.splitlines()[0].split() == ["name", "n"]
    assert "null" in text
    assert "\\n" in text
    assert "\x1b" not in text
    assert rendered(Records(PEOPLE.columns, ()), "table").split()[:2] == ["name", "n"]


def test_later_pages_of_a_table_align_with_the_first() -> None:
    """A long table has one header and columns of one width."""
    long = Records((("name", "VARCHAR"), ("n", "BIGINT")), tuple((f"row {number}", 1000) for number in range(1200)))
    lines = [line for line in rendered(long, "table").splitlines() if "row" in line]
    assert len(lines) == 1200
    assert len({line.index("1000", 8) for line in lines}) == 1


def test_a_table_too_wide_for_the_terminal_becomes_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is cut: a row is a block of lines."""
    monkeypatch.setenv("COLUMNS", "20")
    wide = Records((("a", "VARCHAR"), ("b", "VARCHAR")), (("x" * 30, "y" * 30),))
    text = rendered(wide, "table", terminal=True)
    assert "row 1" in text
    assert "x" * 30 in text


def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets styles unless NO_COLOR is set."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in rendered(PEOPLE, "table", terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in rendered(PEOPLE, "table", terminal=True)


@pytest.mark.parametrize("chosen", ["table", "csv", "json", "jsonl"])
def test_data_cannot_act_on_a_terminal(chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Control characters, in names too, are shown in every format."""
    monkeypatch.setenv("NO_COLOR", "1")
    text = rendered(EVIL, chosen, terminal=True)
    assert not set(text) & set("\x1b\x07\x9b\u202e")
    assert "\r" not in text.replace("\r\n", "")


def test_json_on_a_terminal_keeps_its_value() -> None:
    """JSON escapes rather than changes."""
    value = "\x1b\x7f\x9b\u202e"
    assert msgspec.json.decode(json_visible(msgspec.json.encode(value).decode())) == value


def test_visible() -> None:
    """Each unsafe character has a readable form, lines stay lines where they may."""
    assert visible("a\tb\n\x1b\u2028\ud800") == "a\\tb\\n\\x1b\\u2028\\ud800"
    assert lines_visible("a\tb\r\nc\rd\x00") == "a\tb\r\nc\\rd\\x00"


def test_parquet_and_arrow_hold_the_rows_and_the_window_time(tmp_path: Path) -> None:
    """Binary formats carry the types and the notes."""
    for suffix in ("parquet", "arrow"):
        file = tmp_path / f"people.{suffix}"
        assert emit(PEOPLE, Destination(file=file), {"stream_wh.epoch": "3"}) == 4
        table = parquet.read_table(file) if suffix == "parquet" else ipc.open_stream(file.read_bytes()).read_all()
        assert table.to_pylist()[1] == {"name": None, "n": 2}
        assert table.schema.metadata[b"stream_wh.epoch"] == b"3"
        emit(Records(PEOPLE.columns, ()), Destination(file=file))


@pytest.mark.parametrize(
    ("name", "chosen"), [("x.json", "json"), ("x.NDJSON", "jsonl"), ("x.parquet", "parquet"), ("x.txt", "csv")]
)
def test_the_ending_of_a_file_chooses_the_format(name: str, chosen: str) -> None:
    """A file gets what its name promises unless -o says otherwise."""
    assert Destination(file=Path(name)).chosen() == chosen
    assert Destination("csv", Path(name)).chosen() == "csv"


def test_a_terminal_gets_a_table_and_no_binary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output decides: a table for people, csv for programs, never bytes on a screen."""
    assert Destination().chosen() == "csv"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert Destination().chosen() == "table"
    assert Destination("csv").chosen() == "csv"
    for binary in ("parquet", "arrow"):
        with pytest.raises(UsageError, match="terminal"):
            Destination(binary).chosen()
        assert Destination(binary, Path("x")).chosen() == binary


@dataclass
class Endless:
    """Many rows that exist one piece at a time."""

    count: int
    columns: tuple[tuple[str, str], ...] = (("n", "BIGINT"), ("text", "VARCHAR"))

    def rows(self, size: int) -> Iterator[list[tuple[object, ...]]]:
        """Yield pieces."""
        for start in range(0, self.count, size):
            yield [(number, "x" * 50) for number in range(start, min(start + size, self.count))]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield small batches."""
        for piece in self.rows(10_000):
            yield pa.RecordBatch.from_pylist([dict(zip(("n", "text"), row, strict=True)) for row in piece])


@pytest.mark.parametrize("chosen", ["csv", "jsonl", "json"])
def test_large_results_need_little_memory(chosen: str) -> None:
    """Memory does not grow with the number of rows."""
    peaks = []
    for count in (20_000, 100_000):
        tracemalloc.start()
        with Path(os.devnull).open("wb") as nothing:
            assert _write(Endless(count), chosen, Sink(nothing), {}) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]


def test_parquet_gathers_small_batches(tmp_path: Path) -> None:
    """Many small batches become few row groups."""
    file = tmp_path / "x.parquet"
    assert emit(Endless(250_000), Destination(file=file)) == 250_000
    assert parquet.read_metadata(file).num_row_groups == 3


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    """A command that fails leaves the former file and nothing else."""
    file = tmp_path / "x.csv"
    file.write_text("former")

    def broken() -> None:
        with open_sink(file) as sink:
            sink.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        broken()
    assert file.read_text() == "former"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(("name", "chosen"), [("x.csv", "csv"), ("x.NDJSON", "jsonl"), ("x", "csv"), ("x.parquet", "parquet")])
def test_the_ending_chooses_the_format(name: str, chosen: str) -> None:
    """One that is of no format is refused, unless -o says which."""
    assert Destination(file=Path(name)).chosen() == chosen
    with pytest.raises(UsageError, match=r"the ending \.xlsx is of no format"):
        Destination(file=Path("x.xlsx")).chosen()
    assert Destination("json", Path("x.xlsx")).chosen() == "json"


def test_a_closed_pipe_is_told_apart() -> None:
    """Only standard output's closed pipe ends a command silently."""

    class Closed(io.BytesIO):
        def write(self, _: object) -> int:
            raise BrokenPipeError

    with pytest.raises(ClosedPipeError):
        Sink(Closed()).write(b"x")
