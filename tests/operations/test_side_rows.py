"""Waiting and invalid rows: the driver writes few, Spark writes many, and both ways leave the same tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.operations.projects import Project, csv, row, stream, text
from warehouse.limits import limited
from warehouse.storage import writer

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {"K": "string", "b": "timestamp", "e": "timestamp", "v": "struct<n: array<int>>"}
NOTHING = -1


def lines(*records: str) -> str:
    """Return a file of JSON lines."""
    return "".join(record + "\n" for record in records)


def record(key: str, begins: float, ends: float | None, value: str = "null") -> str:
    """Return a JSON record."""
    expiry = "null" if ends is None else f'"{text(ends)}"'
    return f'{{"K": "{key}", "b": "{text(begins)}", "e": {expiry}, "v": {value}}}'


def landed(project: Project, hour: int) -> None:
    """Land the files of an update: rows for several slots, invalid rows in between, in either format."""
    if hour == 1:
        first = [record("a", 0.5, 3), "no JSON", record("later", 1.5, 5, '{"n": [1, null]}'), record("late'r", 3.2, 7)]
        project.land("1.json", lines(*first, record("bad", 0.9, 0.2), record("soon", 2.5, None)), landing="landing/j")
        project.land("2.json", lines(record("x", 2.5, 6), record("no end", 0.1, None)), landing="landing/j")
        project.land("é 1.csv", csv(row("p", 0.5, 4), row("q", 1.9, 5), row("no", 0, "?"), "short"))
    if hour == 2:
        last = [record("b", 1.5, 4), "{}", record("soon", 2.9, 6), record("gone", 2.1, 2.2)]
        project.land("3.json", lines(*last), landing="landing/j")
        project.land("2.csv", csv(row("r", 3.5, 6), row("s", 1.2, 1.1)))


def seen(project: Project) -> list[dict[str, Any]]:
    """Return the rows and counts of each stream at an epoch."""
    return [project.picture(name) for name in ("a", "j")]


def test_few_and_many_leave_the_same_tables(tmp_path: Path, spark: SparkSession) -> None:
    """By either way: waiting rows with their slots, records and nested values, invalid rows with reasons."""
    nested = stream(landing="landing/j", format="json", search_key="K", columns=COLUMNS)
    few, many = (Project(tmp_path / name, spark, {"a": stream(), "j": nested}) for name in ("few", "many"))
    for hour in (1, 2, 3, 4):
        for project in (few, many):
            landed(project, hour)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writer, "stage", None)  # not asked for
            few.update(hour)
        with pytest.MonkeyPatch.context() as patch, limited(driver_rows=0, driver_bytes=NOTHING):
            patch.setattr(writer, "stage_side_rows", None)
            many.update(hour)
        assert seen(few) == seen(many), hour
    assert {(waiting["K"], waiting["_file"], waiting["_record"]) for waiting in few.deferred("j", 0)} == {
        ("later", "1.json", 3), ("late'r", "1.json", 4), ("x", "2.json", 1)
    }  # fmt: skip
    assert not few.deferred("j"), "every row was taken when its slot came"
