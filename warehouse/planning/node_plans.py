"""Plans the nodes of views: which nodes are rebuilt, and the layouts of their tables."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from warehouse.catalog.model import LayoutSpec
from warehouse.layout import BUCKETS, Layout, keyed_layout, resolve
from warehouse.planning.plan_record import NodePlan
from warehouse.planning.restoring import REBUILT
from warehouse.promise.allocation import results_allowed
from warehouse.promise.units import BudgetPlan, Ledger, ViewBudget
from warehouse.storage.tables import schema_file
from warehouse.time import NEVER, slot
from warehouse.units import counted
from warehouse.views.algebra import Distinct, Node, scanned, stateful_of
from warehouse.views.language.recorded_nodes import same_plan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.epochs.records import ColumnRecord, Epoch, TableState, ViewRecord

MIGRATED = "what it reads was migrated"
"""As :data:`REBUILT`, in the base of a migration."""

__all__ = ["MIGRATED", "NodeInput", "layout_of", "overtaken", "plan_nodes", "rebuilt", "rows_set_aside", "unbuilt"]

@dataclass(frozen=True)
class NodeInput:
    """A node of the current declarations; its columns are known once Spark has analysed them (empty in a dry run).

    ``widest`` is the widest expiry block that a new table may choose; ``set_aside_columns`` belong to rows that are set aside.
    """

    view: str
    sql: str
    node: Node
    short_lived: Literal["drop", "report"]
    layout: LayoutSpec = field(default_factory=LayoutSpec)
    max_lifetime: int | None = None
    columns: tuple[ColumnRecord, ...] = ()
    state: tuple[ColumnRecord, ...] = ()
    widest: int | None = None
    budget: ViewBudget | None = None
    set_aside_columns: tuple[ColumnRecord, ...] = ()

    @property
    def sets_aside(self) -> bool:
        """Whether rows that end while their units are owed are set aside."""
        return self.budget is not None and self.short_lived == "report" and not self.node.hidden


def unbuilt(nodes: Sequence[NodeInput], last: Epoch | None, created: Sequence[str] = ()) -> set[str]:
    """Return the tables of the nodes that must be built: new or changed nodes, and nodes that read them.

    ``created`` are tables that the same update creates.
    """
    to_build = set(created)
    for node_input in nodes:
        state = last.table(node_input.node.table) if last else None
        otherwise = _changed(node_input, state) or _owes(node_input, last) or _reports_otherwise(node_input, last)
        if otherwise or any(table in to_build for table in scanned(node_input.node.operator)):
            to_build.add(node_input.node.table)
    return to_build - set(created)


def _changed(node_input: NodeInput, state: TableState | None) -> bool:
    if state is None or state.view is None or state.view.failed is not None:
        return True
    if not state.declared:  # updates passed without it
        return True
    return not (same_plan(state.view.node, node_input.node) and state.layout == layout_of(node_input, state))


def _owes(node_input: NodeInput, last: Epoch | None) -> bool:
    """Whether a view that no longer has a budget lacks results: only a rebuild adds them."""
    state = last.table(node_input.node.table) if last else None
    if last is None or node_input.budget is not None or state is None or state.view is None or state.view.ledger is None:
        return False
    return not state.view.ledger.complete or state.view.ledger.through != last.slot


def _reports_otherwise(node_input: NodeInput, last: Epoch | None) -> bool:
    """Whether a view under a budget starts or stops to report short-lived results; its set-aside table shows it."""
    if last is None or node_input.node.hidden or last.table(node_input.node.table) is None:
        return False
    return node_input.sets_aside != (last.table(f"{node_input.node.table}.owed") is not None)


def rebuilt(nodes: Sequence[NodeInput], last: Epoch | None) -> tuple[str, ...]:
    """Return the notices about existing views that are rebuilt."""
    to_build = unbuilt(nodes, last)
    views = dict.fromkeys(node_input.view for node_input in nodes if node_input.node.table in to_build)
    messages = []
    for view in views:
        state = last.table(view) if last else None
        if state is not None and state.view is not None:
            why = _why(state.view, declared=state.declared)
            messages.append(f'view "{view}" is rebuilt over the live rows: {why}{_given_up(last, view)}')
    return tuple(messages)


def rows_set_aside(epoch: Epoch | None, view: str) -> int:
    """Return how many rows that have ended are set aside for results that a view owes; a rebuild gives them up."""
    state = epoch.table(f"{view}.owed") if epoch is not None else None
    return 0 if state is None else sum(part.rows for part in state.partitions)


def _given_up(last: Epoch | None, view: str) -> str:
    rows = rows_set_aside(last, view)
    return f"; what it owes of {counted(rows, 'row')} that ended is given up" if rows else ""


def _why(view: ViewRecord, *, declared: bool) -> str:
    if view.failed in (REBUILT, MIGRATED):
        return view.failed
    if view.failed:
        return "its last update failed"
    return "its declaration, or that of a view it reads, changed" if declared else "it was not declared for a while"


def plan_nodes(
    nodes: Sequence[NodeInput],
    last: Epoch | None,
    created: Sequence[str],
    *,
    slot: int,
    moves: bool,
    epoch: int,
    whole: bool = True,
) -> list[NodePlan]:
    """Return the plans of the nodes that an update moves to ``slot``, in order, tables of spare rows before their DISTINCT's.

    ``whole``: no file is left for another epoch at that slot.
    """
    to_build = unbuilt(nodes, last, created)
    ending = _with_ends(nodes, last)
    plans = []
    for node_input in nodes:
        state = last.table(node_input.node.table) if last else None
        first = node_input.node.table in to_build
        if not (first or moves):
            continue
        k0 = slot - node_input.node.periods if first or last is None else last.slot
        path = f"tables/{node_input.node.table}"
        plan = NodePlan(
            name=node_input.node.table,
            view=node_input.view,
            sql=node_input.sql,
            node=node_input.node,
            layout=layout_of(node_input, state),
            k0=k0,
            first=first,
            short_lived="drop" if node_input.node.hidden else node_input.short_lived,
            columns=node_input.columns if first or state is None else state.declaration.columns,
            state=node_input.state if first or state is None or state.view is None else state.view.state,
            schema_file=schema_file(path, epoch) if first or state is None else state.schema_file,
            max_lifetime=node_input.max_lifetime,
            budget=_budget(node_input, state, last, first=first, upto=slot if whole else None),
        )
        plans.extend([*_spares(plan, last, epoch, ends=plan.name in ending), *_set_aside(plan, node_input, last, epoch), plan])
    return plans


def _budget(
    node_input: NodeInput, state: TableState | None, last: Epoch | None, *, first: bool, upto: int | None
) -> BudgetPlan | None:
    """The budget of a node. A node that had no budget before only owes results of later rows."""
    if node_input.budget is None:
        return None
    if first or last is None or state is None or state.view is None:
        before = state.view.ledger if state is not None and state.view is not None else None
        given_up = (before.ended if before is not None else 0) + rows_set_aside(last, node_input.node.table)
        return BudgetPlan(node_input.budget, _with_allowed(node_input.budget, Ledger(ended=given_up), ()), upto)
    seconds = [step.seconds for step in last.seconds if step.step.partition(":")[0] == f"tables/{state.name}"]
    if state.view.ledger is not None:
        return BudgetPlan(node_input.budget, _with_allowed(node_input.budget, state.view.ledger, seconds), upto)
    if upto == last.slot or any(entry.more for entry in last.files):
        return None  # of the slots up to the last one some rows are still to come, or come now
    return BudgetPlan(node_input.budget, _with_allowed(node_input.budget, Ledger(through=last.slot), ()), upto)


def _with_allowed(budget: ViewBudget, ledger: Ledger, took: Sequence[float]) -> Ledger:
    """Return the ledger with the number of results for the seconds of a budget, by the speed of the last epoch."""
    if budget.seconds is None:
        return replace(ledger, allowed=None)
    spent = sum(took) if took else None
    return replace(ledger, allowed=results_allowed(budget.seconds, before=ledger.allowed, made=ledger.made, took=spent))


def overtaken(
    nodes: Sequence[NodeInput], last: Epoch | None, created: Sequence[str], first_slots: Mapping[str, int], slot: int
) -> dict[str, str]:
    """Return the views under a budget whose ledger has passed a slot that still gets rows, the views that read them, and why.

    They are stopped, and the next update rebuilds them. This happens if a stopped stream continues at an earlier window time and
    has a view in between. ``first_slots`` has by stream the first slot that gets rows, ``created`` the tables that the same
    update, to ``slot``, creates.
    """
    reasons: dict[str, str] = {}
    to_build = unbuilt(nodes, last, created)
    sources: dict[str, set[str]] = {}
    passed: set[str] = set()
    for node_input in nodes:
        table, read = node_input.node.table, set(scanned(node_input.node.operator))
        below = {name: sources.get(name, {name}) for name in read}
        sources[table] = {source for found_below in below.values() for source in found_below}
        state = last.table(table) if last else None
        ledger = None if table in to_build or state is None or state.view is None else state.view.ledger
        through = None if ledger is None else ledger.through
        slots = [first_slots.get(name, slot) for name, own_sources in below.items() if own_sources & first_slots.keys()]
        if read & passed or (through is not None and any(first_slot <= through for first_slot in slots)):
            passed.add(table)
            reasons[node_input.view] = "rows came for slots that its budget has passed; the next update builds it again"
    return reasons


def _with_ends(nodes: Sequence[NodeInput], last: Epoch | None) -> set[str]:
    """Tables with rows that expire, and the views that read them; a stream that is MON now may still have such rows."""
    if last is None:
        return set()
    never = slot(NEVER, last.anchor, last.update_interval)
    ends = {
        state.name
        for state in last.tables
        if any(part.min_exp_slot is None or part.min_exp_slot < never for part in state.partitions)
    }
    for node_input in nodes:
        if any(table in ends for table in scanned(node_input.node.operator)):
            ends.add(node_input.node.table)
    return ends


def _spares(plan: NodePlan, last: Epoch | None, epoch: int, *, ends: bool) -> Iterator[NodePlan]:
    """A DISTINCT over rows that expire has a second table: at most one spare row for each shown one."""
    if not isinstance(stateful_of(plan.node.operator), Distinct):
        return
    name = f"{plan.name}.spare"
    state = last.table(name) if last else None
    if plan.node.label == "MON" and not ends and (plan.first or state is None):
        return
    node = _hidden(plan, name, plan.node.columns, plan.node.columns)
    yield _plan_of_side_table(plan, node, plan.columns, state, epoch, max_lifetime=plan.max_lifetime)


def _set_aside(plan: NodePlan, node_input: NodeInput, last: Epoch | None, epoch: int) -> Iterator[NodePlan]:
    """A view under a budget that reports short-lived results has a second table: rows that ended while they were owed."""
    if not node_input.sets_aside:
        return
    name = f"{plan.name}.owed"
    state = last.table(name) if last else None
    columns = node_input.set_aside_columns if node_input.set_aside_columns or state is None else state.declaration.columns
    node = _hidden(plan, name, tuple(column.name for column in columns), ("loaded",))
    yield _plan_of_side_table(plan, node, columns, state, epoch)


def _hidden(plan: NodePlan, name: str, columns: tuple[str, ...], search_key: tuple[str, ...]) -> Node:
    """Return the node of a keyed table that goes with a view's."""
    return Node(
        table=name,
        operator=plan.node.operator,
        columns=columns,
        search_key=search_key,
        label="STR",
        periods=plan.node.periods,
        hidden=True,
    )


def _plan_of_side_table(
    plan: NodePlan,
    node: Node,
    columns: tuple[ColumnRecord, ...],
    state: TableState | None,
    epoch: int,
    *,
    max_lifetime: int | None = None,
) -> NodePlan:
    """Plan a table that goes with a view's: it is built when that is, or when it is new."""
    first = plan.first or state is None
    return NodePlan(
        name=node.table,
        view=plan.view,
        sql=plan.sql,
        node=node,
        layout=keyed_layout(node.periods),
        k0=plan.k0,
        first=first,
        short_lived="drop",
        columns=columns,
        spare_of=plan.name,
        schema_file=schema_file(f"tables/{node.table}", epoch) if state is None or first else state.schema_file,
        max_lifetime=max_lifetime,
    )


def layout_of(given: NodeInput, state: TableState | None) -> Layout:
    """Return the declared layout; keys that are not declared keep the recorded value, or get the default."""
    node, spec = given.node, given.layout
    if node.label == "STR":
        buckets = spec.grid[0] * spec.grid[1] if spec.grid else (_buckets(state))
        return keyed_layout(node.periods, buckets)
    keys = spec.keys
    if state is not None and state.view is not None and same_plan(state.view.node, node):
        recorded = LayoutSpec.of(state.layout).keys
        if all(value is None or value == recorded[key] for key, value in keys.items()):
            return state.layout
    # The catalog's words are the layout's; its loader has checked them.
    return resolve(periods=node.periods, label=node.label, widest=given.widest, **keys)  # type: ignore[arg-type]


def _buckets(state: TableState | None) -> int:
    keyed = state is not None and state.view is not None and state.view.node.label == "STR"
    return state.layout.cells if state is not None and keyed else BUCKETS
