"""Finds the views that an aggregate can read: each of their rows arrives exactly once, whenever updates run.

In selections, UNION ALL and joins of windows each result has an arrival time: the latest of its parts. DISTINCT has one row as
long as a value lives, and the number of its rows depends on when updates run. A view whose rows are replaced (GROUP BY, outer
joins, first rows, relations) has a current state, not arrivals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.catalog.types import parse_type
from warehouse.catalog.view_facts import ViewFacts
from warehouse.views.algebra import Filter, Join, Project, Scan, TimeWindow, UnionAll, inputs_of, scanned, stateful_of
from warehouse.views.arrivals import arrival_columns, part_columns
from warehouse.views.language.dialect import parse_query
from warehouse.views.language.faults import RefusedError
from warehouse.views.lifetimes import lifetime
from warehouse.views.plans import judged_views, named_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from warehouse.catalog.model import Catalog, Stream
    from warehouse.views.algebra import Operator
    from warehouse.views.arrivals import Parts
    from warehouse.views.plans import ViewPlan

__all__ = ["readable_views"]

_ARRIVING = (Scan, Filter, Project, UnionAll, Join, TimeWindow)
_INSTEAD = "a stream, or a view of selections, UNION ALL and joins of windows"


def readable_views(catalog: Catalog) -> Mapping[str, ViewFacts]:
    """Return, for each declared view, the properties that aggregates need; ``catalog`` has no aggregate that reads a view."""
    plans, _ = judged_views(catalog)
    facts: dict[str, ViewFacts] = {}
    arrivals = {stream.name: _arrival_of(stream) for stream in catalog.streams}
    for plan in plans:
        types = {name: None if kind is None else parse_type(kind) for name, kind in plan.columns.items()}
        arrivals[plan.name] = arrival_columns(plan.tree, arrivals)
        facts[plan.name] = ViewFacts(
            types,
            _unreadable(plan, facts),
            unreported=plan.label.kind != "MON" and plan.view.short_lived == "drop",
            stays=plan.label.kind == "MON",
            erase_within=plan.view.erase_within,
            parts=_parts(plan, arrivals),
        )
    for name, reason in plans.refused.items():
        faulty = f"which cannot be maintained: {reason}", "a view that can be"
        facts[name] = ViewFacts({}, _over_answers(catalog, name) or faulty)
    for view in catalog.views:
        faulty = "which reads a view with a fault, or itself", "a view that can be maintained"
        facts.setdefault(view.name, ViewFacts({}, faulty))
    return facts


def _parts(plan: ViewPlan, arrivals: Mapping[str, frozenset[str]]) -> Parts | None:
    """Return both inputs of a join, with their arrival columns; None for another view, or if the rows of an input never end."""
    join = stateful_of(plan.tree)
    bounds = {name: table.lifetime for name, table in plan.tables.items()}
    if not isinstance(join, Join) or any(lifetime(input_operator, bounds) is None for input_operator in join.inputs):
        return None
    return part_columns(plan.tree, arrivals)


def _arrival_of(stream: Stream) -> frozenset[str]:
    """Return the timestamp column with the arrival of a stream's rows; empty if there is none."""
    arrival_name = stream.arrival.strip("`").lower()
    return frozenset(
        column.name for column in stream.columns if column.name.lower() == arrival_name and column.type == "timestamp"
    )


def _over_answers(catalog: Catalog, view: str) -> tuple[str, str] | None:
    """Return why a view that reads an aggregate over a view cannot be read; None for another view."""
    declared = {key.split(".")[1] for key, _ in catalog.keys if key.startswith("aggregates.")}
    over_views = {name.lower(): name for name in declared if catalog.aggregate(name) is None}
    sql = next(declared_view.sql for declared_view in catalog.views if declared_view.name == view)
    try:
        read = sorted(named_in(parse_query(sql)) & over_views.keys())
    except RefusedError:
        return None
    return (f'which reads "{over_views[read[0]]}", an aggregate over a view', "a view over streams") if read else None


def _unreadable(plan: ViewPlan, below: Mapping[str, ViewFacts]) -> tuple[str, str] | None:
    """Return why no aggregate can read a view, and what to do."""
    if plan.view.budget is not None:
        return "with a budget: what an update leaves out of it comes later or never", "a view without `budget`"
    if plan.label.kind == "STR":
        return "whose rows are replaced: they say what is so, not what arrived", _INSTEAD
    unfit = next((operator for operator in _operators(plan.tree) if not isinstance(operator, _ARRIVING)), None)
    if unfit is not None:
        kind = "DISTINCT" if type(unfit).__name__ == "Distinct" else f"an operator ({type(unfit).__name__})"
        return f"with {kind}, of which it depends on the update interval how many rows it shows", _INSTEAD
    for name in scanned(plan.tree):
        if name in below and (why := below[name].unreadable) is not None:
            return f"over {name}, {why[0]}", why[1]
    return None


def _operators(tree: Operator) -> Iterator[Operator]:
    yield tree
    for input_operator in inputs_of(tree):
        yield from _operators(input_operator)
