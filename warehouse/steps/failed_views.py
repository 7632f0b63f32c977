"""Views that a plan cannot maintain: they and the tables that read them keep their rows, and the other tables keep moving."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warehouse.storage.failures import first_line
from warehouse.views.algebra import scanned

if TYPE_CHECKING:
    from warehouse.planning.plan_record import Plan

__all__ = ["FailedViews"]


@dataclass(frozen=True, eq=False)
class FailedViews:
    """The views of a plan that failed; ``reasons`` has the reason for each of their tables, and for tables that read them."""

    plan: Plan
    reasons: dict[str, str] = field(default_factory=dict)

    def add(self, table: str, error: Exception) -> None:
        """Record that a view's step failed."""
        self.reasons[table] = first_line(error)

    def includes(self, table: str) -> bool:
        """Whether a table belongs to a view that failed or that reads a failed view, or follows such a view."""
        node = self.plan.node(table)
        if node is None and table not in self.reasons and self.follows_view(table):
            view = self.plan.stream(table).followed or ""
            if self.includes(view):
                self.reasons[table] = f"it reads {view}, which failed: {self.reasons[view]}"
        if node is None or table in self.reasons:
            return table in self.reasons
        companions = [f"{table}.spare", f"{table}.owed"] if node.spare_of is None else [node.spare_of]
        for other in (*companions, *scanned(node.node.operator)):
            if other in self.reasons:
                reason = self.reasons[other]
                self.reasons[table] = reason if reason.startswith("it reads") else f"it reads {other}, which failed: {reason}"
                return True
        return False

    def follows_view(self, table: str) -> bool:
        """Whether a table is a synopsis of a view, or answers over one."""
        planned = next((stream for stream in self.plan.streams if stream.name == table), None)
        return planned is not None and self.plan.node(planned.followed or "") is not None
