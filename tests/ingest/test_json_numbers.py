"""JSON numbers for columns of text: each keeps all its digits, in lines and in arrays, by name and by path."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project, stream, text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {
    "k": "string", "b": "timestamp", "e": "timestamp",
    "n": "string", "i": {"type": "string", "from": "in.n"}, "l": "array<string>", "s": "struct<x:string,y:int>", "f": "double",
}  # fmt: skip
TIMES = f'"b": "{text(0.9)}", "e": "{text(3)}"'


def _numbers() -> list[str]:
    """Return decimals of 1 to 38 digits, the dot anywhere: fixed numbers whose end is easy to lose, and random numbers."""
    chance = random.Random(5)  # noqa: S311 - data for tests
    fixed = ["1.10", "-0.1", "12345678901234567.123", "0.10000000000000000001", "-98765432109876543210.5", "7", "9" * 38]
    digits = ["".join(chance.choices("0123456789", k=chance.randint(2, 37))) for _ in range(40)]
    positions = [chance.randint(1, len(number)) for number in digits]
    return fixed + [f"{int(number[:point])}.{number[point:] or 0}" for number, point in zip(digits, positions, strict=True)]


@pytest.mark.parametrize("shape", ["lines", "array"])
def test_numbers_in_text_keep_their_digits(tmp_path: Path, spark: SparkSession, shape: str) -> None:
    """As a field, nested, in an array and in a struct, whatever else the record has; text that looks like a number stays."""
    numbers = _numbers()
    nested = {number: f'"in": {{"n": {number}}}, "l": [{number}, "1.50"], "s": {{"y": 4, "x": {number}}}' for number in numbers}
    records = [f'{{"k": "{number}", {TIMES}, "n": {number}, {nested[number]}, "f": 0.1}}' for number in numbers]
    records.append(f'{{"k": "1.50", {TIMES}, "n": "1.50", "in": {{"n": "1.50"}}, "l": ["1.50"], "f": 0.30000000000000004}}')
    project = Project(tmp_path, spark, {"a": stream(format="json", columns=COLUMNS, unknown_columns="reject", max_lifetime="4h")})
    project.land("1.json", "[" + ",".join(records) + "]" if shape == "array" else "\n".join(records))
    for record in records:
        assert json.loads(record)["k"]
    report = project.update(1)
    assert report.left_out == ()
    assert project.rejected() == []
    rows = {entry["k"]: entry for entry in project.live()}
    assert rows.keys() == {*numbers, "1.50"}
    for key in numbers:
        row = rows[key]
        seen = (row["n"], row["i"], row["l"][0], row["s"]["x"])
        assert {Decimal(value) for value in seen} == {Decimal(key)}, key
        assert (row["l"][1], row["s"]["y"], row["f"]) == ("1.50", 4, 0.1)
    last = rows["1.50"]
    assert (last["n"], last["i"], last["l"], last["f"]) == ("1.50", "1.50", ["1.50"], 0.30000000000000004)
