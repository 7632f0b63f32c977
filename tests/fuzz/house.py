"""Many random views in one warehouse: rows land, updates move them, and each epoch every view is compared with Spark's answer.

Updates take turns: in some the driver looks rows up and joins them where they are few, in others Spark reads everything. Which of
them served is counted, so that a run in which one engine never served does not pass for one in which both were right.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
import sqlglot

from tests.operations.projects import Project, at, stream
from warehouse.project import Warehouse
from warehouse.storage import lookup, scan
from warehouse.storage.session import INTERPRETED, table_session
from warehouse.views.maintenance import appended, cache, distinct, joins
from warehouse.views.plans import judged_views

from .answers import Answer, answer, differences
from .grammar import TABLES, WINDOWS, spark_text
from .rows import landing_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

__all__ = ["DRIVER", "SPARK", "Difference", "House", "Outcome"]

DRIVER, SPARK = "driver", "spark"
_NOTHING = -1


@dataclass(frozen=True)
class Difference:
    """A view that is not its query: what each has that the other has not, or why the view could not be kept."""

    view: str
    sql: str
    epoch: int
    engine: str
    problem: str
    held: Answer = field(default_factory=list)
    asked: Answer = field(default_factory=list)

    def __str__(self) -> str:
        """What a person reads."""
        lines = [f"{self.view} at epoch {self.epoch} ({self.engine}): {self.problem}", f"  {self.sql}"]
        lines += [f"  only the view: {row}" for row in self.held[:4]]
        lines += [f"  only Spark:    {row}" for row in self.asked[:4]]
        return "\n".join(lines)


@dataclass
class Outcome:
    """What a run saw."""

    compared: int = 0
    not_empty: int = 0
    failing: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    found: list[Difference] = field(default_factory=list)
    served: Counter[tuple[str, str]] = field(default_factory=Counter)
    judges: Counter[str] = field(default_factory=Counter)
    """Answers of Spark by what DuckDB says of them: `"both"` agree, `"Spark alone"` where it answers otherwise or not at all."""
    seconds: Counter[str] = field(default_factory=Counter)


@dataclass
class House:
    """A warehouse of the grammar's tables and some views by name."""

    directory: Path
    spark: SparkSession
    queries: Mapping[str, str]
    keys: Mapping[str, str]
    seed: int = 0
    rows: int = 6
    extreme: float = 0.03
    landed: dict[tuple[int, str], str] | None = None

    def __post_init__(self) -> None:
        """Declare it."""
        self.outcome = Outcome()
        sources = {name: self._source(name) for name in TABLES}
        views = {name: {"sql": sql, "search_key": self.keys[name]} for name, sql in self.queries.items()}
        streams = {name: keys for name, keys in sources.items() if name != "r"}
        self.project = Project(self.directory, self.spark, streams, views=views, relations={"r": sources["r"]})

    @staticmethod
    def _source(name: str) -> dict[str, object]:
        columns = {**TABLES[name], "b": "timestamp"}
        common = {"landing": f"landing/{name}", "format": "json", "search_key": "k"}
        match name:
            case "a":
                return stream(**common, columns={**columns, "e": "timestamp"})
            case "w":
                return stream(**common, columns=columns, expires="ts + INTERVAL 2 HOURS", max_lifetime="2h")
            case "m":
                return stream(**common, columns=columns, expires=None, max_lifetime=None)
            case _:
                return {**common, "columns": columns, "changed_at": "b", "retroactive": True}

    def run(self, hours: Sequence[int], engines: Sequence[str], *, rests: bool = True) -> Outcome:
        """Move the windows to each hour, and compare all views each time; before the last no rows land if it ``rests``."""
        chance = random.Random(self.seed)  # noqa: S311 - test data
        for hour, engine in zip(hours, engines, strict=True):
            if hour != hours[-1] or not rests:
                for name in TABLES:
                    count = self.rows if name != "r" else 2
                    lines = landing_rows(chance, name, hour, count, self.extreme)
                    if self.landed is not None:
                        lines = self.landed.get((hour, name), "")
                    if lines:
                        self.project.land(f"{hour:03d}.json", lines, landing=f"landing/{name}")
            began = time.monotonic()
            with self._served_by(engine):
                report = self.project.update(hour)
            self.outcome.seconds[f"update {hour}"] += round(time.monotonic() - began, 1)
            began = time.monotonic()
            self._compare(hour, engine, dict(report.failed_views))
            self.outcome.seconds["compare"] += round(time.monotonic() - began, 1)
        return self.outcome

    @contextmanager
    def _served_by(self, engine: str) -> Iterator[None]:
        """Let the driver look few rows up, or let Spark read everything; count what the driver did."""
        served = self.outcome.served
        with pytest.MonkeyPatch.context() as patch:
            if engine == SPARK:
                patch.setattr(lookup, "LARGE", _NOTHING)
                for module in (joins, cache, distinct):
                    patch.setattr(module, "FEW", 0)
            for module, name in ((appended, "local_results"), (scan, "looked_up")):
                _counted(patch, module, name, served, engine)
            yield

    def _compare(self, hour: int, engine: str, failed: Mapping[str, str]) -> None:
        session = table_session(self.spark, INTERPRETED)
        with Warehouse.open(self.project.directory, compared=False) as warehouse:
            self.refusals = judged_views(warehouse.catalog)[0].refused
            second = duckdb.connect(config={"threads": 1})
            second.execute("SET TimeZone = 'UTC'")
            for name in TABLES:
                self._show(session, second, name, warehouse.scan(name).arrow(), hour)
            for name, sql in self.queries.items():
                spark_answer = _asked(session, sql)
                reason = failed.get(name)
                if isinstance(spark_answer, str):
                    self.outcome.failing["the query"] += 1
                    if reason is None:
                        self.outcome.failing["only the query"] += 1
                    continue
                if reason is not None:
                    if name not in self.outcome.refused:
                        self.outcome.refused[name] = reason
                        if name not in self.refusals:
                            self.outcome.found.append(Difference(name, sql, hour, engine, f"failed: {reason}"))
                    continue
                columns, expected = spark_answer
                served_rows = answer(warehouse.scan(name).arrow().to_pylist(), columns)
                more, less = differences(served_rows, expected)
                self.outcome.compared += 1
                self.outcome.judges["both" if _agrees(second, sql, columns, expected) else "Spark alone"] += 1
                self.outcome.not_empty += bool(expected)
                if more or less:
                    self.outcome.found.append(Difference(name, sql, hour, engine, "differs", more, less))

    @staticmethod
    def _show(session: SparkSession, second: duckdb.DuckDBPyConnection, name: str, rows: pa.Table, hour: int) -> None:
        """Temporary views of the live rows, and of those inside each window; a second judge has the same rows."""
        second.register(name, rows)
        frame = session.createDataFrame(rows).cache()
        frame.createOrReplaceTempView(name)
        columns = ", ".join(f"`{column}`" for column in frame.columns)
        for window in WINDOWS:
            if window.table != name:
                continue
            if window.minutes is not None:
                end = at(hour) - window.minutes * 60_000_000
                shown = frame.where(f"unix_micros(b) > {end}L")
            else:
                by = f"PARTITION BY {window.of} " if window.of else ""
                ranked = frame.selectExpr("*", f"row_number() OVER ({by}ORDER BY b DESC) AS rank")
                shown = ranked.where(f"rank <= {window.newest}").selectExpr(*columns.split(", "))
            shown.createOrReplaceTempView(window.view)
            second.register(window.view, shown.toArrow())


def _asked(session: SparkSession, sql: str) -> tuple[list[str], Answer] | str:
    """Spark's answer to a query, or why it has none."""
    try:
        rows = session.sql(spark_text(sql))
        columns = rows.columns
        return columns, answer(rows.toArrow().to_pylist(), columns)
    except Exception as error:  # noqa: BLE001 - whatever Spark says of a query
        return str(error)


def _agrees(second: duckdb.DuckDBPyConnection, sql: str, columns: Sequence[str], expected: Answer) -> bool:
    """Whether DuckDB gives Spark's answer to a query, as sqlglot translates it: then two engines say that it is right."""
    try:
        text = sqlglot.transpile(spark_text(sql), read="spark", write="duckdb")[0]
        rows = [dict(zip(columns, row, strict=True)) for row in second.execute(text).fetchall()]
        return differences(answer(rows, columns), expected) == ([], [])
    except (duckdb.Error, sqlglot.errors.SqlglotError, ValueError):
        return False


def _counted(patch: pytest.MonkeyPatch, module: Any, name: str, served: Counter[tuple[str, str]], engine: str) -> None:  # noqa: ANN401
    own = getattr(module, name)

    def counted(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - as what it stands for
        result = own(*arguments, **options)
        served[engine, name if result is not None else f"not {name}"] += 1
        return result

    patch.setattr(module, name, counted)
