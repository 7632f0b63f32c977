"""How many rows of a batch there are, by fate and cell: plain values, for planning, commits and epochs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BatchCounts"]


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
