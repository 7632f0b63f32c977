"""Anti-join and bag difference: left rows that the right side hides or cancels (update-patterns sheet, 2.4).

Both are recomputed for the values that changed. A left row of an anti-join is in the answer in the gaps between the
lifetimes of the right rows of its value, which are known as far as rows have arrived; so the instant at which it enters and
appearances between two updates come out exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted
from warehouse.views.maintenance.feeds import CARRIED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from warehouse.views.maintenance.inputs import Move

__all__ = ["difference", "uncovered"]

_FLOATING = ("float", "double")
_INTERVAL = "struct<begin: bigint, end: bigint>"


def uncovered(left: DataFrame, right: DataFrame, on: Sequence[tuple[str, str]], move: Move) -> DataFrame:
    """Return the appearances of left rows while no right row of their value lives.

    Parameters
    ----------
    left, right
        Rows that lived after the last epoch, with ``_ts``, ``_exp``, ``_out``.
    on
        (left column, right column); null equals nothing.
    move
        Appearances that are over at ``now`` and began after ``before`` are short-lived; the others are those of the
        rows in the answer.

    """
    keys = [f"{quoted(column)} AS _key_{number}" for number, (_, column) in enumerate(on)]
    names = [f"_key_{number}" for number in range(len(on))]
    lives = right.selectExpr(*keys, "named_struct('begin', unix_micros(_ts), 'end', unix_micros(_exp)) AS _life")
    covers = lives.groupBy(*names).agg(F.expr("array_sort(collect_list(_life)) AS _covers"))
    same = " AND ".join(f"{quoted(column)} = _key_{number}" for number, (column, _) in enumerate(on))
    columns = [quoted(name) for name in left.columns if name not in CARRIED]
    beside = left.join(covers, F.expr(same), "left")
    gaps = beside.selectExpr(*columns, "_exp", f"explode({_gaps()}) AS _gap")
    whole = f"_gap.begin <= {move.now}L AND _gap.end > {move.now}L"
    # The row in the answer keeps its own end, an upper bound: a right row that is still to come may end it earlier.
    shown = gaps.where(f"({whole}) OR (_gap.begin > {move.before}L AND _gap.end <= {move.now}L)")
    times = ("timestamp_micros(_gap.begin) AS _ts", "timestamp_micros(_gap.end) AS _exp")
    return shown.selectExpr(*columns, *times, "timestamp_micros(_gap.end) AS _out")


def _gaps() -> str:
    """The parts of ``[_ts, _exp)`` that no interval of the sorted ``_covers`` covers, as an expression."""
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


def difference(left: DataFrame, right: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return ``max(0, v1 - v2)`` of the left rows of each value: the oldest, which need no negatives when they expire.

    ``left`` and ``right`` are the live rows of the values asked for, with the same columns.
    """
    value = [quoted(name) for name in columns]
    names = [f"_key_{number}" for number in range(len(columns))]
    kinds = dict(left.dtypes)
    # A group of Spark's has 0.0 for -0.0.
    zeros = {name: f" + CAST(0 AS {kinds[name]}) AS {quoted(name)}" for name in columns if kinds[name] in _FLOATING}
    left = left.selectExpr(*[quoted(name) + zeros.get(name, "") for name in columns], "_ts", "_exp", "_out")
    cancelled = right.groupBy(*[F.col(name) for name in value]).agg(F.expr("count(*) AS _cancelled"))
    cancelled = cancelled.selectExpr(*[f"{name} AS {key}" for name, key in zip(value, names, strict=True)], "_cancelled")
    partition = ", ".join(value)
    ranked = left.selectExpr(
        *value, "_ts", "_exp", "_out",
        f"row_number() OVER (PARTITION BY {partition} ORDER BY _ts, _exp) AS _rank",
        f"count(*) OVER (PARTITION BY {partition}) AS _held",
    )  # fmt: skip
    same = F.expr(" AND ".join(f"{name} <=> {key}" for name, key in zip(value, names, strict=True)))
    kept = ranked.join(cancelled, same, "left").where("_rank <= _held - coalesce(_cancelled, 0)")
    return kept.selectExpr(*value, "_ts", "_exp", "_out")
