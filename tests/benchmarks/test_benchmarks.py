"""The benchmarks run from one end to the other; their figures are not checked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from benchmarks import data
from benchmarks.__main__ import main
from benchmarks.ratio import Sample, ratio
from benchmarks.report import table

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa


SIZE = ["--quick", "--rows", "2000", "--batch", "200", "--updates", "2", "--repeat", "1", "--keys", "2", "--files", "1"]
MEASURED = ("update", "bytes", "probe", "scan", "cold-probe")


@pytest.mark.usefixtures("spark")
def test_a_tiny_run_fills_table_and_files(tmp_path: Path) -> None:
    """Every measurement that starts no second JVM gives lines, with their target where it has one."""
    chosen = [word for name in MEASURED for word in ("--only", name)]
    result = CliRunner().invoke(main, [*SIZE, *chosen, "--results", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    (saved,) = tmp_path.glob("*.json")
    record = json.loads(saved.read_text())
    assert {line["measurement"] for line in record["ratios"]} == set(MEASURED)
    assert {line["measurement"] for line in record["ratios"] if line["holds"] is not None} == set(MEASURED)
    assert len(record["details"]["rounds"]) == 2
    assert record["settings"]["seed"]
    assert record["machine"]["cores"]
    (rendered,) = tmp_path.glob("*.md")
    assert rendered.read_text().endswith(table_of(result.output))


@pytest.mark.usefixtures("spark")
def test_growth_is_measured_in_turn(tmp_path: Path) -> None:
    """The large warehouse has as many times the rows as the line says."""
    options = [*SIZE, "--rows", "1000", "--updates", "1", "--only", "growth", "--results", str(tmp_path)]
    result = CliRunner().invoke(main, options, catch_exceptions=False)
    assert "with 10 times the live rows" in result.output


@pytest.mark.usefixtures("spark")
def test_durability_is_measured_in_turn(tmp_path: Path) -> None:
    """With few rows and with many; the updates with syncs sync many times, and the number of syncs is recorded."""
    options = [*SIZE, "--updates", "1", "--only", "durability", "--results", str(tmp_path)]
    result = CliRunner().invoke(main, options, catch_exceptions=False)
    assert ["of 100 rows" in result.output, "of 200 rows" in result.output] == [True, True]
    (saved,) = tmp_path.glob("*.json")
    assert all(count > 1 for name, count in json.loads(saved.read_text())["details"].items() if name.startswith("syncs"))


def table_of(output: str) -> str:
    """Return the Markdown table in the printed text, without the progress."""
    return "".join(line + "\n" for line in output.splitlines() if line.startswith("|"))


def test_the_same_seed_gives_the_same_rows() -> None:
    """Rows are a function of the shape and the part, have the bytes asked for, and live as long as asked."""
    shape = data.Shape(row_bytes=130, keys=2000, seed=1)
    rows = data.arriving(shape, 100, part=(3,), after=10, until=20, lifetime=5)
    assert rows.equals(data.arriving(shape, 100, part=(3,), after=10, until=20, lifetime=5))
    assert not rows.equals(data.arriving(shape, 100, part=(4,), after=10, until=20, lifetime=5))
    for at, until, key, text in zip(micros(rows, "at"), micros(rows, "until"), rows["k"], rows["v"], strict=True):
        assert 10 < at <= 20
        assert 1 <= until - at <= 5
        assert len(key.as_py()) + len(text.as_py()) + 4 * 8 == 130


def micros(rows: pa.Table, column: str) -> list[int]:
    """Return a column of instants as microseconds."""
    return rows[column].cast("int64").to_pylist()


def test_living_rows_are_live() -> None:
    """Rows of a first build have arrived and not expired; no row is older than the longest lifetime."""
    rows = data.living(data.Shape(130, 2000, 1), 1000, part=(0,), at=0, lifetime=1000)
    ages, rests = [-at for at in micros(rows, "at")], micros(rows, "until")
    assert all(0 <= age < 1000 for age in ages)
    assert all(0 < remaining <= 1000 - age for age, remaining in zip(ages, rests, strict=True))


def test_an_absent_key_lies_between_two_keys() -> None:
    """Bounds alone cannot tell that an absent key is absent."""
    assert data.key(7) < data.absent_key(7) < data.key(8)


def test_a_table_says_whether_a_target_holds() -> None:
    """An upper and a lower bound are told apart, and a line without a target says nothing."""
    two, single = Sample("two", "s", (2.0,)), Sample("one", "s", (1.0,))
    lines = [
        ratio("m", "upper", two, single, target=1.5),
        ratio("m", "lower", two, single, target=1.5, at_least=True),
        ratio("m", "none", two, single),
    ]
    rendered = table(lines).splitlines()[2:]
    assert ["does not hold" in line for line in rendered] == [True, False, False]
    assert [" holds " in line for line in rendered] == [False, True, False]
