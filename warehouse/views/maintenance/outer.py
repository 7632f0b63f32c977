"""Outer joins: matched rows live while both parts do, unmatched ones until a partner comes, at the latest their own end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.catalog.identifiers import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from warehouse.views.algebra import OuterJoin

__all__ = ["outer_joined"]

_TIMES = ("_ts", "_exp", "_out")


def outer_joined(join: OuterJoin, left: DataFrame, right: DataFrame) -> DataFrame:
    """Return the outer join of live rows of the keys asked for (`greatest` and `least` pass over nulls)."""
    renamed = right.withColumnsRenamed({name: f"{name}_right" for name in _TIMES})
    conditions = [f"{quoted(one)} = {quoted(other)}" for one, other in join.on]
    if join.where is not None:
        conditions.append(f"({join.where})")
    matched = left.join(renamed, F.expr(" AND ".join(conditions)), "full" if join.kind == "full" else join.kind)
    columns = [quoted(name) for name in (*left.columns, *right.columns) if name not in _TIMES]
    return matched.selectExpr(
        *columns,
        "greatest(_ts, _ts_right) AS _ts",
        "least(_exp, _exp_right) AS _exp",
        "least(_out, _out_right) AS _out",
    )
