"""Relations in a join: they are looked up as of each row's time; retroactive ones are joined with their current versions.

A non-retroactive relation needs only the row itself, so it is looked up by the part of the FROM that names its whole key. Rows
that can leave before their own end cannot be joined with a relation: their removal would need the version with which they were
joined (update-patterns sheet, 4.3 and 6.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.catalog.identifiers import quoted
from warehouse.views.algebra import AsOf, Named, Project
from warehouse.views.labels import STR
from warehouse.views.language.dialect import text
from warehouse.views.language.faults import RefusedError
from warehouse.views.language.scope import owners_of
from warehouse.views.language.units import FromPart, Workshop, all_hold

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["attach", "check_relations", "check_steady", "is_lookup", "looked_up", "no_key", "not_preserved", "nulled"]


def is_lookup(unit: FromPart) -> bool:
    """Whether a unit is an unchanged non-retroactive relation of FROM."""
    return unit.relation is not None and not unit.relation.retroactive


def check_relations(shop: Workshop, units: Sequence[FromPart]) -> None:
    """Refuse a join of stream rows with several retroactive relations, or with rows that end early."""
    relations = [unit for unit in units if unit.relation]
    others = [unit for unit in units if not unit.relation]
    if not relations or not others:
        return
    if len(relations) > 1:
        names = [unit.relation.name for unit in relations if unit.relation]
        aliases = [unit.item.alias for unit in relations if unit.item]
        raise RefusedError(
            relations[1].item.node if relations[1].item else None,
            f"a second retroactive relation, {names[1]}, joined with rows that {names[0]} can change already",
            "one retroactive relation in a join; combine them in a sub-query or view of their own",
            f"(SELECT ... FROM {names[0]} {aliases[0]} JOIN {names[1]} {aliases[1]} ON ...)",
        )
    for unit in others:
        check_steady(shop, unit, relations[0])


def check_steady(shop: Workshop, unit: FromPart, relation: FromPart) -> None:
    """Refuse to join a relation with rows that can leave before their own end."""
    if shop.label(unit.operator) != STR or relation.item is None or relation.relation is None:
        return
    names = ", ".join(item.alias for item in shop.items(unit))
    raise RefusedError(
        relation.item.node,
        f"the relation {relation.relation.name} joined with {names}, whose rows can leave before their own end",
        "a relation joined with rows that live to their own end: join it below the negation, aggregate or row window",
    )


def looked_up(
    shop: Workshop,
    units: list[FromPart],
    conditions: list[exp.Expr],
    join: Callable[[Workshop, list[FromPart], list[exp.Expr]], FromPart],
) -> tuple[list[FromPart], list[exp.Expr]]:
    """Attach non-retroactive relations to the units that name their keys; return all units, and the other conditions.

    Raises
    ------
    RefusedError
        When a relation's key is not wholly given, even by all other units together, which ``join`` joins.

    """
    if all(unit.relation for unit in units):
        return units, conditions
    while lookups := [unit for unit in units if is_lookup(unit)]:
        for lookup in lookups:
            attached = attach(shop, lookup, [unit for unit in units if not is_lookup(unit)], conditions, outer=False)
            if attached:
                target, made, conditions = attached
                units = [made if unit is target else unit for unit in units if unit is not lookup]
                break
        else:
            units, conditions = _looked_up_by_all(shop, units, lookups, conditions, join)
    return units, conditions


def _looked_up_by_all(
    shop: Workshop,
    units: list[FromPart],
    lookups: list[FromPart],
    conditions: list[exp.Expr],
    join: Callable[[Workshop, list[FromPart], list[exp.Expr]], FromPart],
) -> tuple[list[FromPart], list[exp.Expr]]:
    """Join the other units first: a key may come from several of them."""
    others = [unit for unit in units if not is_lookup(unit)]
    if len(others) == 1 or any(item.internal for item in shop.scope.items):
        raise no_key(shop, lookups[0])
    theirs = frozenset[int]().union(*(unit.owners for unit in others))
    now = [each for each in conditions if owners_of(each) <= theirs]
    rest = [each for each in conditions if not owners_of(each) <= theirs]
    return [join(shop, others, now), *lookups], rest


def no_key(shop: Workshop, lookup: FromPart) -> RefusedError:
    """Return the refusal of a relation whose key is not given."""
    item, relation = lookup.item, lookup.relation
    if item is None or relation is None:
        raise TypeError("not a relation")
    key = " AND ".join(f"{item.alias}.{name} = ..." for name in relation.key)
    found = f"the relation {relation.name} joined without an equality for each column of its key"
    others = [other for other in shop.scope.items if other is not item]
    pairs = [
        f"{item.alias}.{name} = {other.alias}.{column}"
        for name in relation.key
        for other in [next((each for each in others if each.column(name)), None)]
        if other is not None and (column := other.column(name))
    ]
    suggestion = f"ON {' AND '.join(pairs)}" if len(pairs) == len(relation.key) else None
    return RefusedError(item.node, found, f"ON {key}", suggestion)


def attach(
    shop: Workshop, lookup: FromPart, units: Sequence[FromPart], conditions: list[exp.Expr], *, outer: bool
) -> tuple[FromPart, FromPart, list[exp.Expr]] | None:
    """Look a relation up by the unit that names its whole key; return this unit, its replacement, and other conditions."""
    item, relation = lookup.item, lookup.relation
    if item is None or relation is None:
        raise TypeError("not a relation")
    for unit in units:
        given: dict[str, tuple[exp.Expr, exp.Expr]] = {}
        for each in conditions:
            sides = shop.sides(each, [unit, lookup]) if isinstance(each, exp.EQ) else None
            if sides is None:
                continue
            mine, theirs = (each.this, each.expression) if sides[0] == 0 else (each.expression, each.this)
            if isinstance(theirs, exp.Column):
                given.setdefault(str(theirs.meta["base"]).lower(), (each, mine))
        if not all(name.lower() in given for name in relation.key):
            continue
        check_steady(shop, unit, lookup)
        chosen = [given[name.lower()] for name in relation.key]
        keyed, names = shop.keyed(unit, [mine for _, mine in chosen])
        (number,) = lookup.owners
        added = tuple(Named(shop.scope.name(number, column), quoted(column)) for column in item.columns if column in item.used)
        on = tuple(zip(names, relation.key, strict=True))
        made = FromPart(AsOf(keyed.operator, relation.name, on, added, outer), unit.owners | lookup.owners)
        consumed = {id(each) for each, _ in chosen}
        return unit, made, [each for each in conditions if id(each) not in consumed]
    return None


def not_preserved(lookup: FromPart) -> RefusedError:
    """Return the refusal of an outer join that would keep a relation's rows."""
    name = lookup.relation.name if lookup.relation else ""
    found = f"the relation {name} on the side of an outer join whose rows are all kept"
    allowed = "a stream LEFT JOIN the relation, which keeps the stream's rows; or retroactive = true for the relation"
    return RefusedError(lookup.item.node if lookup.item else None, found, allowed)


def nulled(shop: Workshop, unit: FromPart, lookup: FromPart, conditions: list[exp.Expr]) -> FromPart:
    """Return a unit whose columns of the relation are null in rows for which the rest of ON does not hold."""
    holds = all_hold([text(each) for each in conditions], conditions)
    added = {column.name for column in unit.operator.columns} if isinstance(unit.operator, AsOf) else set()
    columns = tuple(
        Named(name, f"CASE WHEN {holds} THEN {quoted(name)} END" if name in added else quoted(name))
        for name in shop.columns(unit.operator)
    )
    return FromPart(Project(unit.operator, columns), unit.owners | lookup.owners)
