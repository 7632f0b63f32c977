"""What ``explain`` says of a coalesced table with a budget."""

from __future__ import annotations

import pytest

from warehouse.cli.coalesced_explanation import coalesced_report
from warehouse.coalescing.budgets import CoalescedBudget
from warehouse.coalescing.definition import CoalescedDefinition
from warehouse.serving.accuracy import ShedFigures
from warehouse.serving.coalesced_explanation import CoalescedExplanation
from warehouse.time import SECOND


def test_a_budget_that_cannot_be_met_is_told() -> None:
    """The open members of groups stay, also when they are more than the budget."""
    definition = CoalescedDefinition(
        "s", (), (("v", "int"),), ("valid_from",), window=SECOND, budget=CoalescedBudget(rows=1), ledger=True
    )
    figures = ShedFigures(kept=3, shed=12, runs=3, lost=0, length=9 * SECOND, length_lost=SECOND, accuracy=0.5)
    lines = coalesced_report(CoalescedExplanation("c", definition, epoch=1, shed=figures)).lines
    assert "  the budget of 1 member is exceeded by 2 members: open members or accuracy" in lines
    assert "  shed: 12 members of 15, of 3 rows, 0 of them whole; 1s of their 9s" in lines


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (CoalescedBudget(bytes=64), "64 bytes"),
        (CoalescedBudget(keep=0.25), "25% of the members"),
        (CoalescedBudget(accuracy=0.9), None),
    ],
)
def test_bytes_and_shares_that_cannot_be_met_are_told(budget: CoalescedBudget, said: str | None) -> None:
    """The explanation has the members over the budget, as the last update counted them; more members meet an accuracy."""
    definition = CoalescedDefinition("s", (), (("v", "int"),), ("valid_from",), window=SECOND, budget=budget, ledger=True)
    figures = ShedFigures(kept=3, shed=0, runs=0, lost=0, length=0, length_lost=0, accuracy=1.0)
    lines = coalesced_report(CoalescedExplanation("c", definition, epoch=1, shed=figures, over=2 if said else 0)).lines
    exceeded = [line for line in lines if "is exceeded" in line]
    assert exceeded == ([] if said is None else [f"  the budget of {said} is exceeded by 2 members: open members or accuracy"])
