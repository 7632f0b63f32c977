"""The order of views: each after those that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.views.language.expressions import function_name
from warehouse.views.language.faults import Faults
from warehouse.views.language.windows import WINDOW_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["cycles", "named_in", "ordered"]


def named_in(query: exp.Query) -> set[str]:
    """Return the names in a query that can be tables, in lower case."""
    own = {each.alias.lower() for each in query.find_all(exp.CTE)}
    names = {table.name.lower() for table in query.find_all(exp.Table)}
    for call in query.find_all(exp.Anonymous):
        if function_name(call) in WINDOW_FUNCTIONS and call.expressions:
            names.add(call.expressions[0].name.lower())
    return names - own


def ordered(queries: Mapping[str, exp.Query]) -> list[str]:
    """Return the views, each after those that it names; those of a cycle, and over one, are left out."""
    needs = _needs(queries)
    found: list[str] = []
    while ready := [name for name in needs if name not in found and needs[name] <= set(found)]:
        found += ready
    return found


def cycles(queries: Mapping[str, exp.Query], texts: Mapping[str, str]) -> dict[str, Faults]:
    """Return the faults of the views that read themselves, through others or not; ``texts`` are their SQL."""
    needs = _needs(queries)
    faults = {}
    for name, query in queries.items():
        way = _cycle(name, needs)
        if way is not None:
            faults[name] = Faults(texts[name])
            found = f"a cycle: {' reads '.join(way)}"
            faults[name].add(_mention(query, way[1]), found, "views over streams, relations and other views")
    return faults


def _mention(query: exp.Query, name: str) -> exp.Expr | None:
    """Where a query names a table."""
    tables: list[exp.Expr] = list(query.find_all(exp.Table))
    windowed = [call.expressions[0] for call in query.find_all(exp.Anonymous) if function_name(call) in WINDOW_FUNCTIONS]
    return next((each for each in [*tables, *windowed] if each.name.lower() == name), None)


def _needs(queries: Mapping[str, exp.Query]) -> dict[str, set[str]]:
    return {name: named_in(query) & set(queries) for name, query in queries.items()}


def _cycle(start: str, needs: Mapping[str, set[str]]) -> list[str] | None:
    """The way from a view back to itself."""
    paths = [[start]]
    seen = set()
    while paths:
        path = paths.pop(0)
        for each in sorted(needs.get(path[-1], ())):
            if each == start:
                return [*path, start]
            if each not in seen:
                seen.add(each)
                paths.append([*path, each])
    return None
