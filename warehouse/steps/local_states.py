"""The states of few rows, in DuckDB's SQL: what Spark would take a job for.

They are those that :mod:`warehouse.steps.synopsis_source` has Spark calculate. Conditions are Spark's to evaluate, and
so are groups of floating point numbers, of which the engines hold different ones equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.aggregates.synopses import ARRIVED, FAILED, ROWS, VALUE
from warehouse.catalog.duck_sql import quoted

if TYPE_CHECKING:
    from warehouse.aggregates.synopses import State, Synopsis

__all__ = ["calculable", "local_states"]

_APART = ("float", "double", "binary")


def calculable(synopsis: Synopsis) -> bool:
    """Whether both engines give the same states of a synopsis."""
    counted = () if synopsis.counted is None else (synopsis.counted,)
    return synopsis.where is None and not any(kind in _APART for _, kind in (*synopsis.group_by, *counted))


def local_states(synopsis: Synopsis, within: str) -> str:
    """Return the query over the classified rows ``arrived``; ``within`` is a condition on the slot of arrival."""
    groups = [quoted(name) for name, _ in synopsis.group_by]
    condition = "_fate IN ('live', 'dead')"
    states = [f"0::BIGINT AS {FAILED}", *(f"{_state(state)} AS {quoted(state.name)}" for state in synopsis.states)]
    if synopsis.counted is not None:
        value = quoted(synopsis.counted[0])
        condition, states = f"{condition} AND {value} IS NOT NULL", []
        groups.append(f"{value} AS {VALUE}")
    listed = ", ".join([f"_arrival_slot AS {ARRIVED}", *groups, f"count(*) AS {ROWS}", *states])
    return f"SELECT * FROM (SELECT {listed} FROM arrived WHERE {condition} GROUP BY ALL) WHERE {within}"


def _state(state: State) -> str:
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
