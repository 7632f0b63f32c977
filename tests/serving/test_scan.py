"""Scans, and conditions of the user's."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from warehouse.errors import QueryError, UnknownNameError
from warehouse.time import HOUR, MINUTE, NEVER, parse_instant, to_micros

if TYPE_CHECKING:
    from warehouse.serving import Reader

    from .house import House


def comparable(rows: list[tuple[Any, ...]]) -> list[str]:
    """Return rows in an order; time zones are told apart by their texts only."""
    plain = [[to_micros(part) if isinstance(part, datetime) else part for part in row] for row in rows]
    return sorted(map(repr, plain))


def test_a_scan_gives_the_live_rows(house: House, reader: Reader) -> None:
    """The scan is right for every table, at the window time and later, within a slot and on the grid."""
    time = house.epochs[-1].window_time
    for name, table in house.tables.items():
        for tau in (time, time + 1, time + 20 * MINUTE, time + HOUR, time + 5 * HOUR, NEVER - 1):
            rows = reader.scan(name, now=tau).all()
            assert comparable(rows) == comparable([row.values for row in table.live(4, tau)])


def test_files_without_a_dead_row_are_read_without_the_condition(reader: Reader) -> None:
    """Files that slots prove live are one part of the query, the others a second one."""
    explain = reader.scan("names").explain
    assert explain is not None
    live, mixed = explain.sql.split(" UNION ALL ")
    assert "_exp >" not in live
    assert "_exp >" in mixed


def test_conditions(house: House, reader: Reader) -> None:
    """A condition sees the columns as they are shown, system columns too."""
    live = house["names"].live(4)

    def count(where: str) -> int:
        return len(reader.scan("names", where=where, columns=["value"]).all())

    assert count("name = 'a'") == sum(row.values[0] == "a" for row in live)
    assert count("_exp IS NULL") == sum(row.exp == NEVER for row in live)
    five = parse_instant("2013-01-01T05:00:00Z")
    assert count("_exp > '2013-01-01T05:00:00Z'") == sum(NEVER != row.exp > five for row in live)
    assert count("name = 'it''s' -- a comment") == sum(row.values[0] == "it's" for row in live)
    assert count("list_contains(list_transform(parts, lambda x: x % 100), 30)") == sum(
        row.values[1] % 100 == 30 for row in live
    )
    assert count("names.sub_index = 2") == sum(row.system()[4] == 2 for row in live)
    assert count("CASE WHEN weight IS NULL THEN true END") == sum(row.values[2] is None for row in live)
    assert len(reader.scan("names", where="true", limit=3).all()) == 3
    wide = reader.scan("names", where="name = 'a'", system_columns=True)
    assert {row[4:] for row in wide.all()} == {row.shown() for row in live if row.values[0] == "a"}


@pytest.mark.parametrize(
    "where",
    [
        "1 = 1) UNION ALL SELECT * FROM (SELECT 1",
        "true) LIMIT (1",
        "true) GROUP BY (name",
        "true; DROP VIEW names",
        "name IN (SELECT name FROM names)",
        "EXISTS (FROM read_text('/etc/passwd'))",
        "(SELECT true FROM read_csv('/etc/passwd') LIMIT 1)",
        "name = ?",
        "name = $1",
        "/* open",
        "true) -- ",
        "",
        "  ",
        "value",
        "'true'",
        "count(*) > 1",
        "row_number() OVER () > 1",
        "COLUMNS(*) IS NULL",
        "getenv('HOME') = 'x'",
        "name = 1 / ",
        "name, value",
        "name = 'a' ORDER BY 1",
    ],
)
def test_conditions_that_are_more_or_less_than_one_are_refused(reader: Reader, where: str) -> None:
    """Nothing gets out of the parentheses, reads anything else, or is no boolean."""
    with pytest.raises(QueryError):
        reader.scan("names", where=where).all()


def test_unknown_columns_and_failing_rows(reader: Reader) -> None:
    """An unknown column has a nearest one; a condition that fails on a row is an error of the query."""
    with pytest.raises(UnknownNameError, match='Did you mean "weight"'):
        reader.scan("names", where="wieght > 1")
    with pytest.raises(UnknownNameError, match='Did you mean "names"'):
        reader.scan("nmaes")
    with pytest.raises(QueryError, match="Conversion"):
        reader.scan("names", where="CAST(name AS INTEGER) > 0").all()
