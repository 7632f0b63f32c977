"""A table's files with their statistics as its log has them, where deltalake leaves statistics out.

deltalake (*measured*: 1.6.6) reads no statistics of the columns that follow a structure, if ``delta.dataSkippingStatsColumns``
lists other columns only. They are in the log, and without them no file of such a table could be left out.
"""

from __future__ import annotations

import json
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from arro3.core import Table

    from warehouse.storage.replay import LogState

__all__ = ["logged_actions"]

_DIGITS = Context(prec=76)
_BOUNDS = {"minValues": "min", "maxValues": "max"}
_TOO_MANY = 1 << 63


def logged_actions(state: LogState, schema: pa.Schema, partitions: Sequence[str]) -> Table:
    """Return the ``add`` actions of a state as ``DeltaTable.get_add_actions(flatten=True)`` does: a column per statistic.

    Parameters
    ----------
    state
        The state of the table's log at a version.
    schema
        The table's columns.
    partitions
        Names of the partition columns.

    """
    import pyarrow as pa  # noqa: PLC0415 - slow to import, and only some tables need it
    from arro3.core import Table  # noqa: PLC0415 - same

    adds = list(state.files.values())
    stats: list[Mapping[str, Any]] = [json.loads(add.get("stats") or "{}") for add in adds]
    columns: dict[str, pa.Array] = {
        "path": pa.array([add["path"] for add in adds], pa.string()),
        "size_bytes": pa.array([add["size"] for add in adds], pa.int64()),
        "num_records": pa.array([_count(statistics.get("numRecords")) for statistics in stats], pa.int64()),
    }
    for name in partitions:
        values = pa.array([add["partitionValues"].get(name) for add in adds], pa.string())
        columns[f"partition.{name}"] = values.cast(schema.field(name).type)
    for field in schema:
        if pa.types.is_nested(field.type) or field.name in partitions:
            continue
        nulls = [_count((statistics.get("nullCount") or {}).get(field.name)) for statistics in stats]
        columns[f"null_count.{field.name}"] = pa.array(nulls, pa.int64())
        for key, prefix in _BOUNDS.items():
            bounds = [(statistics.get(key) or {}).get(field.name) for statistics in stats]
            typed = _typed(bounds, field.type)
            if typed is not None:
                columns[f"{prefix}.{field.name}"] = typed
    return Table.from_arrow(pa.table(columns))


def _count(value: object) -> int | None:
    """A number of rows; None if the log has another value there."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _TOO_MANY else None


def _typed(values: Sequence[Any], kind: pa.DataType) -> pa.Array | None:
    """Return bounds in a comparable form; None if one does not have the column's type."""
    import pyarrow as pa  # noqa: PLC0415 - slow to import

    try:
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            return pa.array(values, pa.string()).cast(kind)
        if pa.types.is_decimal(kind):
            unit = Decimal(1).scaleb(-kind.scale)
            exact = [None if value is None else Decimal(str(value)).quantize(unit, context=_DIGITS) for value in values]
            return pa.array(exact, kind)
        return pa.array(values, kind)
    except (pa.ArrowException, ArithmeticError, TypeError, ValueError):
        return None
