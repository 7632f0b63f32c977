"""The counts of a batch's rows by fate and cell: plain values, for planning, commits and epochs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["BatchCounts", "summed_counts"]


@dataclass(frozen=True)
class BatchCounts:
    """Rows of a batch; ``cells`` counts the live ones by (sub-index, expiry block), ``slots`` the deferred by slot."""

    rows: int = 0
    taken: int = 0
    live: int = 0
    late: int = 0
    over_lifetime: int = 0
    deferred: int = 0
    dead: int = 0
    rejected: int = 0
    cells: Mapping[tuple[int, int], int] = field(default_factory=dict)
    slots: Mapping[int, int] = field(default_factory=dict)

    def reported(self) -> dict[str, int]:
        """Return the counts that an epoch reports, by their names there."""
        return {
            "rows": self.rows,
            "taken": self.taken,
            "inserted": self.live,
            "late": self.late,
            "over_lifetime": self.over_lifetime,
            "deferred": self.deferred,
            "dead": self.dead,
            "rejected": self.rejected,
        }


def summed_counts(summary: Iterable[Sequence[Any]]) -> BatchCounts:
    """Return the sums of (fate, taken, sub-index, expiry block, slot, rows, late rows, rows over their lifetime)."""
    cells: dict[tuple[int, int], int] = {}
    slots: dict[int, int] = {}
    fates = {"live": 0, "deferred": 0, "dead": 0, "rejected": 0}
    late = over = taken = 0
    for fate, was_taken, cell, block, slot, count, late_rows, over_rows in summary:
        fates[fate if fate in fates else "rejected"] += count
        taken += count if was_taken else 0
        if fate == "live":
            cells[cell, block] = cells.get((cell, block), 0) + count
            late += late_rows
            over += over_rows
        elif fate == "deferred":
            slots[slot] = slots.get(slot, 0) + count
    return BatchCounts(
        rows=sum(fates.values()) - taken,
        taken=taken,
        late=late,
        over_lifetime=over,
        cells=cells,
        slots=slots,
        **fates,
    )
