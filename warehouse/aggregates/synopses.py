"""Synopses: the states of slots from which answers are merged, and the synopses that an aggregate needs.

Source: shared-aggregates sheet, 2 and 3.

Invariant of a synopsis: the rows of slot ``a`` and group ``g`` merge to ``{ f(x) : x in source, where(x), slot(x.ts) = a,
group(x) = g }`` for each state ``f``; a late batch adds a row of its own to its slot, so stored rows are never rewritten. It is a
basic interval synopsis, with intervals of one slot. If it is cheaper, it also has longer intervals
(:mod:`warehouse.aggregates.intervals`); the same holds for all slots of an interval together.

Exact holistic aggregates (COUNT DISTINCT, percentiles) have a separate synopsis that is grouped by the value, too: its states are
the counts of the values. Estimated aggregates have states like all others: sketches, which merge. Frequent items have lists
(:mod:`warehouse.aggregates.frequent`): the rows of a slot, group and batch are the list's items by rank, and a row of rank 0 with
the number of rows of the whole batch.

For aggregates over live rows a synopsis also separates rows by their expiration slot: a row is live at the end of a window if its
slot is later than this end. Over a join it may also separate rows by the arrival slots of both parts of a result, which is exact
for windows of any two lengths (section 12). A synopsis that is rewritten would need fewer rows, by the difference of these slots
up to a bound (section 4.1). A synopsis to which rows are only added has the same number of rows in both cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.aggregates.definition import AggregateDefinition, Value

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
    "Synopsis",
    "counts_values",
    "needs",
    "sketch_of",
]

ARRIVED = "_arrived"
"""The column of a synopsis with the slot of the row; for an interval of several slots, the last of them."""
LEVEL = "_level"
"""The level of an interval, which has ``2^level`` slots, in a synopsis with intervals longer than a slot."""
ROWS = "_rows"
FAILED = "_failed"
"""Rows for which ``where`` could not be evaluated: nobody knows whether they belong to the group's answer."""
VALUE = "_value"
UNTIL = "_until"
"""The first slot at whose end a row is no longer live."""
PARTS = ("_part_1", "_part_2")
"""The slots in which the parts of a join's result arrived."""
BATCH = "_batch"
"""The epoch that loaded the rows of a list: late rows have a list of their own."""
RANK = "_rank"
"""The place of an item in its list, from 1; 0 in the row that speaks for the whole list."""
DELTA = "_delta"
AFTER = "_after"
"""The count of the last item of a list, if the list is full, and the count of the first item after the list."""

StateFunction = Literal["count", "sum", "min", "max", "mean", "m2", "hll", "kll"]
WIDE = "decimal(29,0)"
"""The type of sums of `bigint`: the sum of any 10 000 000 000 values fits into it."""
_MOMENTS = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")
_COUNTED = ("distinct", "percentile")


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
        is_wide = self.function == "sum" and self.type == WIDE
        return self.function, self.column, "bigint" if is_wide else self.type, self.size

    def __eq__(self, other: object) -> bool:
        """Whether another state is the same state of the same column."""
        return isinstance(other, ColumnState) and self._identity == other._identity

    def __hash__(self) -> int:
        """A number that equal states share."""
        return hash(self._identity)


@dataclass(frozen=True)
class Synopsis:
    """One synopsis: states of columns, or with ``counted`` (a column with its type) the count of each value.

    With ``listed`` it has only the most frequent ``listed`` values of each batch of a slot. A ``live`` synopsis separates rows by
    their expiration slot, a synopsis with ``parts`` (columns of a join) by the arrival slots of the parts. ``computed`` are
    groups given by an expression, with their names. The longest intervals have ``2^levels`` slots; ``levels`` 0 means intervals
    of one slot only.
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
        ranks = ((BATCH, "bigint"), (RANK, "bigint")) if self.listed else ()
        ends = ((DELTA, "bigint"), (AFTER, "bigint")) if self.listed else ()
        slots = ((name, "bigint") for name in (*self.slots, *((LEVEL,) if self.levels else ())))
        return (*slots, *self.group_by, *ranks, *value, (ROWS, "bigint"), *failed, *states, *ends)

    @property
    def shows_values(self) -> bool:
        """Whether it has values of single rows: groups, counted or listed values, extremes, or sketches of values."""
        shown = any(state.function in ("min", "max", "hll", "kll") for state in self.states)
        return bool(self.group_by) or self.counted is not None or shown

    def alike(self, other: Synopsis) -> bool:
        """Whether it has the rows and groups of another, needed synopsis (SS3: this synopsis may separate rows by parts)."""
        if other.parts != self.parts and (other.parts is not None or self.listed is not None):
            return False
        own_rows, other_rows = (
            (
                synopsis.source,
                synopsis.where,
                synopsis.group_by,
                synopsis.computed,
                synopsis.counted,
                synopsis.listed is None,
                synopsis.live,
            )
            for synopsis in (self, other)
        )
        return own_rows == other_rows


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
    synopses = (
        Synopsis(*common, None, tuple(states), live=live, computed=computed, parts=parts),
        *(Synopsis(*common, column, (), live=live, computed=computed, parts=parts) for column in counted),
    )
    rows = any(value.function == "rows" for value in definition.values)
    exact = tuple(dict.fromkeys(state for value in definition.values for state in _states(value) if _subtractable(state, value)))
    return tuple(Need(synopsis, definition.longest, rows, exact) for synopsis in synopses)


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
    """Return the sketch that a value is estimated from; None for an exact value."""
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
