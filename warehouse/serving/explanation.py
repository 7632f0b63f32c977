"""The explanation of a view: its plan, and figures of the newest epoch if there is one.

The plan only needs the declarations. The figures come from :mod:`warehouse.serving.view_figures`; with them the cost models
choose the cheapest join order, and decide whether to move a negation (window-joins sheet, 8; update-patterns sheet, 6.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from warehouse.catalog.spelling import nearest
from warehouse.errors import ConfigurationError, UnknownNameError, UsageError
from warehouse.serving.accuracy import shed_below
from warehouse.serving.owed_results import owed_by, owed_of
from warehouse.serving.table_status import accuracies
from warehouse.serving.view_figures import JoinFigures, ShortLived, join_figures, measured_input, retained, short_lived
from warehouse.views.algebra import AntiJoin, Filter, Join, Project, inputs_of, scanned, stateful_of
from warehouse.views.costs.losses import lost_share
from warehouse.views.costs.negation_cost import Placement, negation_placement
from warehouse.views.describe import describe
from warehouse.views.labels import label
from warehouse.views.language.dialect import column_of
from warehouse.views.plans import judged_views

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch
    from warehouse.promise.units import ViewBudget
    from warehouse.serving.owed_results import Owed
    from warehouse.serving.reader import Reader
    from warehouse.views.algebra import Operator
    from warehouse.views.describe import Description
    from warehouse.views.plans import ViewPlan

__all__ = ["Explanation", "JoinOrder", "explained"]


@dataclass(frozen=True)
class JoinOrder:
    """The join of one table's node, with its measured inputs and costed orders."""

    table: str
    figures: JoinFigures


@dataclass(frozen=True)
class Explanation:
    """A view explained.

    Parameters
    ----------
    description
        The plan as a drawing, with labels, structures, tables, warnings and equivalent plans.
    short_lived
        The declared handling of short-lived results: ``drop`` or ``report``.
    predicted
        The share of short-lived results of its join, if the lifetimes of all inputs are constant.
    measured
        The counts of the epochs; None before the view's first update.
    joins
        The joins whose inputs exist at the newest epoch.
    placement
        The comparison of the declared negation below a join with a negation above it. None if the model does not apply: it needs
        a negation on one attribute below a join of two inputs, all of them streams, relations, or views.
    epoch
        The epoch of all figures; None if there is no epoch yet.
    shed
        The shed tables on which it depends, with their accuracies.
    jobs
        The number of Spark jobs of its steps in the epoch (0: the driver computed it); None if it is not known.
    budget
        Its declared budget.
    owed
        The results that it owes under its budget, and the owed results of views that it reads.

    """

    description: Description
    short_lived: str
    predicted: Fraction | None
    measured: ShortLived | None
    joins: tuple[JoinOrder, ...]
    placement: Placement | None
    epoch: int | None
    shed: tuple[tuple[str, float], ...] = ()
    jobs: int | None = None
    budget: ViewBudget | None = None
    owed: tuple[Owed, ...] = ()

    @property
    def name(self) -> str:
        """The view's name."""
        return self.description.name


def explained(catalog: Catalog, view: str, reader: Reader | None) -> Explanation:
    """Explain a declared view.

    Parameters
    ----------
    catalog
        The current declarations.
    view
        The view's name.
    reader
        The newest epoch; None if there is none.

    Raises
    ------
    ConfigurationError
        When the view cannot be maintained; the error has every fault of all views.
    UnknownNameError
        When no such view is declared.
    UsageError
        When the name is a stream's or a relation's.

    """
    plans, problems = judged_views(catalog)
    plan = plans.view(view)
    if plan is None and view in plans.refused:
        raise ConfigurationError(problems)
    if plan is None and catalog.source(view) is not None:
        kind = "relation" if catalog.relation(view) else "stream"
        raise UsageError(f'"{view}" is a {kind}, not a view or aggregate; `stream-wh describe {view}` shows it')
    if plan is None:
        names = [declared.name for declared in catalog.views]
        names += [declared.name for declared in catalog.aggregates] + [declared.name for declared in catalog.coalesced]
        raise UnknownNameError("view, aggregate or coalesced table", view, names, nearest(view, names))
    interval = catalog.update_interval
    epochs = retained(reader) if reader is not None else ()
    counted = short_lived(epochs, plan.name, known=plan.counts_short_lived)
    return Explanation(
        description=describe(plan, interval),
        short_lived=plan.view.short_lived,
        predicted=_predicted(plan, interval),
        measured=counted if counted.epochs else None,
        joins=tuple(_orders(reader, epochs, plan)) if reader is not None else (),
        placement=_placement(reader, epochs, plan.tree) if reader is not None else None,
        epoch=reader.epoch.number if reader is not None else None,
        shed=() if reader is None else _shed(reader, view),
        jobs=None if reader is None else _jobs(reader.epoch, plan),
        budget=plan.view.budget,
        owed=() if reader is None else _owed(reader.epoch, view),
    )


def _jobs(epoch: Epoch, plan: ViewPlan) -> int | None:
    tables = {f"tables/{node.table}" for node in plan.nodes}
    counted = [step.jobs for step in epoch.seconds if step.step.partition(":")[0] in tables and step.jobs is not None]
    return sum(counted) if counted else None


def _owed(epoch: Epoch, view: str) -> tuple[Owed, ...]:
    state = epoch.table(view)
    owed = None if state is None else owed_of(state)
    return (owed,) if owed is not None else owed_by(epoch, (view,))


def _shed(reader: Reader, view: str) -> tuple[tuple[str, float], ...]:
    shed_tables = shed_below(reader.epoch, (view,))
    return tuple((name, share) for name, share in accuracies(reader).items() if name in shed_tables) if shed_tables else ()


def _predicted(plan: ViewPlan, interval: int) -> Fraction | None:
    join = stateful_of(plan.tree)
    if not isinstance(join, Join):
        return None
    tables = {name: table.label for name, table in plan.tables.items()}
    labels = [label(operator, tables, output=True) for operator in join.inputs]
    if any(input_label.kind not in ("MON", "WKS") for input_label in labels):
        return None
    return lost_share([inf if input_label.constant is None else input_label.constant for input_label in labels], interval)


def _orders(reader: Reader, epochs: Sequence[Epoch], plan: ViewPlan) -> Iterator[JoinOrder]:
    for node in plan.nodes:
        join = stateful_of(node.operator)
        if isinstance(join, Join) and _exist(reader, join):
            yield JoinOrder(node.table, join_figures(reader, epochs, join))


def _exist(reader: Reader, operator: Operator) -> bool:
    """Whether all that an operator reads can be read at the epoch."""
    states = [reader.epoch.table(table) for table in scanned(operator)]
    return all(state is not None and (state.view is None or state.view.failed is None) for state in states)


# --- where a negation stands ---


def _placement(reader: Reader, epochs: Sequence[Epoch], tree: Operator) -> Placement | None:
    """Compare two places of the first negation on one attribute below a join of two inputs: below and above the join."""
    join = next(_negation_below(tree), None)
    if join is None or not _exist(reader, join):
        return None
    number = 0 if isinstance(_core(join.inputs[0]), AntiJoin) else 1
    negated_input, other_input = join.inputs[number], join.inputs[1 - number]
    core = _core(negated_input)
    if not isinstance(core, AntiJoin) or any(stateful_of(operator) for operator in (core.left, core.right, other_input)):
        return None
    pairs = [(equality.left_column, equality.right_column)[:: 1 if number == 0 else -1] for equality in join.equal]
    joined = [_below(negated_input, column) for column, _ in pairs]
    ((negating, negated),) = core.on
    if None in joined:
        return None
    classes = {column: f"join {position}" for position, column in enumerate(joined) if column is not None}
    classes.setdefault(negating, "negation")
    left = measured_input(reader, epochs, core.left, tuple(classes), "left")
    right = measured_input(reader, epochs, other_input, tuple(column for _, column in pairs), "right")
    against = measured_input(reader, epochs, core.right, (negated,), "negated")
    return negation_placement(
        left.as_input(classes),
        right.as_input({column: f"join {position}" for position, (_, column) in enumerate(pairs)}),
        against.as_input({negated: classes[negating]}),
    )


def _negation_below(tree: Operator) -> Iterator[Join]:
    if isinstance(tree, Join) and len(tree.inputs) == 2:  # noqa: PLR2004 - the model is of two
        cores = [_core(operator) for operator in tree.inputs]
        if any(isinstance(core, AntiJoin) and len(core.on) == 1 for core in cores):
            yield tree
    for operator in inputs_of(tree):
        yield from _negation_below(operator)


def _core(operator: Operator) -> Operator:
    while isinstance(operator, Filter | Project):
        operator = operator.input
    return operator


def _below(operator: Operator, column: str) -> str | None:
    """Return the name of a column below filters and projections; None if it is computed."""
    name: str | None = column
    while isinstance(operator, Filter | Project):
        if isinstance(operator, Project):
            sql = next((projected.sql for projected in operator.columns if projected.name == name), None)
            name = None if sql is None else column_of(sql)
        operator = operator.input
    return name
