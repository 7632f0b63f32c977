"""The coalesced tables without files, as an epoch records them: readers know nothing else of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.epochs.records import LazyTable

if TYPE_CHECKING:
    from warehouse.catalog.model import Catalog, Coalesced
    from warehouse.epochs.records import Epoch

__all__ = ["lazy_tables"]


def lazy_tables(
    catalog: Catalog, last: Epoch | None, window_time: int, *, forgotten: str | None = None
) -> tuple[LazyTable, ...]:
    """Return what an update at a window time records of the declared lazy tables.

    One that is still stored waits for its migration, which has its files ``forgotten``.

    Raises
    ------
    ConfigurationError
        When one cannot be lazy.

    """
    if not catalog.lazy:
        return ()
    from warehouse.views.lazy import lazy_conditions  # noqa: PLC0415 - it takes the parser of SQL

    conditions = lazy_conditions(catalog)
    found = []
    for table in catalog.lazy:
        if last is not None and last.table(table.name) is not None and table.name != forgotten:
            continue
        condition = conditions[table.name]
        sql, reads = (None, ()) if condition is None else (condition.sql, condition.reads)
        found.append(LazyTable(table.name, table.definition, sql, reads, _full_from(last, table, window_time)))
    return tuple(found)


def _full_from(last: Epoch | None, table: Coalesced, window_time: int) -> int | None:
    """From when on a table has every point; before it was declared, its stream may not have stored points for so long."""
    if last is None or last.table(table.definition.source) is None:
        return None
    before, state = last.lazy_table(table.name), last.table(table.name)
    if before is not None:
        return before.full_from
    if state is not None and state.coalesced is not None:
        return state.coalesced.full_from
    return window_time
