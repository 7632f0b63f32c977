"""What an erasure would do: the rows of its keys, the tables and files that have them, and the plan; nothing is written."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.epochs.journal import epoch_numbers
from warehouse.errors import UnknownNameError, UsageError
from warehouse.operations.erasure.derived_tables import answers_over_views, related_tables, tables_above
from warehouse.operations.erasure.finding import dead_instant, dead_rows, rows_of_keys
from warehouse.operations.erasure.landing import landing_files
from warehouse.operations.erasure.plan import FoundRows, erasure_plan, nodes_to_build
from warehouse.operations.erasure.proof import Proof, files_of_epoch, prove
from warehouse.planning.node_plans import rows_set_aside
from warehouse.planning.plan_record import Erasure, Plan
from warehouse.planning.steps import EraseRows
from warehouse.steps.erased_keys import erased_keys, key_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.planning.node_plans import NodeInput

__all__ = ["Outlook", "outlook"]


@dataclass(frozen=True)
class Outlook:
    """The work of an erasure: its plan, the tables and files that have the keys now, and the landing files that have them.

    There is ``nothing`` to do if no file of any epoch under the root has a key, or if no row has expired.
    """

    plan: Plan
    before: Proof
    landing: tuple[Path, ...]
    nothing: bool

    @property
    def rows(self) -> int:
        """Rows found in the newest epoch."""
        return sum(step.rows for step in self.plan.steps if isinstance(step, EraseRows) and step.role != "restored")


def outlook(
    catalog: Catalog,
    nodes: Sequence[NodeInput],
    last: Epoch,
    table: str | None,
    keys: Sequence[object] | None,
    *,
    now: int,
    everywhere: bool = False,
) -> Outlook:
    """Return the work of erasing keys of a table, or its expired rows without keys; nothing is written.

    Parameters
    ----------
    catalog
        The declarations in force.
    nodes
        The nodes of the declared views.
    last
        The newest epoch.
    table
        The table's name; None: every table, for expired rows.
    keys
        Keys as values, tuples of values, or prefixes of these; None: expired rows.
    now
        The clock's instant in microseconds.
    everywhere
        Whether to read every file under the root, although rows were found in the newest epoch already.

    Raises
    ------
    UnknownNameError, UsageError
        When there is no such table, a key is not of its type, or a view above cannot be rebuilt.

    """
    if keys is None:
        return _of_expired(catalog, last, table, now)
    state = last.table(table or "")
    names = [state_of_table.name for state_of_table in last.tables if state_of_table.kind != "state"]
    if state is None:
        raise UnknownNameError("table", table or "", names)
    if state.view is not None:
        raise UsageError(
            f'"{state.name}" is a view\'s table: its rows come back whenever it is built; erase the rows it is made from, '
            f"in {', '.join(_sources(last, state)) or 'the tables it reads'}"
        )
    if state.archive_of is not None and last.table(state.archive_of) is not None:
        raise UsageError(
            f'"{state.name}" is the archive of "{state.archive_of}"; erase the rows of "{state.archive_of}": they leave both'
        )
    if state.answers is not None:
        source = state.answers.definition.source
        raise UsageError(f'"{state.name}" holds answers over "{source}"; erase the rows of "{source}": its groups go with them')
    if state.coalesced is not None:
        source = state.coalesced.definition.source
        raise UsageError(f'"{state.name}" holds points of "{source}"; erase the rows of "{source}": its groups go with them')
    columns = key_columns(state.declaration.columns, state.declaration.search_key)
    erased = erased_keys(columns, keys)
    if not erased.keys:
        raise UsageError("no key was given; name at least one, or --expired")
    above = tables_above(last, state.name)
    _require_no_values(last, state.name, above)
    types = {column.name.lower(): column for column in state.declaration.columns}
    erasure = Erasure(
        table=state.name,
        key=tuple(types[name.lower()] for name in state.declaration.search_key),
        keys=erased.texts(),
        views=tuple(dict.fromkeys(state_above.owner for state_above in above)),
        asked_at=now,
        salt=secrets.token_hex(16),
        ended=tuple(_ended(last, above)),
    )
    dead_by = last.window_time if state.kind == "stream" else None
    archives = related_tables(last, state.name)
    tables = [FoundRows(state, tuple(rows_of_keys(catalog.root, state, erased)), dead_by)]
    tables += [
        FoundRows(archive, tuple(rows_of_keys(catalog.root, archive, erased.within(archive))), None) for archive in archives
    ]
    built = nodes_to_build(nodes, above)
    plan = erasure_plan(last, erasure, tables, above, built, clock=now, target_file_size=catalog.target_file_size)
    has_rows = any(entry.rows for found_rows in tables for entry in found_rows.found)
    erased_tables = frozenset((state.name, *(archive.name for archive in archives)))
    before = (
        Proof() if has_rows and not everywhere else prove(catalog.root, erased_tables, erased, files_of_epoch(catalog.root, last))
    )
    return Outlook(plan, before, landing_files(catalog, state, erased), nothing=not has_rows and not before.traces)


def _require_no_values(epoch: Epoch, table: str, above: Sequence[TableState]) -> None:
    """Refuse an erasure if an aggregate over a view above may show rows that are deleted, whose keys are unknown.

    Raises
    ------
    UsageError
        The message says what to do.

    """
    for state in answers_over_views(epoch, above):
        if state.answers is not None and state.answers.definition.shows_values:
            raise UsageError(
                f'the aggregate "{state.name}" over the view "{state.followed}" shows groups or values of rows of "{table}", and '
                f"it is not recorded which of them come from the keys; take it out of warehouse.toml, `stream-wh update`, "
                f"`stream-wh drop {state.name}`, then erase"
            )
    names = {state.name for state in above}
    for state in epoch.tables:
        if state.synopsis is not None and state.followed in names and state.synopsis.synopsis.shows_values:
            raise UsageError(
                f'groups or values of rows of "{table}" are left of an aggregate over the view "{state.followed}" that was '
                f"dropped, and it is not recorded which of them come from the keys; `stream-wh update` removes them, then erase"
            )


def _ended(epoch: Epoch, above: Sequence[TableState]) -> Iterator[tuple[str, int]]:
    """Yield, for each view with ended rows set aside for results that it owes, the number of these rows."""
    for view in dict.fromkeys(state.owner for state in above):
        if rows := rows_set_aside(epoch, view):
            yield view, rows


def _sources(epoch: Epoch, view: TableState) -> list[str]:
    return [state.name for state in epoch.tables if state.view is None and view in tables_above(epoch, state.name)]


def _of_expired(catalog: Catalog, last: Epoch, table: str | None, now: int) -> Outlook:
    states = [state for state in last.tables if table in (None, state.owner)]
    if not states:
        raise UnknownNameError("table", table or "", [state.name for state in last.tables if state.kind != "state"])
    tables = []
    for state in states:
        dead_by = dead_instant(catalog, last, state)
        rows_to_erase = () if dead_by is None else (dead_rows(catalog.root, state, dead_by, last.slot),)
        tables.append(FoundRows(state, rows_to_erase, dead_by))
    erasure = Erasure(table=table, key=(), keys=(), views=(), asked_at=now, salt="")
    plan = erasure_plan(last, erasure, tables, (), (), clock=now, target_file_size=catalog.target_file_size)
    has_rows = any(entry.rows for found_rows in tables for entry in found_rows.found)
    return Outlook(plan, Proof(), (), nothing=not has_rows and len(epoch_numbers(catalog.root)) == 1)
