"""The rows that arrived in a view, for the synopses that follow it: the rows that its node gained, read from its table.

A view's row arrives at its ``_ts``, the latest of its parts. Results that began and ended between two updates are in no table;
the source of the view's node has them. If the plan builds the view, results that ended before are no longer known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from warehouse.aggregates.synopses import ARRIVED
from warehouse.catalog.identifiers import quoted
from warehouse.layout import slot_sql
from warehouse.views.maintenance.placement import slots_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from warehouse.planning.following import SynopsisPlan
    from warehouse.views.maintenance.inputs import NodeTable

__all__ = ["ArrivedResults"]


@dataclass(frozen=True, eq=False)
class ArrivedResults:
    """The rows that a plan adds to a synopsis of a view: the plan's entry for it, and the view's table as the plan left it."""

    own: SynopsisPlan
    table: NodeTable

    def known(self) -> pa.Table | None:
        """Return few rows in the driver, in the form of a batch; None: Spark must read them."""
        if self.own.history or self.own.built:
            return None
        came = self.table.came()
        if came is None:
            return None
        slots = slots_of(came["_ts"].cast(pa.int64()).to_numpy(), self.table.move)
        fates = pa.array(["live"] * came.num_rows, pa.string())
        return came.append_column("_fate", fates).append_column("_arrival_slot", pa.array(slots, pa.int64()))

    def parts(self) -> Iterator[DataFrame]:
        """Yield the rows: the view's columns, ``_ts``, ``_exp``, and the slot of arrival."""
        yield self._slotted(self.table.arrived(), self.own.since if self.own.built else None)
        if self.own.history:
            yield self._slotted(self.table.before(), self.own.since)

    def _slotted(self, rows: DataFrame, since: int | None) -> DataFrame:
        move = self.table.move
        own = [quoted(column.name) for column in self.table.columns]
        found = rows.selectExpr(*own, "_ts", "_exp", f"{slot_sql('_ts', move.anchor, move.interval)} AS {ARRIVED}")
        return found if since is None else found.where(f"{ARRIVED} > {since}L")

    def release(self) -> None:
        """Do nothing: no rows are cached."""
