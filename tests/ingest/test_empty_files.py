"""Files without a byte are loaded as files without a row, alone, beside others, and beside rows that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.operations.projects import Project, csv, row, stream, text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp"}
FORMATS: dict[str, dict[str, Any]] = {
    "csv": {},
    "json": {"format": "json", "search_key": "k", "columns": COLUMNS},
    "logfmt": {"format": "logfmt", "search_key": "k", "columns": COLUMNS},
}


def content(kind: str, key: str, begins: float, ends: float) -> str:
    """Return a file of one row."""
    if kind == "csv":
        return csv(row(key, begins, ends))
    if kind == "json":
        return f'{{"k": "{key}", "b": "{text(begins)}", "e": "{text(ends)}"}}\n'
    return f'k={key} b="{text(begins)}" e="{text(ends)}"\n'


@pytest.mark.parametrize("kind", FORMATS)
def test_files_without_a_byte(tmp_path: Path, spark: SparkSession, kind: str) -> None:
    """In a first update, in a later one, with a row of the next slot, and in the update that takes this row."""
    project = Project(tmp_path, spark, {"a": stream(**FORMATS[kind])})

    def counts(hour: int) -> tuple[int, int, int]:
        project.update(hour)
        (of_stream,) = project.epoch.counts
        return of_stream.files, of_stream.rows, of_stream.taken

    project.land("0.x", "")
    assert counts(1) == (1, 0, 0)
    for key, begins in (("a", 1.5), ("later", 2.5)):
        project.land(f"{key}.x", content(kind, key, begins, begins + 3))
    assert counts(2) == (2, 2, 0)
    project.land("3.x", "")
    assert counts(3) == (1, 0, 1)
    project.land("4.x", "")
    assert counts(4) == (1, 0, 0)
    assert project.keys() == "a later"
    assert not project.update(4).epochs
