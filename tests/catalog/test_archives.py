"""``on_expiry``: the archive that it declares, its faults, and when an archive does not fit its stream any more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from warehouse.catalog.archives import EXPIRED_AT
from warehouse.catalog.declaration import ColumnRecord, table_declaration
from warehouse.catalog.drift import compare
from warehouse.layout import resolve

from .project import GOOD, loaded, problems
from .test_drift import Epoch, Table, recorded

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.model import Catalog

ON_EXPIRY = "streams.flights.on_expiry"
ARCHIVED = {ON_EXPIRY: "archive"}


def with_archive(catalog: Catalog) -> Epoch:
    """Return an epoch's record of the streams and of the archive of the first stream."""
    epoch, stream = recorded(catalog), catalog.streams[0]
    columns = tuple(ColumnRecord(column.name, column.type) for column in stream.columns)
    declared = table_declaration(
        (*columns, ColumnRecord(EXPIRED_AT, "timestamp")), stream.search_key, label="MON", max_lifetime=None
    )
    return replace(epoch, tables=(*epoch.tables, Table("flights_archive", declared, resolve(periods=24, label="MON"))))


def test_rows_that_expire_are_dropped_unless_an_archive_is_declared(tmp_path: Path) -> None:
    """Each stream by itself."""
    assert loaded(tmp_path).archives == {}
    catalog = loaded(tmp_path, ARCHIVED)
    assert {name: stream.name for name, stream in catalog.archives.items()} == {"flights_archive": "flights"}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"streams.flights.erase_within": "30d"}, ("with `erase_within`", "one of both")),
        ({"streams.flights.expires": None}, ("without `expires`", "rows that never expire")),
        ({"streams.flights.columns.Expired_At": "date"}, ("with a column expired_at", "another name")),
        ({"streams/flights_archive": {**GOOD["streams"]["flights"], "landing": "l"}}, ('"flights_archive" is declared',)),
        ({"views/flights_archive": {"sql": "SELECT * FROM flights", "search_key": "ttl"}}, ('"flights_archive" is declared',)),
        ({ON_EXPIRY: "keep"}, ('"keep"', '"drop" | "archive"')),
    ],
    ids=["erase_within", "never", "column", "stream", "view", "word"],
)
def test_what_cannot_stand_with_an_archive_is_a_fault(tmp_path: Path, changes: dict[str, Any], told: tuple[str, ...]) -> None:
    """The fault names the key and the allowed values."""
    (fault,) = problems(tmp_path, {**ARCHIVED, **changes})
    assert fault.key == ON_EXPIRY
    assert all(text in str(fault) for text in told), str(fault)


def test_a_name_that_leaves_no_room_for_the_archives_is_a_fault(tmp_path: Path) -> None:
    """The archive's name is bounded as every other."""
    name = "f" * 56
    (fault,) = problems(tmp_path, {f"streams.{name}": {**GOOD["streams"]["flights"], "landing": "l", "on_expiry": "archive"}})
    assert "at most 55 letters" in str(fault)


def test_an_archive_is_declared_with_its_stream(tmp_path: Path) -> None:
    """While rows go into it; later it is frozen, as a table that is no longer declared."""
    epoch = with_archive(loaded(tmp_path, ARCHIVED))
    unchanged = compare(loaded(tmp_path, ARCHIVED), epoch)
    assert (unchanged.problems, unchanged.warnings) == ((), ())
    off = compare(loaded(tmp_path), epoch)
    assert (off.problems, len(off.warnings)) == ((), 1)
    assert "`stream-wh drop flights_archive`" in off.warnings[0]


def test_rows_that_do_not_fit_the_archive_any_more_are_refused(tmp_path: Path) -> None:
    """An archive keeps the columns and the key with which it was made."""
    epoch = with_archive(loaded(tmp_path, ARCHIVED))
    changed = {**ARCHIVED, "streams.flights.columns.ttl": "bigint"}
    messages = {problem.key: str(problem) for problem in compare(loaded(tmp_path, changed), epoch).problems}
    assert set(messages) == {"streams.flights.columns.ttl", ON_EXPIRY}
    assert "ttl int" in messages[ON_EXPIRY]
    assert "stream-wh drop flights_archive" in messages[ON_EXPIRY]
