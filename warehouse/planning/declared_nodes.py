"""The nodes of the declared views, as an update plans them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from warehouse.catalog.declaration import ColumnRecord
from warehouse.catalog.model import LayoutSpec
from warehouse.errors import ConfigurationError
from warehouse.planning.coalesced_plans import must_be_built
from warehouse.planning.node_plans import NodeInput, layout_of, unbuilt
from warehouse.storage.failures import passing_failure
from warehouse.time import at_slot
from warehouse.views.algebra import scanned, tables_read

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch
    from warehouse.views.plans import ViewPlans

__all__ = ["declared_nodes", "nodes_above", "sound_nodes", "with_columns"]


def declared_nodes(catalog: Catalog) -> list[NodeInput]:
    """Return the nodes of all declared views, each after those it reads.

    Raises
    ------
    ConfigurationError
        When a view cannot be maintained: with every fault.

    """
    if not catalog.views:
        return []
    from warehouse.views.plans import compile_views  # noqa: PLC0415 - it takes time to import

    return _nodes(compile_views(catalog))


def sound_nodes(catalog: Catalog) -> tuple[list[NodeInput], dict[str, str]]:
    """Return the nodes of the declared views that can be maintained, and why the other views cannot."""
    nodes, refused = _judged(catalog) if catalog.views else ((), ())
    return list(nodes), dict(refused)


@lru_cache(maxsize=4)
def _judged(catalog: Catalog) -> tuple[tuple[NodeInput, ...], tuple[tuple[str, str], ...]]:
    """The same as values: a process that stays compiles the views of a file once."""
    from warehouse.views.plans import judged_views  # noqa: PLC0415 - it takes time to import

    plans, _ = judged_views(catalog)
    return tuple(_nodes(plans)), tuple(plans.refused.items())


def nodes_above(table: str, nodes: Sequence[NodeInput], others: set[str], side_tables: Collection[str] = ()) -> list[NodeInput]:
    """Return the nodes of views that read a table or its ``side_tables``, directly or not, or that are in ``others``.

    ``nodes`` are in order.
    """
    names, above = {table, *side_tables}, []
    for node_input in nodes:
        if node_input.node.table in others or any(name in names for name in tables_read(node_input.node.operator)):
            names.add(node_input.node.table)
            above.append(node_input)
    return above


def _nodes(plans: ViewPlans) -> list[NodeInput]:
    return [
        NodeInput(
            view=compiled.name,
            sql=compiled.view.sql,
            node=node,
            short_lived=compiled.view.short_lived,
            max_lifetime=compiled.lifetime,
            layout=LayoutSpec() if node.hidden else compiled.view.layout,
            widest=compiled.view.widest_block,
            budget=None if node.hidden else compiled.view.budget,
        )
        for compiled in plans
        for node in compiled.nodes
    ]


def with_columns(
    nodes: Sequence[NodeInput],
    catalog: Catalog,
    last: Epoch | None,
    slot: int,
    spark: Callable[[], SparkSession],
    refused: dict[str, str] | None = None,
) -> list[NodeInput]:
    """Return nodes that must be built with their columns, found by Spark before anything is written.

    Raises
    ------
    ConfigurationError
        When Spark refuses a query, or a column has a type that no table can have. If ``refused`` is given, the view is added to
        it instead, with the views that read it, and its nodes are left out.

    """
    names = [*(source.name for source in catalog.sources), *(aggregate.name for aggregate in catalog.aggregates)]
    created = [name for name in names if last is None or last.table(name) is None]
    created += [
        table.name for table in catalog.coalesced if must_be_built(table.definition, last.table(table.name) if last else None)
    ]
    unbuilt_tables = unbuilt(nodes, last, created)
    if not unbuilt_tables:
        return list(nodes)
    from warehouse.storage.session import own_session  # noqa: PLC0415 - planning alone needs no Spark
    from warehouse.views.maintenance.analysis import shape_of  # noqa: PLC0415 - same
    from warehouse.views.maintenance.input_facts import Move  # noqa: PLC0415 - same
    from warehouse.views.verification.analyser import Analyser  # noqa: PLC0415 - same

    columns_of: dict[str, Sequence[ColumnRecord]] = {
        source.name: [ColumnRecord(column.name, column.type) for column in source.columns]
        for source in catalog.sources
    }
    for table in catalog.coalesced:
        columns_of[table.name] = [ColumnRecord(name, kind) for name, kind in table.definition.columns]
    for aggregate in catalog.aggregates:  # one that is new gets its table once the windows move
        if last is None or slot > last.slot or last.table(aggregate.name) is not None:
            columns_of[aggregate.name] = [ColumnRecord(name, kind) for name, kind in aggregate.definition.columns]
    session = own_session(spark(), {})  # its temporary views are called as the tables of this warehouse
    analyser = Analyser(session)
    interval, anchor = catalog.update_interval, catalog.anchor
    completed: list[NodeInput] = []
    hidden = {node_input.node.table for node_input in nodes if node_input.node.hidden}
    for node_input in nodes:
        below = [table for table in scanned(node_input.node.operator) if table not in columns_of]
        if node_input.view in (refused or ()) or below:
            if refused is not None:
                refused.setdefault(node_input.view, f"it reads {', '.join(below)}, which cannot be maintained")
            continue
        state = last.table(node_input.node.table) if last else None
        if node_input.node.table in unbuilt_tables or state is None:
            k0 = slot - node_input.node.periods
            move = Move(k0, slot, at_slot(k0, anchor, interval), at_slot(slot, anchor, interval), anchor, interval, first=True)
            try:
                shape = shape_of(session, node_input.node, layout_of(node_input, state), move, columns_of, node_input.view)
                if not node_input.node.hidden:
                    tables = {name: columns for name, columns in columns_of.items() if name not in hidden}
                    view_nodes = [other.node for other in nodes if other.view == node_input.view]
                    analyser.check(node_input.view, node_input.sql, tables, shape, view_nodes)
            except ConfigurationError as error:
                if refused is None:
                    raise
                refused[node_input.view] = "; ".join(f"{problem.found}; allowed: {problem.allowed}" for problem in error.problems)
                continue
            except Exception as error:
                if refused is None or passing_failure(error) is not None:
                    raise
                refused[node_input.view] = f"Spark fails to analyse its query: {_first_line(error)}"
                continue
            node_input = replace(  # noqa: PLW2901 - the same node with its columns
                node_input, columns=shape.columns, state=shape.state, set_aside_columns=shape.set_aside_columns
            )
            columns_of[node_input.node.table] = node_input.columns
        else:
            columns_of[node_input.node.table] = state.declaration.columns
        completed.append(node_input)
    return [node_input for node_input in completed if node_input.view not in (refused or ())]


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0] or type(error).__name__
