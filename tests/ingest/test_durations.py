"""Durations in text: Spark, which loads them, and DuckDB, by which ``init --from`` proposes, read the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.durations import seconds_in_duckdb
from warehouse.ingest.columns import Input
from warehouse.ingest.conversion import from_text
from warehouse.storage.arrow_types import local_frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MEANT = {
    "5m": 300, "1h30m": 5400, "1h 30m": 5400, "45s": 45, "500ms": 0.5, "2w": 1_209_600, "5 min": 300, "30 Minutes": 1800,
    "2 hours, 5 minutes": 7500, "1 day, 02:03:04": 93_784, "1 days 02:03:04.5": 93_784.5, "1.02:03:04": 93_784, "PT5M": 300,
    "P1DT2H": 93_600, "pt0.5s": 0.5, "P2W": 1_209_600, "00:05:00": 300, "30:00:00": 108_000, " 300 ": 300, "7.25": 7.25, "0": 0,
    "05:00": None, "P1M": None, "P1Y": None, "PT": None, "P": None, "m": None, "5x": None, "-5m": None, "1h5": None,
    "2ns": 2e-9, "5m 5m": None, "00:61:00": None, "999999999999h": None,
}  # fmt: skip


def test_spark_and_duckdb_read_the_same(spark: SparkSession) -> None:
    """What is no duration fails; a column of whole numbers takes no part of a second."""
    rows = local_frame(spark, [(text,) for text in [*MEANT, ""]], "text string")
    columns = []
    for kind in ("double", "bigint"):
        value, failed = from_text(F.col("text"), Input("ttl", "ttl", kind, ("duration",)), {})
        assert failed is not None
        columns += [value.alias(kind), failed.alias(f"{kind}_failed")]
    results = {row.text: row for row in rows.select("text", *columns).collect()}
    connection = duckdb.connect()
    for text, meant in MEANT.items():
        ((by_duckdb,),) = connection.execute(f"SELECT {seconds_in_duckdb('$text')}", {"text": text}).fetchall()
        assert (results[text].double, results[text].double_failed, by_duckdb) == (meant, meant is None, meant), text
        whole = meant if meant is not None and meant == int(meant) else None
        assert (results[text].bigint, results[text].bigint_failed) == (whole, whole is None), text
    assert (results[""].double, results[""].double_failed) == (None, False)
