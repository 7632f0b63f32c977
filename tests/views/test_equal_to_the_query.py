"""Every operator of the language: at each window time a view holds what its query gives from scratch, by another engine.

Slots of an hour, lifetimes of 12 minutes to five hours; the rows are random, the seed is not::

    hour     0.....1.....2.....3.....4.....5
    update         |           |     |     |
    rows     abcab abcab abcab abcab, the last of them late

So the second update catches up over two slots, and nothing arrives for the last.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.operations.projects import Project, at, stream, text
from tests.replayed import replayed
from warehouse.storage import lookup

from .warehouses import Rows, all_asked, all_served, land, stored, view

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = {
    "k": "string", "b": "timestamp", "e": "timestamp", "v": "int", "u": "int", "p": "decimal(8,2)", "x": "double", "d": "date",
}  # fmt: skip
UPDATES = {1: True, 3: False, 4: True, 5: True}
"""When, and whether few rows are looked up; else Spark reads whole tables for them."""
QUIET = 5
TAU = "TIMESTAMPTZ '{tau}'"

QUERIES = {
    # joins
    "joined": "SELECT l.k, l.v AS lv, r.v AS rv FROM a l JOIN b r ON l.k = r.k AND l.v <= r.v",
    "shared": "SELECT k, x, bu FROM a JOIN (SELECT k, d, u AS bu FROM b) s USING (k, d) WHERE v > 0 OR v IS NULL",
    "three": "SELECT l.k, l.v AS lv, r.v AS rv, c.u FROM a l JOIN b r ON l.k = r.k JOIN c ON r.v = c.v",
    # duplicates, values of every kind
    "values": "SELECT DISTINCT p AS k, x, d, v % 2 AS odd FROM a",
    "counts": "SELECT DISTINCT n AS k FROM grouped",
    # groups
    "grouped": "SELECT k, count(*) AS n, sum(v) AS s, avg(v) AS m, sum(p) AS worth, count(v) AS known FROM a GROUP BY k",
    "bounds": "SELECT k, max(d) AS hi, min(x) AS lo, sum(x) AS sx, count(DISTINCT v) AS n FROM a GROUP BY k HAVING count(*) > 1",
    "all_rows": "SELECT count(*) AS k, sum(v) AS s, max(k) AS last FROM a WHERE v > 2",
    "of_both": "SELECT k, count(*) AS n, sum(v) AS s FROM (SELECT k, v FROM a UNION ALL SELECT k, v FROM b) t GROUP BY k",
    # negations and their kin
    "alone": "SELECT k, v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.v > 2)",
    "company": "SELECT k, v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
    "listed": "SELECT k, v FROM a WHERE v IN (SELECT v FROM c)",
    "unlisted": "SELECT k, v FROM a WHERE v IS NOT NULL AND v NOT IN (SELECT v FROM c WHERE v IS NOT NULL)",
    "surplus": "SELECT k, v % 2 AS odd FROM a EXCEPT ALL SELECT k, v % 2 AS odd FROM b",
    "common": "SELECT k FROM a INTERSECT SELECT k FROM b",
    "either": "SELECT k FROM a UNION SELECT k FROM b",
    # outer joins
    "kept": "SELECT a.k, a.v, b.v AS bv FROM a LEFT JOIN b ON a.k = b.k AND b.v > 2",
    "all_kept": "SELECT coalesce(a.k, b.k) AS k, a.v, b.v AS bv FROM a FULL JOIN b ON a.k = b.k",
    # first rows
    "top": "SELECT k, v, u FROM a ORDER BY v DESC NULLS LAST, u LIMIT 3",
    "top_of_each": "SELECT k, v, u FROM a QUALIFY row_number() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST, u) <= 2",
    # views over views
    "meetings": "SELECT k, count(*) AS n FROM joined GROUP BY k",
    "busy": "SELECT k, n FROM meetings WHERE n > 2",
    "partners": "SELECT DISTINCT k, rv FROM joined",
    "nested": "SELECT s.k, g.n FROM (SELECT DISTINCT k FROM a) s JOIN (SELECT k, count(*) AS n FROM b GROUP BY k) g ON s.k = g.k",
    "lonely": "SELECT s.k, r.v FROM (SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.v = a.v)) s JOIN b r ON s.k = r.k",
}

WINDOWS = {  # a window as the language has it, and the same for DuckDB over the system's columns
    "recent": (
        "SELECT k, v FROM time_window(a, INTERVAL 90 MINUTES)",
        f"SELECT k, v FROM system.a WHERE _ts > {TAU} - INTERVAL 90 MINUTES",
    ),
    "unequal": (
        "SELECT k FROM time_window(a, INTERVAL 1 HOUR) UNION ALL SELECT k FROM time_window(b, INTERVAL 150 MINUTES)",
        (
            f"SELECT k FROM system.a WHERE _ts > {TAU} - INTERVAL 1 HOUR"
            f" UNION ALL SELECT k FROM system.b WHERE _ts > {TAU} - INTERVAL 150 MINUTES"
        ),
    ),
    "newest": ("SELECT k, u FROM row_window(a, 4)", "SELECT k, u FROM system.a ORDER BY _ts DESC LIMIT 4"),
    "newest_of_each": (
        "SELECT k, u FROM row_window(a, 2, k)",
        "SELECT k, u FROM system.a QUALIFY row_number() OVER (PARTITION BY k ORDER BY _ts DESC) <= 2",
    ),
}

ORACLES = {**QUERIES, **{name: oracle for name, (_, oracle) in WINDOWS.items()}}
DECLARED = {**QUERIES, **{name: sql for name, (sql, _) in WINDOWS.items()}}


class Seen(NamedTuple):
    """One view at one window time: from scratch, as readers see it, as its Delta table has it."""

    hour: int
    scratch: Rows
    served: Rows
    stored: Rows


def _lines(chance: random.Random, hour: int, *, late: bool) -> list[str]:
    """Return five rows that arrive in the hour before ``hour`` (some two hours earlier, if late), each at its own instant."""
    lines = []
    for number, minutes in enumerate(chance.sample(range(60), 5)):
        begins = hour - minutes / 60 - (2 if late and number == 0 else 0)
        ends = begins + chance.choice([0.2, 0.7, 1.5, 3, 5])
        key = chance.choice(["x", "y", "z", "w", ""])
        value = chance.choice(["0", "1", "2", "3", "4", ""])
        payload = [chance.choice(["1.50", "-2.25"]), chance.choice(["0.5", "1e300"]), chance.choice(["2024-01-01", "2024-02-01"])]
        lines.append(",".join([key, text(begins), text(ends), value, str(hour * 10 + number), *payload]))
    return lines


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> tuple[Project, dict[str, list[Seen]]]:
    """The warehouse after the last update, and all views at all window times."""
    streams = {name: stream(columns=COLUMNS, landing=f"landing/{name}", max_lifetime="6h") for name in "abc"}
    views = {name: view(sql) for name, sql in DECLARED.items()}
    project = Project(tmp_path_factory.mktemp("equal") / "project", spark, streams, views=views)
    chance = random.Random(7)  # noqa: S311 - test data
    seen: dict[str, list[Seen]] = {name: [] for name in DECLARED}
    landed = 0
    for hour, looks_up in UPDATES.items():
        while landed < hour:
            landed += 1
            if landed != QUIET:
                lines = {name: _lines(chance, landed, late=landed == QUIET - 1) for name in "abc"}
                land(project, landed, lines, ",".join(COLUMNS))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lookup, "LARGE", lookup.LARGE if looks_up else -1)
            project.update(hour)
        tau = text(hour)
        scratch = all_asked(project, {name: oracle.replace("{tau}", tau) for name, oracle in ORACLES.items()})
        served = all_served(project, ORACLES)
        for name in ORACLES:
            seen[name].append(Seen(hour, scratch[name], served[name], stored(project, name)))
        assert project.epoch.window_time == at(hour)
    return project, seen


@pytest.fixture(scope="module")
def runs(ran: tuple[Project, dict[str, list[Seen]]]) -> dict[str, list[Seen]]:
    """All views at all window times."""
    return ran[1]


@pytest.mark.parametrize("name", DECLARED)
def test_a_view_is_its_query(runs: dict[str, list[Seen]], name: str) -> None:
    """At every window time the rows are those of the query from scratch, read through the warehouse or as a plain Delta table."""
    assert any(seen.scratch for seen in runs[name]), "a query that is empty throughout shows nothing"
    for seen in runs[name]:
        assert seen.served == seen.scratch, f"at {seen.hour}"
        assert seen.stored == seen.scratch, f"at {seen.hour}"


def test_changes_of_a_view_over_one_window_time_give_another(ran: tuple[Project, dict[str, list[Seen]]]) -> None:
    """The changes between any two window times are right for every operator; keyed views have pairs of update images."""
    changes = replayed(ran[0].root)
    assert {table for table, _ in changes} == {*DECLARED, *"abc"}
    updated = {table for table, kind in changes if kind == "update_postimage"}
    assert {"grouped", "of_both", "bounds"} <= updated
    assert all(changes[table, "update_preimage"] == changes[table, "update_postimage"] for table in updated)
    assert not updated & {*"abc", "joined", "values"}
