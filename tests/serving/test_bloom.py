"""Bloom filters read from files that DuckDB wrote."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from warehouse.serving.bloom import Filters, probes_of
from warehouse.serving.keys import KeyColumn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(
    ("kind", "expression", "absent"),
    [
        ("VARCHAR", "repeat('k', (i % 50)::INT) || i", lambda value: value + "-"),
        ("INTEGER", "i::INTEGER - 500", lambda value: value + 50_000),
        ("SMALLINT", "i::SMALLINT", lambda value: value + 20_000),
        ("BIGINT", "i * 1000000007", lambda value: value + 1),
        ("DATE", "DATE '1960-01-01' + i::INTEGER", lambda value: value + timedelta(9000)),
        ("DECIMAL(9,2)", "(i / 4)::DECIMAL(9,2)", lambda value: value + Decimal("0.13")),
        ("DECIMAL(18,3)", "(i / 4)::DECIMAL(18,3)", lambda value: value + Decimal("0.13")),
    ],
)
def test_a_filter_never_denies_a_value_and_mostly_denies_others(
    tmp_path: Path, kind: str, expression: str, absent: Callable[[Any], Any]
) -> None:
    """The filter has every stored value, and hardly any other value."""
    path = str(tmp_path / "f.parquet")
    with duckdb.connect() as connection:
        query = f"SELECT {expression} AS k FROM range(4000) t(i)"
        options = "FORMAT parquet, ROW_GROUP_SIZE 2048, DICTIONARY_SIZE_LIMIT 100000"
        connection.execute(f"COPY ({query}) TO '{path}' ({options})")
        values = [row[0] for row in connection.execute(query).fetchall()]
        filters = Filters()
        filters.load(connection, [path], ["k"])
    assert filters.bytes > 0
    columns = [KeyColumn("k", kind)]
    assert all(filters.may_hold(path, [probes_of((value,), columns)]) for value in values)
    false_positives = sum(filters.may_hold(path, [probes_of((absent(value),), columns)]) for value in values)
    assert false_positives < len(values) / 20


def test_a_file_without_filters_may_hold_anything(tmp_path: Path) -> None:
    """No filter, another column's filter, an unknown file, or a type that is not looked up deny nothing."""
    path = str(tmp_path / "f.parquet")
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT md5(i::VARCHAR) AS k, 1 AS n FROM range(9) t(i)) TO '{path}' (FORMAT parquet)"
        )
        connection.execute("SET lock_configuration = true")
        filters = Filters()
        filters.load(connection, [path], ["k"])
    probe = [probes_of(("absent",), [KeyColumn("k", "VARCHAR")])]
    assert filters.may_hold("elsewhere", probe)
    assert filters.may_hold(path, [probes_of((1,), [KeyColumn("other", "INTEGER")])])
    assert (
        probes_of(
            (None, True, 5),
            [KeyColumn("a", "DATE"), KeyColumn("b", "BOOLEAN"), KeyColumn("c", "TIMESTAMP WITH TIME ZONE")],
        )
        == []
    )
    assert not filters.may_hold(path, [])
