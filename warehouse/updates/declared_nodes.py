"""The nodes of the declared views, as an update plans them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warehouse.catalog.declaration import ColumnRecord
from warehouse.catalog.model import LayoutSpec
from warehouse.time import at_slot
from warehouse.updates.node_plans import NodeInput, layout_of, unbuilt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog
    from warehouse.updates.records import Epoch

__all__ = ["declared_nodes", "with_columns"]


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

    return [
        NodeInput(
            view=compiled.name,
            sql=compiled.view.sql,
            node=node,
            short_lived=compiled.view.short_lived,
            max_lifetime=compiled.lifetime,
            layout=LayoutSpec() if node.hidden else compiled.view.layout,
            widest=compiled.view.widest_block,
        )
        for compiled in compile_views(catalog)
        for node in compiled.nodes
    ]


def with_columns(
    nodes: Sequence[NodeInput], catalog: Catalog, last: Epoch | None, slot: int, spark: Callable[[], SparkSession]
) -> list[NodeInput]:
    """Return nodes that must be built with their columns, found by Spark before anything is written."""
    created = [source.name for source in catalog.sources if last is None or last.table(source.name) is None]
    anew = unbuilt(nodes, last, created)
    if not anew:
        return list(nodes)
    from warehouse.storage.session import table_session  # noqa: PLC0415 - planning alone needs no Spark
    from warehouse.views.maintenance.feeds import Move  # noqa: PLC0415 - same
    from warehouse.views.maintenance.shapes import shape_of  # noqa: PLC0415 - same

    known: dict[str, Sequence[ColumnRecord]] = {
        source.name: [ColumnRecord(column.name, column.type) for column in source.columns]
        for source in catalog.sources
    }
    session = table_session(spark(), {})
    interval, anchor = catalog.update_interval, catalog.anchor
    found = []
    for given in nodes:
        state = last.table(given.node.table) if last else None
        if given.node.table in anew or state is None:
            k0 = slot - given.node.periods
            move = Move(k0, slot, at_slot(k0, anchor, interval), at_slot(slot, anchor, interval), anchor, interval, first=True)
            shape = shape_of(session, given.node, layout_of(given, state), move, known, given.view)
            given = replace(given, columns=shape.columns, state=shape.state)  # noqa: PLW2901 - the same node, known better
            known[given.node.table] = given.columns
        else:
            known[given.node.table] = state.declaration.columns
        found.append(given)
    return found
