"""The declarations with the decisions that epochs record: a lazy coalesced table with ``how = "auto"`` stays lazy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.epochs.journal import newest_epoch

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.catalog.model import Catalog

__all__ = ["decided_catalog"]


def decided_catalog(catalog: Catalog, root: Path) -> Catalog:
    """Return the declarations with the decisions that the newest epoch records.

    A table that can no longer be lazy, since its stream or a view changed, is stored from the next update on.
    """
    if not any(table.how == "auto" for table in catalog.coalesced):
        return catalog
    last = newest_epoch(root)
    lazy = {table.name for table in last.lazy} if last is not None else set()
    tables = [table for table in catalog.coalesced if table.name in lazy]
    if not tables:
        return catalog
    from warehouse.advice.coalescing import can_be_lazy  # noqa: PLC0415 - it takes the parser of SQL

    return catalog.with_lazy({table.name for table in tables if can_be_lazy(catalog, table)})
