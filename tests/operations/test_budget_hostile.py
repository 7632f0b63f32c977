"""Views under a budget of a hostile user: hot, null and odd keys, equal rows, and every verb and stop in between.

There is no exact view beside them: DuckDB answers their queries over the live rows of the streams.
"""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from tests.operations.test_budget import mock_chunk
from warehouse.catalog.model import LayoutSpec
from warehouse.checking.check import check
from warehouse.epochs.points import Point
from warehouse.operations.migrate import MigrationRequest
from warehouse.promise import units
from warehouse.views.maintenance import unit_pairs

from .budgets import ledger
from .projects import Project, StoppedError, at, csv, stop_at, stream, text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.epochs.points import Observer

COLUMNS = {"k": "string", "n": "bigint", "f": "double", "x": "int"}
TYPES = {"k": pa.string(), "n": pa.int64(), "f": pa.float64(), "x": pa.int32()}
SHAPES = {
    "text": "SELECT a.k, a.x, c.x AS y FROM a JOIN c ON a.k = c.k",
    "number": "SELECT a.n, a.k, a.x, c.x AS y FROM a JOIN c ON a.n = c.n WHERE (a.x + c.x) % 3 <> 1",
    "float": "SELECT a.x, a.k, c.x AS y FROM a JOIN c ON a.f = c.f",
    "both": "SELECT a.k, a.n, a.x, c.x AS y FROM a JOIN c ON a.k = c.k AND a.n = c.n",
    "itself": "SELECT l.k, l.x, r.x AS y FROM a l JOIN a r ON l.k = r.k WHERE l.x >= r.x",
}
"""Joins by shape; zero is equal to negative zero, NaN to itself, and null to nothing."""
ABOVE = {
    "chosen": "SELECT x, y FROM part WHERE y > 1",
    "further": "SELECT o.x, o.y, c.x AS z FROM chosen o JOIN c ON o.y = c.x",
}
"""Views above views."""
BUDGETS: tuple[dict[str, object], ...] = (
    {"pairs": 1},
    {"pairs": 7, "prefer": "asc"},
    {"pairs": 40, "prefer": "weighted"},
    {"rows": 2},
    {"rows": 9, "prefer": "right_count / (left_count - 2) + age"},
    {"seconds": 0.001, "prefer": "weighted"},
)
POINTS = (Point.PLAN_WRITTEN, Point.STAGED, Point.STEP_READY, Point.STEP_COMMITTED, Point.STEPS_DONE, Point.EPOCH_WRITTEN)


class Hostile:
    """A project with random operations."""

    def __init__(self, directory: Path, spark: SparkSession, seed: int) -> None:
        self.draw = random.Random(seed)  # noqa: S311 - rows of a test
        self.sql = [*SHAPES.values()][seed % len(SHAPES)]
        columns = {**COLUMNS, "b": "timestamp", "e": "timestamp"}
        self.project = Project(
            directory,
            spark,
            {name: stream(columns=columns, landing=f"landing/{name}") for name in "ac"},
            views={
                "part": {"sql": self.sql, "search_key": "x", "budget": BUDGETS[seed % len(BUDGETS)]},
                **{name: {"sql": sql, "search_key": "x"} for name, sql in ABOVE.items()},
            },
        )
        self.now = self.files = 0

    def land(self) -> None:
        """Land rows of a hot key, of nulls and odd numbers, each up to three times, some late, some that end soon."""
        for name in "ac":
            lines = []
            for _ in range(self.draw.randrange(9)):
                begins = self.now - self.draw.choice([0.5, 0.5, 0.1, 1.5, 2.9])
                ends = begins + self.draw.choice([0.3, 1, 2, 3, 4])
                key = self.draw.choice(["hot"] * 6 + ["cold", "", "Ä", "hot "])
                number = self.draw.choice(["7"] * 6 + ["", "-9223372036854775808", "0"])
                odd = self.draw.choice(["NaN", "NaN", "-0.0", "0.0", "Infinity", "", "0.1"])
                line = f"{key},{number},{odd},{self.draw.randrange(4)},{text(begins)},{text(ends)}"
                lines += [line] * self.draw.choice([1, 1, 3])
            self.project.land(f"{self.files}.csv", csv(*lines, header="k,n,f,x,b,e"), landing=f"landing/{name}")
        self.files += 1

    def stopped(self, move: Callable[[Observer], object]) -> None:
        """Stop a verb at a drawn moment; the verb may end before."""
        with suppress(StoppedError):
            move(stop_at(self.draw.choice(POINTS), self.draw.choice([-1, *range(12)])))

    def update(self) -> None:
        """Update, perhaps stopped before the end."""
        self.now += self.draw.choice([1, 1, 1, 2])
        self.land()
        if self.draw.random() < 0.4:
            self.stopped(lambda observer: self.project.update(self.now, observer=observer, allow_dead=True))
        assert not self.project.update(self.now, allow_dead=True).failed_views  # a first file may have only rows that ended

    def complete(self, chunk: int, *, once: bool = False) -> None:
        """Complete in chunks, perhaps killed in one of them."""
        with mock_chunk(chunk):
            if self.draw.random() < 0.6:
                self.stopped(lambda observer: self.project.updater(observer).complete("part"))
            done = self.project.updater().complete("part", out_of_time=lambda: once)
        assert not done.failed_views
        assert once or ledger(self.project, "part").complete

    def change(self) -> None:
        """Give the view another budget, which applies from the next update on."""
        self.project.views["part"]["budget"] = self.draw.choice(BUDGETS)
        self.project.declare()
        self.update()

    def other_verb(self) -> None:
        """Restate, rebuild, roll back, migrate, erase or vacuum, perhaps stopped before."""
        verbs: dict[str, Callable[[Observer], object]] = {
            "restate": lambda observer: self.project.updater(observer).restate(self.draw.choice("ac"), since=at(self.now - 1)),
            "rebuild": lambda observer: self.project.updater(observer).rebuild("part"),
            "rollback": lambda observer: self.project.updater(observer).rollback(self.project.numbers[-2]),
            "migrate": lambda observer: self.project.updater(observer).migrate(
                "a", MigrationRequest(LayoutSpec(grid=(self.draw.randrange(1, 4), 2)))
            ),
            "erase": lambda observer: self.project.updater(observer).erase("c", [self.draw.choice(["cold", "hot", None])]),
            "vacuum": lambda observer: self.project.updater(observer).vacuum(),
        }
        name = self.draw.choice([*verbs])
        if name == "rollback" and len(self.project.numbers) < 2:
            return
        if self.draw.random() < 0.3:
            self.stopped(verbs[name])
            self.update()
        else:
            verbs[name](stop_at(Point.LOCKED, 99))

    def require(self) -> None:
        """Require that the view is a part of its query, with the ledger's bounds, and views above are their queries over it."""
        with duckdb.connect() as engine:
            for table in ("a", "c", *self.project.views):
                _register(engine, table, self.project.live(table))
            produced, exact = _bag(engine, _timed("part")), _bag(engine, _joined(self.sql))
            assert produced <= exact, "no result twice, none that is not one"
            missing, owed = (exact - produced).total(), ledger(self.project, "part")
            assert not (missing and owed.complete)
            if owed.exact is not None:
                assert (owed.exact, owed.least <= missing <= owed.most) == (exact.total(), True)
            assert _bag(engine, _timed("chosen")) == _bag(engine, "SELECT x, y, _exp FROM part WHERE y > 1")
            assert _bag(engine, _timed("further")) == _bag(engine, _joined(ABOVE["further"]))


def _register(engine: duckdb.DuckDBPyConnection, table: str, rows: list[dict[str, Any]]) -> None:
    kinds = {**TYPES, "y": pa.int32(), "z": pa.int32(), "_exp": pa.timestamp("us", "UTC")}
    names = [name for name in kinds if not rows or name in rows[0]]
    columns = {name: pa.array([row[name] for row in rows], kinds[name]) for name in names}
    engine.register(table, pa.table(columns))


def _timed(table: str) -> str:
    return f"SELECT * FROM {table}"


def _joined(sql: str) -> str:
    """Return a join with the end of its results, which is the end of the first part to end."""
    left, right = ("l", "r") if " l JOIN " in sql else ("o", "c") if " o JOIN " in sql else ("a", "c")
    return sql.replace(" FROM ", f", least({left}._exp, {right}._exp) AS _exp FROM ", 1)


def _bag(engine: duckdb.DuckDBPyConnection, query: str) -> Counter[tuple[object, ...]]:
    result = engine.sql(query)
    names = sorted(result.columns)
    positions = [result.columns.index(name) for name in names]
    return Counter(tuple(row[position] for position in positions) for row in result.fetchall())


@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 33))])
def test_whatever_a_user_does(seed: int, tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """At each epoch a part of the exact answer without duplicates, and all of it after completion."""
    if seed % 3 == 0:
        monkeypatch.setattr(units, "_EXCESS_PAIRS", 1)  # units are looked at in slices
    if seed % 4 == 0:
        monkeypatch.setattr(unit_pairs, "FEW", 0)
    if seed % 5 == 1:
        monkeypatch.setattr(units, "RANGES", 1)
    hostile = Hostile(tmp_path, spark, seed)
    hostile.update()
    hostile.require()
    for _ in range(6):
        moves: list[Callable[[], None]] = [
            hostile.update,
            hostile.update,
            lambda: hostile.complete(hostile.draw.choice([1, 5, 1000]), once=hostile.draw.random() < 0.4),
            hostile.change,
            hostile.other_verb,
        ]
        hostile.draw.choice(moves)()
        hostile.require()
    hostile.update()
    hostile.complete(50)
    hostile.require()
    assert check(hostile.project.root).findings == ()
