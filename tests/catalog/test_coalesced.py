"""``[coalesced.NAME]``: what a sound declaration holds, and every fault of an unsound one with its key and what is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.declared import write_declarations
from warehouse.catalog.load import load_catalog
from warehouse.errors import ConfigurationError
from warehouse.time import HOUR

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.coalescing.definition import CoalescedDefinition

SOUND: dict[str, object] = {"from": "s", "group_by": "k", "values": "v", "window": "1d"}


def declared(directory: Path, **changes: object) -> CoalescedDefinition:
    """Load a warehouse with a stream, a relation, an aggregate and one coalesced table."""
    columns = {"k": "string", "v": "int", "d": "double", "open": "int", "parts": "array<int>", "b": "timestamp"}
    stream: dict[str, object] = {
        "landing": "s", "format": "json", "search_key": "k", "arrival": "b", "columns": columns, **changes.pop("stream", {}),
    }  # fmt: skip
    changes_of = {"k": "string", "b": "timestamp"}
    relation = {"landing": "r", "format": "csv", "search_key": "k", "changed_at": "b", "columns": changes_of}
    aggregate = {"from": changes.pop("counted", "s"), "select": {"n": "count(*)"}, "windows": ["1h"], "keep": "1h"}
    keys = {key: value for key, value in {**SOUND, **changes}.items() if value is not None}
    write_declarations(directory, {
        "warehouse": {"anchor": "2024-01-01T00:00:00Z", "update_interval": "1h"},
        "streams": {"s": stream}, "relations": {"r": relation}, "aggregates": {"a": aggregate}, "coalesced": {"c": keys},
    })  # fmt: skip
    (table,) = load_catalog(directory).coalesced
    return table.definition


def test_the_columns_of_each_way_to_compare(tmp_path: Path) -> None:
    """Values stay as they are; of a condition over neighbours there are four each; of a condition its truth."""
    state_columns = (("valid_from", "timestamp"), ("valid_to", "timestamp"), ("members", "bigint"), ("open", "boolean"))
    plain = declared(tmp_path)
    assert (plain.columns, plain.search_key, plain.window) == ((("k", "string"), ("v", "int"), *state_columns), ("k",), 24 * HOUR)
    bounded = declared(tmp_path, values=None, same="abs(V - previous.v) <= 1", window=None, rows=9, group_by=None)
    assert bounded.columns == (*((f"{end}_v", "int") for end in ("first", "last", "min", "max")), *state_columns)
    assert (bounded.rows, bounded.search_key, bounded.compared) == (9, ("valid_from",), ("v",))
    truth = declared(tmp_path, values=None, of="v > 1 OR d IS NULL", search_key=["holds", "K"])
    assert (truth.columns[1], truth.search_key) == (("holds", "boolean"), ("holds", "k"))


@pytest.mark.parametrize(
    ("changes", "key", "found"),
    [
        ({"from": None}, "from", "nothing"),
        ({"from": "t"}, "from", 'the unknown name "t"'),
        ({"from": "r"}, "from", '"r", a relation: its versions are intervals already'),
        ({"from": "a"}, "from", '"a", which is no stream but an aggregate'),
        ({"group_by": "z"}, "group_by", '"z"'),
        ({"group_by": "d"}, "group_by", 'the column "d" of type double'),
        ({"group_by": ["k", "K"]}, "group_by", '"K" twice'),
        ({"group_by": "open"}, "group_by", 'the column "open", and every coalesced table has it'),
        ({"values": None}, "values", "nothing"),
        ({"values": "parts"}, "values", 'the column "parts" of type array<int>'),
        ({"values": "k"}, "values", 'the column "k", and a group or value has that name'),
        ({"values": "open"}, "values", 'the column "open", and every coalesced table has it'),
        ({"of": "v > 1"}, "of", "`values` and `of`"),
        ({"values": None, "of": "z > 1"}, "of", 'the unknown column "z"'),
        ({"values": None, "of": "v + 1"}, "of", "v + 1"),
        ({"values": None, "same": "v > 3"}, "same", '"v > 3"'),
        ({"values": None, "same": "previous.v > 3"}, "same", '"previous.v > 3"'),
        ({"values": None, "same": "v > previous.z"}, "same", "z"),
        ({"values": None, "same": "v > previous.v AND previous IS NULL"}, "same", "previous IS NULL"),
        ({"values": None, "same": "v > previous.v OR k = previous.K"}, "same", 'the column "k" of `group_by` in `same`'),
        ({"window": None}, "window", "nothing"),
        ({"rows": 5}, "window", "`window` and `rows`"),
        ({"window": "30m"}, "window", "30m"),
        ({"rows": 0, "window": None}, "rows", "0"),
        ({"search_key": "d"}, "search_key", 'the column "d"'),
        ({"search_key": ["v", "V"]}, "search_key", "a column twice"),
        ({"values": "d", "search_key": "d"}, "search_key", 'the column "d" of type double'),
        ({"budget": {"rows": 5, "keep": 0.5}}, "budget", "such a table"),
        ({"budget": {}}, "budget", "such a table"),
        ({"budget": {"rows": 5}, "how": "lazy"}, "budget", '`budget` with how = "lazy"'),
        ({"budget": {"keep": 1.5}}, "budget.keep", "1.5"),
        ({"budget": {"bytes": "much"}}, "budget.bytes", '"much"'),
        ({"budget": {"row": 5}}, "budget.row", 'the unknown key "row"'),
        ({"shed": "cals"}, "shed", "`shed` without `budget`"),
        ({"budget": {"rows": 5}, "shed": "best"}, "shed", '"best"'),
        ({"how": "eagerly"}, "how", '"eagerly"'),
        ({"valeus": "v"}, "valeus", 'the unknown key "valeus"'),
        ({"stream": {"erase_within": "7h"}}, "window", 'with erase_within = "7h" of s'),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, changes: dict[str, object], key: str, found: str) -> None:
    """Each fault names the key and says what is allowed."""
    with pytest.raises(ConfigurationError) as refused:
        declared(tmp_path, **changes)
    faults = [problem for problem in refused.value.problems if problem.key == f"coalesced.c.{key}"]
    assert faults, [str(problem) for problem in refused.value.problems]
    assert any(found in problem.found and problem.allowed for problem in faults), faults


def test_no_aggregate_counts_its_rows(tmp_path: Path) -> None:
    """Their rows change with each update, so no row arrives once."""
    with pytest.raises(ConfigurationError, match=r'aggregates\.a\.from: found "c", a coalesced table; allowed: a stream'):
        declared(tmp_path, counted="c")
