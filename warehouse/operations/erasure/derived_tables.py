"""The tables derived from a table: which an erasure changes, which it rebuilds, and which keep a part of the erased rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.planning.aggregate_plans import unneeded_synopses
from warehouse.serving.visible_tables import read_by
from warehouse.steps.erased_keys import held_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.planning.plan_record import Erasure

__all__ = ["answers_of", "answers_over_views", "related_tables", "remaining_parts", "tables_above"]


def related_tables(epoch: Epoch, table: str) -> tuple[TableState, ...]:
    """Return further tables from which a stream's keys are erased: its archive, and tables that follow it by its key."""
    state = epoch.table(table)
    key = () if state is None else state.declaration.search_key
    following = (answers for answers in answers_of(epoch, table) if held_in(answers, key) is not None)
    return (*(state for state in epoch.tables if state.archive_of == table), *following)


def answers_of(epoch: Epoch, table: str) -> tuple[TableState, ...]:
    """Return the synopses of a stream, the answers of aggregates over it, and coalesced tables of its points."""
    return tuple(state for state in epoch.tables if state.followed == table)


def tables_above(epoch: Epoch, table: str) -> tuple[TableState, ...]:
    """Return the tables of views and of their operators' state with rows derived from a table, in the epoch's order.

    A relation that a view looks up counts as read, and answers that have a stream's key count as the stream.
    """
    above: set[str] = set()
    followed = (*related_tables(epoch, table), *(state for state in answers_of(epoch, table) if state.coalesced is not None))
    below = {table, *(state.name for state in followed if state.answers is not None or state.coalesced is not None)}
    while True:
        names = {
            state.name
            for state in epoch.tables
            if state.view is not None and not {*below, *above}.isdisjoint(read_by(state.view.node.operator))
        }
        if names == above:
            return tuple(state for state in epoch.tables if state.name in above)
        above = names


def answers_over_views(epoch: Epoch, above: Sequence[TableState]) -> list[TableState]:
    """Return the answers of aggregates over the views among the tables ``above`` a table."""
    names = {state.name for state in above}
    return [state for state in epoch.tables if state.answers is not None and state.followed in names]


def remaining_parts(catalog: Catalog, epoch: Epoch, erasure: Erasure) -> Iterator[str]:
    """Yield texts about aggregates and coalesced tables that still have a part of erased rows."""
    if erasure.keys:
        yield from _parts_in_answers(epoch, erasure)
        yield from _parts_of_dropped(catalog, epoch, erasure.table or "")


def _parts_in_answers(epoch: Epoch, erasure: Erasure) -> Iterator[str]:
    """Yield texts about aggregates that are not grouped by the key: they still count erased rows, since their part is unknown."""
    table = erasure.table or ""
    for state in answers_over_views(epoch, tables_above(epoch, table)):
        yield (
            f'the aggregate "{state.name}" over the view "{state.followed}" still has these rows\' part in its counts and sums, '
            f"until its windows and `keep` have passed; to be rid of it, take it out of warehouse.toml, `stream-wh update` and "
            f"`stream-wh drop {state.name}`"
        )
    for state in answers_of(epoch, table):
        if state.answers is not None and state not in related_tables(epoch, table):
            yield (
                f'the aggregate "{state.name}" is not grouped by the key, so its groups, counts, sums and extremes still have '
                f"these rows' part, until its windows and `keep` have passed; to be rid of it, take it out of warehouse.toml, "
                f"`stream-wh update` and `stream-wh drop {state.name}`"
            )
        if state.coalesced is not None and state not in related_tables(epoch, table):
            yield (
                f'the coalesced table "{state.name}" is not grouped by the key, so it still has stamps and values of these rows, '
                f"until its window has passed; to be rid of it, take it out of warehouse.toml, `stream-wh update` and "
                f"`stream-wh drop {state.name}`"
            )


def _parts_of_dropped(catalog: Catalog, epoch: Epoch, table: str) -> Iterator[str]:
    """Yield texts about synopses that are not grouped by a stream's key and belong to aggregates that are no longer declared."""
    related = {state.name for state in related_tables(epoch, table)}
    for name, traces in unneeded_synopses(catalog, epoch, table):
        if traces and name not in related:
            yield (
                f'{", ".join(traces)} of rows of "{table}" are left of an aggregate that is not declared any more, and still '
                f"have these rows' part, until the next `stream-wh update` takes them out and older epochs have gone (`retain`)"
            )
