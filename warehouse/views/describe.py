"""A view's plan as ``stream-wh explain VIEW`` draws it: a tree with labels and structures, the tables, other plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.layout.wording import storage_text
from warehouse.views.algebra import Group, Project, Scan, inputs_of
from warehouse.views.compile import KnownTables, compile_plan
from warehouse.views.labels import Kind, Label, label
from warehouse.views.language.dialect import column_of
from warehouse.views.language.simplify import with_inputs
from warehouse.views.language.temporal import spoken_calls
from warehouse.views.language.wording import DELTA, heading
from warehouse.views.rewrite import alternatives

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.views.algebra import Named, Node, Operator
    from warehouse.views.plans import ViewPlan

__all__ = ["STRUCTURES", "Alternative", "Description", "Line", "describe", "rendered"]

STRUCTURES: dict[Kind, str] = {"MON": "append-only", "WKS": "wave index", "WK": "doubly partitioned", "STR": "keyed"}
"""How a table is stored, by its label (update-patterns sheet, 10)."""
_STORED = {structure: storage_text(kind) for kind, structure in STRUCTURES.items()}


@dataclass(frozen=True)
class Line:
    """One operator of a plan.

    Parameters
    ----------
    branch
        The box-drawing characters before it.
    operator, text
        Its name, and its arguments.
    state, output
        The labels of the edge above it.
    table, structure
        The table that stores its rows, and the table's structure; None if no table does.
    variant
        For DISTINCT: the variant of its state.

    """

    branch: str
    operator: str
    text: str
    state: Label
    output: Label
    table: str | None = None
    structure: str | None = None
    variant: str | None = None


@dataclass(frozen=True)
class Alternative:
    """A plan that gives the same answer, drawn."""

    name: str
    why: str
    lines: tuple[Line, ...]
    tree: Operator
    nodes: tuple[Node, ...]


@dataclass(frozen=True)
class Description:
    """The description of a view; nothing is executed."""

    name: str
    lines: tuple[Line, ...]
    nodes: tuple[Node, ...]
    lifetime: int | None
    warnings: tuple[str, ...]
    alternatives: tuple[Alternative, ...]


def describe(plan: ViewPlan, interval: int) -> Description:
    """Return a view's description; ``interval`` is the update interval in microseconds."""
    tables = KnownTables(
        {name: table.label for name, table in plan.tables.items()},
        {name: table.lifetime for name, table in plan.tables.items()},
        {name: table.columns for name, table in plan.tables.items()},
    )
    spoken = spoken_calls(plan.view.sql)
    drawn = []
    for equal_plan in alternatives(plan.tree, {name: tuple(types) for name, types in tables.types.items()}):
        nodes = compile_plan(plan.name, equal_plan.tree, plan.nodes[-1].search_key, tables, interval)
        drawn.append(
            Alternative(equal_plan.name, equal_plan.why, tuple(_Drawing(nodes, tables, spoken).lines()), equal_plan.tree, nodes)
        )
    lines = tuple(_Drawing(plan.nodes, tables, spoken).lines())
    return Description(plan.name, lines, plan.nodes, plan.lifetime, plan.warnings, tuple(drawn))


class _Drawing:
    """The tree of the nodes of one view, drawn from the root down."""

    def __init__(self, nodes: Sequence[Node], known_tables: KnownTables, spoken: Sequence[tuple[str, str]] = ()) -> None:
        self._nodes = {node.table: node for node in nodes}
        self._root = nodes[-1]
        self._labels = known_tables.labels
        self._spoken = spoken
        self._columns = {name: tuple(types) for name, types in known_tables.types.items()}

    def lines(self) -> Iterator[Line]:
        """Yield the operators, each before its inputs."""
        yield from self._node(self._root, "", "")

    def _node(self, node: Node, first: str, rest: str) -> Iterator[Line]:
        operator = _without_silent_projections(node.operator)
        structure = STRUCTURES[node.label]
        if isinstance(operator, Project) and _counts(operator):
            yield self._line(operator.input, first, node.table, structure, "counting")
            yield from self._inputs(operator.input, rest)
        elif isinstance(operator, Scan):
            yield self._line(node.operator, first, node.table, structure)
            if operator is not node.operator:
                yield from self._operator(operator, rest + "└─ ", rest + "   ")
        else:
            yield self._line(operator, first, node.table, structure)
            yield from self._inputs(operator, rest)

    def _operator(self, operator: Operator, first: str, rest: str) -> Iterator[Line]:
        operator = _without_silent_projections(operator)
        if isinstance(operator, Scan) and operator.table in self._nodes:
            yield from self._node(self._nodes[operator.table], first, rest)
            return
        yield self._line(operator, first)
        yield from self._inputs(operator, rest)

    def _inputs(self, operator: Operator, rest: str) -> Iterator[Line]:
        inputs = inputs_of(operator)
        for number, input_operator in enumerate(inputs, start=1):
            last = number == len(inputs)
            yield from self._operator(input_operator, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))

    def _line(
        self,
        operator: Operator,
        first: str,
        table: str | None = None,
        structure: str | None = None,
        variant: str | None = None,
    ) -> Line:
        whole = self._inlined(operator)
        state, output = label(whole, self._labels), label(whole, self._labels, output=True)
        name, text, variant_text = heading(operator, whole, self._columns, state, variant)
        for expression, call in self._spoken:
            text = text.replace(expression, call)
        if isinstance(operator, Scan) and table is None:
            structure = STRUCTURES[state.kind]
        return Line(first, name, text, state, output, table, structure, variant_text)

    def _inlined(self, operator: Operator) -> Operator:
        """Return a plan over streams, relations and views alone."""
        if isinstance(operator, Scan):
            node = self._nodes.get(operator.table)
            return operator if node is None or node is self._root else self._inlined(node.operator)
        return with_inputs(operator, [self._inlined(input_operator) for input_operator in inputs_of(operator)])


def _without_silent_projections(operator: Operator) -> Operator:
    """Return the operator below projections that only select and rename, or compute columns for a join or an order."""
    while isinstance(operator, Project) and not _counts(operator) and all(map(_silent, operator.columns)):
        operator = operator.input
    return operator


def _silent(column: Named) -> bool:
    return column_of(column.sql) is not None or "#" in column.name


def _counts(project: Project) -> bool:
    """Whether a projection is DISTINCT that is stored as a count of each value."""
    group = project.input
    if not isinstance(group, Group) or [aggregate.sql for aggregate in group.aggregates] != ["count(*)"]:
        return False
    return tuple(column.name for column in project.columns) == group.keys


def rendered(description: Description) -> str:
    """Return a description as text."""
    parts = [_drawn(description.lines)]
    parts += [f"{alternative.name}: {alternative.why}\n{_drawn(alternative.lines)}" for alternative in description.alternatives]
    parts += [f"warning: {text}" for text in description.warnings]
    return "\n\n".join(parts)


def _drawn(lines: Sequence[Line]) -> str:
    left = [f"{line.branch}{line.operator}{' ' if line.text else ''}{line.text}" for line in lines]
    width = min(72, max(len(text) for text in left))
    return "\n".join(f"{text:<{width}}  {_right(line)}".rstrip() for text, line in zip(left, lines, strict=True))


def _right(line: Line) -> str:
    leaving = f"rows {line.state.words}"
    if line.state != line.output:
        leaving += f", results {line.output.words}"
    structure = _STORED.get(line.structure or "", "")
    stored = structure if line.table is None else f"{line.table}: {structure}"
    variant = (line.variant or "").removeprefix(f"{DELTA}: ")
    return "; ".join(part for part in (leaving, stored if structure else "", variant) if part)
