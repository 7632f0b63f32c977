from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from warehouse.catalog.model import Column, LayoutSpec, View
from warehouse.time import HOUR, SECOND

from .project import loaded, problems

if TYPE_CHECKING:
    from pathlib import Path

RELATION = "relations.planes"
VIEW = "views.in_the_air"
PLANES: dict[str, Any] = {
    "landing": "landing/planes",
    "format": "csv",
    "search_key": "tailnum",
    "changed_at": "changed",
    "columns": {"tailnum": "string", "changed": "timestamp", "gone": "boolean", "model": "string"},
}
QUERY: dict[str, Any] = {"sql": "SELECT tailnum, landed_at FROM flights", "search_key": "tailnum"}
BOTH = {RELATION: PLANES, VIEW: QUERY}


def test_a_relation_is_declared_as_a_stream(tmp_path: Path) -> None:
    """A relation has a stream's keys for its files, and the time and kind of a change in place of arrival and expiry."""
    (relation,) = loaded(tmp_path, {RELATION: PLANES}).relations
    assert (relation.name, relation.search_key, relation.format) == ("planes", ("tailnum",), "csv")
    assert (relation.changed_at, relation.op, relation.retroactive) == ("changed", "'upsert'", False)
    assert relation.landing == tmp_path / "landing" / "planes"
    assert relation.columns[2] == Column("gone", "boolean")
    assert (relation.max_ahead, relation.landing_settle) == (None, 0)


def test_every_key_of_a_relation_is_carried(tmp_path: Path) -> None:
    """What the file says of each key reaches the catalog, and the stream that its files are read as."""
    changes = {
        RELATION: PLANES,
        f"{RELATION}.files": "*.csv",
        f"{RELATION}.options": {"delimiter": ";"},
        f"{RELATION}.timezone": "Europe/Berlin",
        f"{RELATION}.search_key": ["tailnum", "model"],
        f"{RELATION}.op": "if(gone, 'delete', 'upsert')",
        f"{RELATION}.retroactive": True,
        f"{RELATION}.max_ahead": "1h",
        f"{RELATION}.unknown_columns": "ignore",
        f"{RELATION}.landing_settle": "5s",
    }
    catalog = loaded(tmp_path, changes)
    relation = catalog.relation("planes")
    assert relation is not None
    assert (relation.op, relation.retroactive) == ("if(gone, 'delete', 'upsert')", True)
    stream = relation.as_stream()
    assert (stream.name, stream.landing, stream.files) == ("planes", relation.landing, "*.csv")
    assert (stream.options, stream.timezone) == ((("delimiter", ";"),), "Europe/Berlin")
    assert (stream.search_key, stream.columns) == (("tailnum", "model"), relation.columns)
    assert (stream.arrival, stream.expires, stream.max_lifetime, stream.label) == ("changed", None, None, "MON")
    assert (stream.max_ahead, stream.unknown_columns, stream.landing_settle) == (HOUR, "ignore", 5 * SECOND)
    assert catalog.relation("others") is None


def test_a_view(tmp_path: Path) -> None:
    """A view is its SQL as written, its key, and defaults."""
    catalog = loaded(tmp_path, {VIEW: QUERY})
    assert catalog.views == (View("in_the_air", "SELECT tailnum, landed_at FROM flights", ("tailnum",)),)
    assert catalog.view("in_the_air") is catalog.views[0]
    assert catalog.view("others") is None


@pytest.mark.parametrize(("window", "length", "rows"), [("1h", HOUR, None), (1000, None, 1000)])
def test_output_windows(tmp_path: Path, *, window: object, length: int | None, rows: int | None) -> None:
    """An output window is a duration or a number of rows."""
    layout = {"technique": "rebuild", "grid": [2, 2]}
    changes = {VIEW: {**QUERY, "output_window": window, "short_lived": "report", "layout": layout}}
    (view,) = loaded(tmp_path, changes).views
    assert (view.output_length, view.output_rows, view.short_lived) == (length, rows, "report")
    assert view.layout == LayoutSpec("rebuild", (2, 2))


BAD: list[tuple[dict[str, Any], str, str, str, str | None]] = [
    # changes, key, found, part of allowed, nearest
    ({VIEW: 1}, VIEW, "1", "a table, [views.in_the_air]", None),
    ({"views": 1}, "views", "1", "a table, [views]", None),
    ({"views/Air": QUERY}, "views.Air", 'the name "Air"', "letters a-z", "air"),
    ({f"{VIEW}.sql": None}, f"{VIEW}.sql", "nothing", "a query in Spark SQL (required)", None),
    ({f"{VIEW}.sql": " "}, f"{VIEW}.sql", '" "', "a query", None),
    ({f"{VIEW}.sql": 5}, f"{VIEW}.sql", "5", "a query", None),
    ({f"{VIEW}.search_key": None}, f"{VIEW}.search_key", "nothing", "an output column", None),
    ({f"{VIEW}.search_key": []}, f"{VIEW}.search_key", "[]", "a column, or a list", None),
    ({f"{VIEW}.search_key": ["a", "A"]}, f"{VIEW}.search_key", '"A" twice', "once", None),
    ({f"{VIEW}.short_lived": "keep"}, f"{VIEW}.short_lived", '"keep"', '"drop" | "report"', None),
    ({f"{VIEW}.short_lived": "drops"}, f"{VIEW}.short_lived", '"drops"', '"drop" | "report"', "drop"),
    ({f"{VIEW}.output_window": 0}, f"{VIEW}.output_window", "0", "rows from 1", None),
    ({f"{VIEW}.output_window": True}, f"{VIEW}.output_window", "true", "rows from 1", None),
    ({f"{VIEW}.output_window": "0s"}, f"{VIEW}.output_window", '"0s"', "longer than zero", None),
    ({f"{VIEW}.output_window": "1 hour"}, f"{VIEW}.output_window", '"1 hour"', "a duration", "1h"),
    ({f"{VIEW}.query": "x"}, f"{VIEW}.query", 'the unknown key "query"', "search_key", None),
    ({f"{VIEW}.landing": "x"}, f"{VIEW}.landing", 'the unknown key "landing"', "in [streams.NAME]", None),
    ({f"{VIEW}.layout.gird": [1, 2]}, f"{VIEW}.layout.gird", 'the unknown key "gird"', "technique", "grid"),
    ({"views/flights": QUERY}, "views.flights", 'the name "flights", which a stream has', "one namespace", None),
    ({"views/planes": QUERY}, "views.planes", 'the name "planes", which a relation has', "one namespace", None),
    (
        {"relations/flights": {**PLANES, "landing": "elsewhere"}},
        "relations.flights",
        'the name "flights", which a stream has',
        "one namespace",
        None,
    ),
    ({f"{RELATION}.landing": None}, f"{RELATION}.landing", "nothing", "(required)", None),
    (
        {f"{RELATION}.health": {"dead_on_arrival": 0.5}},
        f"{RELATION}.health.dead_on_arrival",
        'the unknown key "dead_on_arrival"',
        "in [health], where it belongs",
        None,
    ),
    ({f"{RELATION}.format": None}, f"{RELATION}.format", "nothing", "(required)", None),
    ({f"{RELATION}.search_key": None}, f"{RELATION}.search_key", "nothing", "identify a row (required)", None),
    ({f"{RELATION}.changed_at": None}, f"{RELATION}.changed_at", "nothing", "time of the change (required)", None),
    ({f"{RELATION}.arrival": "changed"}, f"{RELATION}.arrival", 'the key "arrival"', "changed_at", None),
    ({f"{RELATION}.expires": "changed"}, f"{RELATION}.expires", 'the key "expires"', "when its key changes next", None),
    ({f"{RELATION}.max_lifetime": "1d"}, f"{RELATION}.max_lifetime", 'the key "max_lifetime"', "changes next", None),
    ({f"{RELATION}.layout": {"grid": [1, 1]}}, f"{RELATION}.layout", 'the key "layout"', "cut by its search key", None),
    ({f"{RELATION}.retroactiv": True}, f"{RELATION}.retroactiv", 'the unknown key "retroactiv"', "op", "retroactive"),
    ({f"{RELATION}.retroactive": "yes"}, f"{RELATION}.retroactive", '"yes"', "true | false", None),
    (
        {f"{RELATION}.search_key": "tail"},
        f"{RELATION}.search_key",
        'the unknown column "tail"',
        "tailnum",
        "tailnum",
    ),
    (
        {f"{RELATION}.changed_at": "chanted"},
        f"{RELATION}.changed_at",
        'the unknown column "chanted"',
        "declared columns",
        "changed",
    ),
    (
        {f"{RELATION}.changed_at": "model"},
        f"{RELATION}.changed_at",
        'the column "model" of type string',
        "gives a timestamp",
        None,
    ),
    ({f"{RELATION}.op": "'upsrt'"}, f"{RELATION}.op", "the constant 'upsrt'", "'upsert' or 'delete'", "upsert"),
    ({f"{RELATION}.op": "gone"}, f"{RELATION}.op", 'the column "gone" of type boolean', "gives a string", None),
    ({f"{RELATION}.op": "lost"}, f"{RELATION}.op", 'the unknown column "lost"', "tailnum", None),
    (
        {f"{RELATION}.columns.ts": "timestamp"},
        f"{RELATION}.columns.ts",
        'the column "ts" while changed_at = "changed"',
        'changed_at = "ts"',
        None,
    ),
    (
        {f"{RELATION}.landing": "landing/flights"},
        f"{RELATION}.landing",
        'the landing of the stream "flights"',
        "each stream and relation",
        None,
    ),
    (
        {f"{RELATION}.landing": "landing"},
        "streams.flights.landing",
        'a directory inside the landing of the relation "planes", which is searched recursively',
        "each stream and relation",
        None,
    ),
]


@pytest.mark.parametrize(("changes", "key", "found", "allowed", "nearest"), BAD)
def test_each_fault(
    tmp_path: Path, *, changes: dict[str, Any], key: str, found: str, allowed: str, nearest: str | None
) -> None:
    """A fault of a view or relation is the only problem, with its key, what was found, what is allowed, the nearest."""
    (problem,) = problems(tmp_path, {**BOTH, **changes})
    assert (problem.key, problem.found, problem.nearest) == (key, found, nearest)
    assert allowed in problem.allowed


def test_faults_of_all_kinds_together(tmp_path: Path) -> None:
    """Streams, relations and views report together."""
    changes = {
        **BOTH,
        "streams.flights.format": "cvs",
        f"{RELATION}.op": "now()",
        f"{VIEW}.search_key": None,
    }
    assert [problem.key for problem in problems(tmp_path, changes)] == [
        "streams.flights.format",
        f"{RELATION}.op",
        f"{VIEW}.search_key",
    ]
