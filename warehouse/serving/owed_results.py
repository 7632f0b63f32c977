"""The results that a view under a budget owes, by its epoch: they are missing in answers over it, and over views that read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.serving.visible_tables import with_tables_below
from warehouse.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warehouse.epochs.records import Epoch, TableState
    from warehouse.promise.units import ViewBudget

__all__ = ["Owed", "cost_of", "facts_of", "owed_by", "owed_of"]


@dataclass(frozen=True)
class Owed:
    """The missing results of a view under a budget: at least ``least`` and at most ``most`` results of its window time.

    ``exact`` counts the results of its query; None: they were not counted, since no row arrived, or a condition decides. The view
    has a share between ``share_least`` and ``share_most`` of these results. The last epoch ``made`` results. ``units`` are owed;
    ``lapsed`` units ended before they were made, and ``given_up`` units are not made. ``later`` results come with the next
    update. ``ended`` rows were set aside, and were given up when the view was rebuilt. Completing joins at most ``rows`` rows, a
    row once for each unit. The Archive-metric (rows that lack a partner) is between ``incomplete`` and ``rows``; for units that
    were given up it is unknown.
    """

    view: str
    budget: ViewBudget
    made: int
    exact: int | None
    least: int
    most: int
    share_least: float
    share_most: float
    units: int
    lapsed: int
    given_up: int
    later: int
    rows: int
    incomplete: int
    ended: int = 0

    @property
    def cost(self) -> str:
        """The work of completing, and the number of rows that lack a partner."""
        return cost_of(self.units, self.rows, self.incomplete)

    @property
    def text(self) -> str:
        """The message about the owed results, with the command that helps."""
        if self.given_up:
            return f"{self.view} has a part of its results, by its budget; {self.given_up} units were not made"
        if not self.units:
            return f"{self.view} gets {self.later} results more with the next update that moves the windows"
        count = f"{self.most}" if self.least == self.most else f"{self.least} to {self.most}"
        of_all = "" if self.exact is None else f" of {self.exact}"
        return f"{self.view} owes {count}{of_all} results: `stream-wh complete {self.view}` makes them"

    @property
    def complete(self) -> bool:
        """Whether it has all results of its query."""
        return not self.units and not self.given_up and not self.later


def cost_of(units: int, rows: int, incomplete: int) -> str:
    """Return in words the work of completing a number of units, and the number of rows that lack a partner.

    >>> cost_of(12, 4000, 3500)
    'completing joins up to 4,000 rows of 12 units; 3,500 to 4,000 rows lack a partner'
    """
    lacking = f"{rows:,}" if rows == incomplete else f"{incomplete:,} to {rows:,}"
    return f"completing joins up to {rows:,} rows of {counted(units, 'unit')}; {lacking} rows lack a partner"


def facts_of(owed: Sequence[Owed]) -> dict[str, str]:
    """Return an answer's metadata about the views that owe results: their names, the least share, the remaining work."""
    if not owed:
        return {}
    share = min(owed_of_view.share_least for owed_of_view in owed)
    names, rows = ", ".join(owed_of_view.view for owed_of_view in owed), sum(owed_of_view.rows for owed_of_view in owed)
    return {"stream_wh.owed": names, "stream_wh.share": repr(share), "stream_wh.owed_rows": str(rows)}


def owed_of(state: TableState) -> Owed | None:
    """Return the results that a table owes under its budget; None if it has no budget."""
    if state.view is None or state.view.ledger is None or state.view.budget is None:
        return None
    ledger = state.view.ledger
    least, most = ledger.shares
    units = sum(1 for _ in ledger.units())
    return Owed(
        state.name, state.view.budget, ledger.made, ledger.exact, ledger.least, ledger.most, least, most, units,
        ledger.lapsed, ledger.given_up, ledger.later, ledger.rows, ledger.incomplete, ledger.ended,
    )  # fmt: skip


def owed_by(epoch: Epoch, tables: Iterable[str]) -> tuple[Owed, ...]:
    """Return the owed results of all views under a budget that these tables are, or are built on; complete views are left out."""
    owing = {state.name: owed for state in epoch.tables if (owed := owed_of(state)) is not None and not owed.complete}
    return tuple(owing[name] for name in sorted(owing.keys() & with_tables_below(epoch, tables))) if owing else ()
