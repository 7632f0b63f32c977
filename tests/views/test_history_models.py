"""Views whose answers depend on when updates ran, beside models of them, over random rows and changes.

No query over the live rows gives such an answer, so Spark cannot be asked: relations that change nothing back in time, and output
windows. Internal windows: `test_internal_rows.py`.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project, csv, row, stream, text

from .warehouses import land, view

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

UPDATES = (1, 2, 4, 5)
LAST = 2
VIEWS = {
    "seen": view("SELECT a.k, r.w FROM a JOIN r ON r.k = a.k"),
    "or_not": view("SELECT a.k, r.w FROM a LEFT JOIN r ON r.k = a.k"),
    "last": {"sql": "SELECT a.k FROM a JOIN c ON a.k = c.k", "search_key": "k", "output_window": LAST},
}
RELATION = {
    "landing": "landing/r", "format": "csv", "search_key": "k", "changed_at": "b", "op": "op", "retroactive": False,
    "columns": {"k": "string", "b": "timestamp", "op": "string", "w": "int"},
}  # fmt: skip
Row = tuple[str, float, float]
Change = tuple[str, float, int | None]


@dataclass
class Model:
    """What the views hold, by the rules of docs/views.md, in the simplest way."""

    versions: dict[str, list[tuple[float, int | None]]] = field(default_factory=dict)
    seen: list[tuple[str, int | None, float]] = field(default_factory=list)
    streams: dict[str, list[Row]] = field(default_factory=lambda: {"a": [], "c": []})
    found: dict[tuple[Row, Row], tuple[float, str]] = field(default_factory=dict)

    def update(self, before: float, hour: float, came: dict[str, list[Row]], changes: list[Change]) -> None:
        """Apply changes, earlier ones at the last window time; then each row gets the version of its time for good."""
        for key, begins, value in sorted(changes, key=lambda change: change[1]):
            self.versions.setdefault(key, []).append((max(begins, before), value))
        for key, ts, exp in came["a"]:
            past = [value for begins, value in self.versions.get(key, ()) if begins < ts]
            self.seen.append((key, past[-1] if past else None, exp))
        for name, rows in came.items():
            self.streams[name] += rows
        alive = {name: [row for row in rows if row[2] > hour] for name, rows in self.streams.items()}
        for a_row in alive["a"]:
            for c_row in alive["c"]:
                if a_row[0] == c_row[0]:
                    self.found.setdefault((a_row, c_row), (max(a_row[1], c_row[1]), a_row[0]))

    def expected(self, hour: float) -> dict[str, Counter[object]]:
        """Return the rows of each view at a window time."""
        live = [(key, value) for key, value, exp in self.seen if exp > hour]
        newest = sorted(self.found.values())[-LAST:]
        return {
            "seen": Counter(seen_row for seen_row in live if seen_row[1] is not None),
            "or_not": Counter(live),
            "last": Counter(key for _, key in newest),
        }


def _rows(chance: random.Random, hour: int, offset: float) -> list[Row]:
    """Rows of the last hour, one of them late, at instants of their own."""
    instants = [hour - (minutes + offset) / 60 for minutes in chance.sample(range(59), 5)]
    instants[0] -= hour > 1
    return [(chance.choice("xyz"), ts, hour + chance.choice([-0.2, 0.4, 1.5, 2.5])) for ts in instants]


def _changes(chance: random.Random, hour: int) -> list[Change]:
    """Changes of the last hour, one of them late; in the end a key is deleted, which it stays for good."""
    instants = [hour - minutes / 60 for minutes in chance.sample(range(1, 59), 4)]
    instants[0] -= 1.25 * (hour > 1)
    deletions: list[Change] = [("x", hour - 0.9, None)] if hour == UPDATES[-1] else []
    return [*((chance.choice("yz" if deletions else "xyz"), when, chance.choice([1, 2, 3])) for when in instants), *deletions]


@pytest.mark.parametrize("seed", [3])
def test_views_are_their_models(tmp_path: Path, spark: SparkSession, seed: int) -> None:
    """Views equal their models at every update, also when an update skips an hour."""
    streams = {"a": stream(over_lifetime="accept"), "c": stream(landing="landing/c", over_lifetime="accept")}
    project = Project(tmp_path / "project", spark, streams, views=VIEWS, relations={"r": RELATION})
    chance, model = random.Random(seed), Model()  # noqa: S311 - test data
    before = 0
    for hour in UPDATES:
        arrived = {"a": _rows(chance, hour, 0.3), "c": _rows(chance, hour, 0.7)}
        arrived = {name: [arrival for arrival in rows if arrival[2] > max(arrival[1], hour)] for name, rows in arrived.items()}
        changes = _changes(chance, hour)
        for name, rows in arrived.items():
            project.land(f"{hour}.csv", csv(*(row(*arrived_row) for arrived_row in rows)), landing=f"landing/{name}")
        lines = [f"{key},{text(when)},{'delete' if w is None else 'upsert'},{'' if w is None else w}" for key, when, w in changes]
        land(project, hour, {"r": lines}, "k,b,op,w")
        project.update(hour)
        model.update(before, hour, arrived, changes)
        before = hour
        expected = model.expected(hour)
        assert expected["or_not"], "a test of nothing"
        for name in ("seen", "or_not"):
            assert Counter((live_row["k"], live_row["w"]) for live_row in project.live(name)) == expected[name], (name, hour)
        assert Counter(live_row["k"] for live_row in project.live("last")) == expected["last"], hour
    assert any(value is not None for _, value, _ in model.seen)
    assert len(model.found) > LAST
