"""What a warehouse tells of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

from warehouse.errors import UnknownNameError
from warehouse.serving import Reader, metadata, table_status
from warehouse.serving.history import history
from warehouse.time import DAY, HOUR, NEVER

from .house import LAYOUT

if TYPE_CHECKING:
    from .house import House


def test_tables_and_descriptions(house: House, reader: Reader) -> None:
    """Names, types of both kinds, the key's order, the layout."""
    assert metadata.tables(reader.epoch) == tuple(house.tables)
    described = metadata.describe(reader, "pairs")
    assert [(column.name, column.type, column.sql_type, column.key) for column in described.columns] == [
        ("a", "bigint", "BIGINT", 1),
        ("b", "string", "VARCHAR", 2),
        ("c", "int", "INTEGER", 3),
        ("n", "int", "INTEGER", None),
    ]
    assert described.layout == LAYOUT.to_json()
    assert (described.label, described.search_key, described.declared) == ("WK", ("a", "b", "c"), True)
    with pytest.raises(UnknownNameError):
        metadata.describe(reader, "pears")


def test_files_and_filter_are_all_that_another_engine_needs(house: House, reader: Reader) -> None:
    """Both filters over these files give the live rows, also in an engine with another time zone."""
    for name, table in house.tables.items():
        listing = metadata.files(reader, name)
        assert (listing.epoch, listing.slot_filter) == (2, "_exp_slot > 4")
        if not listing.files:
            assert not table.live(4)
            continue
        paths = [file.path for file in listing.files]
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            for condition in (listing.filter, listing.slot_filter):
                query = f"SELECT count(*) FROM read_parquet(?, hive_partitioning = false) WHERE {condition}"
                assert connection.execute(query, [paths]).fetchone() == (len(table.live(4)),)


def test_history(house: House) -> None:
    """Newest first, at most as many as asked for."""
    rows = list(history(house.root))
    assert [row.number for row in rows] == [2, 1, 0]
    assert [row.number for row in history(house.root, 2)] == [2, 1]
    assert list(history(house.root, 0)) == []
    assert (rows[0].window_time, rows[0].inserted, rows[0].tables) == (house.epochs[2].window_time, 9, 6)


def test_rejected_rows(reader: Reader) -> None:
    """With file, record, reason, message, raw text and epoch; no rows where nothing was rejected."""
    answer = metadata.rejected(reader, "names")
    assert [name for name, _ in answer.columns] == ["file", "record", "reason", "message", "raw", "epoch"]
    assert sorted(answer.all()) == [(f"{number}.csv", 1, "null_key", "m", "a,b", number) for number in range(3)]
    assert metadata.rejected(reader, "names", 1).all() == [("0.csv", 1, "null_key", "m", "a,b", 0)]
    assert metadata.rejected(reader, "days").all() == []
    assert metadata.rejected(reader, "days").columns == answer.columns


def test_status_counts_live_rows_exactly(house: House) -> None:
    """The count comes from metadata and from reading rows that slots do not decide; it is right at every epoch."""
    for epoch in house.epochs:
        with Reader.open(house.root, as_of=epoch.window_time) as reader:
            for status in table_status.status(reader, retain=7 * DAY):
                table = house[status.table]
                loaded = [row for row in table.rows if row.load <= epoch.slot]
                assert (status.live_rows, status.rows) == (len(table.live(epoch.slot)), len(loaded))
                assert status.window_time == epoch.window_time
                assert (status.files == 0) == (not loaded)
                assert status.rejected == (epoch.number + 1 if status.table == "names" else 0)
                # w = 3 slots of an hour, then the epochs that name the file, then the next update
                assert (status.dead_for, status.on_disk_for) == (3 * HOUR, 3 * HOUR + 7 * DAY + HOUR)
    assert any(row.exp == NEVER for row in house["names"].rows)
