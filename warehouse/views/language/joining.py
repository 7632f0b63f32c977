"""The joins of one FROM, built from its items: inner joins flat, outer joins in pairs, relations looked up.

An inner join of any number of inputs is one operator. A non-retroactive relation is looked up by the rows that name its
key, below the join, so each stream row sees the version as of its own ``ts`` (DESIGN 9). Unmatched rows of outer joins
and lookups behave as in SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from warehouse.views.algebra import Equality, Join, OuterJoin
from warehouse.views.language.dialect import text, unquoted
from warehouse.views.language.faults import RefusedError
from warehouse.views.language.from_parts import FromPart, PartBuilder, all_hold, equal_sides
from warehouse.views.language.lookups import (
    attach,
    check_relations,
    check_steady,
    is_lookup,
    looked_up,
    no_key,
    not_preserved,
    nulled,
)
from warehouse.views.language.scope import owners_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.views.language.scope import Item

__all__ = ["Conditions", "Step", "collapse", "combine"]

Conditions = list[exp.Expr]
Side = Literal["inner", "left", "right", "full"]


@dataclass(frozen=True)
class Step:
    """The next item of a FROM, how it is joined, and the parts of its ON condition, bound."""

    number: int
    side: Side
    on: Conditions


def combine(builder: PartBuilder, steps: Sequence[Step], where: Sequence[exp.Expr]) -> tuple[list[FromPart], Conditions]:
    """Join the items of a FROM up to its last outer join; return the remaining parts, and the conditions on which to join them.

    Parameters
    ----------
    builder
        Makes parts.
    steps
        The items in order.
    where
        The parts of WHERE. A part that only needs rows that no outer join makes null is applied as soon as possible.

    """
    made_null: set[int] = set()
    outer = any(step.side != "inner" for step in steps)
    for position, step in enumerate(steps):
        if step.side in {"left", "full"}:
            made_null.add(step.number)
        if step.side in {"right", "full"}:
            made_null.update(earlier.number for earlier in steps[:position])
    # A condition without columns filters whole results: below an outer join it would turn removed rows into nulls.
    late = [condition for condition in where if owners_of(condition) & made_null or (outer and not owners_of(condition))]
    pending = [condition for condition in where if condition not in late]
    parts: list[FromPart] = []
    for step in steps:
        if step.side == "inner":
            parts.append(builder.part(step.number))
            pending += step.on
            continue
        joined_owners = frozenset[int]().union(*(part.owners for part in parts))
        ready = [condition for condition in pending if owners_of(condition) <= joined_owners]
        pending = [condition for condition in pending if condition not in ready]
        parts = _outer(builder, parts, ready, step)
    return parts, pending + late


def collapse(builder: PartBuilder, parts: Sequence[FromPart], conditions: Sequence[exp.Expr]) -> FromPart:
    """Inner join parts on conditions.

    Raises
    ------
    RefusedError
        When no equality connects two parts, or a relation cannot be looked up.

    """
    new_parts, rest = _filtered(builder, parts, conditions)
    new_parts, rest = looked_up(builder, new_parts, rest, collapse)
    new_parts, rest = _filtered(builder, new_parts, rest)
    return builder.filtered(new_parts[0], rest) if len(new_parts) == 1 else _joined(builder, new_parts, rest)


def _filtered(
    builder: PartBuilder, parts: Sequence[FromPart], conditions: Sequence[exp.Expr]
) -> tuple[list[FromPart], Conditions]:
    """Filter each part by the conditions on it alone; return the parts and the other conditions."""
    own_conditions: list[Conditions] = [[] for _ in parts]
    rest = []
    mixed = not all(part.relation for part in parts)
    for condition in conditions:
        number = builder.part_of(condition, parts)
        if number is None or (mixed and is_lookup(parts[number])):
            rest.append(condition)
        else:
            own_conditions[number].append(condition)
    return [builder.filtered(part, part_conditions) for part, part_conditions in zip(parts, own_conditions, strict=True)], rest


def _joined(builder: PartBuilder, parts: Sequence[FromPart], conditions: Sequence[exp.Expr]) -> FromPart:
    check_relations(builder, parts)
    pairs = [(condition, sides) for condition in conditions if (sides := builder.sides(condition, parts))]
    equalities = [pair for pair in pairs if isinstance(pair[0], exp.EQ)]
    null_safe = bool(pairs) and not equalities
    used = equalities or pairs
    if equalities and len(_reached([sides for _, sides in equalities])) < len(parts):
        used = pairs
    _check_connected(builder, parts, [sides for _, sides in used], conditions)
    keys: list[Conditions] = [[] for _ in parts]
    for condition, (left, right) in used:
        left_key, right_key = (condition.this, condition.expression) if null_safe else equal_sides(condition)
        keys[left].append(left_key)
        keys[right].append(right_key)
    keyed = [builder.keyed(part, part_keys) for part, part_keys in zip(parts, keys, strict=True)]
    names: list[Iterator[str]] = [iter(part_names) for _, part_names in keyed]
    equal = tuple(Equality(left, next(names[left]), right, next(names[right])) for _, (left, right) in used)
    consumed = {id(condition) for condition, _ in used}
    rest = [condition for condition in conditions if id(condition) not in consumed]
    where = all_hold([text(condition) for condition in rest], rest) if rest else None
    owners = frozenset[int]().union(*(part.owners for part in parts))
    return FromPart(Join(tuple(part.operator for part, _ in keyed), equal, where, null_safe), owners)


def _reached(sides: Sequence[tuple[int, int]]) -> set[int]:
    """Return the parts that equalities connect with the first one."""
    reached, grown = {0}, True
    while grown:
        more = {part for pair in sides if reached & set(pair) for part in pair}
        grown = not more <= reached
        reached |= more
    return reached


def _check_connected(
    builder: PartBuilder, parts: Sequence[FromPart], sides: Sequence[tuple[int, int]], conditions: Sequence[exp.Expr]
) -> None:
    reached = _reached(sides)
    if len(reached) == len(parts):
        return
    apart = next(number for number in range(len(parts)) if number not in reached)
    left_items, right_items = (builder.items(parts[number]) for number in (0, apart))
    names = f"{left_items[0].alias} and {right_items[0].alias}"
    other_conditions = [condition for condition in conditions if owners_of(condition) & parts[apart].owners]
    found = (
        f"the join of {names} on {unquoted(other_conditions[0])} alone"
        if other_conditions
        else f"{names} joined without a condition"
    )
    raise RefusedError(
        right_items[0].node, found, "a join with an equality of columns of both sides", _equality(left_items, right_items)
    )


def _equality(left_items: Sequence[Item], right_items: Sequence[Item]) -> str | None:
    """Return a join condition on a column that both sides have."""
    for left_item in left_items:
        for right_item in right_items:
            for name in left_item.columns:
                if right_item.column(name):
                    return f"{left_item.alias}.{name} = {right_item.alias}.{right_item.column(name)}"
    return None


# --- outer joins ---


def _outer(builder: PartBuilder, parts: list[FromPart], conditions: Conditions, step: Step) -> list[FromPart]:
    right = builder.part(step.number)
    if is_lookup(right) and step.side == "left" and not all(part.relation for part in parts):
        return _outer_lookup(builder, parts, conditions, right, step.on)
    if step.side == "right" and len(parts) == 1 and is_lookup(parts[0]) and not right.relation:
        return _outer_lookup(builder, [right], conditions, parts[0], step.on)
    left = collapse(builder, parts, conditions)
    for lookup, other in ((left, right), (right, left)):
        if is_lookup(lookup) and not other.relation:
            raise not_preserved(lookup)
        if lookup.relation and not other.relation:
            check_steady(builder, other, lookup)
    return [_outer_joined(builder, left, right, step)]


def _outer_lookup(
    builder: PartBuilder, parts: list[FromPart], conditions: Conditions, lookup: FromPart, on: Conditions
) -> list[FromPart]:
    """Join a relation by LEFT JOIN: rows without a version, or whose version fails the rest of ON, are kept with nulls."""
    parts, conditions = _filtered(builder, parts, conditions)
    attached = attach(builder, lookup, parts, on, outer=True)
    if attached is None or any(not owners_of(condition) <= attached[1].owners for condition in attached[2]):
        parts, conditions = [collapse(builder, parts, conditions)], []
        attached = attach(builder, lookup, parts, on, outer=True)
    if attached is None:
        raise no_key(builder, lookup)
    target, joined, rest = attached
    if rest:
        joined = nulled(builder, joined, lookup, rest)
    parts = [joined if part is target else part for part in parts]
    return parts if not conditions else [collapse(builder, parts, conditions)]


def _outer_joined(builder: PartBuilder, left: FromPart, right: FromPart, step: Step) -> FromPart:
    parts = (left, right)
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    own_conditions: tuple[Conditions, Conditions] = ([], [])
    rest: Conditions = []
    has_equality = any(isinstance(condition, exp.EQ) and builder.sides(condition, parts) for condition in step.on)
    for condition in step.on:
        sides = builder.sides(condition, parts) if isinstance(condition, exp.EQ) or not has_equality else None
        part_number = builder.part_of(condition, parts)
        if sides is not None:
            equal = equal_sides(condition)
            pairs.append(equal if sides == (0, 1) else (equal[1], equal[0]))
        elif (step.side, part_number) in {("left", 1), ("right", 0)}:
            own_conditions[part_number or 0].append(condition)
        else:
            rest.append(condition)
    if not pairs:
        left_items, right_items = builder.items(left), builder.items(right)
        found = f"an outer join of {left_items[-1].alias} and {right_items[0].alias} without an equality"
        allowed = "an outer join with an equality of columns of both sides"
        raise RefusedError(right_items[0].node, found, allowed, _equality(left_items, right_items))
    filtered = [builder.filtered(part, conditions) for part, conditions in zip(parts, own_conditions, strict=True)]
    (left_part, names), (right_part, partners) = (
        builder.keyed(part, [pair[side] for pair in pairs]) for side, part in enumerate(filtered)
    )
    where = all_hold([text(condition) for condition in rest], rest) if rest else None
    kind: Literal["left", "right", "full"] = "left" if step.side == "inner" else step.side
    on = tuple(zip(names, partners, strict=True))
    return FromPart(OuterJoin(left_part.operator, right_part.operator, kind, on, where), left.owners | right.owners)
