"""A view rebuilt at the newest window time: its own table, the state of its operators, and the views that read it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from warehouse.errors import ConfigurationError, Problem, UnknownNameError
from warehouse.planning.declared_nodes import with_columns
from warehouse.planning.plan import make_plan
from warehouse.planning.restoring import Restoring

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch
    from warehouse.planning.node_plans import NodeInput
    from warehouse.planning.steps import Plan

__all__ = ["rebuild_plan"]


def rebuild_plan(
    catalog: Catalog,
    last: Epoch,
    view: str,
    nodes: Sequence[NodeInput],
    refused: dict[str, str],
    *,
    slot: int,
    clock: int,
    spark: Callable[[], SparkSession],
) -> Plan:
    """Return the plan that rebuilds a view.

    Parameters
    ----------
    catalog, nodes, refused
        What is declared: the nodes of views that can be maintained, and why the others cannot.
    last
        The newest epoch, which becomes the plan's base with the view's tables marked.
    view
        Its name.
    slot, clock
        The newest window's slot; the wall clock in microseconds.
    spark
        Gives the session that finds the columns.

    Raises
    ------
    UnknownNameError
        When no view of that name is declared.
    ConfigurationError
        When the view cannot be maintained as it is declared.

    """
    if catalog.view(view) is None:
        raise UnknownNameError("view", view, [each.name for each in catalog.views])
    restoring = Restoring()
    tables = tuple(
        restoring.rebuilt(state) if state.view is not None and state.view.view == view else state for state in last.tables
    )
    base = replace(last, tables=tables, files=(), counts=(), seconds=(), removed=(), warnings=())
    found = with_columns(nodes, catalog, base, slot, spark, refused)
    if view in refused:
        problem = Problem(str(catalog.file), f"views.{view}.sql", refused[view], "a query that can be maintained")
        raise ConfigurationError([problem])
    plan = make_plan(catalog, base, [], slot=slot, clock=clock, nodes=found, refused=refused)
    return msgspec.structs.replace(plan, base=base, cause="rebuild")
