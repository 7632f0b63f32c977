"""Moves the files for other tools to the epoch that was just written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.operations.unneeded_files import GRACE, VacuumReport

if TYPE_CHECKING:
    from warehouse.epochs.records import Epoch
    from warehouse.operations.context import WriteContext

__all__ = ["free_live_tables", "publish", "publish_if_behind", "publish_live_tables"]


def publish(context: WriteContext, epoch: Epoch, *, rebuild: bool = False) -> None:
    """Replace the file for other tools by that of a new epoch, and move the live tables."""
    from warehouse.publishing.database import replace_database  # noqa: PLC0415 - it takes the engine

    replace_database(context.root, epoch, observer=context.observer, rebuild=rebuild)
    publish_live_tables(context, epoch, rebuild=rebuild)


def publish_live_tables(context: WriteContext, epoch: Epoch, *, rebuild: bool = False) -> tuple[str, ...]:
    """Move the Delta tables of exactly the live rows to the newest epoch, and return the names of the moved ones."""
    from warehouse.publishing.live.publish import live_rules  # noqa: PLC0415 - same
    from warehouse.publishing.live.publish import publish_live_tables as publish_live  # noqa: PLC0415 - it takes the engine

    rules = live_rules(context.catalog)
    return publish_live(context.root, epoch, rules, now=context.clock(), observer=context.observer, rebuild=rebuild)


def publish_if_behind(context: WriteContext, newest: Epoch | None) -> None:
    """Write that file again where it is missing or of another epoch or place, and move live tables that are behind."""
    from warehouse.publishing.database import replace_database_if_needed  # noqa: PLC0415 - it takes the engine

    replace_database_if_needed(context.root, newest, observer=context.observer)
    if newest is not None:
        publish_live_tables(context, newest)


def free_live_tables(context: WriteContext, newest: Epoch | None) -> VacuumReport:
    """Delete the files of live tables that no version in use names."""
    from warehouse.publishing.live.publish import free_live_space, live_rules  # noqa: PLC0415 - same

    if newest is None:
        return VacuumReport()
    space = free_live_space(context.root, newest, live_rules(context.catalog), now=context.clock(), grace=GRACE)
    return VacuumReport(space.files, space.bytes)
