"""The check of the order of rows, compared with sorting them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from warehouse.checking.order import first_group_out_of_order, first_row_out_of_order

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
keys = st.one_of(st.none(), st.sampled_from(["", "a", "b", "\u00e9", "\uffff", "\U0001f600"]))
rows_of_two = st.lists(st.tuples(keys, st.one_of(st.none(), st.booleans()), st.integers(0, 3)), max_size=9)


def comparable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a row as a sort key: nulls first, texts by their bytes."""
    return tuple((value is not None, value.encode() if isinstance(value, str) else (value or 0)) for value in row)


def written(directory: Path, rows: list[tuple[Any, ...]], size: int) -> Path:
    """Write rows of key, part and hours to a file of small row groups."""
    path = directory / "rows.parquet"
    table = pa.table({
        "k": pa.array([row[0] for row in rows], pa.string()),
        "p": pa.array([row[1] for row in rows], pa.bool_()),
        "_exp": pa.array([BEGIN + timedelta(hours=row[2]) for row in rows], pa.timestamp("us", "UTC")),
    })  # fmt: skip
    pq.write_table(table, path, row_group_size=size)
    return path


@settings(max_examples=150, deadline=None, derandomize=True)
@given(rows=rows_of_two, size=st.integers(1, 4), ordered=st.booleans())
@example(rows=[("a", None, 0), (None, None, 0)], size=1, ordered=False)
@example(rows=[("a", True, 1), ("a", False, 2)], size=2, ordered=False)
@example(rows=[("a", True, 2), ("a", True, 1)], size=1, ordered=False)
def test_the_first_row_out_of_order(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]], size: int, *, ordered: bool
) -> None:
    """It is the first row that is less than the row above, also across row groups; bounds of groups never accuse wrongly."""
    rows = sorted(rows, key=comparable) if ordered else rows
    path = written(tmp_path_factory.getbasetemp(), rows, size)
    expected = next((n for n in range(1, len(rows)) if comparable(rows[n]) < comparable(rows[n - 1])), None)
    assert first_row_out_of_order(path, ("k", "p", "_exp")) == expected
    group = first_group_out_of_order(pq.read_metadata(path), "k")
    assert group is None or expected is not None


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["a", "c", "b", "d"], pa.string()),
        ([1, 3, 2, 4], pa.int64()),
        ([Decimal(1), Decimal(3), Decimal(2), Decimal(4)], pa.decimal128(9, 2)),
        ([BEGIN.date() + timedelta(days=n) for n in (1, 3, 2, 4)], pa.date32()),
        ([1, 3, None, 4], pa.int32()),
    ],
)
def test_row_groups_out_of_order(tmp_path: Path, values: list[Any], kind: pa.DataType) -> None:
    """The bounds of the groups show it, or a null after a value."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"k": pa.array(values, kind)}), path, row_group_size=1)
    assert first_group_out_of_order(pq.read_metadata(path), "k") == 2
    assert first_row_out_of_order(path, ("k",)) == 2
    assert first_group_out_of_order(pq.read_metadata(path), "none") is None
