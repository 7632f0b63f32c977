"""CSV records over several lines: where each ends, which are refused, and the same values as other readers give."""

from __future__ import annotations

import csv
import gzip
import io
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.project import problems
from tests.ingest.records import declared, read
from tests.ingest.test_quotes import COLUMNS, KEYS, SYNTAX
from warehouse.ingest.bounds import bounds_problems
from warehouse.ingest.headers import csv_header
from warehouse.ingest.landing import list_landing
from warehouse.ingest.multiline import MultilineCheck, check_pieces

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.ingest.quotes import FieldSyntax

FIELD = st.text('",x\n\r #\\', max_size=5)
OPTIONS = {"multiline": "true"}


def looked(content: str, *, size: int = 1 << 20, longest: int = 1000, syntax: FieldSyntax = SYNTAX) -> MultilineCheck:
    """Look through a text that comes in pieces."""
    text = np.frombuffer(content.encode(), np.uint8)
    return check_pieces((text[position : position + size] for position in range(0, len(text), size)), syntax, longest)


@given(
    st.lists(st.lists(FIELD, min_size=2, max_size=3), min_size=2, max_size=4),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.integers(1, 9),
)
def test_what_is_written_as_csv_is_read(rows: list[list[str]], end: str, size: int) -> None:
    """However it is cut into pieces: the end of records is found, and nothing is held against it."""
    for quoting in (csv.QUOTE_ALL, *([csv.QUOTE_MINIMAL] if end == "\r\n" else [])):  # which quotes only what ends a record
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator=end, quoting=quoting).writerows(rows)
        assert looked(text.getvalue(), size=size) == MultilineCheck(end)


@pytest.mark.parametrize("size", range(1, 12))
def test_a_delimiter_of_two_signs_may_be_cut(size: int) -> None:
    """Where a piece ends with its first character, the next piece begins with its second."""
    syntax = replace(SYNTAX, delimiter="||")
    assert looked('a||b\n"x\ny"||"z"\n"x\n"||"|\n|"\n', size=size, syntax=syntax) == MultilineCheck("\n")


@given(st.lists(st.text('"",x\n', max_size=20), min_size=1, max_size=3), st.integers(1, 7))
def test_pieces_do_not_matter(parts: list[str], size: int) -> None:
    """A text gets the same verdict whole and in pieces; an accepted text has as many records as Python finds."""
    text = "a,b\n" + "\n".join(parts)
    whole = looked(text)
    assert (whole.problem is None) == (looked(text, size=size).problem is None)
    if whole.problem is None and '"' not in "".join(parts).replace('""', ""):
        assert sum(map(bool, csv.reader(io.StringIO(text, newline="")))) <= text.count("\n") + 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('a,b\n1,"x\n2,y\n', ("line 2", "open until the end")),
        ('a,b\n1,"x\n2,"y"\n3,z\n', ("line 2", "stands behind its quote")),
        ("a,b\n1,x\r\n2,y\n", ("end all alike",)),
        ('a,b\n1,"x\n' + "y\n" * 600 + '"\n', ("line 2", "longer than max_record")),
        ('a,b\n1,"x\0y\n"\n', ("a byte 0",)),
    ],
)
def test_what_is_not_certain_is_refused(content: str, words: tuple[str, ...]) -> None:
    """With the line where it begins, in whatever pieces it comes."""
    for size in (3, 1 << 20):
        problem = looked(content, size=size).problem
        assert problem is not None
        assert [word for word in words if word not in problem[1]] == []


def test_what_looks_open_and_is_not() -> None:
    """Quotes in comment lines and in plain fields, spaces behind a quote, a backslash that escapes one."""
    syntax = replace(SYNTAX, comment="#")
    assert looked('a,b\n#,"note\n5" x,"y\n# z" \n1,"""\n', syntax=syntax).problem is not None
    assert looked('a,b\n#,"note\n5" x,"y\n# z" \n1,"""\n"\n', syntax=syntax) == MultilineCheck("\n")
    assert looked('a,b\n1,"x\\"\n,y"\n', syntax=replace(SYNTAX, escape="\\")) == MultilineCheck("\n")
    assert looked('a,b\n1,"x"y,"z"\n') == MultilineCheck("\n")


def test_twice_as_many_records_take_twice_as_long() -> None:
    """A file in which each record goes over lines is looked through once, not once for each of them."""

    def taken(records: int) -> float:
        content, begin = "a,b\n" + '1,"x\ny"\n' * records, time.process_time()
        assert looked(content, size=len(content)) == MultilineCheck("\n")
        return time.process_time() - begin

    few, many = (min(taken(records) for _ in range(3)) for records in (10_000, 80_000))
    assert many < 24 * few


def written(rows: list[list[Any]], end: str) -> str:
    """Return rows as CSV, all in quotes."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(rows)
    return text.getvalue()


@pytest.mark.parametrize("encoding", ["UTF-8", "windows-1252", "UTF-16"])
def test_an_update_reads_what_was_written(tmp_path: Path, spark: SparkSession, encoding: str) -> None:
    """Whatever ends records, plain and compressed, with a name over lines in the header; DuckDB reads the same."""
    texts = ["one\ntwo", 'he said "\n"', "", "#\n# no comment", "\n", "ä\r\nb", " \n", "a,b\n1,1367366400,x", "c\rd", "plain"]
    rows: list[list[Any]] = [["k\nx", "b", "note"], *([f"k{number}", 1367366400, text] for number, text in enumerate(texts))]
    columns = {**COLUMNS, "k": {"type": "string", "from": "k\nx"}}
    target = declared(tmp_path, **{**KEYS, "columns": columns}, options={**OPTIONS, "comment": "#", "encoding": encoding})
    note = "" if encoding == "UTF-16" else "# a note"
    ends = {"1.csv": "\n", "2.csv": "\r\n", "3.csv": "\r"}
    files: dict[str, str | bytes] = {
        name: ((note + 2 * end if note else "") + written(rows, end)).encode(encoding) for name, end in ends.items()
    }
    files["4.csv.gz"] = gzip.compress((f"{note}\n" if note else "").encode() + written(rows, "\n").encode(encoding))
    records = read(spark, target, files)
    assert bounds_problems(target, list(list_landing(target.landing, "*"))) == []
    assert [row.get("note") for row in records] == texts * len(files)
    assert [row["k"] for row in records[: len(texts)]] == [f"k{number}" for number in range(len(texts))]
    (tmp_path / "plain.csv").write_text(written(rows, "\n"), encoding="utf-8", newline="")
    shape = "auto_detect = false, header = true, delim = ',', quote = chr(34), escape = chr(34), new_line = '\\n', nullstr = '-'"
    kinds = "columns = {'k': 'VARCHAR', 'b': 'VARCHAR', 'note': 'VARCHAR'}"
    with duckdb.connect() as connection:
        query = f"SELECT note FROM read_csv('{tmp_path / 'plain.csv'}', {shape}, {kinds})"
        assert [note for (note,) in connection.execute(query).fetchall()] == texts


def test_records_of_another_shape_are_rejected(tmp_path: Path, spark: SparkSession) -> None:
    """One by one; lines of spaces are no records."""
    target = declared(tmp_path, **KEYS, options=OPTIONS)
    rows = read(spark, target, {"1.csv": 'k,b,note\na,1367366400,"x\ny"\n  \nb,1367366400\nc,1367366400,z,"4\n"\nd,no,"\n"\n'})
    assert [row.get("fault") for row in rows] == [None, "malformed", "malformed", "mistyped"]


def test_a_header_over_lines(tmp_path: Path) -> None:
    """Its names have line breaks; a line of spaces before it, which Spark would take for it, is refused."""
    (tmp_path / "a.csv").write_text('# note "\n\n"a\nb",c\n1,2\n')
    assert csv_header(tmp_path / "a.csv", {**OPTIONS, "comment": "#"}) == ("a\nb", "c")
    (tmp_path / "a.csv").write_text("  \na,c\n1,2\n")
    with pytest.raises(ValueError, match="a line of spaces"):
        csv_header(tmp_path / "a.csv", OPTIONS)


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    """Files with columns have no such option, and where quotes are read otherwise no end of a record is certain."""
    faults = [
        " ".join(map(str, problems(tmp_path / str(number), {f"streams.flights.{key}": value for key, value in changes.items()})))
        for number, changes in enumerate(
            (
                {"format": "parquet", "options": {"multiline": True}},
                {"options": {"multiline": 1}},
                {"options": {"multiline": True, "unescapedQuoteHandling": "RAISE_ERROR"}},
            )
        )
    ]
    assert ["of CSV and JSON" in faults[0], "true where a text" in faults[1], "it is certain where" in faults[2]] == [
        True,
        True,
        True,
    ]

