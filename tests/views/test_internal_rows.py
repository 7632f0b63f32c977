"""Joins over internal row windows: the newest rows meet, and what came of it stays, whatever pushes them out later.

A tick is an hour. Each update adds the pairs of rows that both windows hold then, one of which has come since the last::

    hour      0......1......2......3......4......5
    update           |      |             |      |
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.operations.projects import Project, text
from warehouse.errors import ConfigurationError

from .catalogs import plan
from .warehouses import FOREVER, land, lives, unbounded, view, windowed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

UPDATES = (1, 2, 4, 5)
BOTH = "SELECT l.id, r.id AS other, l.k FROM row_window({}, 3, internal => true) l JOIN row_window(b, 2, k, internal => true) r"
VIEWS = {
    "both": view(f"{BOTH.format('a')} ON l.k = r.k"),
    "one": view("SELECT l.id, r.id AS other, l.k FROM row_window(a, 3, internal => true) l JOIN c r ON l.k = r.k"),
}


class Arrived(NamedTuple):
    """A row: key, name, begin and end in ticks."""

    k: str
    id: str
    ts: float
    exp: float


def _rows(chance: random.Random, hour: int, *, ends: bool) -> list[Arrived]:
    """Rows of which some are equal but for their times, none at one instant; one of the last hour comes late."""
    rows = []
    for minutes in chance.sample(range(60), 4):
        begins = hour - minutes / 60 - (2 if hour == UPDATES[-1] and not rows else 0)
        end = begins + chance.choice([0.7, 3]) if ends else FOREVER
        rows.append(Arrived(chance.choice("xy"), chance.choice("pq"), begins, end))
    return rows


def _newest(rows: list[Arrived], limit: int, *, of_each: bool) -> list[Arrived]:
    groups: dict[str, list[Arrived]] = {}
    for row in rows:
        groups.setdefault(row.k if of_each else "", []).append(row)
    return [row for group in groups.values() for row in sorted(group, key=lambda row: row.ts)[-limit:]]


def test_results_stay_that_newer_rows_pushed_out(tmp_path: Path, spark: SparkSession) -> None:
    """Equal rows are different rows; a result over an expiring stream still ends with its row."""
    streams = {"a": unbounded("a"), "b": unbounded("b"), "c": windowed("c", 3)}
    project = Project(tmp_path / "project", spark, streams, views=VIEWS)
    chance = random.Random(4)  # noqa: S311 - test data
    all_rows: dict[str, list[Arrived]] = {name: [] for name in "abc"}
    results: dict[str, list[tuple[str, float, float]]] = {name: [] for name in VIEWS}
    for hour in UPDATES:
        arrived = {name: _rows(chance, hour, ends=name == "c") for name in "abc"}
        for name, rows in arrived.items():
            all_rows[name] += rows
            ends = [f",{text(row.exp)}" if name == "c" else "" for row in rows]
            lines = [f"{row.k},{text(row.ts)}{end},{row.id}" for row, end in zip(rows, ends, strict=True)]
            land(project, hour, {name: lines}, "k,b,e,id" if name == "c" else "k,b,id")
        project.update(hour)
        windows = {
            "a": _newest(all_rows["a"], 3, of_each=False),
            "b": _newest(all_rows["b"], 2, of_each=True),
            "c": [row for row in all_rows["c"] if row.exp > hour],
        }
        for name, right in (("both", "b"), ("one", "c")):
            for a_row in windows["a"]:
                for partner in windows[right]:
                    if a_row.k == partner.k and (a_row in arrived["a"] or partner in arrived[right]):
                        results[name].append((a_row.id + partner.id + a_row.k, max(a_row.ts, partner.ts), partner.exp))
            expected = [result for result in results[name] if result[2] > hour]
            live_results = lives(project.live(name), "id", "other", "k")
            assert Counter((value, round(ts, 3), round(exp, 3)) for value, ts, exp in live_results) == Counter(
                (value, round(ts, 3), round(exp, 3)) for value, ts, exp in expected
            ), (name, hour)
    assert any(count > 1 for count in Counter(value for value, _, _ in results["both"]).values())


def test_what_an_internal_row_window_in_a_join_is_kept_as() -> None:
    """The windows are state, and the join is appended to; over rows that end in another order the view is refused."""
    view_plan = plan("SELECT l.k, r.v FROM row_window(calls, 3, internal => true) l JOIN events r ON l.k = r.k")
    assert [(node.table, node.label) for node in view_plan.nodes] == [("v.1", "STR"), ("v", "MON")]
    assert (str(view_plan.state), str(view_plan.label)) == ("STR", "MON")
    with pytest.raises(ConfigurationError, match="in which rows come back when newer ones end before them"):
        plan("SELECT l.tail FROM row_window(flights, 3, internal => true) l JOIN events r ON l.tail = r.k")
