"""Views beside Spark's own answer to their text: names, and values that rules other than Spark's would lose.

::

    hour     0.....1.....2
    update         |     |
    rows     p q r   q nulls; p's first row ends

The default run has a view of each kind; ``-m long`` has all.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.operations.projects import Project, stream, text
from warehouse import Warehouse
from warehouse.storage import lookup
from warehouse.storage.session import INTERPRETED, table_session

from .named_cases import CASES, STRUCTURES, TABLES, VALUES, Case
from .warehouses import view

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

QUICK = (
    "field in a sum", "field of a recommended aggregate", "field in NOT EXISTS", "order by an expression of a group's alias",
    "having an alias of an input's name", "the first by row_number", "full, nothing", "beside EXISTS", "outer",
    "zeros inside others", "zeros of EXCEPT ALL", "average of extremes", "sum of extremes", "sum of large decimals",
    "int and text in a column", "tumbling windows", "fields of aggregates", "zipped arrays", "fields of variables",
    "windows that are not used", "windows in QUALIFY over groups", "fields as written",
)  # fmt: skip
EVERY = {**CASES, **VALUES, **STRUCTURES}
_BIG = 9 * 10**37
_LEAST = -(2**63)


def _a(key: str, number: int, f: float, x: int, large: int, z: int, *, begins: float, ends: float) -> dict[str, Any]:
    times = {"b": text(begins), "e": text(ends)}
    return {"k": key, "n": number, "f": f, "st": {"x": x, "y": "u"}, "l": large, "z": z, "ar": [number + 7], **times}


def _c(key: str | None, number: int | None, begins: float, ends: float) -> dict[str, Any]:
    return {"k": key, "q": number, "b": text(begins), "e": text(ends)}


LANDED = {
    1: {
        "a": [
            _a("p", 100, 1.5, 1, _LEAST, _BIG, begins=0.5, ends=1.5),
            _a("q", 200, 2.5, 2, 5, 2, begins=0.5, ends=5),
            _a("r", 3, -0.0, 3, 5, 2, begins=0.5, ends=5),
        ],
        "c": [_c("p", 100, 0.5, 5), _c("q", 2, 0.5, 5)],
    },
    2: {
        "a": [_a("q", 1, 0.0, 3, 2**63 - 10, _BIG, begins=1.5, ends=5), _a("s", 3, -0.0, 100, -6, 3, begins=1.5, ends=5)],
        "c": [_c("Q", 3, 1.5, 5), _c(None, None, 1.5, 5)],
    },
}
"""When p's row ends, its large numbers are taken away: the least integer has no opposite, and two large decimals no sum."""


def _counted(rows: list[dict[str, Any]]) -> Counter[tuple[str, ...]]:
    own = [{name: row[name] for name in sorted(row) if not name.startswith("_")} for row in rows]
    return Counter(tuple(f"{name}={value!r}" for name, value in row.items()) for row in own)


def _compared(directory: Path, spark: SparkSession, cases: dict[str, Case]) -> None:
    names = {f"v{number}": name for number, name in enumerate(cases)}
    streams = {
        name: stream(
            format="json", landing=f"landing/{name}", max_lifetime="6h", columns={**kinds, "b": "timestamp", "e": "timestamp"}
        )
        for name, kinds in TABLES.items()
    }
    views = {own: view(cases[name].sql, cases[name].key) for own, name in names.items()}
    project = Project(directory / "project", spark, streams, views=views)
    different, shown = [], set[str]()
    for hour, landed in LANDED.items():
        for name, rows in landed.items():
            project.land(f"{hour}.json", "".join(json.dumps(row) + "\n" for row in rows), landing=f"landing/{name}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lookup, "LARGE", lookup.LARGE if hour == 1 else -1)
            report = project.update(hour)
        assert report.failed_views == (), {names[own]: why for own, why in report.failed_views}
        session = table_session(spark, INTERPRETED)
        with Warehouse.open(project.directory) as warehouse:
            for name, kinds in TABLES.items():
                rows = warehouse.scan(name).arrow().select([*kinds, "b"])
                session.createDataFrame(rows).createOrReplaceTempView(name)
            for own, name in names.items():
                truth = _counted(session.sql(cases[name].sql).toArrow().to_pylist())
                served = _counted(warehouse.scan(own).arrow().to_pylist())
                shown |= {name} if truth else set()
                if served != truth:
                    different.append(f"at {hour}, {name}: {served - truth} where Spark has {truth - served}")
    assert not different, "\n".join(different)
    assert {name for name in cases if "nothing" not in name} <= shown, "a query that is empty throughout shows nothing"


def test_views_of_each_kind_are_what_spark_answers(tmp_path: Path, spark: SparkSession) -> None:
    """At each window time: the same rows, zeros with their signs, with rows looked up and with whole tables read."""
    _compared(tmp_path, spark, {name: EVERY[name] for name in QUICK})


@pytest.mark.long
def test_all_views_are_what_spark_answers(tmp_path: Path, spark: SparkSession) -> None:
    """The same for every case."""
    _compared(tmp_path, spark, EVERY)
