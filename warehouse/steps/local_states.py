"""Computes the states of few rows by DuckDB's SQL, without a Spark job.

They equal the states that Spark computes in :mod:`warehouse.steps.synopsis_source`. Only Spark evaluates conditions, and groups
by floating point numbers, since the engines differ in their equality.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.aggregates.synopses import AFTER, ARRIVED, BATCH, DELTA, FAILED, PARTS, RANK, ROWS, UNTIL, VALUE
from warehouse.catalog.duck_sql import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.aggregates.synopses import ColumnState, Synopsis

__all__ = ["local_states", "same_in_both_engines", "slot_of"]

_APART = ("float", "double", "binary")


def same_in_both_engines(synopsis: Synopsis) -> bool:
    """Whether both engines give the same states of a synopsis."""
    counted = () if synopsis.counted is None else (synopsis.counted,)
    own = synopsis.where is None and not synopsis.computed and all(state.size is None for state in synopsis.states)
    return own and not any(kind in _APART for _, kind in (*synopsis.group_by, *counted))


def slot_of(micros: str, anchor: int, interval: int) -> str:
    """Return the slot of an instant, `ceil((t - A) / D)`, exact on integers: DuckDB divides doubles by a slash.

    ``micros`` is the SQL of the instant in microseconds, as are anchor and interval.
    """
    since = f"({micros} - ({anchor}))"
    return f"(({since} + ((-{since} % {interval}) + {interval}) % {interval}) // {interval})"


def local_states(
    synopsis: Synopsis, within: str, *, until: str = "0", parts: Sequence[str] = (), batch: int = 0
) -> str:
    """Return the query over the classified rows ``arrived``.

    Parameters
    ----------
    synopsis
        The synopsis.
    within
        A condition on the slots of arrival and expiration.
    until
        The SQL of the slot in which a row expires.
    parts
        The SQL of the slots in which the parts of a join's result arrived.
    batch
        The epoch of the rows.

    """
    groups = [quoted(name) for name, _ in synopsis.group_by]
    condition = "_fate IN ('live', 'dead')"
    if synopsis.parts is not None:
        groups = [*(f"{sql} AS {name}" for sql, name in zip(parts, PARTS, strict=True)), *groups]
    if synopsis.live:
        groups.insert(0, f"{until} AS {UNTIL}")
    if synopsis.listed is not None and synopsis.counted is not None:
        listed = ", ".join([f"_arrival_slot AS {ARRIVED}", *groups, f"{quoted(synopsis.counted[0])} AS {VALUE}"])
        counts = f"SELECT {listed}, count(*) AS {ROWS}, 0 AS {FAILED} FROM arrived WHERE {condition} GROUP BY ALL"
        return _lists(synopsis, f"SELECT * FROM ({counts}) WHERE {within}", batch)
    states = [f"0::BIGINT AS {FAILED}", *(f"{_state(state)} AS {quoted(state.name)}" for state in synopsis.states)]
    if synopsis.counted is not None:
        value = quoted(synopsis.counted[0])
        condition, states = f"{condition} AND {value} IS NOT NULL", []
        groups.append(f"{value} AS {VALUE}")
    listed = ", ".join([f"_arrival_slot AS {ARRIVED}", *groups, f"count(*) AS {ROWS}", *states])
    return f"SELECT * FROM (SELECT {listed} FROM arrived WHERE {condition} GROUP BY ALL) WHERE {within}"


def _lists(synopsis: Synopsis, counts: str, batch: int) -> str:
    """Return the query for the lists of a batch: the most frequent items by rank, and a row of rank 0 for all of the batch."""
    by = ", ".join([*synopsis.slots, *(quoted(name) for name, _ in synopsis.group_by)])
    k = synopsis.listed or 0
    ranked = f"SELECT *, row_number() OVER (PARTITION BY {by} ORDER BY {ROWS} DESC, {VALUE} ASC NULLS LAST) AS {RANK} FROM counts"
    whole = (
        f"SELECT {by}, {batch}::BIGINT AS {BATCH}, 0::BIGINT AS {RANK}, NULL AS {VALUE}, sum({ROWS}) AS {ROWS}, "
        f"sum({FAILED}) AS {FAILED}, coalesce(max({ROWS}) FILTER ({RANK} = {k}), 0) AS {DELTA}, "
        f"coalesce(max({ROWS}) FILTER ({RANK} = {k} + 1), 0) AS {AFTER} FROM ranked GROUP BY {by}"
    )
    items = (
        f"SELECT {by}, {batch}::BIGINT AS {BATCH}, {RANK}, {VALUE}, {ROWS}, 0 AS {FAILED}, NULL AS {DELTA}, NULL AS {AFTER} "
        f"FROM ranked WHERE {RANK} <= {k}"
    )
    return f"WITH counts AS ({counts}), ranked AS ({ranked}) {whole} UNION ALL {items}"


def _state(state: ColumnState) -> str:
    column = quoted(state.column)
    match state.function:
        case "count":
            return f"count({column})"
        case "sum":
            return f"TRY_CAST(sum({column}) AS {state.type})"
        case "min" | "max":
            return f"{state.function}({column})"
        case "mean":
            return f"avg({column}::DOUBLE)"
        case "m2":
            return f"var_pop({column}::DOUBLE) * count({column})"
        case "hll" | "kll":
            raise TypeError(f"{state.name} is a sketch, which Spark makes")
