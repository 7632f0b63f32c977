"""Large writes make no dictionaries for columns for which the table's largest file shows no saving."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tests.storage.test_commit import FACTS, empty_table
from warehouse.storage import writer
from warehouse.storage.arrow_types import frame_of
from warehouse.storage.entries import LogEntry, entry_at
from warehouse.storage.footers import without_dictionary
from warehouse.storage.session import table_session
from warehouse.storage.snapshot import stored_files
from warehouse.storage.writer import RunTable, key_settings, write_runs

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

ROWS = 2_000
KEY = [("k", "string")]


def rows(block: int) -> pa.Table:
    """Return rows of one cell; the columns ``Unique`` and ``_ts`` have unique values, ``few`` and ``_exp`` do not."""
    numbers = pa.array(range(ROWS), pa.int64())
    return pa.table({
        "k": [f"{number % 50}" for number in range(ROWS)],
        "Unique": [f"{number * 7919 % ROWS:05d}" for number in range(ROWS)],
        "few": [str(number % 3) for number in range(ROWS)],
        "_ts": numbers.cast(pa.timestamp("us", "UTC")),
        "_exp": pa.repeat(pa.scalar(0, pa.int64()), ROWS).cast(pa.timestamp("us", "UTC")),
        "sub_index": pa.repeat(pa.scalar(1, pa.int32()), ROWS),
        "exp_block": pa.repeat(pa.scalar(block, pa.int64()), ROWS),
    })  # fmt: skip


def written(spark: SparkSession, table: Path, base: LogEntry, block: int) -> tuple[LogEntry, set[str]]:
    """Write rows by Spark; return the entry and the columns of the new file that have a dictionary."""
    session = table_session(spark, key_settings(KEY))
    frame = frame_of(session, rows(block))
    entry = write_runs(frame, RunTable(table, KEY, base), sizes={(1, block): ROWS}, leaving=None, facts=FACTS)
    (file,) = (stored for stored in stored_files(table, entry.version) if stored.partition["exp_block"] == str(block))
    group = pq.read_metadata(table / unquote(file.path)).row_group(0)
    columns = [group.column(index) for index in range(group.num_columns)]
    return entry, {column.path_in_schema for column in columns if column.has_dictionary_page}


def test_unique_columns_get_none(tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write of few rows does not check; a large write uses the stored file; a table without files gives no answer."""
    monkeypatch.setattr(writer, "LARGE_ROWS", ROWS)
    table = empty_table(tmp_path / "t")
    assert without_dictionary(table, 0) == without_dictionary(table, -1) == frozenset()
    entry, _ = written(spark, table, entry_at(table, 0), 0)
    assert without_dictionary(table, entry.version) == {"Unique", "_ts"}
    settings: list[dict[str, str]] = []
    staged = writer.stage
    monkeypatch.setattr(writer, "stage", lambda *arguments: (settings.append(arguments[-1]), staged(*arguments))[1])
    entry, with_one = written(spark, table, entry, 1)
    off = {name.partition("#")[2] for name, value in settings[0].items() if "dictionary" in name and value == "false"}
    assert off == {"Unique", "_ts"}
    assert with_one == {"few", "_exp"}
    monkeypatch.setattr(writer, "LARGE_ROWS", ROWS + 1)
    written(spark, table, entry, 2)
    assert not [name for name in settings[1] if "dictionary" in name]


def test_what_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    """Each caller that needs the rows of a missing or damaged file reports it."""
    table = empty_table(tmp_path / "t")
    base = entry_at(table, 0)
    entry = write_runs(rows(0), RunTable(table, KEY, base), sizes={(1, 0): ROWS}, leaving=None, facts=FACTS)
    (file,) = stored_files(table, entry.version)
    path = table / unquote(file.path)
    assert without_dictionary(table, entry.version) == {"Unique", "_ts"}
    path.write_bytes(path.read_bytes()[:-5])
    assert without_dictionary(table, entry.version) == frozenset()
    path.unlink()
    assert without_dictionary(table, entry.version) == frozenset()
