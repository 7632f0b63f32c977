"""The algebra of views: a parsed query as a tree of operators, and its nodes, which are kept as tables.

A plan is a tree of operators over stored tables. *Stateless* operators (scan, time window, filter, projection, as-of lookup,
union) need only the row itself; the others keep their answer as a table. Compiling cuts a tree below each operator that keeps
state, so that every :class:`Node` is one such operator over stateless inputs: a query of many operators is maintained exactly
like views over views. Operators are frozen and serialisable, since recorded plans contain nodes.

Column names are plain names of the operator's input, matched ignoring case; expressions are Spark SQL text over them, each column
quoted in backticks. Inputs of a join have disjoint column names, so there are no qualifiers. Every row of an operator has, in
addition to its columns, ``_ts`` (gen, the instant at which it enters the answer) and ``_exp``; lengths are microseconds.

Source: update-patterns sheet, sections 2 and 3; window-joins sheet, section 5; DESIGN 9.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "AggregateCall",
    "AntiJoin",
    "AsOf",
    "BagDifference",
    "Changes",
    "Distinct",
    "Equality",
    "Filter",
    "Group",
    "InternalRows",
    "Join",
    "Named",
    "Node",
    "Operator",
    "Order",
    "OuterJoin",
    "OutputWindow",
    "Project",
    "Scan",
    "Stateful",
    "Stateless",
    "TimeWindow",
    "Top",
    "UnionAll",
    "inputs_of",
    "scanned",
    "stateful_of",
    "tables_read",
]


class Named(msgspec.Struct, frozen=True):
    """A computed column."""

    name: str
    sql: str


class Equality(msgspec.Struct, frozen=True):
    """``inputs[left].left_column = inputs[right].right_column``; input numbers count from 0."""

    left: int
    left_column: str
    right: int
    right_column: str


class Order(msgspec.Struct, frozen=True):
    """One term of an ORDER BY, over a column of the input."""

    column: str
    descending: bool = False
    nulls_first: bool = True


class AggregateCall(msgspec.Struct, frozen=True):
    """One aggregate of a group: ``function`` in lower case, ``argument`` a column of the input (None: ``count(*)``).

    ``sql`` is the whole Spark SQL call, ``count(*)``, ``sum(`x`)``, ``count(DISTINCT `x`)``, for recomputing it.
    """

    name: str
    function: str
    argument: str | None
    sql: str
    distinct: bool = False


# --- stateless ---


class Scan(msgspec.Struct, frozen=True, tag="scan"):
    """The rows of a stored table, each with its own lifetime. Its columns are the table's user columns."""

    table: str


class TimeWindow(msgspec.Struct, frozen=True, tag="time-window"):
    """Rows end at ``min(exp, ts + length)``; an ``internal`` window bounds memory only and ends no result."""

    input: Operator
    length: int
    internal: bool = False


class InternalRows(msgspec.Struct, frozen=True, tag="internal-rows"):
    """The rows of a count-based window that bounds memory only: it decides which rows join, and the results stay."""

    input: Operator


class Filter(msgspec.Struct, frozen=True, tag="filter"):
    """The rows for which a condition holds."""

    input: Operator
    condition: str


class Project(msgspec.Struct, frozen=True, tag="project"):
    """Exactly these columns, bag semantics."""

    input: Operator
    columns: tuple[Named, ...]


class AsOf(msgspec.Struct, frozen=True, tag="as-of"):
    """Join with a non-retroactive relation: each row sees the version with ``valid_from < ts <= valid_to``.

    ``on`` pairs a column of the input with a column of the relation (its whole search key); ``columns`` are the columns that the
    relation adds, over its columns. ``outer`` keeps rows without a version.
    """

    input: Operator
    relation: str
    on: tuple[tuple[str, str], ...]
    columns: tuple[Named, ...]
    outer: bool = False


class UnionAll(msgspec.Struct, frozen=True, tag="union-all"):
    """The rows of all inputs, which have the same column names."""

    inputs: tuple[Operator, ...]


# --- stateful ---


class Join(msgspec.Struct, frozen=True, tag="join"):
    """Inner equi-join of any number of inputs; a result lives from ``max(ts)`` to ``min(exp)`` of its parts.

    Its columns are the columns of all inputs. ``where`` is a further condition; ``null_safe`` makes null equal null.
    """

    inputs: tuple[Operator, ...]
    equal: tuple[Equality, ...]
    where: str | None = None
    null_safe: bool = False


def key_names(join: Join) -> tuple[tuple[str, ...], ...]:
    """Return the users' names of the equal columns of a join of two inputs, the left input's first; expressions have no name.

    >>> equal = (Equality(0, "c.k", 1, "e.q"), Equality(0, "c.v", 1, "e.#1"))
    >>> key_names(Join((Scan("calls"), Scan("events")), equal))
    (('k', 'q'), ('v',))
    """
    left = [equality.left_column if equality.left == 0 else equality.right_column for equality in join.equal]
    right = [equality.right_column if equality.left == 0 else equality.left_column for equality in join.equal]
    used_names: set[str] = set()
    names: list[list[str]] = [[] for _ in left]
    for columns in (left, right):
        for position, column in enumerate(columns):
            name = column.partition(".")[2]
            if name and not name.startswith("#") and name.lower() not in used_names:
                used_names.add(name.lower())
                names[position].append(name)
    return tuple(map(tuple, names))


class Distinct(msgspec.Struct, frozen=True, tag="distinct"):
    """One row for each live combination of values of all columns."""

    input: Operator


class Group(msgspec.Struct, frozen=True, tag="group"):
    """One row for each group: its keys (columns of the input, empty: a single group) and aggregates."""

    input: Operator
    keys: tuple[str, ...]
    aggregates: tuple[AggregateCall, ...]


class BagDifference(msgspec.Struct, frozen=True, tag="bag-difference"):
    """EXCEPT ALL: ``max(0, v1 - v2)`` rows of each value; both sides have the same column names."""

    left: Operator
    right: Operator


class AntiJoin(msgspec.Struct, frozen=True, tag="anti-join"):
    """NOT EXISTS and NOT IN: live left rows with no live right row that agrees on ``on`` (left column, right column)."""

    left: Operator
    right: Operator
    on: tuple[tuple[str, str], ...]


class OuterJoin(msgspec.Struct, frozen=True, tag="outer-join"):
    """Outer equi-join of two inputs; ``where`` is the rest of its ON condition. Its columns are the columns of both inputs."""

    left: Operator
    right: Operator
    kind: Literal["left", "right", "full"]
    on: tuple[tuple[str, str], ...]
    where: str | None = None


class Top(msgspec.Struct, frozen=True, tag="top"):
    """The first ``limit`` rows of each partition (no partition columns: of all rows) in an order; no order: the newest by ``ts``.

    Without an order it is a count-based window.
    """

    input: Operator
    partition: tuple[str, ...]
    order: tuple[Order, ...]
    limit: int


class Changes(msgspec.Struct, frozen=True, tag="changes"):
    """Each new value of an aggregate over internal windows; the values are appended and stay."""

    input: Operator


class OutputWindow(msgspec.Struct, frozen=True, tag="output-window"):
    """Results generated in the last ``length``, or the last ``rows`` of them; the windows below are internal."""

    input: Operator
    length: int | None = None
    rows: int | None = None


Stateless: TypeAlias = Scan | TimeWindow | InternalRows | Filter | Project | AsOf | UnionAll
Stateful: TypeAlias = Join | Distinct | Group | BagDifference | AntiJoin | OuterJoin | Top | Changes | OutputWindow
Operator: TypeAlias = (
    Scan | TimeWindow | InternalRows | Filter | Project | AsOf | UnionAll
    | Join | Distinct | Group | BagDifference | AntiJoin | OuterJoin | Top | Changes | OutputWindow
)  # fmt: skip


def inputs_of(operator: Operator) -> tuple[Operator, ...]:
    """Return the inputs of an operator."""
    match operator:
        case Scan():
            return ()
        case Join(inputs=inputs) | UnionAll(inputs=inputs):
            return inputs
        case BagDifference() | AntiJoin() | OuterJoin():
            return (operator.left, operator.right)
        case _:
            return (operator.input,)


def scanned(operator: Operator) -> Iterator[str]:
    """Yield the tables that an operator scans."""
    if isinstance(operator, Scan):
        yield operator.table
    for input_operator in inputs_of(operator):
        yield from scanned(input_operator)


def tables_read(operator: Operator) -> Iterator[str]:
    """Yield the tables that an operator scans, and the relations in which it looks up versions."""
    if isinstance(operator, Scan):
        yield operator.table
    if isinstance(operator, AsOf):
        yield operator.relation
    for input_operator in inputs_of(operator):
        yield from tables_read(input_operator)


def stateful_of(operator: Operator) -> Operator | None:
    """Return the operator whose state a node keeps, below filters and projections; None if the node is stateless."""
    while isinstance(operator, Filter | Project):
        operator = operator.input
    return None if isinstance(operator, Scan | TimeWindow | InternalRows | AsOf | UnionAll) else operator


class Node(msgspec.Struct, frozen=True):
    """One table of a view: the view's own (the last node), or the state of an operator below it.

    Parameters
    ----------
    table
        The table's name; an operator's state is called ``view.1``, ``view.2``, ...
    operator
        One stateful operator over stateless inputs, perhaps with filters and projections above it; or stateless operators alone.
        Scans name streams, relations, views and earlier nodes.
    columns
        The stored user columns, in order.
    search_key
        The columns by which the table is sorted: the declared key, or the columns by which the operator above looks rows up.
    label
        The state label: ``MON``, ``WKS``, ``WK`` or ``STR``.
    periods
        p: the bound on the rows' lifetimes in update intervals, for the layout.
    changed_key, changed_by
        For ``STR`` nodes that recompute changed rows: stored columns, and for each input of the stateful operator its columns
        that equal them. Empty: whole rows are compared (stateless nodes), or the whole answer is recomputed.
    hidden
        Whether the table is state that no user declared.

    """

    table: str
    operator: Operator
    columns: tuple[str, ...]
    search_key: tuple[str, ...]
    label: Literal["MON", "WKS", "WK", "STR"]
    periods: int
    changed_key: tuple[str, ...] = ()
    changed_by: tuple[tuple[str, ...], ...] = ()
    hidden: bool = False
