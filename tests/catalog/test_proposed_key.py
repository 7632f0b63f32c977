"""Which key ``init --from`` proposes, and what a user may say in place of a guess."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from warehouse.catalog.init_options import InitOptions
from warehouse.catalog.initialise import write_project
from warehouse.catalog.load import load_catalog
from warehouse.catalog.proposed_key import proposed_key
from warehouse.catalog.sniffed_file import SniffedColumn
from warehouse.errors import UsageError
from warehouse.time import MINUTE, SECOND

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.model import Catalog


def columns(*given: tuple[str, str, int]) -> list[SniffedColumn]:
    """Return columns of (name, type, distinct values)."""
    return [SniffedColumn(name, kind, distinct=distinct) for name, kind, distinct in given]


@pytest.mark.parametrize(
    ("given", "key", "unsure"),
    [
        ([("first_name", "string", 100), ("employeeId", "bigint", 100), ("hired", "date", 100)], "employeeId", False),
        ([("service_providing", "string", 3), ("station_id", "string", 20)], "station_id", False),
        ([("symbol", "string", 5), ("date", "date", 30), ("price", "double", 100)], "symbol", False),
        ([("day", "string", 30), ("price", "bigint", 90), ("product", "string", 80)], "product", True),
        ([("name", "string", 100), ("zip_code", "string", 90)], "zip_code", False),
        ([("name", "string", 40), ("origin", "string", 3)], "name", False),
        ([("first_name", "string", 100), ("town", "string", 30), ("weight", "bigint", 90)], "town", False),
        ([("at", "timestamp", 100), ("temp", "double", 40), ("wind", "string", 7)], "wind", False),
        ([("seen", "timestamp", 100), ("temp", "double", 40)], "seen", True),
        ([("http_user_agent", "string", 30), ("remote_addr", "string", 20)], "remote_addr", False),
        ([("at", "timestamp", 100), ("passengers", "bigint", 90)], "at", True),
        ([("location", "string", 2), ("weather", "string", 5)], "location", False),
        ([("only", "string", 1), ("temp", "double", 40)], "only", True),
    ],
)
def test_names_of_identities_before_values_that_come_again(given: list[tuple[str, str, int]], key: str, *, unsure: bool) -> None:
    """No time or measurement while there is anything else; where neither names nor repetition decide, the proposal says so."""
    proposal = proposed_key(columns(*given), ("at",), 100)
    assert (proposal.columns, proposal.unsure is not None) == ((key,), unsure)


LINES = ["Host Name,seen,expires_in,until,note,price"]
LINES += [f"h{i},2024-05-01 00:{i:02}:00,{600 + i},2024-05-01 02:{i:02}:00,n{i % 5},{i}.5" for i in range(40)]


def proposed_by_options(tmp_path: Path, **options: object) -> Catalog:
    """Return the proposal for a file with a user's choices."""
    source = tmp_path / "x.csv"
    source.write_text("\n".join(LINES) + "\n")
    write_project(tmp_path / "project", source=source, choices=InitOptions(**options))  # type: ignore[arg-type]
    return load_catalog(tmp_path / "project")


def test_what_is_said_is_declared(tmp_path: Path) -> None:
    """Names of the file or of the table, in any case; the rest is guessed from the other columns."""
    catalog = proposed_by_options(
        tmp_path, key=("HOST NAME", "note"), arrival="seen", expires="expires_in", interval=MINUTE,
        columns=("host_name", "seen", "expires_in", "note"),
    )  # fmt: skip
    stream = catalog.streams[0]
    assert (stream.search_key, stream.arrival, catalog.update_interval) == (("host_name", "note"), "seen", MINUTE)
    assert stream.expires == "timestampadd(SECOND, expires_in, ts)"
    assert 600 * SECOND <= (stream.max_lifetime or 0) <= 1800 * SECOND
    assert [column.name for column in stream.columns] == ["host_name", "seen", "expires_in", "note"]
    assert stream.unknown_columns == "ignore"


@pytest.mark.parametrize(
    ("options", "expires"),
    [
        ({"expires": "never"}, None),
        ({"expires": "until"}, "until"),
        ({"expires": "ts + INTERVAL 2 HOURS"}, "ts + INTERVAL 2 HOURS"),
        ({"arrival": "until - INTERVAL 1 HOUR", "expires": "until"}, "until"),
    ],
)
def test_ends_that_are_said(tmp_path: Path, options: dict[str, str], expires: str | None) -> None:
    """None, a column, or an expression over the table's columns."""
    stream = proposed_by_options(tmp_path, **options).streams[0]
    assert (stream.expires, stream.arrival) == (expires, options.get("arrival", "seen"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"key": ("hots_name",)}, '--key: there is no column "hots_name". Did you mean "host_name"?'),
        ({"columns": ("seen", "nöte")}, '--columns: there is no column "nöte". Did you mean "note"?'),
        ({"arrival": "sen"}, "Did you mean"),
        ({"arrival": "note"}, 'the column "note" is string, no time'),
        ({"expires": "note"}, "give an expression"),
        ({"expires": "rand()"}, "--expires"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, options: dict[str, object], words: str) -> None:
    """With the option and the nearest name; nothing is written."""
    with pytest.raises(UsageError, match=re.escape(words)):
        proposed_by_options(tmp_path, **options)
    assert not (tmp_path / "project").exists()
