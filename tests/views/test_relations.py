"""Relations joined by views: what a row sees, what a change does to rows that came before, and which changes are refused.

Both relations get the same changes, ``k`` valued ``w`` from an hour on; ``late`` ones are landed for the second update::

    hour      0.........1.........2.........3 ...
    x          1...2..........3                    late: 7 from 0.2 on
    y          5..........|                        comes back at 2.5
    n                    9
    m                      1, then 2 at the same instant
    rows of x    ^ ^  ^    ^    ^                  at 0.3, 0.5, 0.7, 1.2, 1.7
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project, at, csv, row, stream, text
from warehouse.time import HOUR, to_micros

from .warehouses import land, view

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

Change = tuple[str, float, str, object]
FIRST: list[Change] = [
    ("x", 0.1, "upsert", 1), ("y", 0.1, "upsert", 5), ("x", 0.5, "upsert", 2), ("z", 0.2, "replace", 2), ("", 0.3, "upsert", 8),
]  # fmt: skip
SECOND: list[Change] = [
    ("x", 1.5, "upsert", 3), ("y", 1.2, "delete", ""), ("n", 1.1, "upsert", 9), ("x", 0.2, "upsert", 7),
    ("m", 1.3, "upsert", 1), ("m", 1.3, "upsert", 2),
]  # fmt: skip
THIRD: list[Change] = [("y", 2.5, "upsert", 6)]
ROWS = {
    1: [row("x", 0.3, 4), row("x", 0.5, 4), row("x", 0.7, 4), row("q", 0.7, 4)],
    2: [
        row("x", 1.2, 5), row("x", 1.7, 5), row("y", 1.1, 5), row("y", 1.3, 5), row("q", 1.5, 5),
        row("n", 1.9, 5), row("m", 1.4, 5), row("x", 0.9, 4),
    ],
}  # fmt: skip
VIEWS = {
    "seen": view("SELECT a.k, r.w FROM a JOIN r ON r.k = a.k"),
    "seen_or_not": view("SELECT a.k, r.w FROM a LEFT JOIN r ON r.k = a.k"),
    "current": view("SELECT a.k, s.w FROM a JOIN s ON s.k = a.k"),
    "total": view("SELECT k, sum(w) AS w FROM seen GROUP BY k"),
    "numbers": view("SELECT r.w AS k, count(*) AS w FROM a JOIN r ON r.k = a.k GROUP BY r.w"),
}


def _relation(name: str, *, retroactive: bool) -> dict[str, object]:
    columns = {"k": "string", "b": "timestamp", "op": "string", "w": "int"}
    return {
        "landing": f"landing/{name}", "format": "csv", "search_key": "k", "changed_at": "b", "op": "op",
        "retroactive": retroactive, "columns": columns,
    }  # fmt: skip


def change(project: Project, run: int, changes: list[Change]) -> None:
    """Land changes of both relations."""
    lines = [f"{key},{text(when)},{op},{w}" for key, when, op, w in changes]
    land(project, run, dict.fromkeys(project.relations, lines), "k,b,op,w")


def seen(project: Project, table: str) -> list[tuple[str, float, object]]:
    """Return key, hour and w of a view's rows."""
    return sorted(
        (str(live_row["k"]), round((to_micros(live_row["_ts"]) - at(0)) / HOUR, 3), live_row["w"])
        for live_row in project.live(table)
    )


def values(project: Project, table: str) -> list[str]:
    """Return key and w of a view's rows."""
    return sorted(f"{live_row['k']}{live_row['w']}" for live_row in project.live(table))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """A project after three updates."""
    relations = {"r": _relation("r", retroactive=False), "s": _relation("s", retroactive=True)}
    streams = {"a": stream(over_lifetime="reject")}
    made = Project(tmp_path_factory.mktemp("relations") / "project", spark, streams, views=VIEWS, relations=relations)
    for run, changes in enumerate((FIRST, SECOND, THIRD), 1):
        change(made, run, changes)
        if run in ROWS:
            made.land(f"{run}.csv", csv(*ROWS[run]))
        made.update(run)
    return made


def _after(project: Project, run: int, table: str) -> list[str]:
    live = project.live(table, run - 1)
    return sorted(f"{live_row['k']}{live_row['w']}" for live_row in live)


def test_a_row_sees_the_version_before_its_arrival(project: Project) -> None:
    """``valid_from < ts <= valid_to``: a change at the row's own instant is not seen; without a version there is no result."""
    assert _after(project, 1, "seen") == ["x1", "x1", "x2"]
    assert _after(project, 1, "seen_or_not") == ["qNone", "x1", "x1", "x2"]


def test_later_changes_leave_joined_rows_alone(project: Project) -> None:
    """Joined rows keep their versions; late rows get the version of their time; y at 1.3 came after the delete at 1.2."""
    assert seen(project, "seen") == [
        ("m", 1.4, 2), ("n", 1.9, 9), ("x", 0.3, 1), ("x", 0.5, 1), ("x", 0.7, 2), ("x", 0.9, 2), ("x", 1.2, 7), ("x", 1.7, 3),
        ("y", 1.1, 5),
    ]  # fmt: skip
    assert [seen_row for seen_row in seen(project, "seen_or_not") if seen_row[2] is None] == [
        ("q", 0.7, None), ("q", 1.5, None), ("y", 1.3, None),
    ]  # fmt: skip


def test_a_late_change_takes_effect_at_the_last_window_time(project: Project) -> None:
    """The change of x at 0.2 came after the update at 1: rows from then on see it, until the next change at 1.5."""
    versions = [(w, begins) for key, begins, w in _versions(project, "r") if key == "x"]
    assert versions == [(1, 0.1), (2, 0.5), (7, 1.0), (3, 1.5)]
    versions = [(w, begins) for key, begins, w in _versions(project, "s") if key == "x"]
    assert versions == [(1, 0.1), (7, 0.2), (2, 0.5), (3, 1.5)]


def _versions(project: Project, relation: str) -> list[tuple[str, float, object]]:
    versions = [
        (version["k"], round((to_micros(version["_ts"]) - at(0)) / HOUR, 3), version["w"]) for version in project.stored(relation)
    ]
    return sorted(versions)


def test_changes_of_one_instant_count_in_the_order_of_the_file(project: Project) -> None:
    """From 1.3 on key m is 2: the later line counts, the earlier one was never valid."""
    assert [version for version in _versions(project, "r") if version[0] == "m"] == [("m", 1.3, 2)]
    assert [version for version in _versions(project, "s") if version[0] == "m"] == [("m", 1.3, 2)]


def test_a_retroactive_relation_changes_results_of_rows_before(project: Project) -> None:
    """Every live row is joined with what is valid now; a delete takes results away, a new version brings them back."""
    assert _after(project, 1, "current") == ["x2", "x2", "x2"]
    assert _after(project, 2, "current") == ["m2", "n9", *["x3"] * 6]
    assert _after(project, 3, "current") == ["m2", "n9", *["x3"] * 6, "y6", "y6"]


def test_groups_over_an_as_of_join(project: Project) -> None:
    """Groups over it, or of it, hold what its rows saw; when rows leave, so does what they saw."""
    assert values(project, "total") == ["m2", "n9", "x16", "y5"]
    assert values(project, "numbers") == ["12", "23", "31", "51", "71", "91"]


def test_what_is_rejected(project: Project) -> None:
    """Both reject an unknown operation and a null key; only the non-retroactive one rejects a key that comes back."""
    reasons = {name: sorted(rejection["reason"] for rejection in project.rejected(name)) for name in ("r", "s")}
    assert len(reasons["s"]) == 2
    assert sorted([*reasons["s"], "key_reused"]) == reasons["r"]
    reused = next(rejection for rejection in project.rejected("r") if rejection["reason"] == "key_reused")
    assert "retroactive = true" in reused["message"]
    assert (reused["file"], reused["record"]) == ("003.csv", 1)
    assert '"y"' in reused["raw"]


def test_versions_are_let_go_and_deleted_keys_stay_known(project: Project, tmp_path: Path) -> None:
    """No row lives longer than four hours: versions that ended before that are removed, but not a deleted key's last one.

    ::

        hour        3         8         9
        update      |         |         |
        x         3.......10......11              at 9 what ended before 4 goes
    """
    later = project.copy(tmp_path / "later")
    change(later, 8, [("x", 7.5, "upsert", 10), ("y", 7.6, "upsert", 4)])
    later.update(8)
    assert values(later, "numbers") == values(later, "total") == []
    change(later, 9, [("x", 8.5, "upsert", 11), ("y", 8.6, "upsert", 3)])
    later.update(9)
    assert [version for version in _versions(later, "r") if version[0] in "xy"] == [
        ("x", 1.5, 3), ("x", 7.5, 10), ("x", 8.5, 11), ("y", 0.1, 5),
    ]  # fmt: skip
    assert [version for version in _versions(later, "s") if version[0] in "xy"] == [
        ("x", 1.5, 3), ("x", 7.5, 10), ("x", 8.5, 11), ("y", 2.5, 6), ("y", 7.6, 4), ("y", 8.6, 3),
    ]  # fmt: skip
    assert [
        rejection["reason"] for rejection in later.rejected("r") if rejection["epoch"] > project.epoch.number
    ] == ["key_reused"] * 2
