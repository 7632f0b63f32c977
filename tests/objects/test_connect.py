"""Each snippet that ``connect`` prints for a root in a store runs unchanged, and reads the rows of a scan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.operations.projects import csv, row
from tests.publishing.reading import comparable
from warehouse.errors import UsageError
from warehouse.project import Warehouse

if TYPE_CHECKING:
    from tests.objects.server import StoreProject

VIEWS: dict[str, dict[str, object]] = {"counts": {"sql": "SELECT k, count(*) AS n FROM a GROUP BY k", "search_key": "k"}}
HOURS = (1, 2, 3)


def executed(text: str) -> Any:  # noqa: ANN401 - what a snippet calls `rows`
    """Execute a snippet in Python and return its rows."""
    names: dict[str, Any] = {}
    exec(text, names)  # noqa: S102 - that it can be executed is the point
    return names["rows"]


def test_snippets_read_the_live_rows_of_the_newest_epoch(project: StoreProject) -> None:
    """In every slot of an expiry block, for streams and views, also when only the time has changed for a table.

    Spark, which takes seconds for it, reads in the last one.
    """
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    project.views = VIEWS
    project.change(layout={"expiry_block": 4})
    project.land("1.csv", csv(row("x", 0.1, 1.1), row("y", 0.2, 2.000_001), row("z", 0.2, 2), row("w", 0.3, 4)))
    for hour in HOURS:
        project.update(hour, allow_dead=True)
        with Warehouse.open(project.directory) as house:
            for table in ("a", "counts"):
                expected = comparable(house.scan(table).all())
                frame = executed(house.connect("pandas", table))
                assert isinstance(frame, pandas.DataFrame)
                assert len(frame) == len(expected) > 0
                many = executed(house.connect("polars", table))
                assert isinstance(many, polars.DataFrame)
                assert comparable(many.rows()) == expected
                assert list(frame.columns) == many.columns
    with Warehouse.open(project.directory) as house:
        for table in ("a", "counts"):
            spark = executed(house.connect("spark", table))
            assert comparable([tuple(record) for record in spark.collect()]) == comparable(house.scan(table).all())
        for tool in ("duckdb", "dbt", "metabase"):
            with pytest.raises(UsageError, match="connect pandas a"):
                house.connect(tool, "a")
