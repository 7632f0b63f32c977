"""Which synopses serve an aggregate: the stored ones that have its rows, groups and states, alone or together, and those to add.

Source: shared-aggregates sheet, 5 (rules SS1 to SS4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.aggregates.predicates import cover, difference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.aggregates.predicates import Kind, Predicate
    from warehouse.aggregates.synopses import ColumnState, Need, Synopsis

__all__ = ["Served", "assigned", "lengthened", "missing"]


@dataclass(frozen=True)
class Served:
    """The part of a need that one synopsis serves, by its number: some states, and with ``rows`` the number of rows.

    With ``less`` it is a difference: the rows of this synopsis and of ``plus``, without the rows of ``less``.
    """

    number: int
    states: tuple[ColumnState, ...]
    rows: bool
    plus: tuple[int, ...] = ()
    less: tuple[int, ...] = ()

    @property
    def numbers(self) -> tuple[int, ...]:
        """All synopses that are read for it."""
        return (self.number, *self.plus, *self.less)


def assigned(
    need: Need,
    there: Sequence[Synopsis],
    kinds: Mapping[str, Kind] | None = None,
    known: Sequence[tuple[int, int]] | None = None,
) -> tuple[Served, ...]:
    """Return the existing synopses that serve a need; :func:`missing` returns the synopses that must be added.

    Aggregates of the same rows and groups share a synopsis (SS1), so each state is stored once. With ``kinds`` (how the columns
    of the source are compared), states may come from synopses of other conditions that together have the same rows (SS4): the
    states of `a = 1 OR a = 2` from synopses of `a = 1` and of `a = 2`, or the states of `a = 1` from the other two. Such a cover
    is preferred to a synopsis of the same condition that begins later. ``known`` has for each synopsis the first slot with all
    rows, and the number of slots that it keeps.

    >>> from warehouse.aggregates.synopses import ColumnState, Need, Synopsis
    >>> count, low = ColumnState("count", "x", "bigint"), ColumnState("min", "x", "int")
    >>> there = [Synopsis("s", None, (), None, (count,)), Synopsis("s", None, (), None, (low,))]
    >>> need = Need(Synopsis("s", None, (), None, (count, low)), 1)
    >>> [(served.number, [state.name for state in served.states], served.rows) for served in assigned(need, there)]
    [(0, ['_count_x'], True), (1, ['_min_x'], False)]
    """
    found = _alike(need.synopsis, there)
    if kinds is not None and known is not None and found:
        older = _cover_of(need, need.synopsis.states, there, kinds, rows=True)
        if older and _begins(older, known) < _begins(found, known) and _keeps(older, known) >= need.slots:
            return tuple(older)
    held = {state for served in found for state in served.states}
    left = tuple(state for state in need.synopsis.states if state not in held)
    if kinds is not None and (left or not found):
        found += _covering(need, left, there, kinds, rows=not found)
    return tuple(found)


def _begins(served: Sequence[Served], known: Sequence[tuple[int, int]]) -> int:
    """Return the first slot from which all these synopses have every row."""
    return max(known[number][0] for each in served for number in each.numbers)


def _keeps(served: Sequence[Served], known: Sequence[tuple[int, int]]) -> int:
    return min(known[number][1] for each in served for number in each.numbers)


_MERGED_WITH_COUNTS = ("count", "sum", "mean", "m2")
_REPEATING = ("min", "max", "hll")
"""States that are the same if a row is in them twice."""


def _bundles(states: Sequence[ColumnState]) -> list[tuple[ColumnState, ...]]:
    """Return the states in bundles that must come from one synopsis.

    Sums and moments of a column need the counts of the same rows.
    """
    bundles: dict[tuple[str, str], tuple[ColumnState, ...]] = {}
    for state in states:
        key = (state.column, "" if state.function in _MERGED_WITH_COUNTS else state.name)
        bundles[key] = (*bundles.get(key, ()), state)
    return [*bundles.values()]


def _alike(wanted: Synopsis, there: Sequence[Synopsis]) -> list[Served]:
    """Return the synopses of the same rows and groups that have wanted states; the first also gives the number of rows."""
    found: list[Served] = []
    left = _bundles(wanted.states)
    for number, known in enumerate(there):
        if not known.alike(wanted):
            continue
        taken = [bundle for bundle in left if set(bundle) <= set(known.states)]
        if taken or not found:
            found.append(Served(number, tuple(state for bundle in taken for state in bundle), rows=not found))
        left = [bundle for bundle in left if bundle not in taken]
    return [served for served in found if served.states or served.rows]


def _covering(
    need: Need, left: tuple[ColumnState, ...], there: Sequence[Synopsis], kinds: Mapping[str, Kind], *, rows: bool
) -> list[Served]:
    """Return synopses of other conditions that cover the states: one cover for all states, or else one for each bundle."""
    whole = _cover_of(need, left, there, kinds, rows=rows)
    bundles = _bundles(left)
    if whole or len(bundles) < 2:  # noqa: PLR2004 - one was tried
        return whole
    parts: list[Served] = []
    for bundle in bundles:
        parts += _cover_of(need, bundle, there, kinds, rows=rows and not parts)
    return parts


def _cover_of(
    need: Need, states: tuple[ColumnState, ...], there: Sequence[Synopsis], kinds: Mapping[str, Kind], *, rows: bool
) -> list[Served]:
    own = need.synopsis
    wanted = None if own.where is None else _atoms(own.where, kinds)
    if wanted is None:
        return []
    stored, serving = {}, {}
    for where in dict.fromkeys(each.where for each in there if each.where not in (None, own.where)):
        found = _alike(replace(own, where=where, states=states), there)
        atoms = _atoms(where or "", kinds)
        if atoms is not None and found and set(states) == {state for served in found for state in served.states}:
            stored[where or ""], serving[where or ""] = atoms, found
    repeats = own.counted is None and not (rows and need.rows) and all(state.function in _REPEATING for state in states)
    chosen = cover(wanted, stored, "duplicate-insensitive" if repeats else "additive") or ()
    if chosen or own.listed is not None or not set(states) <= set(need.subtractable):
        return [replace(served, rows=served.rows and rows) for where in chosen for served in serving[where]]
    whole = {where: number for where in stored if (number := _having(own, where, states, there)) is not None}
    taken = difference(wanted, {where: stored[where] for where in whole})
    if taken is None:
        return []
    first, *plus = (whole[where] for where in taken[0])
    return [Served(first, states, rows, tuple(plus), tuple(whole[where] for where in taken[1]))]


def _having(own: Synopsis, where: str, states: tuple[ColumnState, ...], there: Sequence[Synopsis]) -> int | None:
    """Return the number of the first synopsis of a condition that has all these states with the same types."""
    wanted = replace(own, where=where)
    exact = {(state, state.type) for state in states}
    every = enumerate(there)
    typed = ((number, {(state, state.type) for state in each.states}) for number, each in every if each.alike(wanted))
    return next((number for number, found in typed if exact <= found), None)


def missing(
    wanted: Sequence[Need], there: Sequence[Synopsis], kinds: Mapping[str, Kind] | None = None
) -> tuple[Synopsis, ...]:
    """Return the synopses to create so that each need is served: one for all needs of the same rows and groups.

    A new state gets a new synopsis, so that existing ones keep their history. Conditions with few atoms come first: with
    ``kinds`` they may cover others.
    """
    made: list[Synopsis] = []
    for need in sorted(wanted, key=lambda need: (need.synopsis.parts is None, _atom_count(need, kinds))):
        served = assigned(need, [*there, *made], kinds)
        known = {state for each in served for state in each.states}
        left = tuple(state for state in need.synopsis.states if state not in known)
        if served and not left:
            continue
        place = next((place for place, each in enumerate(made) if each.alike(need.synopsis)), None)
        if place is None:
            made.append(replace(need.synopsis, states=left))
        else:
            made[place] = replace(made[place], states=tuple(dict.fromkeys((*made[place].states, *left))))
            made[place] = lengthened(made[place], need.synopsis.listed)
    return tuple(made)


def _atom_count(need: Need, kinds: Mapping[str, Kind] | None) -> int:
    where = need.synopsis.where
    return 0 if where is None or kinds is None else len(_atoms(where, kinds) or ())


def _atoms(condition: str, kinds: Mapping[str, Kind]) -> Predicate | None:
    from warehouse.aggregates.conditions import atoms_of  # noqa: PLC0415 - readers do without sqlglot, which takes time to import

    return atoms_of(condition, kinds)


def lengthened(synopsis: Synopsis, listed: int | None) -> Synopsis:
    """Return a synopsis whose new lists have at least a number of items; existing lists keep their length."""
    if synopsis.listed is None or listed is None:
        return synopsis
    return replace(synopsis, listed=max(synopsis.listed, listed))
