"""Costs that are counted, beside the formulas of section 5 for them: equal, not about equal.

The rows are those that model C expects, without chance: in each slot two rows for each expiration slot from the next to the
(p-1)th, one for the p-th, and one that is dead on arrival. Then N = λp/2 exactly (λ = 2p), and the formulas of 5.2 and 5.3
hold to the row whenever G and E divide p. All layouts are streams of one warehouse, which one update moves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.field.contenders.ours import layout_lines
from benchmarks.source.cost import grid_update, uniform_flow
from warehouse import Warehouse
from warehouse.time import HOUR, at_slot, parse_instant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from fractions import Fraction
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["GRIDS", "Counted", "Grid", "count", "predicted"]

_ANCHOR = "2024-01-01T00:00:00Z"
_HEAD = """\
[warehouse]
root = "data"
anchor = "{anchor}"
update_interval = "1h"
retain = "0s"
"""
_STREAM = """
[streams.{name}]
landing = "landing/{name}"
format = "parquet"
search_key = "k"
arrival = "at"
expires = "until"
max_lifetime = "{periods}h"
columns = {{ k = "bigint", at = "timestamp", until = "timestamp" }}

[streams.{name}.layout]
{layout}
"""


@dataclass(frozen=True)
class Grid:
    """A technique on a grid, with the source's label."""

    label: str
    technique: str
    rows: int
    columns: int
    assignment: str

    @property
    def stream(self) -> str:
        """The label as a table's name."""
        return self.label.lower().replace("-", "_")


@dataclass(frozen=True)
class Counted:
    """What an update cost: sub-indices considered and really changed, rows read, rows written, rows in, rows out."""

    accessed: int
    changed: int
    read: int
    written: int
    inserted: int
    expired: int


GRIDS = (
    Grid("Single", "rebuild", 1, 1, "round-robin"),
    Grid("R-ins4", "rebuild", 4, 1, "chronological"),
    Grid("R-exp4", "rebuild", 1, 4, "chronological"),
    Grid("Rebuild2x2", "rebuild", 2, 2, "round-robin"),
    Grid("Rebuild3x3", "rebuild", 3, 3, "round-robin"),
    Grid("Rebuild4x4", "rebuild", 4, 4, "round-robin"),
    Grid("Rebuild3x2", "rebuild", 3, 2, "round-robin"),
    Grid("Rebuild2x6", "rebuild", 2, 6, "round-robin"),
    Grid("Rebuild6x2", "rebuild", 6, 2, "round-robin"),
    Grid("Rebuild4x4chr", "rebuild", 4, 4, "chronological"),
)
"""p = 12 is divided by each side. Chronological grids are equal at every update when G = E."""


def predicted(grid: Grid, periods: int) -> Counted:
    """Return the counts of section 5 for an update, in whole rows: λ = 2p rows a slot."""
    flow = uniform_flow(2 * periods, periods)
    cost = grid_update(grid.rows, grid.columns, flow.live)
    return Counted(
        accessed=cost.accessed,
        changed=cost.accessed,
        read=_whole(cost.rows),
        written=_whole(cost.rows),
        inserted=_whole(flow.inserted),
        expired=_whole(flow.inserted),
    )


def _whole(number: Fraction) -> int:
    assert number.denominator == 1, number
    return number.numerator


def count(
    place: Path, spark: SparkSession, grids: Sequence[Grid] = GRIDS, *, periods: int = 12, updates: int = 3
) -> dict[str, list[Counted]]:
    """Return the warehouse's counts of each update after the first build, by label.

    Parameters
    ----------
    place
        A new directory.
    spark
        The session.
    grids
        Whose sides divide ``periods``.
    periods, updates
        p, and how many updates.

    """
    _declare(place, grids, periods)
    counted: dict[str, list[Counted]] = {grid.label: [] for grid in grids}
    with Warehouse.open(place) as warehouse:
        for slot in range(periods, periods + updates + 1):
            arrived = range(1, periods + 1) if slot == periods else (slot,)
            rows = pa.concat_tables(_rows(arrival_slot, periods) for arrival_slot in arrived)
            for grid in grids:
                pq.write_table(rows, place / "landing" / grid.stream / f"{slot}.parquet")
            epoch = warehouse.update(at=_at(slot), spark=spark).epochs[0]
            if slot > periods:
                by_stream = {counts.stream: counts for counts in epoch.counts}
                for grid in grids:
                    counts = by_stream[grid.stream]
                    counted[grid.label].append(
                        Counted(
                            accessed=counts.planned,
                            changed=counts.changed,
                            read=counts.rewritten,
                            written=counts.rewritten - counts.expired + counts.inserted,
                            inserted=counts.inserted,
                            expired=counts.expired,
                        ),
                    )
    return counted


def _at(slot: int) -> int:
    return at_slot(slot, parse_instant(_ANCHOR), HOUR)


def _rows(slot: int, periods: int) -> pa.Table:
    """Return the rows that arrive in a slot: (distance in slots, how many) as model C expects."""
    arrives = _at(slot) - HOUR // 2
    times = [(0, 1), *((distance, 2) for distance in range(1, periods)), (periods, 1)]
    ends = [arrives + (distance * HOUR or HOUR // 4) for distance, many in times for _ in range(many)]
    instant = pa.timestamp("us", "UTC")
    columns = {
        "k": pa.array(range(len(ends)), pa.int64()),
        "at": pa.array([arrives] * len(ends), instant),
        "until": pa.array(ends, instant),
    }
    return pa.table(columns)


def _declare(directory: Path, grids: Iterable[Grid], periods: int) -> None:
    text = [_HEAD.format(anchor=_ANCHOR)]
    for grid in grids:
        (directory / "landing" / grid.stream).mkdir(parents=True)
        layout = layout_lines(grid.technique, (grid.rows, grid.columns), grid.assignment)
        text.append(_STREAM.format(name=grid.stream, periods=periods, layout=layout))
    (directory / "warehouse.toml").write_text("".join(text))
