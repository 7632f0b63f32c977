"""Estimates from sketches of Apache DataSketches, which Spark makes and merges: HLL for distinct values, KLL for percentiles.

The bounds come from the sketches. HLL has twice its relative standard error after merging, 1.04 / sqrt(registers), which holds in
95 of 100 cases. KLL has its normalized rank error, 2.296 / k^0.9723, which holds in 99 of 100. Since a percentile is between two
values, one more rank is added on both sides.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pyarrow as pa

from warehouse.aggregates.definition import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from warehouse.aggregates.definition import Value
    from warehouse.aggregates.synopses import ColumnState

__all__ = ["estimated", "united"]

_TYPES = {"distinct": pa.int64(), "percentile": pa.float64()}
_FUNCTIONS = {"distinct": "hll", "percentile": "kll"}
_MERGE = {"hll": "hll_union", "kll": "kll_sketch_merge_double"}
_SUFFIXES = ("", *BOUNDS)
_DEVIATION = 1.04
_RANK_ERROR, _RANK_POWER = 2.296, 0.9723


def estimated(session: SparkSession, found: pa.Table, values: Sequence[Value]) -> pa.Table:
    """Return answers in which each list of sketches is an estimate with its bounds."""
    sketched = [value for value in values if value.size is not None]
    if not sketched:
        return found
    columns = [sql for number, value in enumerate(sketched) for sql in _columns(number, value)]
    lists = pa.table({"_row": pa.array(range(found.num_rows), pa.int64())})
    for number, value in enumerate(sketched):
        lists = lists.append_column(f"_{number}", found[value.name])
    if found.num_rows:
        merged = [f"{_merged(f'_{number}', _FUNCTIONS[value.function])} AS _{number}" for number, value in enumerate(sketched)]
        rows = session.createDataFrame(lists).selectExpr("_row", *merged).selectExpr("_row", *columns)
        lists = rows.toArrow().sort_by("_row")
    for number, value in enumerate(sketched):
        found = found.drop_columns([value.name])
        for suffix in _SUFFIXES:
            name, kind = f"_{number}{suffix}", _TYPES[value.function]
            estimates = lists[name].cast(kind) if found.num_rows else pa.array([], kind)
            found = found.append_column(value.name + suffix, estimates)
    return found


def united(session: SparkSession, found: pa.Table, states: Sequence[ColumnState]) -> pa.Table:
    """Return merged states: each list of sketches becomes one sketch; other states do not change."""
    sketched = [state for state in states if state.function in _MERGE]
    lists = {f"_{number}": found[state.name] for number, state in enumerate(sketched)}
    rows = session.createDataFrame(pa.table({"_row": pa.array(range(found.num_rows), pa.int64()), **lists}))
    merged = [f"{_merged(f'_{number}', state.function)} AS _{number}" for number, state in enumerate(sketched)]
    sketches = rows.selectExpr("_row", *merged).toArrow().sort_by("_row")
    for number, state in enumerate(sketched):
        found = found.set_column(found.column_names.index(state.name), state.name, sketches[f"_{number}"])
    return found


def _merged(lists: str, function: str) -> str:
    """Return the SQL that merges a list of sketches; it gives null for a null list."""
    merge = _MERGE[function]
    folded = f"aggregate(slice({lists}, 2, size({lists})), {lists}[0], (a, b) -> {merge}(a, b))"
    return f"CASE WHEN size({lists}) > 0 THEN {folded} END"


def _columns(number: int, value: Value) -> Iterator[str]:
    """The SQL of an estimate and of its bounds, from a merged sketch."""
    sketch, size = f"_{number}", value.size or 1
    if value.function == "distinct":
        estimate, error = f"coalesce(hll_sketch_estimate({sketch}), 0L)", 2 * _DEVIATION / 2 ** (size / 2)
        yield f"{estimate} AS {sketch}"
        yield f"CAST(floor({estimate} / {1 + error!r}D) AS bigint) AS {sketch}{BOUNDS[0]}"
        yield f"CAST(ceil({estimate} / {1 - error!r}D) AS bigint) AS {sketch}{BOUNDS[1]}"
        return
    error = _RANK_ERROR / size**_RANK_POWER
    for suffix, sign in zip(_SUFFIXES, (0, -1, 1), strict=True):
        yield f"{_quantile(sketch, value.share or 0.0, sign * error)} AS {sketch}{suffix}"


def _quantile(sketch: str, share: float, error: float) -> str:
    """The SQL of a percentile, or of its bound by an error of rank; null without rows.

    Spark accepts constant ranks only, so the width of one rank is taken from the number of rows rounded to a power of two.
    """
    rows, whens = f"kll_sketch_get_n_double({sketch})", []
    for power in range(math.ceil(-math.log2(abs(error))) if error else 0, -1, -1):
        wider = math.copysign(2.0**-power, error) if error else 0.0
        rank = min(max(share + error + wider, 0.0), 1.0)
        whens.append(f"WHEN {rows} >= {2**power} THEN kll_sketch_get_quantile_double({sketch}, {rank!r}D)")
    return f"CASE {' '.join(whens)} END"
