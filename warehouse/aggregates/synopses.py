"""Synopses: answers are merged from their states of slots.

This module finds the synopses of an aggregate (shared-aggregates, 2, 3).

Invariant of a synopsis: the rows of slot ``a`` and group ``g`` merge to ``{ f(x) : x in source, where(x), slot(x.ts) = a,
group(x) = g }`` for each state ``f``; a late batch adds a row of its own to its slot, so stored rows are never rewritten. It is a
basic interval synopsis, with intervals of one slot. If it is cheaper, it also has longer intervals
(:mod:`warehouse.aggregates.intervals`); the same holds for all slots of an interval together.

Exact holistic aggregates (COUNT DISTINCT, percentiles) have a separate synopsis that is grouped by the value, too: its states are
the counts of the values. Estimated ones are states like others: sketches, which merge. Frequent items have lists
(:mod:`warehouse.aggregates.frequent`): the rows of a slot, group and batch are the list's items by rank, and a row of rank 0 with
the number of rows of the whole batch.

For aggregates over live rows a synopsis also separates rows by their expiration slot: a row is live at the end of a window if its
slot is later than this end. Over a join it may also separate rows by the arrival slots of both parts of a result, which is exact
for windows of any two lengths (section 12). A synopsis that is rewritten would need fewer rows, by the difference of these slots
up to a bound (section 4.1). A synopsis to which rows are only added has the same number of rows in both cases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from warehouse.aggregates.predicates import cover, difference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.aggregates.definition import AggregateDefinition, Value
    from warehouse.aggregates.predicates import Kind, Predicate

__all__ = [
    "AFTER",
    "ARRIVED",
    "BATCH",
    "DELTA",
    "FAILED",
    "LEVEL",
    "PARTS",
    "RANK",
    "ROWS",
    "UNTIL",
    "VALUE",
    "WIDE",
    "Need",
    "Served",
    "Synopsis",
    "assigned",
    "counts_values",
    "lengthened",
    "missing",
    "needs",
    "sketch_of",
]

ARRIVED = "_arrived"
"""The column of a synopsis that says which slot its row is of; of an interval of several slots, the last of these."""
LEVEL = "_level"
"""Which power of two slots an interval has, in a synopsis with longer ones than a slot."""
ROWS = "_rows"
FAILED = "_failed"
"""Rows for which ``where`` could not be evaluated: nobody knows whether they belong to the group's answer."""
VALUE = "_value"
UNTIL = "_until"
"""The first slot at whose end a row does not live any more."""
PARTS = ("_part_1", "_part_2")
"""The slots in which the parts of a join's result arrived."""
BATCH = "_batch"
"""The epoch whose rows a list is of: late rows have a list of their own."""
RANK = "_rank"
"""The place of an item in its list, from 1; 0 in the row that speaks for the whole list."""
DELTA = "_delta"
AFTER = "_after"
"""The counts of the last item of a list, if it is full, and of the first one after it."""

StateFunction = Literal["count", "sum", "min", "max", "mean", "m2", "hll", "kll"]
WIDE = "decimal(29,0)"
"""The type of sums of `bigint`: the sum of any 10 000 000 000 values fits into it."""
_MOMENTS = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")
_COUNTED = ("distinct", "percentile")
_MERGED_WITH_COUNTS = ("count", "sum", "mean", "m2")
_REPEATING = ("min", "max", "hll")
"""States that are the same if a row is in them twice."""


@dataclass(frozen=True, eq=False)
class ColumnState:
    """A mergeable state of a column's values.

    ``m2`` is the sum of squared differences from their mean; ``hll`` and ``kll`` are sketches (of distinct values, of
    percentiles) of a ``size``. Sums of `bigint` are of the type :data:`WIDE`, which no sum leaves; synopses of older versions
    have them as `bigint`, where a sum of a slot may be lost. Both are the same state.
    """

    function: StateFunction
    column: str
    type: str
    size: int | None = None

    @property
    def name(self) -> str:
        """The column of a synopsis that stores it."""
        return f"_{self.function}{self.size or ''}_{self.column}"

    @property
    def _identity(self) -> tuple[str, str, str, int | None]:
        older = self.function == "sum" and self.type == WIDE
        return self.function, self.column, "bigint" if older else self.type, self.size

    def __eq__(self, other: object) -> bool:
        """Whether another state has the same of the same column."""
        return isinstance(other, ColumnState) and self._identity == other._identity

    def __hash__(self) -> int:
        """A number that equal states share."""
        return hash(self._identity)


@dataclass(frozen=True)
class Synopsis:
    """One synopsis: states of columns, or with ``counted`` (a column with its type) the count of each value.

    With ``listed`` it has only the most frequent ``listed`` values of each batch of a slot. A ``live`` synopsis separates rows by
    their expiration slot, one with ``parts`` (columns of a join) by the arrival slots of the parts. ``computed`` are groups given
    by an expression, with their names. The longest intervals have ``2^levels`` slots; ``levels`` 0 means intervals of one slot
    only.
    """

    source: str
    where: str | None
    group_by: tuple[tuple[str, str], ...]
    counted: tuple[str, str] | None
    states: tuple[ColumnState, ...]
    listed: int | None = None
    live: bool = False
    computed: tuple[tuple[str, str], ...] = ()
    parts: tuple[str, str] | None = None
    levels: int = 0

    @property
    def slots(self) -> tuple[str, ...]:
        """The columns with the slots of its rows."""
        return (ARRIVED, *((UNTIL,) if self.live else ()), *(PARTS if self.parts else ()))

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Its columns with their types."""
        value = () if self.counted is None else ((VALUE, self.counted[1]),)
        states = ((state.name, state.type) for state in self.states)
        failed = ((FAILED, "bigint"),) if self.counted is None or self.listed else ()
        place = ((BATCH, "bigint"), (RANK, "bigint")) if self.listed else ()
        ends = ((DELTA, "bigint"), (AFTER, "bigint")) if self.listed else ()
        slots = ((name, "bigint") for name in (*self.slots, *((LEVEL,) if self.levels else ())))
        return (*slots, *self.group_by, *place, *value, (ROWS, "bigint"), *failed, *states, *ends)

    @property
    def shows_values(self) -> bool:
        """Whether it has values of single rows: groups, counted or listed values, extremes, or sketches of values."""
        shown = any(state.function in ("min", "max", "hll", "kll") for state in self.states)
        return bool(self.group_by) or self.counted is not None or shown

    def alike(self, other: Synopsis) -> bool:
        """Whether it has the rows and groups of another, needed synopsis (SS3: this one may separate rows by parts)."""
        if other.parts != self.parts and (other.parts is not None or self.listed is not None):
            return False
        mine, theirs = (
            (each.source, each.where, each.group_by, each.computed, each.counted, each.listed is None, each.live)
            for each in (self, other)
        )
        return mine == theirs


@dataclass(frozen=True)
class Need:
    """A synopsis that a definition reads, and for how many slots; ``rows`` says whether the number of rows is needed.

    The states ``subtractable`` are exact when the states of some rows are subtracted from the states of more rows.
    """

    synopsis: Synopsis
    slots: int
    rows: bool = True
    subtractable: tuple[ColumnState, ...] = ()


def needs(definition: AggregateDefinition) -> tuple[Need, ...]:
    """Return the synopses that a definition needs: one of states, and one for each column whose values it counts."""
    live, computed, parts = definition.over == "live", definition.computed, definition.parts
    if definition.frequent is not None:
        item = (definition.frequent.column, definition.frequent.type)
        lists = Synopsis(
            definition.source, definition.where, definition.group_by, item, (), listed=definition.frequent.k, live=live,
            computed=computed, parts=parts,
        )  # fmt: skip
        return (Need(lists, definition.longest),)
    states = dict.fromkeys(state for value in definition.values for state in _states(value))
    counted = dict.fromkeys(
        (value.column, value.column_type) for value in definition.values if counts_values(value) and value.column
    )
    common = (definition.source, definition.where, definition.group_by)
    every = (
        Synopsis(*common, None, tuple(states), live=live, computed=computed, parts=parts),
        *(Synopsis(*common, column, (), live=live, computed=computed, parts=parts) for column in counted),
    )
    rows = any(value.function == "rows" for value in definition.values)
    exact = tuple(dict.fromkeys(state for value in definition.values for state in _states(value) if _subtractable(state, value)))
    return tuple(Need(synopsis, definition.longest, rows, exact) for synopsis in every)


def _subtractable(state: ColumnState, value: Value) -> bool:
    """Whether differences of a state are exact: sums of doubles drift, and one that overflows in a slot is lost."""
    kind = value.column_type
    if state.function != "sum" or kind in ("tinyint", "smallint", "int", "bigint"):
        return state.function in ("count", "sum")
    return kind.startswith("decimal(") and int(kind.removeprefix("decimal(").partition(",")[0]) <= _DIGITS - _CARRY


def counts_values(value: Value) -> bool:
    """Whether a value is computed from the number of occurrences of each value of its column."""
    return value.function in _COUNTED and value.size is None


def sketch_of(value: Value) -> ColumnState | None:
    """Return the sketch that a value is estimated from; None of an exact one."""
    if value.size is None or value.column is None:
        return None
    return ColumnState("hll" if value.function == "distinct" else "kll", value.column, "binary", value.size)


def _states(value: Value) -> Iterator[ColumnState]:
    column, function = value.column, value.function
    sketch = sketch_of(value)
    if sketch is not None:
        yield sketch
    if column is None or function in _COUNTED:
        return
    if function not in ("min", "max"):
        yield ColumnState("count", column, "bigint")
    if function in ("min", "max"):
        yield ColumnState("min" if function == "min" else "max", column, value.type)
    elif function in ("sum", "avg"):
        yield ColumnState("sum", column, WIDE if value.column_type == "bigint" else sum_type(value.column_type))
    elif function in _MOMENTS:
        yield ColumnState("mean", column, "double")
        yield ColumnState("m2", column, "double")


_DIGITS = 38
_CARRY = 10


def sum_type(column_type: str) -> str:
    """Return the type of a sum as Spark has it.

    >>> sum_type("int"), sum_type("float"), sum_type("decimal(10,2)"), sum_type("decimal(38,2)")
    ('bigint', 'double', 'decimal(20,2)', 'decimal(38,2)')
    """
    if column_type.startswith("decimal("):
        precision, scale = column_type.removeprefix("decimal(").removesuffix(")").split(",")
        return f"decimal({min(_DIGITS, int(precision) + _CARRY)},{int(scale)})"
    return "double" if column_type in ("float", "double") else "bigint"


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
    """The first slot for which all these synopses have every row."""
    return max(known[number][0] for each in served for number in each.numbers)


def _keeps(served: Sequence[Served], known: Sequence[tuple[int, int]]) -> int:
    return min(known[number][1] for each in served for number in each.numbers)


def _bundles(states: Sequence[ColumnState]) -> list[tuple[ColumnState, ...]]:
    """The states in bundles that must come from one synopsis: sums and moments of a column need the counts of the same rows."""
    bundles: dict[tuple[str, str], tuple[ColumnState, ...]] = {}
    for state in states:
        key = (state.column, "" if state.function in _MERGED_WITH_COUNTS else state.name)
        bundles[key] = (*bundles.get(key, ()), state)
    return [*bundles.values()]


def _alike(wanted: Synopsis, there: Sequence[Synopsis]) -> list[Served]:
    """The synopses of the same rows and groups that have wanted states; the first also gives the number of rows."""
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
    """Synopses of other conditions that cover the states: one cover for all states, or else a cover for each bundle."""
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
    """The number of the first synopsis of a condition that has all these states with the same types."""
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
