"""Aggregates of values that engines treat differently, beside DuckDB's answer over all rows that had arrived.

Null groups, NaN and both zeros, infinite numbers, the widest decimals, texts that look alike, days of a time zone with summer
time; late rows, updates without rows, months between two updates, aggregates that come and go, a restatement and a migration.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from warehouse.checking.check import check
from warehouse.operations.migration import MigrationRequest
from warehouse.time import to_micros

from .projects import ANCHOR, Project, at, parquet, stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

HOUR = 3_600_000_000
NAN, INF = float("nan"), float("inf")
GROUPS = [None, "", " ", "a", "A", "a ", "é", "e\u0301", "ß", "日本", "\U0001d518", "'; --", "\x01", "ﬀ", "null", "NaN"]
FLOATS = [None, NAN, INF, -INF, 0.0, -0.0, 1.5, -1.5, 5e-324, 1e300, 0.1, 0.1 + 2**-56]
AMOUNTS = [None, *map(Decimal, ("0", "-0.0000000001", "9" * 27, "-" + "9" * 27, "9" * 28, "1.5", "0.3333333333"))]
NUMBERS = [None, 0, 1, -1, 2**63 - 1, -(2**63), 2**62, 7, 7]
COLUMNS = {
    "k": "string", "f": "double", "d": "decimal(38,10)", "v": "bigint", "r": "float", "b": "timestamp", "e": "timestamp",
}  # fmt: skip
SCHEMA = pa.schema([
    ("k", pa.string()), ("f", pa.float64()), ("d", pa.decimal128(38, 10)), ("v", pa.int64()), ("r", pa.float32()),
    ("b", pa.timestamp("us", tz="UTC")), ("e", pa.timestamp("us", tz="UTC")),
])  # fmt: skip
SELECT = {
    "n": "count(*)", "known": "count(f)", "total": "sum(v)", "paid": "sum(d)", "least": "min(f)", "most": "max(f)",
    "sound": "sum(f)", "mean": "avg(v)", "kinds": "count(DISTINCT f)", "words": "count(DISTINCT k)", "through": "median(f)",
    "high_0": "percentile(d, 0.9)", "low": "min(k)", "late_": "max(k)", "reals": "count(DISTINCT r)",
}  # fmt: skip
WINDOWS = {"2h": 2, "6h": 6, "720h": 720}
LOCAL = "CAST(from_utc_timestamp(b, 'America/New_York') AS date) AS day"
GROUPED: dict[str, tuple[dict[str, object], str]] = {
    "texts": ({"group_by": ["k"]}, "k"),
    "floats": ({"group_by": ["f", "r"], "search_key": "window_end"}, "f, r"),
    "amounts": ({"group_by": ["d"]}, "d"),
    "days": ({"group_by": [LOCAL]}, "CAST(timezone('America/New_York', b) AS DATE)"),
    "chosen": ({"group_by": ["k"], "where": "f > 1 OR r = 0"}, "k"),
    "living": ({"group_by": ["k"], "over": "live"}, "k"),
}


@dataclass
class House:
    """A project, the rows of each of its files, and the number of files that each epoch knows."""

    project: Project
    draw: random.Random
    files: list[list[dict[str, Any]]] = field(default_factory=list)
    known: dict[int, int] = field(default_factory=dict)
    now: float = 0

    def update(self, hours: float, rows: int = 40, **options: object) -> None:
        """Move by ``hours``; rows arrive before and after the last update."""
        before, self.now = self.now, self.now + hours
        if rows:
            spans = [(before, self.now), (max(before - 5, 0.01), self.now), (self.now - min(hours, 3), self.now)]
            self.files.append([self._row(*self.draw.choice(spans)) for _ in range(rows)])
            self.project.land(f"{len(self.files):03d}.parquet", parquet(pa.Table.from_pylist(self.files[-1], SCHEMA)))
        self.project.update(self.now, **options)
        self.note(len(self.files))

    def note(self, files: int) -> None:
        """Record the number of files that the new epochs know."""
        for number in self.project.numbers:
            self.known.setdefault(number, files)

    def _row(self, since: float, until: float) -> dict[str, Any]:
        begins = datetime.fromtimestamp(at(self.draw.uniform(since, until)) / 1e6, UTC)
        pick = self.draw.choice
        ends = begins + timedelta(hours=pick([0, 0.5, 2.5, 7]))
        values = {"k": pick(GROUPS), "f": pick(FLOATS), "d": pick(AMOUNTS), "v": pick(NUMBERS), "r": pick(FLOATS[:6])}
        return {**values, "b": begins, "e": ends}

    def rows(self, epoch: int) -> pa.Table:
        """Return the rows that an epoch knows."""
        return pa.Table.from_pylist([row for file in self.files[: self.known[epoch]] for row in file], SCHEMA)


def built(directory: Path, spark: SparkSession, **warehouse: object) -> House:
    """Return a house with every aggregate of :data:`GROUPED`, each for all windows."""
    streams = {"a": stream(columns=COLUMNS, max_lifetime="8h", format="parquet")}
    common = {"from": "a", "select": SELECT, "windows": [*WINDOWS], "every": ["2h", "2h", "6h"], "keep": "2400h"}
    aggregates = {name: {**common, **keys} for name, (keys, _) in GROUPED.items()}
    project = Project(directory, spark, streams, warehouse=dict(warehouse), aggregates=aggregates)
    return House(project, random.Random(21))  # noqa: S311 - rows of a test


def same(left: object, right: object) -> bool:
    """Return whether two values are equal: NaN equals NaN, and sums of floats may differ in the last digits."""
    if isinstance(left, float) and isinstance(right, float):
        return (math.isnan(left) and math.isnan(right)) or left == right or math.isclose(left, right, rel_tol=1e-9)
    return left == right


def key_of(values: tuple[object, ...]) -> tuple[object, ...]:
    """Return groups as they are compared: all NaN are equal, and both zeros."""
    return tuple(value if not isinstance(value, float) else "NaN" if math.isnan(value) else value + 0.0 for value in values)


def expected(connection: duckdb.DuckDBPyConnection, groups: str, where: str) -> dict[tuple[object, ...], dict[str, object]]:
    """The values of each group of ``rows``, by DuckDB, of what it does not compute as Spark does by Python."""
    texts = [groups] if "(" in groups else groups.split(", ")
    names = [f"g{number}" for number in range(len(texts))]
    listed = ", ".join(f"{text} AS {name}" for text, name in zip(texts, names, strict=True))
    query = f"""SELECT {', '.join(names)}, count(*) AS n, count(f) AS known, sum(v::HUGEINT) AS total, min(f) AS least,
        max(f) AS most, sum(f) AS sound, count(DISTINCT k) AS words, min(k) AS low, max(k) AS late_,
        count(DISTINCT CASE WHEN isnan(f) THEN 'NaN' ELSE (f + 0.0)::VARCHAR END) AS kinds,
        count(DISTINCT CASE WHEN isnan(r) THEN 'NaN' ELSE (r + 0.0)::VARCHAR END) AS reals,
        list(d) FILTER (d IS NOT NULL) AS amounts, list(f ORDER BY f) FILTER (f IS NOT NULL) AS floats,
        list(v) FILTER (v IS NOT NULL) AS vs
        FROM (SELECT *, {listed} FROM rows WHERE {where}) GROUP BY {', '.join(names)}"""
    answers = {}
    for row in connection.sql(query).to_arrow_table().to_pylist():
        amounts, numbers = row["amounts"] or [], row["vs"] or []
        with localcontext(prec=60):
            paid = sum(amounts) if amounts else None
            if amounts and sum(map(abs, amounts)) >= Decimal(10) ** 28:
                paid = ...
        total = row["total"]
        answers[key_of(tuple(row[name] for name in names))] = {
            **{name: row[name] for name in ("n", "known", "least", "most", "sound", "words", "low", "late_", "kinds", "reals")},
            "total": int(total) if total is not None and -(2**63) <= total < 2**63 else None,
            "paid": paid,
            "mean": sum(map(int, numbers)) / len(numbers) if numbers else None,
            "through": between(row["floats"] or [], 0.5),
            "high_0": between(sorted(map(float, amounts)), 0.9),
        }
    return answers


def between(values: list[float], share: float) -> float | None:
    """Return the percentile as Spark calculates it."""
    if not values:
        return None
    position = (len(values) - 1) * share
    low, high = values[math.floor(position)], values[math.ceil(position)]
    part = position - math.floor(position)
    return low if low == high else (1 - part) * low + part * high


def require_sound(house: House, most: int = 60) -> int:
    """Compare some of the full answers, including the newest, with DuckDB's answers over the rows their epochs know."""
    compared = 0
    for name, (keys, groups) in GROUPED.items():
        if name not in house.project.aggregates:
            continue
        answers: dict[tuple[int, str, int], list[dict[str, Any]]] = {}
        for row in house.project.stored(name):
            answers.setdefault((row["epoch"], row["window_length"], to_micros(row["window_end"])), []).append(row)
        order = sorted(answers)
        chosen = order[-12:] + house.draw.sample(order, min(most, len(order)))
        columns = [text.rpartition(" ")[2] for text in keys["group_by"]]  # type: ignore[attr-defined]
        for epoch, length, end in dict.fromkeys(chosen):
            answer = answers[epoch, length, end]
            if not all(row["full"] for row in answer):
                continue
            first = end - WINDOWS[length] * HOUR
            where = f"epoch_us(b) > {first} AND epoch_us(b) <= {end}"
            where += f" AND epoch_us(e) > {end}" if keys.get("over") == "live" else ""
            where += " AND (f > 1 OR r = 0)" if "where" in keys else ""
            with duckdb.connect() as connection:
                connection.execute("SET TimeZone = 'UTC'")
                connection.register("rows", house.rows(epoch))
                by_query = expected(connection, groups, where)
            by_key = {key_of(tuple(row[column] for column in columns)): row for row in answer}
            assert len(by_key) == len(answer), (name, epoch, length, end)
            assert by_key.keys() == by_query.keys(), (name, epoch, length, (end - ANCHOR) / HOUR)
            for key, values in by_query.items():
                for value, exact in values.items():
                    location = name, epoch, length, (end - ANCHOR) / HOUR, key, value
                    assert exact is ... or same(by_key[key][value], exact), (*location, by_key[key][value], exact)
            compared += 1
    return compared


@pytest.mark.long
def test_odd_values_are_counted_as_a_query_counts_them(tmp_path: Path, spark: SparkSession) -> None:
    """With late rows and empty updates, over months without an update, and over both changes of summer time."""
    house = built(tmp_path, spark)
    house.update(2)
    house.update(4)
    house.update(6, rows=0)
    assert require_sound(house) >= 40
    house.update(1_650)  # 10 March, 2 o'clock in New York, is hour 1663
    for hours in (2, 2, 6):
        house.update(hours)
    assert require_sound(house) > 40
    house.project.updater().restate("a", since="first")
    house.note(len(house.files))
    house.update(2)
    house.project.updater().rollback(house.project.epoch.number - 1)
    house.note(len(house.files) - 1)
    house.update(2)
    assert require_sound(house) > 40
    house.project.warehouse["update_interval"] = "2h"
    house.project.declare()
    house.project.updater().migrate(None, MigrationRequest())
    house.note(len(house.files))
    house.update(4)
    house.update(6, each=True)
    assert require_sound(house) > 40
    assert list(check(house.project.root).findings) == []
    _, receipt = house.project.updater().erase("a", ["é"])
    assert receipt is not None
    assert "é" not in {row["k"] for row in house.project.stored("texts")}
    assert "e\u0301" in {row["k"] for row in house.project.stored("texts")}


@pytest.mark.parametrize("seed", [pytest.param(seed, marks=[pytest.mark.long] if seed else []) for seed in range(4)])
def test_aggregates_that_come_and_go_share_what_is_true(seed: int, tmp_path: Path, spark: SparkSession) -> None:
    """Two aggregates of one stream, one or both declared at each update, with a restatement and rollbacks in between."""
    house = built(tmp_path, spark)
    aggregates, draw = dict(house.project.aggregates), random.Random(seed)  # noqa: S311 - choices of a test
    compared = 0
    for number in range(10):
        names = draw.sample(["texts", "chosen", "living", "days"], draw.choice([1, 2, 2]))
        house.project.aggregates = {name: aggregates[name] for name in names}
        house.project.declare()
        house.update(draw.choice([1, 2, 3, 8]), rows=draw.choice([0, 10, 20]))
        compared += require_sound(house, 20)
        if number == 4:
            house.project.updater().restate("a", since="first")
            house.note(len(house.files))
        if number == 7:
            files = house.known[house.project.epoch.number - 1]
            house.project.updater().rollback(house.project.epoch.number - 1)
            house.note(files)
    assert compared > 10  # as many full answers as the draws give
    assert list(check(house.project.root).findings) == []
