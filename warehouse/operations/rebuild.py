"""Rebuilds a view at the newest window time: its own table, the state of its operators, and the views that read it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from warehouse.epochs.journal import nothing_loaded
from warehouse.errors import ConfigurationError, Problem, UnknownNameError, UsageError
from warehouse.operations.context import WriteContext, locked
from warehouse.operations.execution import begin, finish, require_unchanged_declarations
from warehouse.operations.standing_still import behind
from warehouse.planning.declared_nodes import sound_nodes, with_columns
from warehouse.planning.plan import make_plan
from warehouse.planning.restoring import Restoring

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch
    from warehouse.planning.node_plans import NodeInput
    from warehouse.planning.plan_record import Plan

__all__ = ["RebuildReport", "rebuild"]


@dataclass(frozen=True)
class RebuildReport:
    """The epoch in which a view was rebuilt; ``finished`` were completed before."""

    epoch: Epoch
    finished: tuple[Epoch, ...] = ()

    @property
    def failed_views(self) -> tuple[tuple[str, str], ...]:
        """The views that could not be built, or that differ from their queries."""
        return tuple(
            {state.view.view: state.view.failed for state in self.epoch.tables if state.view and state.view.failed}.items()
        )


def rebuild(context: WriteContext, view: str) -> RebuildReport:
    """Rebuild a view over the live rows, with the state of its operators and the views that read it.

    Raises
    ------
    UnknownNameError, ConfigurationError
        When there is no such view, or it cannot be maintained as it is declared; then nothing was written.

    """
    catalog = context.catalog
    with locked(context):
        current = finish(context)
        last = current.last
        if last is None:
            raise nothing_loaded(context.root, "no view is built")
        require_unchanged_declarations(catalog, last)
        nodes, refused = sound_nodes(catalog)
        still = behind(last, nodes)
        if view in still.views:
            raise UsageError(f'view "{view}" stands still: {still.views[view]}')
        refused = {**refused, **still.views}
        plan = _rebuild_plan(
            catalog, last, view, still.moving(nodes), refused, clock=context.clock(), spark=context.writing_spark
        )
        return RebuildReport(begin(context, current, plan), current.finished)


def _rebuild_plan(
    catalog: Catalog,
    last: Epoch,
    view: str,
    nodes: Sequence[NodeInput],
    refused: dict[str, str],
    *,
    clock: int,
    spark: Callable[[], SparkSession],
) -> Plan:
    """Return the plan that rebuilds a view; ``clock`` is in microseconds.

    ``nodes`` are the nodes of views that can be maintained; ``refused`` has the reasons why the others cannot.
    """
    if catalog.source(view) is not None:
        remedy = f"only views are rebuilt; `stream-wh restate {view}` reads its landing files once more"
        raise UsageError(f'"{view}" is declared as a source: {remedy}')
    if catalog.view(view) is None:
        raise UnknownNameError("view", view, [declared.name for declared in catalog.views])
    restoring = Restoring()
    tables = tuple(
        restoring.rebuilt(state) if state.view is not None and state.view.view == view else state for state in last.tables
    )
    base = replace(last, tables=tables, files=(), counts=(), seconds=(), removed=(), warnings=())
    built_nodes = with_columns(nodes, catalog, base, last.slot, spark, refused)
    if view in refused:
        problem = Problem(str(catalog.file), f"views.{view}.sql", refused[view], "a query that can be maintained")
        raise ConfigurationError([problem])
    plan = make_plan(catalog, base, [], slot=last.slot, clock=clock, nodes=built_nodes, refused=refused)
    return msgspec.structs.replace(plan, base=base, cause="rebuild")
