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
from warehouse.views.language.from_parts import FromPart, PartBuilder, all_hold
from warehouse.views.language.scope import owners_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["attach", "check_relations", "check_steady", "is_lookup", "looked_up", "no_key", "not_preserved", "nulled"]


def is_lookup(part: FromPart) -> bool:
    """Whether a part is an unchanged non-retroactive relation of FROM."""
    return part.relation is not None and not part.relation.retroactive


def check_relations(builder: PartBuilder, parts: Sequence[FromPart]) -> None:
    """Refuse a join of stream rows with several retroactive relations, or with rows that end early."""
    relations = [part for part in parts if part.relation]
    other_parts = [part for part in parts if not part.relation]
    if not relations or not other_parts:
        return
    if len(relations) > 1:
        names = [part.relation.name for part in relations if part.relation]
        aliases = [part.item.alias for part in relations if part.item]
        raise RefusedError(
            relations[1].item.node if relations[1].item else None,
            f"a second retroactive relation, {names[1]}, joined with rows that {names[0]} can change already",
            "one retroactive relation in a join; combine them in a sub-query or view of their own",
            f"(SELECT ... FROM {names[0]} {aliases[0]} JOIN {names[1]} {aliases[1]} ON ...)",
        )
    for part in other_parts:
        check_steady(builder, part, relations[0])


def check_steady(builder: PartBuilder, part: FromPart, relation: FromPart) -> None:
    """Refuse to join a relation with rows that can leave before their own end."""
    if builder.label(part.operator) != STR or relation.item is None or relation.relation is None:
        return
    names = ", ".join(item.alias for item in builder.items(part))
    raise RefusedError(
        relation.item.node,
        f"the relation {relation.relation.name} joined with {names}, whose rows can leave before their own end",
        "a relation joined with rows that live to their own end: join it below the negation, aggregate or row window",
    )


def looked_up(
    builder: PartBuilder,
    parts: list[FromPart],
    conditions: list[exp.Expr],
    join: Callable[[PartBuilder, list[FromPart], list[exp.Expr]], FromPart],
) -> tuple[list[FromPart], list[exp.Expr]]:
    """Attach non-retroactive relations to the parts that name their keys; return all parts, and the other conditions.

    Raises
    ------
    RefusedError
        When a relation's whole key is not given, not even by all other parts together, which ``join`` joins.

    """
    if all(part.relation for part in parts):
        return parts, conditions
    while lookups := [part for part in parts if is_lookup(part)]:
        for lookup in lookups:
            attached = attach(builder, lookup, [part for part in parts if not is_lookup(part)], conditions, outer=False)
            if attached:
                target, replacement, conditions = attached
                parts = [replacement if part is target else part for part in parts if part is not lookup]
                break
        else:
            parts, conditions = _looked_up_by_all(builder, parts, lookups, conditions, join)
    return parts, conditions


def _looked_up_by_all(
    builder: PartBuilder,
    parts: list[FromPart],
    lookups: list[FromPart],
    conditions: list[exp.Expr],
    join: Callable[[PartBuilder, list[FromPart], list[exp.Expr]], FromPart],
) -> tuple[list[FromPart], list[exp.Expr]]:
    """Join the other parts first: a key may come from several of them."""
    other_parts = [part for part in parts if not is_lookup(part)]
    if len(other_parts) == 1 or any(item.internal for item in builder.scope.items):
        raise no_key(builder, lookups[0])
    other_owners = frozenset[int]().union(*(part.owners for part in other_parts))
    ready = [condition for condition in conditions if owners_of(condition) <= other_owners]
    rest = [condition for condition in conditions if not owners_of(condition) <= other_owners]
    return [join(builder, other_parts, ready), *lookups], rest


def no_key(builder: PartBuilder, lookup: FromPart) -> RefusedError:
    """Return the refusal of a relation whose key is not given."""
    item, relation = lookup.item, lookup.relation
    if item is None or relation is None:
        raise TypeError("not a relation")
    key = " AND ".join(f"{item.alias}.{name} = ..." for name in relation.key)
    found = f"the relation {relation.name} joined without an equality for each column of its key"
    other_items = [other_item for other_item in builder.scope.items if other_item is not item]
    pairs = [
        f"{item.alias}.{name} = {other.alias}.{column}"
        for name in relation.key
        for other in [next((candidate for candidate in other_items if candidate.column(name)), None)]
        if other is not None and (column := other.column(name))
    ]
    suggestion = f"ON {' AND '.join(pairs)}" if len(pairs) == len(relation.key) else None
    return RefusedError(item.node, found, f"ON {key}", suggestion)


def attach(
    builder: PartBuilder, lookup: FromPart, parts: Sequence[FromPart], conditions: list[exp.Expr], *, outer: bool
) -> tuple[FromPart, FromPart, list[exp.Expr]] | None:
    """Look a relation up by the part that names its whole key; return this part, its replacement, and other conditions."""
    item, relation = lookup.item, lookup.relation
    if item is None or relation is None:
        raise TypeError("not a relation")
    for part in parts:
        equalities: dict[str, tuple[exp.Expr, exp.Expr]] = {}
        for condition in conditions:
            sides = builder.sides(condition, [part, lookup]) if isinstance(condition, exp.EQ) else None
            if sides is None:
                continue
            expression, relation_column = (
                (condition.this, condition.expression) if sides[0] == 0 else (condition.expression, condition.this)
            )
            if isinstance(relation_column, exp.Column):
                equalities.setdefault(str(relation_column.meta["base"]).lower(), (condition, expression))
        if not all(name.lower() in equalities for name in relation.key):
            continue
        check_steady(builder, part, lookup)
        chosen = [equalities[name.lower()] for name in relation.key]
        keyed, names = builder.keyed(part, [expression for _, expression in chosen])
        (number,) = lookup.owners
        added = tuple(Named(builder.scope.name(number, column), quoted(column)) for column in item.columns if column in item.used)
        on = tuple(zip(names, relation.key, strict=True))
        replacement = FromPart(AsOf(keyed.operator, relation.name, on, added, outer), part.owners | lookup.owners)
        consumed = {id(condition) for condition, _ in chosen}
        return part, replacement, [condition for condition in conditions if id(condition) not in consumed]
    return None


def not_preserved(lookup: FromPart) -> RefusedError:
    """Return the refusal of an outer join that would keep a relation's rows."""
    name = lookup.relation.name if lookup.relation else ""
    found = f"the relation {name} on the side of an outer join whose rows are all kept"
    allowed = "a stream LEFT JOIN the relation, which keeps the stream's rows; or retroactive = true for the relation"
    return RefusedError(lookup.item.node if lookup.item else None, found, allowed)


def nulled(builder: PartBuilder, part: FromPart, lookup: FromPart, conditions: list[exp.Expr]) -> FromPart:
    """Return a part whose columns of the relation are null in rows for which the rest of ON does not hold."""
    holds = all_hold([text(condition) for condition in conditions], conditions)
    added = {column.name for column in part.operator.columns} if isinstance(part.operator, AsOf) else set()
    columns = tuple(
        Named(name, f"CASE WHEN {holds} THEN {quoted(name)} END" if name in added else quoted(name))
        for name in builder.columns(part.operator)
    )
    return FromPart(Project(part.operator, columns), part.owners | lookup.owners)
