"""Filters and projections above an operator: split off, and built again over another operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from warehouse.views.algebra import Filter, Project
from warehouse.views.language.dialect import column_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.views.algebra import Operator

__all__ = ["Chain", "chain_of", "name_above", "rebuilt"]

Chain = list[Filter | Project]
"""Outermost first."""


def chain_of(operator: Operator) -> tuple[Chain, Operator]:
    """Return the filters and projections at the top of a plan, and the operator below them."""
    chain: Chain = []
    while isinstance(operator, (Filter, Project)):
        chain.append(operator)
        operator = operator.input
    return chain, operator


def rebuilt(chain: Sequence[Filter | Project], core: Operator) -> Operator:
    """Return the same filters and projections over another operator."""
    for operator in reversed(chain):
        core = msgspec.structs.replace(operator, input=core)
    return core


def name_above(chain: Sequence[Filter | Project], column: str) -> str | None:
    """Return the name of a column above filters and projections; None if it is lost or changed."""
    for operator in reversed(chain):
        if isinstance(operator, Project):
            above = next((named.name for named in operator.columns if column_of(named.sql) == column), None)
            if above is None:
                return None
            column = above
    return column
