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
    names, found = {table, *side_tables}, []
    for given in nodes:
        if given.node.table in others or any(name in names for name in tables_read(given.node.operator)):
            names.add(given.node.table)
            found.append(given)
    return found


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
    again = unbuilt(nodes, last, created)
    if not again:
        return list(nodes)
    from warehouse.storage.session import own_session  # noqa: PLC0415 - planning alone needs no Spark
    from warehouse.views.maintenance.analysis import shape_of  # noqa: PLC0415 - same
    from warehouse.views.maintenance.input_facts import Move  # noqa: PLC0415 - same
    from warehouse.views.verification.analyser import Analyser  # noqa: PLC0415 - same

    known: dict[str, Sequence[ColumnRecord]] = {
        source.name: [ColumnRecord(column.name, column.type) for column in source.columns]
        for source in catalog.sources
    }
    for table in catalog.coalesced:
        known[table.name] = [ColumnRecord(name, kind) for name, kind in table.definition.columns]
    for aggregate in catalog.aggregates:  # one that is new gets its table once the windows move
        if last is None or slot > last.slot or last.table(aggregate.name) is not None:
            known[aggregate.name] = [ColumnRecord(name, kind) for name, kind in aggregate.definition.columns]
    session = own_session(spark(), {})  # its temporary views are called as the tables of this warehouse
    analyser = Analyser(session)
    interval, anchor = catalog.update_interval, catalog.anchor
    found: list[NodeInput] = []
    hidden = {given.node.table for given in nodes if given.node.hidden}
    for given in nodes:
        below = [table for table in scanned(given.node.operator) if table not in known]
        if given.view in (refused or ()) or below:
            if refused is not None:
                refused.setdefault(given.view, f"it reads {', '.join(below)}, which cannot be maintained")
            continue
        state = last.table(given.node.table) if last else None
        if given.node.table in again or state is None:
            k0 = slot - given.node.periods
            move = Move(k0, slot, at_slot(k0, anchor, interval), at_slot(slot, anchor, interval), anchor, interval, first=True)
            try:
                shape = shape_of(session, given.node, layout_of(given, state), move, known, given.view)
                if not given.node.hidden:
                    tables = {name: columns for name, columns in known.items() if name not in hidden}
                    own = [each.node for each in nodes if each.view == given.view]
                    analyser.check(given.view, given.sql, tables, shape, own)
            except ConfigurationError as error:
                if refused is None:
                    raise
                refused[given.view] = "; ".join(f"{each.found}; allowed: {each.allowed}" for each in error.problems)
                continue
            except Exception as error:
                if refused is None or passing_failure(error) is not None:
                    raise
                refused[given.view] = f"Spark fails to analyse its query: {_first_line(error)}"
                continue
            given = replace(given, columns=shape.columns, state=shape.state, set_aside_columns=shape.set_aside_columns)  # noqa: PLW2901 - the same node, known better
            known[given.node.table] = given.columns
        else:
            known[given.node.table] = state.declaration.columns
        found.append(given)
    return [given for given in found if given.view not in (refused or ())]


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0] or type(error).__name__
