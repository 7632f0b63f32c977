"""What ``init``, ``validate`` and the readers of landing files say to declare, or to run: it gets the file in."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from datetime import datetime
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tests.catalog.project import loaded
from tests.ingest.records import declared, left_out, read
from warehouse.errors import ConfigurationError

from .executed import advised, executes, typed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@executes("name one that Spark can make a time of (--arrival ○), or declare the stream by hand after a plain `stream-wh init`")
def test_a_file_without_times(tmp_path: Path) -> None:
    """Both remedies work: an SQL expression, and a declaration by hand."""
    (tmp_path / "in.csv").write_text("k,n\n" + "".join(f"k{number},{number}\n" for number in range(50)))
    printed = typed(tmp_path, f"stream-wh init first --from {tmp_path / 'in.csv'}", code=2)
    part = "name one that Spark can make a time of (--arrival ○), or declare the stream by hand after a plain `stream-wh init`"
    typed(tmp_path, advised(printed, part))
    example = printed.partition("(--arrival ")[2].partition("), or declare")[0]
    typed(tmp_path, f"stream-wh init second --from {tmp_path / 'in.csv'} --key k --arrival {example}")


@executes('declare the stream by hand after a plain `stream-wh init`, with format = "text" and a pattern of its lines')
def test_a_log_in_an_unknown_form(tmp_path: Path, spark: SparkSession) -> None:
    """The lines are read with the pattern that the message shows."""
    lines = "2025-06-24 14:36:25 startup archives unpack\n" + "2025-06-24 14:36:25 install perl:amd64 5.36 5.40\n" * 3
    (tmp_path / "dpkg.log").write_text(lines)
    printed = typed(tmp_path, f"stream-wh init first --from {tmp_path / 'dpkg.log'}", code=2)
    part = 'declare the stream by hand after a plain `stream-wh init`, with format = "text" and a pattern of its lines'
    typed(tmp_path, advised(printed, part))
    (pattern,) = re.findall(r"pattern = '([^']+)'", printed)
    columns = {"at": "timestamp", "message": "string"}
    own = {"columns": columns, "arrival": "at", "search_key": "message", "expires": None, "max_lifetime": None}
    stream = declared(tmp_path / "text", format="text", options={"pattern": pattern}, **own)
    messages = {row["message"] for row in read(spark, stream, {"dpkg.log": lines})}
    assert messages == {"startup archives unpack", "install perl:amd64 5.36 5.40"}


@executes("it leaves a quote open at the end of its line; declare options = { multiline = true }")
def test_records_over_several_lines(tmp_path: Path, spark: SparkSession) -> None:
    """`init --from` proposes the option; without it the reasons of rejected rows and of a header say what to declare."""
    text = "k,b,n,text\n" + "".join(f'k{n},2026-01-01T00:{n:02}:00Z,{n},"first\nsecond"\n' for n in range(30))
    plain = {"columns": {"k": "string", "b": "timestamp", "n": "int", "text": "string"}, "expires": None, "max_lifetime": None}
    rows = read(spark, declared(tmp_path / "a", **plain), {"x.csv": text})
    assert ["options = { multiline = true }" in row["why"] for row in rows] == [True] * 60
    options = {"options": {"multiline": "true"}}
    rows = read(spark, declared(tmp_path / "b", **plain, **options), {"x.csv": text})
    assert [row["text"] for row in rows] == ["first\nsecond"] * 30
    broken = {"x.csv": text.replace("n,text", '"n","te\nxt"', 1)}
    (_, why), = left_out(declared(tmp_path / "c", **plain), broken).values()
    advised(why, "it leaves a quote open at the end of its line; declare options = { multiline = true }")
    assert left_out(declared(tmp_path / "d", **plain, unknown_columns="ignore", **options), broken) == {}
    (tmp_path / "x.csv").write_text(text)
    typed(tmp_path, f"stream-wh init e --from {tmp_path / 'x.csv'} --key k")
    assert "multiline = true" in (tmp_path / "e" / "warehouse.toml").read_text()


@executes("cannot be read as it is; `○` writes it as Parquet")
def test_files_of_other_formats(tmp_path: Path) -> None:
    """The command makes a file that `init --from` accepts."""
    frame = pl.DataFrame({"k": ["a"] * 30, "seen": [datetime(2024, 5, 1)] * 30})  # noqa: DTZ001 - as others write them
    frame.write_ipc(tmp_path / "y.feather")
    frame.write_ipc(tmp_path / "f.arrow")
    frame.write_ipc_stream(tmp_path / "s.arrow")
    for name in ("y.feather", "f.arrow", "s.arrow"):
        printed = typed(tmp_path, f"stream-wh init {name[0]} --from {tmp_path / name}", code=2)
        advised(printed, "cannot be read as it is; `○` writes it as Parquet")
        (line,) = re.findall(r"`(python -c [^`]+)`", printed)
        shell = line.replace("python", sys.executable, 1)
        assert subprocess.run(shell, shell=True, cwd=tmp_path, check=False).returncode == 0  # noqa: S602 - as above
        typed(tmp_path, f"stream-wh init {name[0]} --from {tmp_path / name[0]}.parquet --key k")


@executes(
    "# Check it, then run `stream-wh validate` and `stream-wh plan`",
    "# `stream-wh advise --what-if lifetimes=○,rate=100000`",
    "stream-wh validate",
)
def test_a_proposal(tmp_path: Path) -> None:
    """The commands in the written file and in the output can be run."""
    rows = "".join(f'{{"host": "h{n % 9}", "at": "2024-05-13T08:{n:02}:00Z", "ttl": {300 + n}}}\n' for n in range(60))
    (tmp_path / "in.jsonl").write_text(rows)
    printed = typed(tmp_path, f"stream-wh init w --from {tmp_path / 'in.jsonl'} --key host")
    written = (tmp_path / "w" / "warehouse.toml").read_text()
    advised(written, "# Check it, then run `stream-wh validate` and `stream-wh plan`")
    for line in ("stream-wh validate", advised(written, "# `stream-wh advise --what-if lifetimes=○,rate=100000`")):
        typed(tmp_path / "w", line)
    assert advised(printed, "stream-wh validate") == "stream-wh validate"


@executes('names = "a,b,c" is for files without a header', "(`stream-wh rejected NAME`)")
def test_options_that_are_refused(tmp_path: Path) -> None:
    """The options that the message allows are accepted."""
    with pytest.raises(ConfigurationError) as error:
        loaded(tmp_path / "a", {"streams.flights.options": {"header": "false"}})
    advised(str(error.value), 'names = "a,b,c" is for files without a header')
    loaded(tmp_path / "b", {"streams.flights.options": {"names": "a,b,c"}})
    for option in ("mode", "columnNameOfCorruptRecord"):
        with pytest.raises(ConfigurationError) as error:
            loaded(tmp_path / option, {"streams.flights.options": {option: "x"}})
        assert advised(str(error.value), "(`stream-wh rejected NAME`)") == "stream-wh rejected NAME"


@executes(
    'declare them, or set unknown_columns = "ignore" or "add"',
    'declare encoding = "UTF-16LE" or "UTF-16BE"',
)
def test_files_that_the_declaration_refuses(tmp_path: Path, spark: SparkSession) -> None:
    """With the line that the reason gives they are read."""
    file = {"x.csv": "k,b,more\nx,2026-01-01T00:00:00Z,1\n"}
    columns = {"k": "string", "b": "timestamp"}
    plain = {"columns": columns, "expires": None, "max_lifetime": None}
    (_, why), = left_out(declared(tmp_path / "a", **plain), file).values()
    advised(why, 'declare them, or set unknown_columns = "ignore" or "add"')
    assert len(read(spark, declared(tmp_path / "b", **plain, unknown_columns="ignore"), file)) == 1
    wide = {"x.csv": "k,b\nx,2026-01-01T00:00:00Z\n".encode("utf-16-le")}
    (_, why), = left_out(declared(tmp_path / "c", **plain, options={"encoding": "UTF-16"}), wide).values()
    advised(why, 'declare encoding = "UTF-16LE" or "UTF-16BE"')
    assert len(read(spark, declared(tmp_path / "d", **plain, options={"encoding": "UTF-16LE"}), wide)) == 1


@executes("`○` makes a line of each, for --from rows.jsonl")
@pytest.mark.skipif(shutil.which("jq") is None, reason="the command that is advised is one of jq")
def test_one_object_with_all_rows(tmp_path: Path) -> None:
    """The command makes lines that `init --from` accepts."""
    rows = [{"host": f"h{number % 9}", "at": f"2024-05-13T08:{number:02}:00Z"} for number in range(60)]
    (tmp_path / "one.json").write_text(json.dumps({"data": {"x": 1}, "rows": rows}, indent=1))
    printed = typed(tmp_path, f"stream-wh init one --from {tmp_path / 'one.json'}", code=2)
    advised(printed, "`○` makes a line of each, for --from rows.jsonl")
    (line,) = re.findall(r"`(jq [^`]+)`", printed)
    assert subprocess.run(line, shell=True, cwd=tmp_path, check=False).returncode == 0  # noqa: S602 - as a person pastes it
    typed(tmp_path, f"stream-wh init one --from {tmp_path / 'rows.jsonl'} --key host")
