"""Compiles a plan to nodes: the plan is cut below every operator with state, so that each node is one table.

Stateless operators stay in the node that reads them. Filters and projections above an operator stay in its node if the stored
columns still show what changed: a group is stored with all columns, a row of a keyed node with its key. Otherwise the operator
becomes a separate hidden node, and the operators above read it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import msgspec
from sqlglot import exp

from warehouse.catalog.identifiers import quoted
from warehouse.catalog.model import DEFAULT_PERIODS
from warehouse.layout.columns import is_reserved
from warehouse.views.algebra import (
    AggregateCall,
    AsOf,
    Distinct,
    Filter,
    Group,
    InternalRows,
    Join,
    Named,
    Node,
    Project,
    Scan,
    TimeWindow,
    UnionAll,
    inputs_of,
)
from warehouse.views.changed_keys import changed_key
from warehouse.views.labels import STR, label
from warehouse.views.language.chains import chain_of, rebuilt
from warehouse.views.language.columns import columns_of, types_of
from warehouse.views.language.dialect import column_of, expression_of, text
from warehouse.views.language.simplify import simplified, with_inputs
from warehouse.views.lifetimes import lifetime

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from warehouse.views.algebra import Operator
    from warehouse.views.labels import Label
    from warehouse.views.language.types import Types

__all__ = ["KnownTables", "compile_plan", "renamed_group"]


_STATELESS = (Scan, TimeWindow, InternalRows, Filter, Project, AsOf, UnionAll)
_NO_KEY = ("float", "double", "binary", "array", "struct")


@dataclass
class KnownTables:
    """The properties of stored tables, by name: labels, lifetimes in microseconds, columns with their types."""

    labels: dict[str, Label]
    lifetimes: dict[str, int | None]
    types: dict[str, Types]

    def columns(self, operator: Operator) -> tuple[str, ...]:
        """Return the columns of a plan."""
        return columns_of(operator, {name: tuple(types) for name, types in self.types.items()})

    def label(self, operator: Operator, *, output: bool = False) -> Label:
        """Return the label of a plan."""
        return label(operator, self.labels, output=output)


def compile_plan(name: str, plan: Operator, search_key: tuple[str, ...], known: KnownTables, interval: int) -> tuple[Node, ...]:
    """Return the nodes of a view, each after the nodes that it reads; the view's own table is the last.

    Parameters
    ----------
    name
        The view.
    plan
        Its plan, with the view's columns.
    search_key
        The declared key.
    known
        The properties of the tables that it reads.
    interval
        The update interval in microseconds.

    """
    return _Compiler(name, known, interval).nodes_of(plan, search_key)


class _Compiler:
    def __init__(self, view: str, known_tables: KnownTables, interval: int) -> None:
        self._view = view
        self._known = KnownTables(dict(known_tables.labels), dict(known_tables.lifetimes), dict(known_tables.types))
        self._interval = interval
        self._nodes: list[Node] = []

    def nodes_of(self, plan: Operator, search_key: tuple[str, ...]) -> tuple[Node, ...]:
        shape = self._folded(plan)
        if shape is None:
            shape = _Shape(self._stateless(plan, search_key), (), ())
        operator = self._simplified(shape.operator)
        columns = self._known.columns(plan)
        output_label = self._known.label(operator, output=True)
        periods = self._periods(lifetime(operator, self._known.lifetimes, output=True))
        self._nodes.append(Node(self._view, operator, columns, search_key, output_label.kind, periods, shape.key, shape.by))
        return tuple(self._nodes)

    def _simplified(self, operator: Operator) -> Operator:
        return simplified(operator, {name: tuple(types) for name, types in self._known.types.items()})

    def _periods(self, bound: int | None) -> int:
        return DEFAULT_PERIODS if bound is None else max(1, -(-bound // self._interval))

    # --- one node ---

    def _folded(self, plan: Operator) -> _Shape | None:
        """Return a plan's operator with state and the operators above it as one node; None if they cannot be one node."""
        chain, core = chain_of(plan)
        if isinstance(core, _STATELESS):
            return None
        # Results of a join over internal row windows are appended, though later rows push rows out of its inputs.
        stays = isinstance(core, Join) and any(
            isinstance(chain_of(input_operator)[1], InternalRows) for input_operator in core.inputs
        )
        strict = self._known.label(core, output=stays) == STR
        if isinstance(core, Distinct):
            return self._distinct(chain, core, strict=strict)
        if isinstance(core, Group):
            names = _renamed(chain, self._known.columns(core))
            if names is None:
                return None
            group = renamed_group(core, names, self._known.columns(core.input))
            cut = self._cut(group)
            return _Shape(cut, group.keys, (group.keys,)) if group.keys else _Shape(cut, (), ())
        key = changed_key(core, self._known.columns) if strict else None
        if key is None:
            return _Shape(rebuilt(chain, self._cut(core)), (), ())
        stored = key.stored(chain)
        return None if stored is None else _Shape(rebuilt(chain, self._cut(core)), stored, key.by)

    def _distinct(self, chain: Sequence[Filter | Project], core: Distinct, *, strict: bool) -> _Shape | None:
        """Return a DISTINCT's node: stored whole, or as counts of values if rows leave early (update-patterns sheet, 2.2)."""
        columns = self._known.columns(core)
        names = _renamed(chain, columns)
        if names is None:
            return None
        stored = tuple(names[column] for column in columns)
        is_same = stored == columns
        below = core.input if is_same else Project(core.input, tuple(Named(names[column], quoted(column)) for column in columns))
        if not strict:
            return _Shape(self._cut(Distinct(below)), (), ())
        count = AggregateCall(_free("rows", stored), "count", None, "count(*)")
        group = self._cut(Group(below, stored, (count,)))
        return _Shape(Project(group, tuple(Named(column, quoted(column)) for column in stored)), stored, (stored,))

    def _cut(self, core: Operator) -> Operator:
        """Return an operator with state over stateless inputs."""
        lookup_columns = _wanted(core)
        inputs = [
            self._stateless(input_operator, lookup_columns[number]) for number, input_operator in enumerate(inputs_of(core))
        ]
        return with_inputs(core, inputs)

    # --- inputs ---

    def _stateless(self, operator: Operator, lookup_columns: tuple[str, ...]) -> Operator:
        """Return a plan over stored tables and hidden nodes; its reader looks up rows by ``lookup_columns``."""
        if isinstance(operator, Scan):
            return operator
        chain, core = chain_of(operator)
        if not isinstance(core, _STATELESS):
            return self._hidden(operator, lookup_columns)
        if chain:
            return self._above(chain[0], lookup_columns)
        return with_inputs(operator, [self._stateless(input_operator, lookup_columns) for input_operator in inputs_of(operator)])

    def _above(self, first: Filter | Project, lookup_columns: tuple[str, ...]) -> Operator:
        """Return a filter or projection that its reader applies, over a plan that it reads."""
        below = _underlying(first, lookup_columns) if isinstance(first, Project) else lookup_columns
        return msgspec.structs.replace(first, input=self._stateless(first.input, below))

    def _hidden(self, operator: Operator, lookup_columns: tuple[str, ...]) -> Operator:
        """Make a hidden node of an operator with state; return a scan of it, with the names that its reader uses."""
        chain, _ = chain_of(operator)
        types = types_of(operator, self._known.types)
        if chain and not _key(tuple(types), types):
            return self._above(chain[0], lookup_columns)  # no column to sort the table by
        names = _storable(tuple(types))
        renamed = operator if all(name == stored for name, stored in names.items()) else Project(operator, _rename(names))
        shape = self._folded(renamed)
        if shape is None:
            return self._above(chain[0], lookup_columns)
        table = self._store(
            shape, renamed, tuple(names.values()), tuple(names[column] for column in lookup_columns if column in names)
        )
        if renamed is operator:
            return Scan(table)
        return Project(Scan(table), tuple(Named(name, quoted(stored)) for name, stored in names.items()))

    def _store(self, shape: _Shape, plan: Operator, columns: tuple[str, ...], lookup_columns: tuple[str, ...]) -> str:
        types = types_of(plan, self._known.types)
        key = _key(lookup_columns, types) or _key(columns, types) or columns
        state_label = self._known.label(plan)
        bound = lifetime(plan, self._known.lifetimes)
        node = Node(
            f"{self._view}.{len(self._nodes) + 1}",
            self._simplified(_external(shape.operator)),
            columns,
            key,
            state_label.kind,
            self._periods(bound),
            shape.key,
            shape.by,
            hidden=True,
        )
        for stored_node in self._nodes:
            if msgspec.structs.replace(stored_node, table=node.table) == node:
                return stored_node.table
        self._nodes.append(node)
        self._known.labels[node.table] = state_label
        self._known.lifetimes[node.table] = bound
        self._known.types[node.table] = types
        return node.table


@dataclass(frozen=True)
class _Shape:
    """A node's operator; for keyed nodes the stored columns by which it is recomputed, and the equal columns of the inputs."""

    operator: Operator
    key: tuple[str, ...]
    by: tuple[tuple[str, ...], ...]


def _renamed(chain: Sequence[Filter | Project], columns: tuple[str, ...]) -> dict[str, str] | None:
    """Return the chain's name of each column; None if the chain does more than give each column one name."""
    names = {column: column for column in columns}
    for operator in reversed(chain):
        if isinstance(operator, Filter):
            return None
        new_names = {column_of(column.sql): column.name for column in operator.columns}
        if len(new_names) != len(operator.columns) or set(new_names) != set(names.values()):
            return None
        names = {column: new_names[name] for column, name in names.items()}
    return names


def _wanted(core: Operator) -> list[tuple[str, ...]]:
    """Return, for each input, the columns by which an operator looks up its rows."""
    match core:
        case Join(inputs=inputs, equal=equal):
            lookup_columns: list[list[str]] = [[] for _ in inputs]
            for equality in equal:
                lookup_columns[equality.left].append(equality.left_column)
                lookup_columns[equality.right].append(equality.right_column)
            return [tuple(dict.fromkeys(columns)) for columns in lookup_columns]
        case Group(keys=keys):
            return [keys]
        case _:
            on = getattr(core, "on", None)
            if on is not None:
                return [tuple(left for left, _ in on), tuple(right for _, right in on)]
            return [getattr(core, "partition", ()) for _ in inputs_of(core)]


def _underlying(project: Project, lookup_columns: tuple[str, ...]) -> tuple[str, ...]:
    by_name = {column.name.lower(): column_of(column.sql) for column in project.columns}
    return tuple(name for column in lookup_columns if (name := by_name.get(column.lower())) is not None)


def _external(operator: Operator) -> Operator:
    """Return a plan whose windows are all external: state inside a plan is kept so (update-patterns sheet, 4.1, TV-2)."""
    inputs = [_external(input_operator) for input_operator in inputs_of(operator)]
    if isinstance(operator, InternalRows):
        return inputs[0]
    external = with_inputs(operator, inputs)
    return msgspec.structs.replace(external, internal=False) if isinstance(external, TimeWindow) else external


def _rename(names: dict[str, str]) -> tuple[Named, ...]:
    return tuple(Named(stored, quoted(name)) for name, stored in names.items())


def _storable(columns: Sequence[str]) -> dict[str, str]:
    """Return names that Delta stores without column mapping, unique ignoring case."""
    names: dict[str, str] = {}
    for column in columns:
        base = re.sub(r"[^A-Za-z0-9_]+", "_", column).strip("_") or "column"
        if base[0].isdigit() or is_reserved(base):
            base = f"k{base}"
        names[column] = _free(base, names.values())
    return names


def _free(base: str, used_names: Iterable[str]) -> str:
    lower = {name.lower() for name in used_names}
    name, number = base, 2
    while name.lower() in lower:
        name, number = f"{base}_{number}", number + 1
    return name


def _key(columns: Sequence[str], types: Types) -> tuple[str, ...]:
    """Return the columns by which a table can be sorted."""
    return tuple(column for column in columns if not str(types.get(column) or "").startswith(_NO_KEY))


# --- other names for the columns of a group, in the node that computes them ---


def renamed_group(group: Group, names: Mapping[str, str], columns: tuple[str, ...]) -> Group:
    """Return a group whose keys and aggregates have other names.

    Parameters
    ----------
    group
        The group.
    names
        The new name of each of its columns.
    columns
        The columns of its input.

    """
    keys = tuple(names[key] for key in group.keys)
    aggregates = tuple(msgspec.structs.replace(aggregate, name=names[aggregate.name]) for aggregate in group.aggregates)
    if keys == group.keys:
        return Group(group.input, keys, aggregates)
    below = group.input
    computed = below.columns if isinstance(below, Project) else tuple(Named(column, quoted(column)) for column in columns)
    source: Operator = below.input if isinstance(below, Project) else below
    sql = {column.name: column.sql for column in computed}
    free_names = (f"#{number}" for number in count(1) if f"#{number}" not in keys)
    arguments = dict(zip(_arguments(group, tuple(sql)), free_names, strict=False))
    project = Project(
        source,
        (
            *(Named(name, sql[key]) for key, name in zip(group.keys, keys, strict=True)),
            *(Named(new, sql[name]) for name, new in arguments.items()),
        ),
    )
    return Group(project, keys, tuple(_over(aggregate, arguments) for aggregate in aggregates))


def _arguments(group: Group, columns: tuple[str, ...]) -> list[str]:
    """Return the columns of the input that are arguments of aggregates."""
    argument_names = {column.name for aggregate in group.aggregates for column in _tree(aggregate).find_all(exp.Column)}
    return [name for name in columns if name in argument_names]


def _over(aggregate: AggregateCall, names: Mapping[str, str]) -> AggregateCall:
    """Return an aggregate whose arguments have other names."""

    def other(node: exp.Expr) -> exp.Expr:
        return exp.column(exp.to_identifier(names[node.name], quoted=True)) if isinstance(node, exp.Column) else node

    argument = None if aggregate.argument is None else names[aggregate.argument]
    return msgspec.structs.replace(aggregate, argument=argument, sql=text(_tree(aggregate).transform(other)))


def _tree(aggregate: AggregateCall) -> exp.Expr:
    return expression_of(aggregate.sql)
