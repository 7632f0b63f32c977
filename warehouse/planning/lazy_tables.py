"""Makes the records of coalesced tables without files, which readers need."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warehouse.epochs.following import LazyTable

if TYPE_CHECKING:
    from warehouse.catalog.model import Catalog, Coalesced
    from warehouse.epochs.records import Epoch

__all__ = ["lazy_table", "lazy_tables"]


def lazy_tables(
    catalog: Catalog, last: Epoch | None, window_time: int, *, forgotten: str | None = None
) -> tuple[LazyTable, ...]:
    """Return the records of the declared lazy tables for an update at a window time.

    A table that is still stored waits for its migration, which has its files ``forgotten``.

    Raises
    ------
    ConfigurationError
        When one of the tables cannot be lazy.

    """
    if not catalog.lazy:
        return ()
    from warehouse.views.lazy_conditions import lazy_conditions  # noqa: PLC0415 - it takes the parser of SQL

    lazy_conditions(catalog)
    return tuple(
        replace(lazy_table(catalog, table), full_from=_full_from(last, table, window_time))
        for table in catalog.lazy
        if last is None or last.table(table.name) is None or table.name == forgotten
    )


def lazy_table(catalog: Catalog, table: Coalesced) -> LazyTable:
    """Return the record of a table that may be lazy."""
    from warehouse.views.lazy_conditions import lazy_condition  # noqa: PLC0415 - it takes the parser of SQL

    condition = lazy_condition(catalog, table.definition)
    sql, reads = (None, ()) if condition is None else (condition.sql, condition.reads)
    return LazyTable(table.name, table.definition, sql, reads)


def _full_from(last: Epoch | None, table: Coalesced, window_time: int) -> int | None:
    """The instant from which a table has every point: its stream may have kept points for a shorter time before."""
    if last is None or last.table(table.definition.source) is None:
        return None
    before, state = last.lazy_table(table.name), last.table(table.name)
    if before is not None:
        return before.full_from
    if state is not None and state.coalesced is not None:
        return state.coalesced.full_from
    return window_time
