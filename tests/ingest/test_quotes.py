"""Quotes that are open at the end of a line: found in whole files at once, and never a value that is cut off."""

from __future__ import annotations

import csv
import io
import random
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingest.quoting import OPEN, fields
from tests.ingest.records import declared, left_out, read
from warehouse.ingest.landing import list_landing
from warehouse.ingest.quotes import FieldSyntax, doubtful_lines, has_doubtful_lines

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SYNTAX = FieldSyntax('"', '"', ",", "", skips_spaces=False, encoding="utf-8")
COLUMNS = {"k": "string", "b": {"type": "timestamp", "format": "epoch_seconds"}, "note": "string"}
KEYS = {"columns": COLUMNS, "expires": None, "max_lifetime": None, "null_expiry": None}


def doubtful(text: str) -> int:
    """Return how many lines of a text are doubtful."""
    return len(doubtful_lines(np.frombuffer(text.encode(), np.uint8), SYNTAX))


@given(st.lists(st.text('",x \t', max_size=12), max_size=5))
def test_no_line_that_leaves_a_quote_open_is_passed_over(lines: list[str]) -> None:
    """Whatever else is on it and on its neighbours."""
    open_ = sum(fields(line)[-1] == OPEN for line in lines)
    assert open_ <= doubtful("\n".join(lines)) <= sum('"' in line for line in lines)


ROWS = st.lists(st.lists(st.text('",xä ', max_size=6), min_size=1, max_size=4), max_size=5)


@given(ROWS, st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_is_written_as_csv_is_not_doubtful(rows: list[list[str]], end: str) -> None:
    """With quotes where they are needed, or around all fields."""
    for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL):
        text = io.StringIO()
        csv.writer(text, lineterminator=end, quoting=quoting).writerows(rows)
        assert doubtful(text.getvalue()) == 0


def test_quotes_inside_plain_fields_are_not_doubtful() -> None:
    """As in measures; behind a space they begin no field, unless spaces are passed over."""
    text = 'a,b\n5" x, "y\n'
    assert doubtful(text) == 0
    spaced = FieldSyntax('"', '"', ",", "", skips_spaces=True, encoding="utf-8")
    assert len(doubtful_lines(np.frombuffer(text.encode(), np.uint8), spaced)) == 1


@pytest.mark.parametrize(
    ("content", "names"), [('k,b,note\n"a","1","x"\n"b","2","cut o', None), ('"a","1","x\ny"\n"b","2","z"\n', "k,b,note")]
)
def test_a_quote_at_the_very_beginning(tmp_path: Path, content: str, names: str | None) -> None:
    """Of a last line that no line break ends, as of a file that was cut off; of the first line where there is no header."""
    target = declared(tmp_path, **KEYS, options={"names": names} if names else {})
    (target.landing / "1.csv").write_text(content, encoding="utf-8")
    assert [has_doubtful_lines(target, file) for file in list_landing(target.landing, "*")] == [True]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16"])
def test_no_value_is_cut_off(tmp_path: Path, spark: SparkSession, encoding: str) -> None:
    """Of drawn lines, lines of three closed fields load with all their text; others are rejected, with the remedy."""
    drawn = random.Random(17)  # noqa: S311 - drawn lines
    lines = [f'k{number},1367366400,{"".join(drawn.choices(chr(34) + chr(34) + ",x ", k=6))}' for number in range(150)]
    lines += ['"k,1367366400,x', 'k,"1367366400,x', 'k,1367366400,"', 'k,1367366400,5" x', '"k ""a""",1367366400,"b"""']
    target = declared(tmp_path, **KEYS, options={"encoding": encoding})
    content = "\r\n".join(["k,b,note", *lines, ""]).encode("utf-16" if encoding == "UTF-16" else "utf-8")
    rows = read(spark, target, {"1.csv": content})
    assert len(rows) == len(lines)
    for line, row in zip(lines, rows, strict=True):
        expected = fields(line)
        if len(expected) != len(COLUMNS) or OPEN in expected:
            assert row["fault"] == "malformed", line
            assert (OPEN not in expected or len(expected) > len(COLUMNS)) or "multiline = true" in row["why"], line
        elif row.get("fault") is None:
            assert expected[0] in (None, row["k"]), line
            assert expected[2] in (None, row.get("note")), line
        else:
            raise AssertionError(line, row)


def test_a_header_that_is_cut_off(tmp_path: Path) -> None:
    """It is said to be one."""
    (_, message), = left_out(declared(tmp_path, **KEYS), {"1.csv": 'k,b,"no\nte"\nx,1,y\n'}).values()
    assert message.endswith("declare options = { multiline = true }")
