"""Erases rows physically: searches, plans, executes like an update, removes data of older epochs, proves, and reports.

The recorded plan has the keys. It is removed last, after the receipt is written: as long as the plan of an erasure that made the
newest epoch exists, the erasure is unfinished, and the next holder of the writer lock finishes it. So a kill at any point loses
nothing of the request, and no other verb writes before it is finished.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.catalog.declaration import stream_of
from warehouse.epochs.journal import epoch_numbers, plan_path, read_record
from warehouse.epochs.points import Moment, Observer, Point
from warehouse.errors import RecordDamagedError, UnknownNameError, UsageError
from warehouse.ingest.object_copies import drop_copies
from warehouse.operations.erasure.finding import dead_rows, rows_of_keys
from warehouse.operations.erasure.landing import files_with_keys
from warehouse.operations.erasure.plan import FoundRows, erasure_plan, nodes_to_build
from warehouse.operations.erasure.proof import Proof, Trace, prove
from warehouse.operations.erasure.receipt import Receipt, TableReceipt, beyond_reach, write_receipt
from warehouse.operations.erasure.store import clear_store
from warehouse.operations.unneeded_files import merge_ledgers, named_files, retire, sweep
from warehouse.planning.aggregate_plans import unneeded_synopses
from warehouse.planning.node_plans import rows_set_aside
from warehouse.planning.plan import history_of
from warehouse.planning.plan_record import Erasure, Plan
from warehouse.planning.steps import CutLog, EraseRows
from warehouse.publishing.live.publish import live_files, live_rules, purge
from warehouse.serving.visible_tables import read_by
from warehouse.steps.erased_keys import erased_keys, held_in, key_columns, keys_of_erasure
from warehouse.storage.companion_files import SUMMARY
from warehouse.storage.logcut import cut_log
from warehouse.storage.store import store_of
from warehouse.storage.tables import FOLDERS
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.planning.node_plans import NodeInput
    from warehouse.steps.erased_keys import ErasedKeys

__all__ = ["Outlook", "answers_of", "complete", "is_open", "landing_files", "outlook", "related_tables", "tables_above"]


_END_OF_TIME = 1 << 62
"""An instant at which every superseded epoch is out of `retain` and every file is old, even if the clock was changed."""


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
        Its name; None: every table (of expired rows).
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
    names = [each.name for each in last.tables if each.kind != "state"]
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
        views=tuple(dict.fromkeys(each.owner for each in above)),
        asked_at=now,
        salt=secrets.token_hex(16),
        ended=tuple(_ended(last, above)),
    )
    dead_by = last.window_time if state.kind == "stream" else None
    archives = related_tables(last, state.name)
    tables = [FoundRows(state, tuple(rows_of_keys(catalog.root, state, erased)), dead_by)]
    tables += [FoundRows(each, tuple(rows_of_keys(catalog.root, each, erased.within(each))), None) for each in archives]
    built = nodes_to_build(nodes, above)
    plan = erasure_plan(last, erasure, tables, above, built, clock=now, target_file_size=catalog.target_file_size)
    some = any(found.rows for each in tables for found in each.found)
    own = frozenset((state.name, *(archive.name for archive in archives)))
    before = Proof() if some and not everywhere else prove(catalog.root, own, erased, _named(catalog.root, last))
    return Outlook(plan, before, landing_files(catalog, state, erased), nothing=not some and not before.traces)


def _over_views(epoch: Epoch, above: Sequence[TableState]) -> list[TableState]:
    """Return the answers of aggregates over views with rows derived from a table."""
    names = {each.name for each in above}
    return [each for each in epoch.tables if each.answers is not None and each.followed in names]


def _require_no_values(epoch: Epoch, table: str, above: Sequence[TableState]) -> None:
    """Refuse an erasure if an aggregate over a view above may show rows that are deleted, whose keys are unknown.

    Raises
    ------
    UsageError
        With the way on.

    """
    for each in _over_views(epoch, above):
        if each.answers is not None and each.answers.definition.shows_values:
            raise UsageError(
                f'the aggregate "{each.name}" over the view "{each.followed}" shows groups or values of rows of "{table}", and '
                f"it is not recorded which of them come from the keys; take it out of warehouse.toml, `stream-wh update`, "
                f"`stream-wh drop {each.name}`, then erase"
            )
    names = {each.name for each in above}
    for each in epoch.tables:
        if each.synopsis is not None and each.followed in names and each.synopsis.synopsis.shows_values:
            raise UsageError(
                f'groups or values of rows of "{table}" are left of an aggregate over the view "{each.followed}" that was '
                f"dropped, and it is not recorded which of them come from the keys; `stream-wh update` removes them, then erase"
            )


def _left_of_dropped(catalog: Catalog, epoch: Epoch, table: str) -> Iterator[str]:
    """Yield texts about synopses that are not grouped by a stream's key and belong to aggregates that are no longer declared."""
    related = {each.name for each in related_tables(epoch, table)}
    for name, left in unneeded_synopses(catalog, epoch, table):
        if left and name not in related:
            yield (
                f'{", ".join(left)} of rows of "{table}" are left of an aggregate that is not declared any more, and still have '
                f"these rows' part, until the next `stream-wh update` takes them out and older epochs have gone (`retain`)"
            )


def _left(catalog: Catalog, epoch: Epoch, erasure: Erasure) -> Iterator[str]:
    """Yield the traces of erased rows that remain in aggregates and coalesced tables."""
    if erasure.keys:
        yield from _left_in_answers(epoch, erasure)
        yield from _left_of_dropped(catalog, epoch, erasure.table or "")


def _left_in_answers(epoch: Epoch, erasure: Erasure) -> Iterator[str]:
    """Yield aggregates that are not grouped by the key and so still count erased rows: their part is unknown."""
    table = erasure.table or ""
    for each in _over_views(epoch, tables_above(epoch, table)):
        yield (
            f'the aggregate "{each.name}" over the view "{each.followed}" still has these rows\' part in its counts and sums, '
            f"until its windows and `keep` have passed; to be rid of it, take it out of warehouse.toml, `stream-wh update` and "
            f"`stream-wh drop {each.name}`"
        )
    for each in answers_of(epoch, table):
        if each.answers is not None and each not in related_tables(epoch, table):
            yield (
                f'the aggregate "{each.name}" is not grouped by the key, so its groups, counts, sums and extremes still have '
                f"these rows' part, until its windows and `keep` have passed; to be rid of it, take it out of warehouse.toml, "
                f"`stream-wh update` and `stream-wh drop {each.name}`"
            )
        if each.coalesced is not None and each not in related_tables(epoch, table):
            yield (
                f'the coalesced table "{each.name}" is not grouped by the key, so it still has stamps and values of these rows, '
                f"until its window has passed; to be rid of it, take it out of warehouse.toml, `stream-wh update` and "
                f"`stream-wh drop {each.name}`"
            )


def _ended(epoch: Epoch, above: Sequence[TableState]) -> Iterator[tuple[str, int]]:
    """Yield how many ended rows are set aside for results that a view owes, of each view with some."""
    for view in dict.fromkeys(state.owner for state in above):
        if rows := rows_set_aside(epoch, view):
            yield view, rows


def _sources(epoch: Epoch, view: TableState) -> list[str]:
    return [state.name for state in epoch.tables if state.view is None and view in tables_above(epoch, state.name)]


def _of_expired(catalog: Catalog, last: Epoch, table: str | None, now: int) -> Outlook:
    states = [state for state in last.tables if table in (None, state.owner)]
    if not states:
        raise UnknownNameError("table", table or "", [each.name for each in last.tables if each.kind != "state"])
    tables = []
    for state in states:
        dead_by = _dead_by(catalog, last, state)
        found = () if dead_by is None else (dead_rows(catalog.root, state, dead_by, last.slot),)
        tables.append(FoundRows(state, found, dead_by))
    erasure = Erasure(table=table, key=(), keys=(), views=(), asked_at=now, salt="")
    plan = erasure_plan(last, erasure, tables, (), (), clock=now, target_file_size=catalog.target_file_size)
    rows = any(found.rows for each in tables for found in each.found)
    return Outlook(plan, Proof(), (), nothing=not rows and len(epoch_numbers(catalog.root)) == 1)


def _dead_by(catalog: Catalog, last: Epoch, state: TableState) -> int | None:
    """The instant by which rows must have ended to be useless: a relation's versions may still be looked up for a while."""
    if state.kind != "relation":
        return last.window_time
    history = history_of(catalog)
    return None if history is None else last.window_time - history


def landing_files(catalog: Catalog, state: TableState, keys: ErasedKeys) -> tuple[Path, ...]:
    """Return the files of a table's landing directories that hold one of the keys, declared or as recorded."""
    if state.archive_of is not None:
        return ()
    stream = catalog.source(state.name) or stream_of(state.declaration, state.name, catalog.root)
    directories = (stream.landing_path, *([stream.move_to] if stream.move_to else []))
    return tuple(files_with_keys(stream, directories, keys))


def _named(root: Path, last: Epoch) -> dict[str, set[str]]:
    return named_files(root, [last]) | live_files(root)


# --- afterwards ---


def is_open(root: Path, newest: Epoch | None) -> bool:
    """Whether an erasure made the newest epoch and is not finished."""
    return newest is not None and newest.erased is not None and plan_path(root, newest.number).exists()


def complete(
    catalog: Catalog, newest: Epoch, *, now: int, observer: Observer, spark: Callable[[], SparkSession]
) -> Receipt:
    """Finish an erasure once its epoch is written, and return the receipt.

    The caller holds the writer lock. Older epochs are retired, regardless of ``retain``; all files that the newest epoch does not
    name are deleted; logs are cut; every file is read again. ``spark`` returns the session that reads an object store.
    """
    root = catalog.root
    plan, erasure = _open(plan_path(root, newest.number))
    retired = retire(root, retain=0, now=_END_OF_TIME).epochs
    sweep(root, now=_END_OF_TIME, grace=0)
    purge(root, newest, live_rules(catalog))
    merge_ledgers(root)
    observer(Moment(Point.SWEPT, newest.number))
    tables = tuple(_tables(root, plan, newest))
    observer(Moment(Point.LOGS_CUT, newest.number))
    keys = keys_of_erasure(erasure)
    proof = _proof(catalog, plan, newest, keys)
    state = newest.table(erasure.table or "")
    landing = landing_files(catalog, state, keys) if keys is not None and state is not None else ()
    for source in catalog.sources:
        drop_copies(source)
    observer(Moment(Point.PROVED, newest.number))
    store = clear_store(root, spark)
    receipt = Receipt(
        format=1,
        kind="keys" if keys is not None else "expired",
        table=erasure.table,
        keys=tuple(keys.hashes(erasure.table or "", erasure.salt)) if keys is not None else (),
        salt=erasure.salt,
        asked_at=format_instant(erasure.asked_at),
        completed_at=format_instant(now),
        epoch=newest.number,
        window_time=format_instant(newest.window_time),
        rows=sum(entry.rows for entry in newest.erased.rows) if newest.erased else 0,
        tables=tables,
        views_built_anew=erasure.views,
        ended_rows_given_up=dict(erasure.ended),
        epochs_retired=retired,
        proof=proof,
        landing=tuple(str(path) for path in landing),
        store=store,
        beyond_reach="; ".join((beyond_reach(newest.number), *_left(catalog, newest, erasure))),
    )
    write_receipt(root, receipt)
    observer(Moment(Point.RECEIPT_WRITTEN, newest.number))
    plan_path(root, newest.number).unlink()
    store_of(root / "epochs").sync_directory(root / "epochs")
    return receipt


def _open(path: Path) -> tuple[Plan, Erasure]:
    remedy = "what older epochs held is not removed yet: remove this file and run the same erasure again"
    try:
        plan = read_record(path, Plan)
    except RecordDamagedError as error:
        raise RecordDamagedError(str(path), error.reason, remedy) from error
    if plan.erasure is None:
        raise RecordDamagedError(str(path), "is not the plan of the erasure that made its epoch", remedy)
    return plan, plan.erasure


def _tables(root: Path, plan: Plan, newest: Epoch) -> Iterator[TableReceipt]:
    """Cut the logs, and yield the facts of each table."""
    versions = {state.path: state.version for state in newest.tables}
    versions |= {side.path: side.version for state in newest.tables for side in state.sides}
    removed = {entry.table: entry.files for entry in newest.removed}
    rows = {entry.path: entry.rows for entry in newest.erased.rows} if newest.erased else {}
    for step in plan.steps:
        if isinstance(step, CutLog) and step.path in versions:
            gone = cut_log(root / step.path, versions[step.path])
            yield TableReceipt(
                step.path, rows.get(step.path, 0), removed.get(step.path, ()), len(gone), versions[step.path]
            )


def _is_summary(path: str) -> bool:
    return path.partition("/")[0] in FOLDERS and path.endswith(SUMMARY)


def _proof(catalog: Catalog, plan: Plan, newest: Epoch, keys: ErasedKeys | None) -> Proof:
    """Read all remaining files again.

    Remove summaries that are damaged, or have a key that their file lacks: no reader needs them.
    """
    root = catalog.root
    if keys is not None and plan.erasure is not None:
        named = _named(root, newest)
        table = plan.erasure.table or ""
        own = frozenset((table, *(other.name for other in related_tables(newest, table))))
        passed_over = plan_path(root, newest.number)
        proof = prove(root, own, keys, named, passed_over=passed_over)
        doubtful = [root / trace.path for trace in proof.traces if _is_summary(trace.path)]
        for path in doubtful:
            store_of(path).remove_file(path)
        return prove(root, own, keys, named, passed_over=passed_over) if doubtful else proof
    left = Proof()
    for step in plan.steps:
        state = newest.table(step.stream)
        dead_by = _dead_by(catalog, newest, state) if state is not None else None
        if isinstance(step, CutLog) and state is not None and step.path == state.path and dead_by is not None:
            found = dead_rows(root, state, dead_by, newest.slot)
            left += Proof(sum(part.files for part in state.partitions), sum(part.bytes for part in state.partitions))
            if found.rows:
                left += Proof(traces=(Trace(state.path, f"{found.rows} expired rows"),))
    unnamed = sweep(root, now=_END_OF_TIME, grace=0, dry_run=True).files
    return left + Proof(traces=(Trace("", f"{unnamed} files that no epoch names"),)) if unnamed else left


# --- tables touched by an erasure: the tables above a table, by the epoch's records of views ---


def related_tables(epoch: Epoch, table: str) -> tuple[TableState, ...]:
    """Return further tables from which a stream's keys are erased: its archive, and tables that follow it by its key."""
    state = epoch.table(table)
    key = () if state is None else state.declaration.search_key
    following = (each for each in answers_of(epoch, table) if held_in(each, key) is not None)
    return (*(each for each in epoch.tables if each.archive_of == table), *following)


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
        found = {
            state.name
            for state in epoch.tables
            if state.view is not None and not {*below, *above}.isdisjoint(read_by(state.view.node.operator))
        }
        if found == above:
            return tuple(state for state in epoch.tables if state.name in above)
        above = found
