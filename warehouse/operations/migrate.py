"""The verb that migrates: finds the work, then executes its plan or writes the epoch that records it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from warehouse.epochs.journal import newest_epoch
from warehouse.errors import NoEpochError
from warehouse.operations.context import WriteContext, locked
from warehouse.operations.execution import begin, finish, write_epoch
from warehouse.operations.migration import MigratedTable, Migration, MigrationReport, MigrationRequest
from warehouse.operations.publication import publish_if_behind
from warehouse.operations.standing_still import behind
from warehouse.operations.switching import switch, switched_table
from warehouse.planning.declared_nodes import declared_nodes

if TYPE_CHECKING:
    from warehouse.epochs.records import Epoch

__all__ = ["MigratedTable", "MigrationReport", "MigrationRequest", "migrate"]


def migrate(
    context: WriteContext, table: str | None, request: MigrationRequest, *, dry_run: bool = False
) -> MigrationReport:
    """Give a table, or every table whose declaration changed, another layout, columns or grid of times.

    A dry run needs no lock and writes nothing.

    Raises
    ------
    MigrationError, UsageError, LayoutError
        When the migration is impossible, or needs other options; then nothing was written.

    """
    switched = switched_table(context, table, newest_epoch(context.root))
    if switched is not None:
        return switch(context, switched, request, dry_run=dry_run)
    if dry_run:
        return _migration(context, newest_epoch(context.root)).outcome(table, request, dry_run=True).report
    with locked(context):
        current = finish(context)
        migration = _migration(context, current.last)
        outcome = migration.outcome(table, request)
        report = replace(outcome.report, finished=current.finished)
        if outcome.plan is not None:
            return replace(report, epoch=begin(context, current, outcome.plan))
        if outcome.tables is None or outcome.followed is None:
            publish_if_behind(context, current.last)
            return report
        epoch = write_epoch(
            context,
            migration.last,
            (),
            cause="migrate",
            tables=outcome.tables,
            previous_slot=migration.last.slot,
            catalog_digest=outcome.followed.digest,
            declared=outcome.followed.keys,
        )
        return replace(report, epoch=epoch)


def _migration(context: WriteContext, last: Epoch | None) -> Migration:
    if last is None:
        raise NoEpochError(
            "nothing has been loaded yet, so nothing is to migrate; "
            "run `stream-wh update`, which takes warehouse.toml as it is"
        )
    nodes = declared_nodes(context.catalog)
    moving = behind(last, nodes).moving(nodes)
    return Migration(context.catalog, moving, last, context.clock(), context.writing_spark)
