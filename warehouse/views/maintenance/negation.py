"""Anti-join and bag difference: left rows that the right side hides or cancels (update-patterns sheet, 2.4).

Both are recomputed for the values that changed. A left row of an anti-join is in the answer in the gaps between the lifetimes of
the right rows of its value. The lifetimes of all rows that arrived are known, so the instant at which a row enters the answer is
exact, and so are appearances between two updates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.views.language.driver_types import LeftToSparkError, exactly_grouped
from warehouse.views.maintenance.driver_rows import DriverRows
from warehouse.views.maintenance.keys import grouped, numbered, paired
from warehouse.views.maintenance.pipelines import CARRIED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.views.maintenance.driver_rows import Frame
    from warehouse.views.maintenance.input_facts import Move

__all__ = ["difference", "uncovered"]

_FLOATING = ("float", "double")
_INTERVAL = "struct<begin: bigint, end: bigint>"


def uncovered(left: Frame, right: Frame, on: Sequence[tuple[str, str]], move: Move) -> Frame:
    """Return the appearances of left rows while no right row of their value lives.

    Parameters
    ----------
    left, right
        Rows that lived after the last epoch, with ``_ts``, ``_exp``, ``_out``.
    on
        (left column, right column); null equals nothing.
    move
        Appearances that are over at ``now`` and began after ``before`` are short-lived; the others belong to rows in the answer.

    """
    keys = [f"{quoted(column)} AS _key_{number}" for number, (_, column) in enumerate(on)]
    lives = right.selectExpr(*keys, "unix_micros(_ts) AS _begin", "unix_micros(_exp) AS _end")
    equal = " AND ".join(f"{quoted(column)} = _key_{number}" for number, (column, _) in enumerate(on))
    columns = [quoted(name) for name in left.columns if name not in CARRIED]
    gaps = _between(left, lives, equal, columns)
    whole = f"_begin <= {move.now}L AND _end > {move.now}L"
    # The row in the answer keeps its own end, an upper bound: a right row that is still to come may end it earlier.
    shown = gaps.where(f"({whole}) OR (_begin > {move.before}L AND _end <= {move.now}L)")
    times = ("timestamp_micros(_begin) AS _ts", "timestamp_micros(_end) AS _exp")
    return shown.selectExpr(*columns, *times, "timestamp_micros(_end) AS _out")


def _between(left: Frame, lives: Frame, equal: str, columns: Sequence[str]) -> Frame:
    """Return the parts of left rows' lives that no life of their value covers: the columns, ``_begin`` and ``_end``."""
    if isinstance(lives, DriverRows):
        begins, ends = "greatest(unix_micros(_ts), _from) AS _begin", "least(unix_micros(_exp), _until) AS _end"
        with_gaps = paired(left, _free(lives), equal, "left")
        return with_gaps.selectExpr(*columns, begins, ends).where("_begin < _end")
    names = [name for name in lives.columns if name not in ("_begin", "_end")]
    covers = lives.groupBy(*names).agg(F.expr("array_sort(collect_list(named_struct('begin', _begin, 'end', _end))) AS _covers"))
    gaps = paired(left, covers, equal, "left").selectExpr(*columns, f"explode({_gaps()}) AS _gap")
    return gaps.selectExpr(*columns, "_gap.begin AS _begin", "_gap.end AS _end")


def _free(lives: DriverRows) -> DriverRows:
    """Return the times at which no row of a value lives: ``[_from, _until)``; null is no bound."""
    names = [name for name in lives.columns if name not in ("_begin", "_end")]
    kinds = dict(lives.dtypes)
    if not all(exactly_grouped(kinds[name]) for name in names):
        raise LeftToSparkError("the driver does not group by floats or nested values")
    earlier_ones = "ORDER BY _begin, _end ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    before = f"max(_end) OVER (PARTITION BY {', '.join(names)} {earlier_ones})"
    reached = f"SELECT *, {before} AS _reached FROM ({lives.query})"
    earlier = f"SELECT {', '.join(names)}, _reached AS _from, _begin AS _until FROM ({reached})"
    last = f"SELECT {', '.join(names)}, max(_end), NULL FROM ({lives.query}) GROUP BY {', '.join(names)}"
    types = {**{name: lives.types[name] for name in names}, "_from": pa.int64(), "_until": pa.int64()}
    query = f"{earlier} WHERE _reached IS NULL OR _begin > _reached UNION ALL {last}"
    return DriverRows(query, types, lives.tables)


def _gaps() -> str:
    """Return the parts of ``[_ts, _exp)`` that no interval of the sorted ``_covers`` covers, as an expression."""
    pair = "named_struct('begin', {begin}, 'end', {end})"
    gap = f"concat(a.gaps, array({pair.format(begin='a.reached', end='least(c.begin, unix_micros(_exp))')}))"
    step = (
        "named_struct('reached', greatest(a.reached, c.end), 'gaps', "
        f"CASE WHEN c.begin > a.reached AND a.reached < unix_micros(_exp) THEN {gap} ELSE a.gaps END)"
    )
    rest = f"concat(a.gaps, array({pair.format(begin='a.reached', end='unix_micros(_exp)')}))"
    start = f"named_struct('reached', unix_micros(_ts), 'gaps', CAST(array() AS array<{_INTERVAL}>))"
    finish = f"CASE WHEN a.reached < unix_micros(_exp) THEN {rest} ELSE a.gaps END"
    covers = f"coalesce(_covers, CAST(array() AS array<{_INTERVAL}>))"
    return f"aggregate({covers}, {start}, (a, c) -> {step}, a -> {finish})"


def difference(left: Frame, right: Frame, columns: Sequence[str]) -> Frame:
    """Return ``max(0, v1 - v2)`` of the left rows of each value: the oldest, which need no negatives when they expire.

    ``left`` and ``right`` are the live rows of the changed values, with the same columns.
    """
    value = [quoted(name) for name in columns]
    names = [f"_key_{number}" for number in range(len(columns))]
    kinds = dict(left.dtypes)
    # When Spark groups, it writes 0.0 for -0.0.
    zeros = {name: f" + CAST(0 AS {kinds[name]}) AS {quoted(name)}" for name in columns if kinds[name] in _FLOATING}
    left = left.selectExpr(*[quoted(name) + zeros.get(name, "") for name in columns], "_ts", "_exp", "_out")
    cancelled = grouped(right, columns, [("count(*)", "_cancelled")])
    cancelled = cancelled.selectExpr(*[f"{name} AS {key}" for name, key in zip(value, names, strict=True)], "_cancelled")
    # The newest rows are cancelled.
    ranked = numbered(left, columns, ["_ts DESC", "_exp DESC"], "_rank")
    equal = " AND ".join(f"{name} <=> {key}" for name, key in zip(value, names, strict=True))
    remaining = paired(ranked, cancelled, equal, "left").where("_rank > coalesce(_cancelled, 0L)")
    return remaining.selectExpr(*value, "_ts", "_exp", "_out")
