"""``[aggregates.NAME]``: what a sound declaration asks, and every fault of an unsound one with its key and what is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.declared import write_declarations
from warehouse.aggregates.definition import ITEM_COLUMNS, OWN_COLUMNS, FrequentItems, Value, Window
from warehouse.catalog.load import load_catalog
from warehouse.errors import ConfigurationError
from warehouse.time import DAY, HOUR
from warehouse.views.readable_views import readable_views

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.model import Aggregate

SOUND: dict[str, object] = {"from": "s", "group_by": "k", "select": {"n": "count(*)"}, "windows": ["1h", "2h"], "keep": "4h"}


ITEMS: dict[str, object] = {"select": None, "frequent": {"item": "k", "top": 5}}
ENDING: dict[str, object] = {"expires": "b + INTERVAL 1 HOUR"}


def declared(directory: Path, **changes: object) -> Aggregate:
    """Load a warehouse with a stream, a relation and one aggregate."""
    columns = {"k": "string", "v": "int", "d": "double", "amount": "decimal(10,2)", "parts": "array<int>", "b": "timestamp"}
    stream: dict[str, object] = {
        "landing": "s", "format": "json", "search_key": "k", "arrival": "b", "columns": columns, **changes.pop("stream", {}),
    }  # fmt: skip
    changes_of = {"k": "string", "b": "timestamp"}
    relation = {"landing": "r", "format": "csv", "search_key": "k", "changed_at": "b", "columns": changes_of}
    keys = {key: value for key, value in {**SOUND, **changes}.items() if value is not None}
    write_declarations(directory, {
        "warehouse": {"anchor": "2024-01-01T00:00:00Z", "update_interval": "1h"},
        "streams": {"s": stream}, "relations": {"r": relation}, "aggregates": {"a": keys},
    })  # fmt: skip
    (aggregate,) = load_catalog(directory).aggregates
    return aggregate


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    """Each window is due at every update, and the key is the groups."""
    definition = declared(tmp_path).definition
    assert definition.windows == (Window("1h", 1, 1), Window("2h", 2, 1))
    assert (definition.keep, definition.search_key, definition.where) == (4 * HOUR, ("k",), None)
    assert declared(tmp_path, group_by=None).search_key == ("window_end",)
    assert declared(tmp_path, every=["1h", "2h"]).definition.windows == (Window("1h", 1, 1), Window("2h", 2, 2))


def test_values_have_the_types_that_spark_gives(tmp_path: Path) -> None:
    """Names of functions and columns in any case; averages and interpolated values are doubles."""
    select = {"n": "COUNT(*)", "total": "sum(Amount)", "mean": "avg(v)", "kinds": "count(distinct k)", "p": "percentile(v, 0.9)", "m": "median(d)"}  # noqa: E501 - one value each
    values = declared(tmp_path, select=select).definition.values
    assert values == (
        Value("n", "rows", "bigint"),
        Value("total", "sum", "decimal(20,2)", "amount", "decimal(10,2)"),
        Value("mean", "avg", "double", "v", "int"),
        Value("kinds", "distinct", "bigint", "k", "string"),
        Value("p", "percentile", "double", "v", "int", 0.9),
        Value("m", "percentile", "double", "d", "double", 0.5),
    )


@pytest.mark.parametrize(
    ("changes", "key", "told"),
    [
        ({"from": "x"}, "from", "unknown name"),
        ({"from": "r"}, "from", "a relation: its versions do not arrive once each"),
        ({"windows": ["90m"]}, "windows", "multiples of update_interval"),
        ({"windows": ["1h", "60m"]}, "windows", "a length twice"),
        ({"every": "30m"}, "every", "multiples of update_interval"),
        ({"every": ["1h", "1h", "1h"]}, "every", "one, or one for each window"),
        ({"every": "6h"}, "keep", "an answer is gone before the next one"),
        ({"keep": None}, "keep", "required"),
        ({"group_by": "nobody"}, "group_by", "a column of s"),
        ({"group_by": ["parts"]}, "group_by", "columns without parts"),
        ({"group_by": ["d"]}, "search_key", "another `search_key`"),
        ({"group_by": ["v + 1"]}, "group_by", "an expression of them with a name"),
        ({"group_by": ["v + 1 AS k"]}, "group_by", "which a column of s has"),
        ({"group_by": ["nobody + 1 AS x"]}, "group_by", "nobody"),
        ({"group_by": ["d * 2 AS x"]}, "group_by", "CAST(d * 2 AS int) AS x"),
        ({"group_by": ["v + 1 AS epoch"]}, "group_by", "another name"),
        ({"group_by": ["v + 1 AS x", "v AS x"]}, "group_by", "twice"),
        ({"group_by": ["rand() AS x"]}, "group_by", "chance"),
        ({"group_by": ["v + 1 AS _x"]}, "group_by", "reserved"),
        ({"where": "nobody > 1"}, "where", "nobody"),
        ({"select": {"n": "first(v)"}}, "select.n", "count(*)"),
        ({"select": {"n": "sum(v + 1)"}}, "select.n", "declared as a column of the stream"),
        ({"select": {"n": "sum(k)"}}, "select.n", "a column of numbers"),
        ({"select": {"n": "percentile(v, 2)"}}, "select.n", "a share from 0 to 1"),
        ({"select": {"n": "percentile(v, 0.5, 2)"}}, "select.n", "percentile(COLUMN, SHARE)"),
        ({"select": {"n": "median(v, 0.2)"}}, "select.n", "percentile(COLUMN, SHARE)"),
        ({"select": {"n": "sum(v, 2)"}}, "select.n", "percentile(COLUMN, SHARE)"),
        ({"select": {"full": "count(*)"}}, "select.full", "another name"),
        ({"select": {"k": "count(*)"}}, "select.k", "which a group has"),
        ({"select": {"n": "count(*)", "N": "sum(v)"}}, "select.N", "which another value has"),
        ({"select": {"_n": "count(*)"}}, "select._n", 'the reserved name "_n"'),
        ({"select": {"n": "sum(nobody)"}}, "select.n", "a column of s"),
        ({"search_key": "n"}, "search_key", "columns of the answers"),
        ({"over": "dead"}, "over", '"arrivals" | "live"'),
        ({"frequent": {"item": "k", "above": 0.1}}, "select", "an aggregate of its own"),
        ({"select": None, "frequent": {"item": "d", "above": 0.1}}, "frequent.item", "that can be a key"),
        ({"select": None, "frequent": {"item": "nobody", "above": 0.1}}, "frequent.item", "a column of s"),
        ({"select": None, "frequent": {"above": 0.1}}, "frequent.item", "required"),
        ({"select": None, "frequent": {"item": "k"}}, "frequent", "neither `above` nor `top`"),
        ({"select": None, "frequent": {"item": "k", "above": 0.1, "top": 3}}, "frequent", "one of them"),
        ({"select": None, "frequent": {"item": "k", "above": 0.1, "k": 9}}, "frequent.k", "at least 10"),
        ({"select": None, "frequent": {"item": "k", "above": 1.5}}, "frequent.above", "between 0 and 1"),
        ({"select": None, "frequent": {"item": "k", "top": 5, "k": 4}}, "frequent.k", "at least 5"),
        ({"select": None, "frequent": {"item": "k", "of": 5}}, "frequent.of", "unknown key"),
        (
            {"select": None, "frequent": {"item": "k", "top": 5, "exact": True}, "stream": {"expires": "b + INTERVAL 1 HOUR"}},
            "frequent.exact",
            "rows of s expire",
        ),
        (
            {"select": None, "frequent": {"item": "k", "top": 5, "exact": True}, "stream": {**ENDING, "on_expiry": "archive"}},
            "frequent.exact",
            "an archive of s has no rows that were dead on arrival",
        ),
        ({"error": 0.01}, "error", "no value that a sketch estimates"),
        ({"error": 0.0001}, "error", "from 0.002"),
        ({"error": 0.01, "select": None, "frequent": {"item": "k", "top": 3, "k": 9}}, "frequent.k", "both say how close"),
        ({"error": 0.01, "select": {"n": "count(DISTINCT k)", "n_low": "min(v)"}}, "select.n", "another name"),
        ({"stream": {"erase_within": "20d"}, "keep": "90d"}, "keep", "groups and extremes show values of rows"),
        ({**ITEMS, "stream": {"erase_within": "20d"}, "keep": "90d"}, "keep", "show values of rows"),
        ({"from": "a"}, "from", '"a", an aggregate'),
        ({"where": "v + 1"}, "where", "boolean"),
    ],
)
def test_a_fault_names_its_key_and_what_is_allowed(tmp_path: Path, changes: dict[str, object], key: str, told: str) -> None:
    """Before anything is read."""
    with pytest.raises(ConfigurationError) as caught:
        declared(tmp_path, **changes)
    messages = {problem.key: f"{problem.found}; {problem.allowed}" for problem in caught.value.problems}
    assert any(key in problem_key and told in text for problem_key, text in messages.items()), messages


@pytest.mark.parametrize("name", [*OWN_COLUMNS, "Late"])
def test_no_group_and_no_value_has_the_name_of_a_column_that_answers_have(tmp_path: Path, name: str) -> None:
    """As a column of the stream, as an expression's name and as a value's; the message lists the names."""
    columns = {"k": "string", "b": "timestamp", name: "int"}
    allowed = f"another name: every answer has {', '.join(OWN_COLUMNS)}"
    aggregates: dict[str, dict[str, object]] = {
        "group_by": {"group_by": [name], "stream": {"columns": columns}},
        f"select.{name}": {"select": {name: "count(*)"}},
    }
    named = {"group_by": [f"upper(k) AS {name}"]}
    for key, changes in (*aggregates.items(), ("group_by", named)):
        with pytest.raises(ConfigurationError) as caught:
            declared(tmp_path, **changes)
        assert [(problem.key, problem.allowed) for problem in caught.value.problems] == [(f"aggregates.a.{key}", allowed)]


@pytest.mark.parametrize("name", ITEM_COLUMNS)
def test_no_group_of_frequent_items_has_the_name_of_what_is_told_of_an_item(tmp_path: Path, name: str) -> None:
    """Only there: values may have these names."""
    stream = {"columns": {"k": "string", "b": "timestamp", name: "int"}}
    with pytest.raises(ConfigurationError, match=f'group_by: found the column "{name}"; .*{", ".join(ITEM_COLUMNS)}'):
        declared(tmp_path, **ITEMS, group_by=[name], stream=stream)
    assert declared(tmp_path, select={name: "count(*)"}).definition.values[0].name == name


def test_numbers_of_all_rows_may_outlive_the_rows(tmp_path: Path) -> None:
    """They show no row's values; an extreme does, and another aggregate may have it in the synopsis of a long window."""
    numbers = {"n": "count(*)", "total": "sum(v)", "mean": "avg(v)", "spread": "stddev(v)"}
    changes = {"stream": {"erase_within": "20d"}, "keep": "90d", "group_by": None}
    assert declared(tmp_path, **changes, select=numbers).definition.keep == 90 * DAY
    with pytest.raises(ConfigurationError, match="groups and extremes show values of rows"):
        declared(tmp_path, **changes, select={**numbers, "most": "max(v)"})
    with pytest.raises(ConfigurationError, match='windows: found "30d" of answers'):
        declared(tmp_path, **changes, select=numbers, windows=["30d"])


def test_frequent_items_have_lists_that_are_long_enough(tmp_path: Path) -> None:
    """By default four times as long as a share needs, or ten times as long as the answer; the item is the key."""
    definition = declared(tmp_path, group_by=None, select=None, frequent={"item": "k", "above": 0.03}).definition
    assert definition.frequent == FrequentItems("k", "string", 0.03, None, 4 * 34)
    assert (definition.search_key, dict(definition.columns)["item"], definition.values) == (("item",), "string", ())
    for error, shown, listed in ((0.003, {"top": 3}, 334), (0.5, {"top": 3}, 3), (0.5, {"above": 0.03}, 34)):
        definition = declared(tmp_path, error=error, select=None, frequent={"item": "k", **shown}).definition
        assert definition.frequent is not None
        assert definition.frequent.k == listed, "bounds are at most the error apart"
    definition = declared(tmp_path, select=None, frequent={"item": "v", "top": 3, "exact": True}, over="live").definition
    assert definition.frequent == FrequentItems("v", "int", None, 3, 30, exact=True)


def test_groups_may_be_expressions_with_a_name(tmp_path: Path) -> None:
    """The expression gives their types; a CAST gives the types of other numbers. They are keys as columns are."""
    groups = ["k", "v + 1 AS next", "CAST(d AS decimal(9, 2)) AS price", "v > 3 AS many", "to_date(b) AS day", "upper(k) as up"]
    definition = declared(tmp_path, group_by=groups).definition
    assert definition.group_by == (
        ("k", "string"), ("next", "bigint"), ("price", "decimal(9,2)"), ("many", "boolean"), ("day", "date"), ("up", "string"),
    )  # fmt: skip
    assert definition.computed[0] == ("next", "v + 1")
    assert definition.search_key == ("k", "next", "price", "many", "day", "up")


def test_an_error_that_is_allowed_makes_estimates(tmp_path: Path) -> None:
    """Of distinct values and percentiles, with their bounds; other values stay exact."""
    select = {"n": "count(*)", "kinds": "count(DISTINCT k)", "p": "percentile(v, 0.9)"}
    definition = declared(tmp_path, error=0.02, select=select).definition
    assert [value.size for value in definition.values] == [None, 14, 269]
    assert dict(definition.columns)["kinds_high"] == "bigint"
    assert [name for name, _ in definition.columns if name.startswith("p")] == ["p", "p_low", "p_high"]


EXACT: dict[str, object] = {"select": {}, "frequent": {"item": "k", "top": 1, "exact": True}}
LEFT = "SELECT k, b AS at FROM time_window(s, INTERVAL 1 HOUR) UNION ALL SELECT k, b AS at FROM s"
VIEWS: dict[str, dict[str, object]] = {
    "rows": {"sql": "SELECT k, v, v * 1.5 AS w FROM s", "search_key": "k", "short_lived": "report"},
    "dropped": {"sql": "SELECT k, v FROM s", "search_key": "k", "short_lived": "drop"},
    "groups": {"sql": "SELECT k, count(*) AS n FROM s GROUP BY k", "search_key": "k"},
    "values": {"sql": "SELECT DISTINCT k FROM s", "search_key": "k", "short_lived": "report"},
    "above": {"sql": "SELECT k, n FROM a", "search_key": "k", "short_lived": "report"},
    "faulty": {"sql": "SELECT x FROM s", "search_key": "k"},
    "met": {"sql": f"SELECT l.k, l.at, r.b FROM ({LEFT}) l JOIN s r ON l.k = r.k", "search_key": "k"},
    "unseen": {"sql": "SELECT l.k, l.b AS at, r.b + INTERVAL 1 HOUR AS bt FROM s l JOIN t r ON l.k = r.k", "search_key": "k"},
}


def over_views(directory: Path, aggregates: dict[str, dict[str, object]], **view: object) -> tuple[Aggregate, ...]:
    """Load a warehouse with a stream of rows that end, views over it, and aggregates."""
    columns = {"k": "string", "v": "int", "b": "timestamp", "e": "timestamp"}
    stream = {"landing": "s", "format": "json", "search_key": "k", "arrival": "b", "expires": "e", "max_lifetime": "2h"}
    write_declarations(directory, {
        "warehouse": {"anchor": "2024-01-01T00:00:00Z", "update_interval": "1h"},
        "streams": {"s": {**stream, "columns": columns}, "t": {**stream, "landing": "t", "columns": columns}},
        "views": {**VIEWS, "rows": {**VIEWS["rows"], **view}},
        "aggregates": {name: {**SOUND, **keys} for name, keys in aggregates.items()},
    })  # fmt: skip
    return load_catalog(directory, facts_of_views=readable_views).aggregates


def test_an_aggregate_over_a_view_has_the_types_of_its_columns(tmp_path: Path) -> None:
    """Aggregates keep the order of their declarations; a view of one of them is not in the way."""
    living = {"from": "dropped", "over": "live"}
    aggregates = {"a": {"from": "rows", "select": {"n": "count(*)", "t": "sum(v)"}}, "z": {"from": "s"}, "l": living}
    tables = over_views(tmp_path, aggregates)
    assert [table.name for table in tables] == ["a", "z", "l"]
    assert tables[0].definition.values[1] == Value("t", "sum", "bigint", "v", "int")
    assert tables[0].definition.group_by == (("k", "string"),)


def test_windows_of_a_join_may_have_a_length_for_each_input(tmp_path: Path) -> None:
    """The view shows, unchanged, when both parts arrived; other windows have one length, of the result's arrival."""
    aggregates = {"a": {"from": "met", "over": "live", "windows": [["1h", "3h"], "2h"], "every": ["1h", "2h"]}}
    (table,) = over_views(tmp_path, aggregates)
    assert table.definition.windows == (Window("1h, 3h", 1, 1, (1, 3)), Window("2h", 2, 2))
    assert table.definition.parts == ("at", "b")


@pytest.mark.parametrize(
    ("changes", "key", "told"),
    [
        ({"from": "dropped"}, "from", r'short_lived = "report" in \[views.dropped\], or over = "live"'),
        ({"from": "groups"}, "from", "whose rows are replaced"),
        ({"from": "values"}, "from", "with DISTINCT, of which it depends on the update interval"),
        ({"from": "faulty"}, "from", "which cannot be maintained"),
        ({"from": "rows", "select": {"n": "sum(w)"}}, "select.n", r"CAST\(... AS ...\) AS w in the SQL of rows"),
        ({"from": "rows", "group_by": "w"}, "group_by", "only Spark can determine"),
        ({"from": "rows", "group_by": "x"}, "group_by", '"x"'),
        ({**EXACT, "from": "rows"}, "frequent.exact", "rows of rows expire"),
        ({"from": "met", "over": "live", "windows": [["1h", "2h", "3h"]]}, "windows", r'pairs of them such as \["1h", "1d"\]'),
        ({"from": "met", "over": "live", "windows": [["1h", "90m"]]}, "windows", '"90m"; .* multiples of update_interval'),
        ({"from": "met", "over": "live", "windows": [["1h", "2h"], ["60m", "2h"]]}, "windows", "a length twice"),
        ({"from": "s", "over": "live", "windows": [["1h", "2h"]]}, "windows", "one length; only a view that joins two inputs"),
        ({"from": "rows", "over": "live", "windows": [["1h", "2h"]]}, "windows", "one length; only a view that joins two inputs"),
        ({"from": "s", "windows": ["1h", ["1h", "2h"]]}, "windows", 'over = "live", or one length'),
        ({"from": "unseen", "over": "live", "windows": [["1h", "2h"]]}, "windows", "in the SQL of unseen, .* the `arrival` of t"),
    ],
)
def test_views_that_cannot_be_read_are_refused(changes: dict[str, object], key: str, told: str, tmp_path: Path) -> None:
    """The message names the key and an allowed value."""
    with pytest.raises(ConfigurationError, match=told) as caught:
        over_views(tmp_path, {"a": changes})
    assert [problem.key for problem in caught.value.problems] == [f"aggregates.a.{key}"]


def test_bounds_of_views_and_views_of_answers_are_judged(tmp_path: Path) -> None:
    """`erase_within` of the view bounds answers; no aggregate reads a view of answers over views."""
    with pytest.raises(ConfigurationError, match=r'erase_within = "3h" of rows'):
        over_views(tmp_path, {"a": {"from": "rows", "over": "live"}}, erase_within="3h", short_lived="drop")
    with pytest.raises(ConfigurationError, match=r'which reads "a", an aggregate over a view'):
        over_views(tmp_path, {"a": {"from": "rows"}, "z": {"from": "above"}})
