"""Makes the changed rows of a coalesced table with shedding: members that its budget allows, and the ledger of the others.

All members of the window take part in the choice, so the driver looks through the whole table in each update. The exact rows are
made first, as without a budget (:mod:`warehouse.steps.coalesced_source`); then members go one by one as ``shed`` picks them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warehouse.coalescing.accuracy import accuracy
from warehouse.coalescing.definition import LEDGER, STAMPS
from warehouse.coalescing.runs import Run
from warehouse.coalescing.scoring import METHODS
from warehouse.coalescing.shed_rows import RUN, exact_members, fragments
from warehouse.coalescing.shedding import shed
from warehouse.steps.coalesced_in_driver import GroupReplacement, query_result

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.coalescing.definition import CoalescedDefinition
    from warehouse.views.maintenance.keyed import Replacement

__all__ = ["SHED", "ShedReplacement", "exact_rows"]

SHED = "shed"
"""The key of a commit's metadata about shedding: kept and shed members, the accuracy, and members over the budget."""


def exact_rows(definition: CoalescedDefinition, own: pa.Table) -> pa.Table:
    """Return the exact rows, reconstructed from the stored rows: the group, the compared columns, and all stamps."""
    return query_result(exact_members(definition, "own"), own=own)


@dataclass(frozen=True, eq=False)
class ShedReplacement(GroupReplacement):
    """The new content, when members of rows are shed.

    ``exact`` are the rows of all groups that the table would have now if nothing had ever been shed.
    """

    exact: pa.Table

    def _group_of(self, rows: pa.Table) -> list[tuple[object, ...]]:
        columns = [rows[name].to_pylist() for name in self.definition.groups]
        return list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows

    @cached_property
    def _shed_before(self) -> dict[tuple[object, ...], set[int]]:
        """The stamps that were shed, by group."""
        rows = self.own.filter(pc.greater(pc.fill_null(pc.list_value_length(self.own[LEDGER]), 0), 0))
        stamps_of: dict[tuple[object, ...], set[int]] = {}
        for group, entries in zip(self._group_of(rows), rows[LEDGER].to_pylist(), strict=True):
            stamps_of.setdefault(group, set()).update(stamp for entry in entries for stamp in entry["shed"])
        return stamps_of

    @cached_property
    def _exact_runs(self) -> list[Run]:
        """The exact rows, with the members that earlier updates shed."""
        exact, shed_stamps = self.exact, self._shed_before if self.definition.budget is not None else {}
        ends = exact["valid_to"].cast(pa.int64()).to_pylist()
        columns = (self._group_of(exact), exact[STAMPS].to_pylist(), ends, exact["open"].to_pylist())
        runs = []
        for group, stamps, end, is_open in zip(*columns, strict=True):
            lost = shed_stamps.get(group)
            numbers = frozenset(number for number, stamp in enumerate(stamps) if stamp in lost) if lost else frozenset()
            runs.append(Run(group, None, tuple(stamps), end, numbers, is_open))
        return runs

    @cached_property
    def _runs(self) -> Sequence[Run]:
        """The exact rows with their remaining members.

        Members are restored if a cut row or late points would leave the table below the accuracy of the budget.
        """
        runs, budget = self._exact_runs, self.definition.budget
        if budget is None:
            return runs
        if budget.accuracy is not None and accuracy(runs).share < budget.accuracy:
            runs = [replace(run, shed=frozenset()) for run in runs]
        method, arrived = METHODS[self.definition.shed], sum(len(run.stamps) for run in runs)
        while True:
            kept = sum(len(run.stamps) - len(run.shed) for run in runs)
            size = self._size(runs) / kept if budget.bytes is not None and kept else 1.0
            excess = budget.excess(kept, arrived, size)
            result = shed(runs, excess, method, floor=budget.accuracy) if excess else None
            if result is None or not result.members:
                return runs
            runs = [*result.runs]
            if budget.bytes is None:
                return runs

    def _size(self, runs: Sequence[Run]) -> float:
        """Return the bytes of rows in memory: of the stamps, and of the other columns of each row."""
        rows = self.exact.num_rows
        width = (self.exact.nbytes - self.exact[STAMPS].nbytes) / rows if rows else 0.0
        return sum(8 * (len(run.stamps) - len(run.shed)) + width * len(run.fragments) for run in runs)

    @cached_property
    def rows(self) -> pa.Table:
        """All current rows of the table, with all columns except the columns of the grid."""
        runs, lo, hi = [], [], []
        for number, run in enumerate(self._runs):
            for piece in run.fragments:
                runs.append(number)
                lo.append(piece.first + 1)
                hi.append(piece.last + 1)
        pieces = pa.table({RUN: pa.array(runs, pa.int64()), "lo": pa.array(lo, pa.int64()), "hi": pa.array(hi, pa.int64())})
        losers = [(number, run) for number, run in enumerate(self._runs) if run.shed]
        lost = pa.table({
            RUN: pa.array([number for number, _ in losers], pa.int64()),
            "shed": pa.array([[run.stamps[member] for member in sorted(run.shed)] for _, run in losers], pa.list_(pa.int64())),
        })  # fmt: skip
        exact = self.exact.append_column(RUN, pa.array(range(self.exact.num_rows), pa.int64()))
        rows = query_result(fragments(self.definition, "exact", "pieces", "lost"), exact=exact, pieces=pieces, lost=lost)
        names = [name for name, _ in (*self.definition.columns, *self.definition.state)] + ["_ts", "_exp"]
        return rows.select(names).cast(pa.schema([self.own.schema.field(name) for name in names]))

    @cached_property
    def commit_metadata(self) -> Mapping[str, object]:
        """The commit's metadata: kept and shed members, the accuracy, and members over the budget."""
        shed_members = sum(len(run.shed) for run in self._runs)
        kept = sum(len(run.stamps) for run in self._runs) - shed_members
        return {
            SHED: {
                "kept": kept,
                "shed": shed_members,
                "accuracy": accuracy(self._runs).share,
                "over": self._over(kept, shed_members),
            }
        }

    def _over(self, kept: int, shed_members: int) -> int:
        """How many members remain over the budget: open members always stay, and the accuracy takes precedence."""
        budget = self.definition.budget
        if budget is None or not budget.bounds:
            return 0
        size = self._size(self._runs) / kept if budget.bytes is not None and kept else 1.0
        return budget.excess(kept, kept + shed_members, size)

    @cached_property
    def replacement(self) -> Replacement:
        """The new content of the buckets in which rows changed."""
        names = self.rows.column_names
        was = self.own.filter(pc.greater(self.own["_exp"].cast(pa.int64()), self.move.now)).select(names)
        shown = ", ".join(self.groups) or "1 AS one"
        keys = query_result(
            f"SELECT DISTINCT {shown} FROM ("
            "(SELECT * FROM was EXCEPT ALL SELECT * FROM rows) UNION ALL (SELECT * FROM rows EXCEPT ALL SELECT * FROM was))",
            was=was, rows=self.rows,
        )  # fmt: skip
        own = " AND ".join(f"r.{name} IS NOT DISTINCT FROM k.{name}" for name in self.groups) or "true"
        return self.replaced(
            keys, lambda _: query_result(f"SELECT r.* FROM rows AS r SEMI JOIN k ON {own}", rows=self.rows, k=keys)
        )
