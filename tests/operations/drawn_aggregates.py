"""Aggregates of every kind beside brute force: a project with drawn rows, and the expected value of each answer.

Lifetimes are short and gaps long: most rows of a catch-up are dead on arrival, and windows are longer than any row lives.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any

from warehouse.operations.update import UpdateOptions
from warehouse.time import to_micros

from .projects import ANCHOR, HOUR, Project, StoppedError, at, csv, stop_at, stream, text

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping, Sequence

    from warehouse.epochs.points import Point

__all__ = ["WINDOWS", "Drawn", "declare", "require_equal", "require_sound"]

Row = tuple[str, int, float, float]
WINDOWS = {"1h": (1, 1), "3h": (3, 2), "9h": (9, 3)}
"""Hours of each window, and every how many hours it is due."""
VALUES = {"n": "count(*)", "total": "sum(v)", "low": "min(v)", "high": "max(v)", "kinds": "count(DISTINCT v)"}
ABOVE = 0.3
LIFETIME = 2.5


def declare(
    project: Project, windows: Mapping[str, tuple[int, int]] = WINDOWS, over: str = "a", *, without: Sequence[str] = ()
) -> Project:
    """Declare a stream of short-lived rows and an aggregate of each kind, by DuckDB and (with a condition) by Spark.

    They are ``over`` the stream or a view that has its rows; ``without`` names those that a test is not about.
    """
    common = {"from": over, "windows": [*windows], "every": [f"{every}h" for _, every in windows.values()], "keep": "200h"}
    grouped = {**common, "group_by": ["k"], "select": VALUES}
    often = {**common, "frequent": {"item": "k", "above": ABOVE}}
    aggregates: dict[str, dict[str, object]] = {
        "arrived": grouped,
        "arrived_spark": {**grouped, "where": "v < 1000", "group_by": ["concat(k, '!') AS g"]},
        "living": {**grouped, "over": "live"},
        "often": often,
        "often_living": {**often, "over": "live"},
    }
    columns = {"k": "string", "v": "int", "b": "timestamp", "e": "timestamp"}
    project.streams = {"a": stream(columns=columns, max_lifetime="3h")}
    project.aggregates = {name: keys for name, keys in aggregates.items() if name not in without}
    project.declare()
    return project


@dataclass
class Drawn:
    """A project, its random numbers, and the files that each epoch has loaded by the model."""

    project: Project
    draw: random.Random
    files: dict[str, list[Row]] = field(default_factory=dict)
    loaded: dict[int, frozenset[str]] = field(default_factory=dict)
    slots: dict[int, int] = field(default_factory=dict)
    before: int = 0
    now: int = 0
    windows: Mapping[str, tuple[int, int]] = field(default_factory=lambda: WINDOWS)

    def land(self) -> None:
        """Land a file whose rows arrive from some slots before the last update to two slots after this one."""
        rows: list[Row] = [("a", 0, self.now - 0.5, self.now + 0.5)]  # one lives
        for _ in range(self.draw.randrange(4, 16)):
            begins = round(self.draw.uniform(max(self.before - 6, 0.01), self.now + 2), 2)
            ends = begins + round(self.draw.uniform(0, LIFETIME), 2)
            rows.append((self.draw.choice("aaabbc"), self.draw.randrange(6), begins, ends))
        name = f"{len(self.files)}.csv"
        self.files[name] = rows
        self.project.land(name, csv(*(f"{k},{v},{text(b)},{text(e)}" for k, v, b, e in rows), header="k,v,b,e"))

    def update(self, slots: int, **options: object) -> None:
        """Move by a number of slots with a file."""
        self.before, self.now = self.now, self.now + slots
        self.land()
        self.project.update(self.now, **options)
        self.note(frozenset(self.files))

    def killed(self, slots: int, point: Point, share: float) -> None:
        """Move by a number of slots, stopped at a point of one of the steps, and finish the update."""
        self.before, self.now = self.now, self.now + slots
        self.land()
        plan, _ = self.project.updater().plan(UpdateOptions(at=at(self.now)))
        assert plan is not None
        with suppress(StoppedError):  # a step without rows makes no commit
            self.project.update(self.now, observer=stop_at(point, int(share * len(plan.steps))))
        self.project.update(self.now)
        self.note(frozenset(self.files))

    def note(self, loaded: frozenset[str]) -> None:
        """Record what the new epochs have loaded."""
        for number in self.project.numbers:
            if number not in self.loaded:
                self.loaded[number] = loaded
        self.slots[self.project.epoch.number] = self.now

    def back(self) -> None:
        """Roll the last update back; the next one loads its files again."""
        before = self.loaded[self.project.epoch.number - 1]
        self.project.updater().rollback(self.project.epoch.number - 1)
        self.note(before)

    def again(self) -> None:
        """Load some files again."""
        files = self.loaded[self.project.epoch.number]
        since = self.draw.choice(["first", at(self.before)])
        self.project.updater().restate("a", since=since)
        self.note(files)


def in_window(rows: list[Row], slots: int, end: int, *, live: bool) -> list[Row]:
    """Return the rows that an answer counts."""
    return [row for row in rows if end - slots < ceil(row[2]) <= end and (not live or row[3] > end)]


def expected(rows: list[Row]) -> dict[str, object]:
    """Return the values of some rows, of which there is at least one."""
    values = [row[1] for row in rows]
    results = (len(rows), sum(values), min(values), max(values), len(set(values)))
    return dict(zip(VALUES, results, strict=True))


def _given(drawn: Drawn, table: str) -> dict[tuple[str, int], dict[str, dict[str, Any]]]:
    """Return the stored answers by length and end (hours), each row by its group or item, if it has one."""
    answers: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for row in drawn.project.stored(table):
        end = (to_micros(row["window_end"]) - ANCHOR) // HOUR
        answer = answers.setdefault((row["window_length"], end), {})
        name = row["item"] if "often" in table else row.get("k") or row["g"].removesuffix("!")
        assert name not in answer, (table, row)
        answer[name] = row
    return answers


def require_sound(drawn: Drawn) -> int:
    """Compare every full answer with a query over the rows that its epoch had loaded; return the number of full answers."""
    compared = 0
    for table in drawn.project.aggregates:
        for (length, end), answer in _given(drawn, table).items():
            (epoch,) = {row["epoch"] for row in answer.values()}
            if all(row["full"] for row in answer.values()):
                exact = _answer(drawn, table, epoch, drawn.windows[length][0], end)
                assert _shown(table, answer) == exact, (table, length, end, epoch)
                compared += 1
    return compared


def require_equal(drawn: Drawn) -> None:
    """Compare every answer with a query over the rows that its epoch had loaded."""
    for table in drawn.project.aggregates:
        answers = _given(drawn, table)
        first = min(drawn.slots.values())
        epochs = sorted(drawn.loaded)
        for length, (slots, every) in drawn.windows.items():
            for end in range(first + 1, drawn.now + 1):
                if end % every:
                    continue
                answer = answers.get((length, end), {})
                own_epochs = {row["epoch"] for row in answer.values()}
                assert len(own_epochs) <= 1
                candidates = own_epochs or {number for number in epochs if drawn.slots.get(number, 0) >= end}
                possible = [_answer(drawn, table, epoch, slots, end) for epoch in sorted(candidates)]
                assert _shown(table, answer) in possible, (table, length, end, sorted(candidates))


def _answer(drawn: Drawn, table: str, epoch: int, slots: int, end: int) -> dict[str, Any]:
    loaded = [row for name in drawn.loaded[epoch] for row in drawn.files[name]]
    if drawn.project.aggregates[table]["from"] != "a":  # no view has rows that never live
        loaded = [row for row in loaded if row[3] > row[2]]
    rows = in_window(loaded, slots, end, live="living" in table)
    if "often" in table:
        return {k: (n, n) for k, n in Counter(row[0] for row in rows).items() if n > ABOVE * len(rows)}
    return {k: expected([row for row in rows if row[0] == k]) for k in {row[0] for row in rows}}


def _shown(table: str, answer: dict[str, dict[str, Any]]) -> dict[str, Any]:
    if "often" in table:
        return {k: (row["at_least"], row["at_most"]) for k, row in answer.items()}
    return {k: {name: row[name] for name in VALUES} for k, row in answer.items()}
