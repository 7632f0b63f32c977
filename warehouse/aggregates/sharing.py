"""Which synopses serve an aggregate: stored synopses that have its rows, groups and states, alone or together, and new synopses.

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
    serving = _alike(need.synopsis, there)
    if kinds is not None and known is not None and serving:
        older = _cover_of(need, need.synopsis.states, there, kinds, rows=True)
        if older and _begins(older, known) < _begins(serving, known) and _keeps(older, known) >= need.slots:
            return tuple(older)
    served_states = {state for served in serving for state in served.states}
    unserved = tuple(state for state in need.synopsis.states if state not in served_states)
    if kinds is not None and (unserved or not serving):
        serving += _covering(need, unserved, there, kinds, rows=not serving)
    return tuple(serving)


def _begins(served: Sequence[Served], histories: Sequence[tuple[int, int]]) -> int:
    """Return the first slot from which all these synopses have every row."""
    return max(histories[number][0] for serving in served for number in serving.numbers)


def _keeps(served: Sequence[Served], histories: Sequence[tuple[int, int]]) -> int:
    return min(histories[number][1] for serving in served for number in serving.numbers)


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


def _alike(needed: Synopsis, stored: Sequence[Synopsis]) -> list[Served]:
    """Return the synopses of the same rows and groups that have wanted states; the first also gives the number of rows."""
    serving: list[Served] = []
    unserved = _bundles(needed.states)
    for number, synopsis in enumerate(stored):
        if not synopsis.alike(needed):
            continue
        provided = [bundle for bundle in unserved if set(bundle) <= set(synopsis.states)]
        if provided or not serving:
            serving.append(Served(number, tuple(state for bundle in provided for state in bundle), rows=not serving))
        unserved = [bundle for bundle in unserved if bundle not in provided]
    return [served for served in serving if served.states or served.rows]


def _covering(
    need: Need, unserved: tuple[ColumnState, ...], stored: Sequence[Synopsis], kinds: Mapping[str, Kind], *, rows: bool
) -> list[Served]:
    """Return synopses of other conditions that cover the states: one cover for all states, or else one cover for each bundle."""
    one_cover = _cover_of(need, unserved, stored, kinds, rows=rows)
    bundles = _bundles(unserved)
    if one_cover or len(bundles) < 2:  # noqa: PLR2004 - one was tried
        return one_cover
    parts: list[Served] = []
    for bundle in bundles:
        parts += _cover_of(need, bundle, stored, kinds, rows=rows and not parts)
    return parts


def _cover_of(
    need: Need, states: tuple[ColumnState, ...], stored_synopses: Sequence[Synopsis], kinds: Mapping[str, Kind], *, rows: bool
) -> list[Served]:
    needed = need.synopsis
    needed_atoms = None if needed.where is None else _atoms(needed.where, kinds)
    if needed_atoms is None:
        return []
    stored, serving = {}, {}
    for where in dict.fromkeys(synopsis.where for synopsis in stored_synopses if synopsis.where not in (None, needed.where)):
        alike = _alike(replace(needed, where=where, states=states), stored_synopses)
        atoms = _atoms(where or "", kinds)
        if atoms is not None and alike and set(states) == {state for served in alike for state in served.states}:
            stored[where or ""], serving[where or ""] = atoms, alike
    repeats = needed.counted is None and not (rows and need.rows) and all(state.function in _REPEATING for state in states)
    chosen = cover(needed_atoms, stored, "duplicate-insensitive" if repeats else "additive") or ()
    if chosen or needed.listed is not None or not set(states) <= set(need.subtractable):
        return [replace(served, rows=served.rows and rows) for where in chosen for served in serving[where]]
    synopsis_of = {where: number for where in stored if (number := _having(needed, where, states, stored_synopses)) is not None}
    terms = difference(needed_atoms, {where: stored[where] for where in synopsis_of})
    if terms is None:
        return []
    first, *plus = (synopsis_of[where] for where in terms[0])
    return [Served(first, states, rows, tuple(plus), tuple(synopsis_of[where] for where in terms[1]))]


def _having(needed: Synopsis, where: str, states: tuple[ColumnState, ...], stored: Sequence[Synopsis]) -> int | None:
    """Return the number of the first synopsis of a condition that has all these states with the same types."""
    expected = replace(needed, where=where)
    exact = {(state, state.type) for state in states}
    numbered = enumerate(stored)
    typed = (
        (number, {(state, state.type) for state in synopsis.states})
        for number, synopsis in numbered
        if synopsis.alike(expected)
    )
    return next((number for number, typed_states in typed if exact <= typed_states), None)


def missing(
    wanted: Sequence[Need], there: Sequence[Synopsis], kinds: Mapping[str, Kind] | None = None
) -> tuple[Synopsis, ...]:
    """Return the synopses to create so that each need is served: one for all needs of the same rows and groups.

    A new state gets a new synopsis, so that existing synopses keep their history. Conditions with few atoms come first: with
    ``kinds`` they may cover others.
    """
    created: list[Synopsis] = []
    for need in sorted(wanted, key=lambda need: (need.synopsis.parts is None, _atom_count(need, kinds))):
        served = assigned(need, [*there, *created], kinds)
        served_states = {state for serving in served for state in serving.states}
        unserved = tuple(state for state in need.synopsis.states if state not in served_states)
        if served and not unserved:
            continue
        position = next((position for position, synopsis in enumerate(created) if synopsis.alike(need.synopsis)), None)
        if position is None:
            created.append(replace(need.synopsis, states=unserved))
        else:
            created[position] = replace(created[position], states=tuple(dict.fromkeys((*created[position].states, *unserved))))
            created[position] = lengthened(created[position], need.synopsis.listed)
    return tuple(created)


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
