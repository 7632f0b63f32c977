"""Erases rows: searches; unless it is a dry run, also plans, executes, removes data of older epochs, and proves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.epochs.journal import newest_epoch
from warehouse.errors import NoEpochError
from warehouse.operations.context import WriteContext, locked
from warehouse.operations.erasure.outlook import Outlook, outlook
from warehouse.operations.erasure.store import require_no_versions
from warehouse.operations.execution import begin, carry_out_erasure, finish
from warehouse.planning.declared_nodes import declared_nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.epochs.records import Epoch
    from warehouse.operations.erasure.receipt import Receipt

__all__ = ["erase"]


def erase(
    context: WriteContext, table: str | None, keys: Sequence[object] | None, *, dry_run: bool = False
) -> tuple[Outlook, Receipt | None]:
    """Erase the rows of keys of a table from all files; without keys, the expired rows of the table (None: of all tables).

    Returns
    -------
    tuple
        The rows that were found, and the receipt; None for a dry run, or if there was nothing to erase.

    """
    catalog = context.catalog
    if dry_run:
        newest = _require_epoch(newest_epoch(context.root))
        nodes = declared_nodes(catalog)
        return outlook(catalog, nodes, newest, table, keys, now=context.clock(), everywhere=True), None
    with locked(context):
        current = finish(context)
        last = _require_epoch(current.last)
        require_no_versions(context.root, context.writing_spark)
        outlook_now = outlook(catalog, declared_nodes(catalog), last, table, keys, now=context.clock())
        if outlook_now.nothing:
            return outlook_now, None
        return outlook_now, carry_out_erasure(context, begin(context, current, outlook_now.plan))


def _require_epoch(newest: Epoch | None) -> Epoch:
    if newest is None:
        raise NoEpochError("nothing has been loaded yet, so there is nothing to erase; run `stream-wh update` first")
    return newest
