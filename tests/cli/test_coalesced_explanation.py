"""What ``explain`` says of a coalesced table with a budget."""

from __future__ import annotations

from warehouse.cli.coalesced_explanation import of_coalesced
from warehouse.coalescing.budgets import Budget
from warehouse.coalescing.definition import Definition
from warehouse.serving.accuracy import ShedFigures
from warehouse.serving.coalesced_explanation import CoalescedExplanation
from warehouse.time import SECOND


def test_a_budget_that_cannot_be_met_is_told() -> None:
    """The open members of groups stay, also when they are more than the budget."""
    asked = Definition("s", (), (("v", "int"),), ("valid_from",), window=SECOND, budget=Budget(rows=1), ledger=True)
    figures = ShedFigures(kept=3, shed=12, runs=3, lost=0, length=9 * SECOND, length_lost=SECOND, accuracy=0.5)
    lines = of_coalesced(CoalescedExplanation("c", asked, epoch=1, shed=figures)).lines
    assert "  the budget of 1 is exceeded by 2: open members or accuracy" in lines
    assert "  shed: 12 members of 15, of 3 rows, 0 of them whole; 1s of their 9s" in lines
