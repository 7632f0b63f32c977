"""The rows that arrive before each update of a soak, drawn from the slot's number alone."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tests.operations.projects import ANCHOR, Project, at, stream
from warehouse.testing import Row, Rules
from warehouse.time import HOUR, MINUTE, format_instant

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["RULES", "STREAMS", "VIEWS", "arrivals", "land", "soaked"]

RULES = Rules(anchor=ANCHOR, interval=HOUR, max_lifetime=6 * HOUR)
_COLUMNS = {"k": "string", "v": "bigint", "b": "timestamp", "e": "timestamp"}
STREAMS = {"rows": stream(landing="landing/rows", columns=_COLUMNS, max_lifetime="6h")}
VIEWS = {"per_key": "SELECT k, count(*) AS n, max(v) AS top FROM rows GROUP BY k"}
_ROWS = 60


def soaked(directory: Path, spark: SparkSession | None = None, *, viewed: bool = True, archived: bool = False) -> Project:
    """Return a project with a stream and a view, of which epochs stay readable for three hours; perhaps with an archive.

    Each has a live table too.
    """
    views = {name: {"sql": sql, "search_key": "k"} for name, sql in VIEWS.items() if viewed}
    streams = {name: {**keys, "on_expiry": "archive" if archived else "drop"} for name, keys in STREAMS.items()}
    return Project(directory, spark, streams, {"retain": "3h", "publish": "delta"}, views=views)


def arrivals(slot: int, seed: int) -> list[Row]:
    """Return the rows that land before the update to a slot: late, deferred, dead and invalid ones, doubles and null keys."""
    chance = random.Random(f"{seed}/{slot}")  # noqa: S311 - rows of a test
    rows = []
    for number in range(_ROWS):
        ts = at(slot) - chance.randrange(-2 * HOUR, 3 * HOUR)
        life = chance.choice((0, MINUTE, HOUR, 3 * HOUR, 6 * HOUR, chance.randrange(8 * HOUR), -MINUTE))
        key = chance.choice((None, "", "naïve", *(f"k{draw}" for draw in range(20))))
        rows.append(Row(ts, ts + life, key, 1000 * slot + number))
    return [*rows, rows[0], rows[0], Row(None, at(slot + 1), "timeless", 1000 * slot)]


def land(project: Project, slot: int, rows: list[Row]) -> None:
    """Put rows into one file of each stream's landing directory, unless it is there."""
    lines = ["k,v,b,e", *(",".join(map(_text, (row.key, row.value, row.ts, row.exp))) for row in rows)]
    for name in STREAMS:
        if not (project.directory / "landing" / name / f"{slot:05}.csv").exists():
            project.land(f"{slot:05}.csv", "\n".join(lines) + "\n", landing=f"landing/{name}")


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, int) and value > ANCHOR // 2:
        return format_instant(value)
    return '""' if value == "" else str(value)
