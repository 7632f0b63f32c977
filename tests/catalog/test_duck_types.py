"""The types that DuckDB finds in files, in Spark's words."""

from __future__ import annotations

import pytest

from warehouse.catalog.duck_types import spark_type
from warehouse.catalog.spelling import FaultError


@pytest.mark.parametrize(
    ("duck", "spark"),
    [
        ("UBIGINT", "decimal(20,0)"),
        ("DECIMAL(9,2)", "decimal(9,2)"),
        ("TIMESTAMP WITH TIME ZONE[]", "array<timestamp>"),
        ("INTEGER[3]", "array<int>"),
        ("STRUCT(a STRUCT(b DECIMAL(4,1)[]), c_ VARCHAR)[][]", "array<array<struct<a:struct<b:array<decimal(4,1)>>,c_:string>>>"),
        ('STRUCT("(,)" INTEGER)[]', None),
        ('STRUCT("a ""b" INTEGER)', None),
        ("MAP(VARCHAR, INTEGER)", None),
        ("TIMESTAMP_NS", "timestamp"),
        ("STRUCT(a TIME)", None),
    ],
)
def test_types_of_parquet(duck: str, spark: str | None) -> None:
    """A column has the type that it has, or the fault is named; names with commas and brackets are parts of names."""
    if spark is not None:
        assert spark_type(duck, text=False) == spark
        return
    with pytest.raises(FaultError):
        spark_type(duck, text=False)


@pytest.mark.parametrize("duck", ["TIME", "UUID", "MAP(VARCHAR, INTEGER)", "ENUM('a', 'b')", '"NULL"', "INTERVAL"])
def test_types_of_text(duck: str) -> None:
    """Any text can be read as a string."""
    assert spark_type(duck, text=True) == "string"
    assert spark_type(f"{duck}[]", text=True) == "array<string>"
