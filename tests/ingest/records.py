"""Landing files of one stream, read as an update reads them: typed records and what is wrong with each, without an update."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from tests.operations.projects import Project, stream
from warehouse.catalog.load import load_catalog
from warehouse.ingest.dialect import session_settings
from warehouse.ingest.landing import list_landing
from warehouse.ingest.reading import read_files
from warehouse.planning.inputs import grouped
from warehouse.storage.session import table_session

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Stream

__all__ = ["declared", "left_out", "read"]


def declared(directory: Path, **keys: object) -> Stream:
    """Return a stream with these keys, and make its landing directory."""
    project = Project(directory, None, {"a": stream(**keys)})
    return load_catalog(project.directory).streams[0]


def land(target: Stream, files: dict[str, str | bytes]) -> None:
    """Write files into a stream's landing directory."""
    for name, content in files.items():
        (target.landing / name).write_bytes(content.encode() if isinstance(content, str) else content)


def left_out(target: Stream, files: dict[str, str | bytes]) -> dict[str, tuple[str, str]]:
    """Return why files are left out by their name or header, by name; that takes no Spark."""
    land(target, files)
    _, _, problems = grouped(target, target.landing, list(list_landing(target.landing, target.files)))
    return {problem.file.path: (problem.reason, problem.message) for problem in problems}


def read(spark: SparkSession, target: Stream, files: dict[str, str | bytes]) -> list[dict[str, Any]]:
    """Return the records of files in order of file and place: the columns, times as text, and ``fault`` and ``why``, if any."""
    assert left_out(target, files) == {}
    full, groups, _ = grouped(target, target.landing, list(list_landing(target.landing, target.files)))
    session = table_session(spark, session_settings(full))
    rows = read_files(session, full, [(group.header, group.files) for group in groups])
    columns = [F.col(f"`{column.name}`") for column in full.columns]
    shown = [
        F.unix_micros(value) if column.type == "timestamp" else value for value, column in zip(columns, full.columns, strict=True)
    ]
    record = F.struct(
        *[value.alias(column.name) for value, column in zip(shown, full.columns, strict=True)],
        F.col("_fault").alias("fault"),
        F.col("_fault_message").alias("why"),
    )
    collected = rows.orderBy("_file", "_start", "_position").select(F.to_json(record)).collect()
    times = {column.name for column in full.columns if column.type == "timestamp"}
    return [
        {name: _text(value) if name in times else value for name, value in json.loads(row[0]).items()} for row in collected
    ]


def _text(micros: int) -> str:
    return f"{datetime.fromtimestamp(micros // 10**6, tz=UTC):%Y-%m-%d %H:%M:%S}.{micros % 10**6:06}"
