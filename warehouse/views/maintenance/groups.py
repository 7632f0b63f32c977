"""GROUP BY: only groups that a row entered or left are touched (update-patterns sheet, 2.3; DESIGN 9).

Counts and sums of integers and decimals are subtractable, so they are adjusted by added and removed rows, from state columns
(``_state_...``) of each group's row. If an aggregate is not subtractable, its changed groups are recomputed.

Added and removed rows are summed in any order, so an intermediate sum can be larger than the sum before or after. It is computed
in a type that is large enough: a decimal of 38 digits for integers, and ten more digits for decimals. Decimals of more than 27
digits have no such type, so their groups are recomputed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.catalog.identifiers import quoted
from warehouse.views.maintenance.keys import grouped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.views.algebra import AggregateCall, Group
    from warehouse.views.maintenance.driver_rows import Frame

__all__ = ["COUNT", "adjusted", "is_adjustable", "recomputed", "state_columns"]

COUNT = "_state_rows"
"""The state column with the number of live rows of a group."""
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_WIDEST_SUMMED = 27
_WIDE_SUM = "decimal(38,0)"
"""The type in which integers are added and subtracted."""


def is_adjustable(group: Group, types: Mapping[str, str]) -> bool:
    """Whether all aggregates of a group can be adjusted; ``types`` are the Spark SQL types of the input's columns."""
    return all(_adjustable(aggregate, types) for aggregate in group.aggregates)


def _adjustable(aggregate: AggregateCall, types: Mapping[str, str]) -> bool:
    if aggregate.distinct:
        return False
    if aggregate.function == "count":
        return True
    kind = types.get(aggregate.argument or "", "")
    if aggregate.function == "avg":
        return kind in _WHOLE
    return aggregate.function == "sum" and (kind in _WHOLE or _digits(kind) in range(1, _WIDEST_SUMMED + 1))


def _digits(kind: str) -> int:
    """Return the precision of a decimal, 0 for other types."""
    return int(kind.removeprefix("decimal(").split(",")[0]) if kind.startswith("decimal(") else 0


def state_columns(group: Group) -> list[str]:
    """Return the state columns of an adjustable group: its rows, and for each argument its non-null values and their sum."""
    names = [COUNT]
    for number, aggregate in enumerate(group.aggregates):
        if aggregate.argument is not None:
            names.append(f"_state_{number}_count")
            if aggregate.function != "count":
                names.append(f"_state_{number}_sum")
    return names


def adjusted(group: Group, changes: Frame, before: Frame | None, types: Mapping[str, str]) -> Frame:
    """Return the changed groups' new rows, with their state columns.

    Parameters
    ----------
    group
        An adjustable group.
    changes
        Inserted and removed rows of the input, with ``_weight``.
    before
        The changed groups' rows of the last epoch; None on a first build.
    types
        The Spark SQL types of the input's columns.

    """
    keys = [quoted(name) for name in group.keys]
    states = state_columns(group)
    delta = changes.selectExpr(*keys, *_weighed(group, types))
    rows = delta if before is None else delta.unionByName(before.selectExpr(*keys, *states))
    summed = grouped(rows, group.keys, [(f"coalesce(sum({name}), 0)", name) for name in states])
    alive = summed.where(f"{COUNT} > 0") if keys else summed
    values = [
        f"{_value(number, aggregate, types)} AS {quoted(aggregate.name)}"
        for number, aggregate in enumerate(group.aggregates)
    ]
    stored = dict(before.dtypes) if before is not None else {}  # tables of earlier builds have sums of integers as bigint
    casts = [f"CAST({name} AS {stored.get(name) or _state_type(group, name, types)}) AS {name}" for name in states]
    return alive.selectExpr(*keys, *values, *casts)


def _weighed(group: Group, types: Mapping[str, str]) -> list[str]:
    """Return the values that one change adds to the state columns."""
    terms = [f"CAST(_weight AS bigint) AS {COUNT}"]
    for number, aggregate in enumerate(group.aggregates):
        if aggregate.argument is None:
            continue
        argument = quoted(aggregate.argument)
        terms.append(f"CASE WHEN {argument} IS NULL THEN 0L ELSE CAST(_weight AS bigint) END AS _state_{number}_count")
        if aggregate.function != "count":
            kind = _added_type(types[aggregate.argument])
            signed = f"CASE WHEN _weight > 0 THEN CAST({argument} AS {kind}) ELSE -CAST({argument} AS {kind}) END"
            terms.append(f"CAST(coalesce({signed}, 0) AS {kind}) AS _state_{number}_sum")
    return terms


def _state_type(group: Group, name: str, types: Mapping[str, str]) -> str:
    if not name.endswith("_sum"):
        return "bigint"
    argument = group.aggregates[int(name.split("_")[2])].argument
    return _added_type(types[argument or ""])


def _added_type(kind: str) -> str:
    """Return the type in which values are added and subtracted; sums of `int` and shorter types stay in the range of bigint."""
    if kind == "bigint":
        return _WIDE_SUM
    return f"decimal(38,{kind.removesuffix(')').split(',')[1]})" if kind.startswith("decimal") else "bigint"


def _sum_type(kind: str) -> str:
    """Return the type of Spark's sums."""
    if not kind.startswith("decimal"):
        return "bigint"
    precision, scale = (int(part) for part in kind.removeprefix("decimal(").removesuffix(")").split(","))
    return f"decimal({min(38, precision + 10)},{scale})"


def _value(number: int, aggregate: AggregateCall, types: Mapping[str, str]) -> str:
    if aggregate.function == "count":
        return COUNT if aggregate.argument is None else f"_state_{number}_count"
    total, count = f"_state_{number}_sum", f"_state_{number}_count"
    if aggregate.function == "avg":
        return f"CASE WHEN {count} > 0 THEN CAST({total} AS double) / CAST({count} AS double) END"
    return f"CASE WHEN {count} > 0 THEN CAST({total} AS {_sum_type(types[aggregate.argument or ''])}) END"


def recomputed(group: Group, rows: Frame) -> Frame:
    """Return the groups, computed from all rows; a scalar aggregate of no rows is one row."""
    values = [(aggregate.sql, aggregate.name) for aggregate in group.aggregates] or [("count(*)", COUNT)]
    result = grouped(rows, group.keys, values)
    return result if group.aggregates else result.selectExpr(*map(quoted, group.keys))
