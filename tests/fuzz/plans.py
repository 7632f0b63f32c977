"""The plans of many random views, each written as one query and compared with its text over the same rows: no table is kept.

What is shown so is what becomes of a query's words: how names are resolved, which operators it is made of, in which order they
stand. How tables are kept up to date is not: that is what :mod:`.house` shows, for far fewer queries in the same time.
Windows of ours are left out on both sides.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.errors import PySparkException

from warehouse.catalog.load import load_catalog
from warehouse.storage.session import INTERPRETED, table_session
from warehouse.time import parse_instant
from warehouse.views.language.window_calls import without_windows
from warehouse.views.plans import judged_views
from warehouse.views.verification.plan_query import outer_lookups, query_of
from warehouse.views.verification.plan_references import UnknownPlanError, references
from warehouse.views.verification.references import agree, differing

from .answers import Answer, answer, differences
from .grammar import ARRAY, BOOLEAN, DECIMAL, DOUBLE, INT, LONG, STRING, STRUCT, TABLES
from .house import Difference
from .rows import landing_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.views.algebra import Node

    from .house import House

__all__ = ["Compared", "compare_plans"]

_NUMBER_OF_ROWS = 9
_ARROW: dict[str, pa.DataType] = {
    STRING: pa.string(), INT: pa.int32(), LONG: pa.int64(), DOUBLE: pa.float64(), DECIMAL: pa.decimal128(10, 2),
    BOOLEAN: pa.bool_(), ARRAY: pa.list_(pa.int32()), STRUCT: pa.struct({"x": pa.int32(), "y": pa.string()}),
}  # fmt: skip


@dataclass
class Compared:
    """What a run saw.

    ``same`` answers, of which some are ``not_empty``; queries ``failing`` in Spark, and those that the warehouse has ``refused``;
    those whose names are ``untold``, because Spark's plan has a node that is not known; and the differences ``found``.
    """

    same: int = 0
    not_empty: int = 0
    failing: int = 0
    untold: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    found: list[Difference] = field(default_factory=list)

    def add(self, other: Compared) -> None:
        """Count what another run saw, too."""
        self.same += other.same
        self.not_empty += other.not_empty
        self.failing += other.failing
        self.untold += other.untold
        self.refused += other.refused
        self.found += other.found


def compare_plans(house: House) -> Compared:
    """Compile the views of a house, none of which is built, and compare each plan with its text over some rows."""
    plans, problems = judged_views(load_catalog(house.project.directory))
    seen = Compared(refused=Counter(re.sub(r" \(line \d+, column \d+\)", "", problem.found) for problem in problems))
    session = table_session(house.spark, INTERPRETED)
    names = _show_rows(session, random.Random(house.seed))  # noqa: S311 - test data
    for plan in plans:
        _compare(session, plan.name, house.queries[plan.name], plan.nodes, names, seen)
    return seen


def _compare(
    session: SparkSession, name: str, sql: str, nodes: Sequence[Node], names: Mapping[str, tuple[str, ...]], seen: Compared
) -> None:
    try:
        query_frame = session.sql(without_windows(sql))
        query_rows = _answer(query_frame)
    except PySparkException:
        seen.failing += 1
        return

    def differs(problem: str, more: Answer | None = None, less: Answer | None = None) -> None:
        seen.found.append(Difference(name, sql, 0, "plan", problem, more or [], less or []))

    try:
        plan_frame = session.sql(query_of(nodes, names))
        plan_rows = _answer(plan_frame)
    except PySparkException as error:
        differs(f"failed: {error}")
        return
    more, less = differences(plan_rows, query_rows)
    if more or less:
        differs("differs", more, less)
        return
    seen.same += 1
    seen.not_empty += bool(query_rows)
    try:
        plan_references, query_references = (
            references(_analysed(frame), outer_lookups(nodes)) for frame in (plan_frame, query_frame)
        )
    except UnknownPlanError:
        seen.untold += 1
        return
    if not agree(plan_references, query_references):
        differs(differing(plan_references, query_references))


def _answer(rows: DataFrame) -> Answer:
    names = [f"c{number}" for number in range(len(rows.columns))]
    return answer(rows.toDF(*names).toArrow().to_pylist(), names)


def _analysed(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().analyzed().toJSON())


def _show_rows(session: SparkSession, chance: random.Random) -> dict[str, tuple[str, ...]]:
    """Give the session rows of each table under its name; return the columns of each."""
    names = {}
    for table, kinds in TABLES.items():
        lines = landing_rows(chance, table, 1, _NUMBER_OF_ROWS, 0.03).splitlines()
        records = [msgspec.json.decode(line) for line in lines]
        if table == "r":  # one version of each key
            records = list({row["k"]: row for row in records}.values())
        columns = {name: pa.array([_value(row[name], kind) for row in records], _ARROW[kind]) for name, kind in kinds.items()}
        for name in ("b", "e") if table == "a" else ("b",):
            instants = [parse_instant(row[name]) for row in records]
            columns[name] = pa.array(instants, pa.timestamp("us", "UTC"))
        session.createDataFrame(pa.table(columns)).createOrReplaceTempView(table)
        names[table] = tuple(columns)
    return names


def _value(value: Any, kind: str) -> Any:  # noqa: ANN401 - a value of JSON
    if value is None:
        return None
    match kind:
        case "double":
            return float(value)
        case "decimal(10,2)":
            return Decimal(str(value))
        case _:
            return value
