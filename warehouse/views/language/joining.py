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
        The parts of WHERE. Those on rows that no outer join makes null are used as soon as they can be.

    """
    made_null: set[int] = set()
    outer = any(step.side != "inner" for step in steps)
    for position, step in enumerate(steps):
        if step.side in {"left", "full"}:
            made_null.add(step.number)
        if step.side in {"right", "full"}:
            made_null.update(each.number for each in steps[:position])
    # A condition without columns filters whole results: below an outer join it would turn removed rows into nulls.
    late = [each for each in where if owners_of(each) & made_null or (outer and not owners_of(each))]
    pending = [each for each in where if each not in late]
    parts: list[FromPart] = []
    for step in steps:
        if step.side == "inner":
            parts.append(builder.part(step.number))
            pending += step.on
            continue
        there = frozenset[int]().union(*(part.owners for part in parts))
        ready = [each for each in pending if owners_of(each) <= there]
        pending = [each for each in pending if each not in ready]
        parts = _outer(builder, parts, ready, step)
    return parts, pending + late


def collapse(builder: PartBuilder, parts: Sequence[FromPart], conditions: Sequence[exp.Expr]) -> FromPart:
    """Inner join parts on conditions.

    Raises
    ------
    RefusedError
        When no equality connects two parts, or a relation cannot be looked up.

    """
    found, rest = _filtered(builder, parts, conditions)
    found, rest = looked_up(builder, found, rest, collapse)
    found, rest = _filtered(builder, found, rest)
    return builder.filtered(found[0], rest) if len(found) == 1 else _joined(builder, found, rest)


def _filtered(
    builder: PartBuilder, parts: Sequence[FromPart], conditions: Sequence[exp.Expr]
) -> tuple[list[FromPart], Conditions]:
    """Filter each part by the conditions on it alone; return the parts and the other conditions."""
    own: list[Conditions] = [[] for _ in parts]
    rest = []
    mixed = not all(part.relation for part in parts)
    for each in conditions:
        number = builder.part_of(each, parts)
        if number is None or (mixed and is_lookup(parts[number])):
            rest.append(each)
        else:
            own[number].append(each)
    return [builder.filtered(part, each) for part, each in zip(parts, own, strict=True)], rest


def _joined(builder: PartBuilder, parts: Sequence[FromPart], conditions: Sequence[exp.Expr]) -> FromPart:
    check_relations(builder, parts)
    pairs = [(each, sides) for each in conditions if (sides := builder.sides(each, parts))]
    plain = [pair for pair in pairs if isinstance(pair[0], exp.EQ)]
    null_safe = bool(pairs) and not plain
    used = plain or pairs
    if plain and len(_reached([sides for _, sides in plain])) < len(parts):
        used = pairs
    _check_connected(builder, parts, [sides for _, sides in used], conditions)
    keys: list[Conditions] = [[] for _ in parts]
    for each, (left, right) in used:
        one, other = (each.this, each.expression) if null_safe else equal_sides(each)
        keys[left].append(one)
        keys[right].append(other)
    made = [builder.keyed(part, each) for part, each in zip(parts, keys, strict=True)]
    names: list[Iterator[str]] = [iter(each) for _, each in made]
    equal = tuple(Equality(left, next(names[left]), right, next(names[right])) for _, (left, right) in used)
    consumed = {id(each) for each, _ in used}
    rest = [each for each in conditions if id(each) not in consumed]
    where = all_hold([text(each) for each in rest], rest) if rest else None
    owners = frozenset[int]().union(*(part.owners for part in parts))
    return FromPart(Join(tuple(part.operator for part, _ in made), equal, where, null_safe), owners)


def _reached(sides: Sequence[tuple[int, int]]) -> set[int]:
    """Return the parts that equalities connect with the first one."""
    reached, grown = {0}, True
    while grown:
        more = {each for pair in sides if reached & set(pair) for each in pair}
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
    here, there = (builder.items(parts[number]) for number in (0, apart))
    names = f"{here[0].alias} and {there[0].alias}"
    others = [each for each in conditions if owners_of(each) & parts[apart].owners]
    found = f"the join of {names} on {unquoted(others[0])} alone" if others else f"{names} joined without a condition"
    raise RefusedError(there[0].node, found, "a join with an equality of columns of both sides", _equality(here, there))


def _equality(here: Sequence[Item], there: Sequence[Item]) -> str | None:
    """Return a join condition on a column that both sides have."""
    for one in here:
        for other in there:
            for name in one.columns:
                if other.column(name):
                    return f"{one.alias}.{name} = {other.alias}.{other.column(name)}"
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
    if attached is None or any(not owners_of(each) <= attached[1].owners for each in attached[2]):
        parts, conditions = [collapse(builder, parts, conditions)], []
        attached = attach(builder, lookup, parts, on, outer=True)
    if attached is None:
        raise no_key(builder, lookup)
    target, made, rest = attached
    if rest:
        made = nulled(builder, made, lookup, rest)
    parts = [made if part is target else part for part in parts]
    return parts if not conditions else [collapse(builder, parts, conditions)]


def _outer_joined(builder: PartBuilder, left: FromPart, right: FromPart, step: Step) -> FromPart:
    parts = (left, right)
    pairs: list[tuple[exp.Expr, exp.Expr]] = []
    own: tuple[Conditions, Conditions] = ([], [])
    rest: Conditions = []
    plain = any(isinstance(each, exp.EQ) and builder.sides(each, parts) for each in step.on)
    for each in step.on:
        sides = builder.sides(each, parts) if isinstance(each, exp.EQ) or not plain else None
        within = builder.part_of(each, parts)
        if sides is not None:
            equal = equal_sides(each)
            pairs.append(equal if sides == (0, 1) else (equal[1], equal[0]))
        elif (step.side, within) in {("left", 1), ("right", 0)}:
            own[within or 0].append(each)
        else:
            rest.append(each)
    if not pairs:
        here, there = builder.items(left), builder.items(right)
        found = f"an outer join of {here[-1].alias} and {there[0].alias} without an equality"
        allowed = "an outer join with an equality of columns of both sides"
        raise RefusedError(there[0].node, found, allowed, _equality(here, there))
    filtered = [builder.filtered(part, conditions) for part, conditions in zip(parts, own, strict=True)]
    (one, names), (other, partners) = (
        builder.keyed(part, [pair[side] for pair in pairs]) for side, part in enumerate(filtered)
    )
    where = all_hold([text(each) for each in rest], rest) if rest else None
    kind: Literal["left", "right", "full"] = "left" if step.side == "inner" else step.side
    on = tuple(zip(names, partners, strict=True))
    return FromPart(OuterJoin(one.operator, other.operator, kind, on, where), left.owners | right.owners)
