"""Finds equal plans with simpler update patterns: fewer operators whose rows leave before their own end.

An anti-join below a join can move above it. DISTINCT above an anti-join can move below it, where it needs no counts. Both hold
only for anti-joins, never for bag difference (update-patterns sheet, 6.1 rule 5, 6.2 and A9). A cost model decides which plan is
cheaper; this module only finds equal plans.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from warehouse.catalog.identifiers import quoted
from warehouse.views.algebra import AntiJoin, Distinct, Join, Named, Project, inputs_of
from warehouse.views.language.chains import Chain, chain_of, name_above, rebuilt
from warehouse.views.language.columns import columns_of
from warehouse.views.language.dialect import column_of
from warehouse.views.language.simplify import simplified, with_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from warehouse.views.algebra import Operator

    _Rule = Callable[[Operator, Mapping[str, tuple[str, ...]]], Operator]

__all__ = ["EqualPlan", "alternatives"]


@dataclass(frozen=True)
class EqualPlan:
    """A plan that gives the same answer: the name of the rewriting, the plan, and its advantage."""

    name: str
    tree: Operator
    why: str


def alternatives(tree: Operator, tables: Mapping[str, tuple[str, ...]]) -> list[EqualPlan]:
    """Return the rewritten plans, each rewriting applied wherever it can be.

    Parameters
    ----------
    tree
        A plan.
    tables
        The columns of the tables that it scans.

    """
    plans = []
    for name, rule, why in _RULES:
        rewritten = _everywhere(tree, rule, tables)
        if rewritten != tree:
            plans.append(EqualPlan(name, simplified(rewritten, tables), why))
    return plans


def _everywhere(tree: Operator, rule: _Rule, tables: Mapping[str, tuple[str, ...]]) -> Operator:
    """Apply a rule from the leaves up until it changes nothing."""
    tree = with_inputs(tree, [_everywhere(input_operator, rule, tables) for input_operator in inputs_of(tree)])
    changed = rule(tree, tables)
    return tree if changed == tree else _everywhere(changed, rule, tables)


def _negation_up(tree: Operator, tables: Mapping[str, tuple[str, ...]]) -> Operator:
    """Turn ``(L - R) x S`` into ``(L x S) - R``: the negated columns belong to L."""
    if not isinstance(tree, Join):
        return tree
    for number, input_operator in enumerate(tree.inputs):
        chain, core = chain_of(input_operator)
        if not isinstance(core, AntiJoin):
            continue
        other_names = {
            name for other_input in tree.inputs if other_input is not input_operator for name in columns_of(other_input, tables)
        }
        carrying, names = _carrying(chain, core.left, tuple(left for left, _ in core.on), other_names)
        inputs = (*tree.inputs[:number], carrying, *tree.inputs[number + 1 :])
        on = tuple(zip(names, (right for _, right in core.on), strict=True))
        pulled = AntiJoin(msgspec.structs.replace(tree, inputs=inputs), core.right, on)
        columns = columns_of(tree, tables)
        if columns == columns_of(pulled, tables):
            return pulled
        return Project(pulled, tuple(Named(name, quoted(name)) for name in columns))
    return tree


def _distinct_down(tree: Operator, _: Mapping[str, tuple[str, ...]]) -> Operator:
    """Turn ``distinct(L - R)`` into ``distinct(L) - R`` if the negated columns are a subset of the distinct ones."""
    if not isinstance(tree, Distinct):
        return tree
    chain, core = chain_of(tree.input)
    if not isinstance(core, AntiJoin):
        return tree
    names = [name_above(chain, left) for left, _ in core.on]
    if any(name is None for name in names):
        return tree
    on = tuple((name, right) for name, (_, right) in zip(names, core.on, strict=True) if name is not None)
    return AntiJoin(Distinct(rebuilt(chain, core.left)), core.right, on)


_PULLED = (
    "the join is then kept by what arrives (WK), since no row that it sees leaves before its end; it pays when the join is"
    " not much larger than its inputs"
)
_PUSHED = "DISTINCT then sees no row that leaves before its end: two rows for each value do, where it had to count"
_RULES: tuple[tuple[str, _Rule, str], ...] = (
    ("negation pull-up", _negation_up, _PULLED),
    ("DISTINCT push-down", _distinct_down, _PUSHED),
)


def _carrying(
    chain: Chain, core: Operator, columns: tuple[str, ...], other_names: set[str]
) -> tuple[Operator, tuple[str, ...]]:
    """Return filters and projections over a plan that also carry these columns, under names that are not in ``other_names``."""
    names = list(columns)
    for operator in reversed(chain):
        copy = msgspec.structs.replace(operator, input=core)
        if isinstance(copy, Project):
            used = {name.lower() for name in [*other_names, *(named.name for named in copy.columns)]}
            for position, name in enumerate(names):
                above = next((named.name for named in copy.columns if column_of(named.sql) == name), None)
                if above is None:
                    above = next(
                        candidate for candidate in (name, *(f"{name}#{n}" for n in range(2, 99))) if candidate.lower() not in used
                    )
                    used.add(above.lower())
                    copy = msgspec.structs.replace(copy, columns=(*copy.columns, Named(above, quoted(name))))
                names[position] = above
        core = copy
    return core, tuple(names)
