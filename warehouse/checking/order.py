"""Checks that the rows of a data file are in the order of runs: by search key, then ``_exp``, nulls first.

Answers do not depend on the order, only speed does: it makes the bounds of row groups narrow, so that a probe decodes few of
them. There are two checks: by the bounds of row groups in the footer, and by every row.

A column of a key may have a type that this check cannot order (the spare rows of a DISTINCT have keys of any type). Then rows
are compared by the columns before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from warehouse.epochs.records import TableState

__all__ = ["first_group_out_of_order", "first_row_out_of_order", "order_columns"]

_UNORDERED = ("array", "struct", "binary", "float", "double")


def order_columns(state: TableState) -> tuple[str, ...]:
    """Return the columns by which a table's rows can be compared, in order."""
    types = {column.name: column.type for column in state.declaration.columns}
    names: list[str] = []
    for name in state.declaration.search_key:
        if types[name].startswith(_UNORDERED):
            return tuple(names)
        names.append(name)
    return (*names, "_exp")


def first_group_out_of_order(footer: Any, column: str) -> int | None:  # noqa: ANN401 - pyarrow has no types
    """Return the first row group, from 0, whose least value is below the greatest of the previous group; None if there is none.

    The values of ``column`` are compared. A group without bounds is ignored.
    """
    position = next((number for number in range(footer.num_columns) if footer.schema.column(number).path == column), None)
    if position is None:
        return None
    largest: Any = None
    for number in range(footer.num_row_groups):
        statistics = footer.row_group(number).column(position).statistics
        if statistics is None:
            continue
        if largest is not None and statistics.has_null_count and statistics.null_count:
            return number
        if statistics.has_min_max:
            if largest is not None and statistics.min < largest:
                return number
            largest = statistics.max
    return None


def first_row_out_of_order(path: Path, columns: Sequence[str]) -> int | None:
    """Return the position, from 0, of the first row that is less than the row above it; None if the file is sorted."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - it takes time to import

    position, last = 0, None
    with pq.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            rows = file.read_row_group(number, columns=list(columns)).select(list(columns)).combine_chunks()
            if not rows.num_rows:
                continue
            if last is not None and _first_out_of_order(_concatenated(last, rows.slice(0, 1))) is not None:
                return position
            row = _first_out_of_order(rows)
            if row is not None:
                return position + row
            last = rows.slice(rows.num_rows - 1)
            position += rows.num_rows
    return None


def _concatenated(first: Any, second: Any) -> Any:  # noqa: ANN401 - tables of pyarrow
    import pyarrow as pa  # noqa: PLC0415 - as above

    return pa.concat_tables([first, second]).combine_chunks()


def _first_out_of_order(rows: Any) -> int | None:  # noqa: ANN401 - a table of pyarrow
    """Return the first row that is less than the row above it, compared column by column; None if there is none."""
    import pyarrow as pa  # noqa: PLC0415 - as above
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    if rows.num_rows <= 1:
        return None
    below = pa.array([False] * (rows.num_rows - 1))
    equal = pc.invert(below)
    for values in rows.columns:
        column = values.cast("int8") if pa.types.is_boolean(values.type) else values
        above, current = column.slice(0, rows.num_rows - 1), column.slice(1)
        nulls = (pc.is_null(above), pc.is_null(current))
        is_less = pc.or_(pc.fill_null(pc.less(current, above), False), pc.and_(nulls[1], pc.invert(nulls[0])))  # noqa: FBT003 - a value
        is_equal = pc.or_(pc.fill_null(pc.equal(current, above), False), pc.and_(*nulls))  # noqa: FBT003 - a value
        below = pc.or_(below, pc.and_(equal, is_less))
        equal = pc.and_(equal, is_equal)
    index = pc.index(below, True).as_py()
    return None if index < 0 else index + 1
