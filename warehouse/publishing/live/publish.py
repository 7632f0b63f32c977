"""Moves the live tables of a warehouse to its newest epoch, and deletes files that they no longer need.

A live table is derived data: all its rows are in the newest epoch, and a live table with a fault is rebuilt from there. It is
moved right after the epoch's record is written, never before. After a crash it is at the epoch before, and the next writer moves
it. A table whose rows cannot be read, and a view that failed, are not moved.
"""

from __future__ import annotations

import logging
import uuid
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa

from warehouse.epochs.points import Moment, Observer, Point, nobody
from warehouse.errors import DamagedFileError, LockHeldError, MissingPartError, StorageFailedError, WarehouseError
from warehouse.objects.path import directories_in, path_of
from warehouse.publishing.live.difference import has_files, live_difference
from warehouse.publishing.live.files import cut_pieces, require_sources, share, table_files
from warehouse.publishing.live.log import (
    LIVE,
    commit_version,
    delete_superseded,
    leftover_files,
    named_files,
    newest_state,
    oldest_kept,
    superseded_files,
)
from warehouse.publishing.live.move import plan_move
from warehouse.serving.engine import Resources, kept_connection
from warehouse.serving.pin import Pin
from warehouse.serving.visible_tables import is_user_column, visible
from warehouse.storage.checkpoints import checkpoint, checkpoint_due
from warehouse.storage.fingerprint import require_whole
from warehouse.storage.local_disk import undone_on_failure
from warehouse.storage.logcut import cut_log, trim_log
from warehouse.storage.store import store_of
from warehouse.storage.tables import key_types, live_schema, statistics_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from pathlib import Path

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.publishing.live.log import LiveState, WrittenFile
    from warehouse.publishing.live.move import LiveMove

__all__ = [
    "FreedSpace",
    "LiveRules",
    "free_live_space",
    "live_data_files",
    "live_rules",
    "publish_live_tables",
    "published_states",
    "purge_live_tables",
]


_ENGINE = Resources(memory_limit="1GB")
_ATTEMPTS = 3
_LOG = logging.getLogger("warehouse")


@dataclass(frozen=True)
class LiveRules:
    """Which tables are published, and how long superseded versions stay.

    ``names`` are tables; ``bounded`` are the tables with a bound on how long the bytes of a dead row may exist. A superseded
    version stays for ``retain`` microseconds; ``deletes_superseded`` says whether an update deletes older versions.
    """

    names: Collection[str]
    bounded: Collection[str]
    retain: int
    deletes_superseded: bool = True


@dataclass(frozen=True)
class FreedSpace:
    """Files and bytes that were freed."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: FreedSpace) -> FreedSpace:
        return FreedSpace(self.files + other.files, self.bytes + other.bytes)


def published_states(epoch: Epoch, names: Collection[str]) -> tuple[TableState, ...]:
    """Return the published tables of an epoch, with the archives of published streams."""
    return tuple(
        state for state in visible(epoch) if state.name in names or (state.archive_of is not None and state.archive_of in names)
    )


def publish_live_tables(
    root: Path, epoch: Epoch, rules: LiveRules, *, now: int, observer: Observer = nobody, rebuild: bool = False
) -> tuple[str, ...]:
    """Move all live tables to the newest epoch, and return the names of those that changed.

    The caller holds the writer lock. A live table that is already at this epoch does not change.

    Parameters
    ----------
    root
        The warehouse's directory.
    epoch
        The newest epoch.
    rules
        Which tables are published, and how long superseded versions stay.
    now
        The clock's instant in microseconds.
    observer
        Called before and after each commit.
    rebuild
        Whether to compare all rows and the checksums of all data files with the table's, and not only the log.

    Raises
    ------
    StorageFailedError
        When a file cannot be written. The epoch is committed nevertheless.

    """
    states = [state for state in published_states(epoch, rules.names) if state.view is None or state.view.failed is None]
    moved = []
    if states:
        with ExitStack() as opened:
            pin = opened.enter_context(closing(Pin(root, epoch)))
            connection = cache(lambda: opened.enter_context(kept_connection(_ENGINE)))
            for state in states:
                try:
                    if _move_if_needed(pin, connection, state, rules, now, observer, rebuild=rebuild):
                        moved.append(state.name)
                except (LockHeldError, StorageFailedError):
                    raise
                except (WarehouseError, duckdb.Error, pa.ArrowException, FileNotFoundError) as error:
                    text = str(error).partition("\n")[0]
                    _LOG.warning("%s/%s stays at an earlier epoch, as `check` reports: %s", LIVE, state.name, text)
                except OSError as error:
                    if not store_of(root).local_paths:
                        raise
                    path = error.filename or root / LIVE / state.name
                    raise StorageFailedError(f"{path}: {error.strerror or error}") from error
    if rules.deletes_superseded:
        _delete_unpublished(root, epoch, rules, now)
    return tuple(moved)


def _move_if_needed(
    pin: Pin,
    connection: Callable[[], duckdb.DuckDBPyConnection],
    state: TableState,
    rules: LiveRules,
    now: int,
    observer: Observer,
    *,
    rebuild: bool,
) -> bool:
    """Move one live table to the pinned epoch, and return whether it was written; try again if another writer commits."""
    table = pin.root / LIVE / state.name
    for attempt in range(_ATTEMPTS):
        before = newest_state(table)
        if before is not None and before.trusted and before.is_of(pin.epoch):
            if not rebuild or live_difference(pin, state, connection()) is None:
                return False
            trusted = False
        else:
            trusted = before is not None and before.trusted and not rebuild and has_files(table, before)
        try:
            _move(pin, connection, state, before, rules, now, observer, trusted=trusted)
        except FileExistsError as error:
            if store_of(table).overtaken(error):
                raise LockHeldError(f"another process, which wrote {error.filename} first") from None
            if attempt == _ATTEMPTS - 1:
                raise StorageFailedError(f"{table}: somebody else commits to this table all the time") from error
        else:
            return True
    return False


def _move(
    pin: Pin,
    connection: Callable[[], duckdb.DuckDBPyConnection],
    state: TableState,
    before: LiveState | None,
    rules: LiveRules,
    now: int,
    observer: Observer,
    *,
    trusted: bool,
) -> None:
    table, epoch = pin.root / LIVE / state.name, pin.epoch
    if before is None:
        store_of(table).remove_tree(table, ignore_errors=True)
        store_of(table).make_directory(table)
    oldest = 0 if before is None else before.oldest
    if before is not None and rules.deletes_superseded:
        oldest = oldest_kept(table, before, rules.retain, now)
        delete_superseded(table, before, oldest)
    move = _verified_move(pin, state, before if trusted else None)
    columns = [column for column in state.declaration.columns if is_user_column(column.name)]
    schema = live_schema(columns)
    names = {field["name"] for field in schema["fields"]}
    statistics = [name for name in statistics_columns(key_types(state.declaration.search_key, columns)) if name in names]
    written: list[WrittenFile] = []
    with undone_on_failure(lambda: _remove(table / file.path for file in written)):  # or each attempt takes more of a full disk
        written.extend(share(table, move.shared, statistics))
        for cut in move.cuts:
            written.extend(cut_pieces(table, cut, pin, state, connection(), statistics))
        store_of(table).sync_directory(table)
    observer(Moment(Point.LIVE_READY, epoch.number, text=state.name))
    version = commit_version(
        table,
        before,
        epoch,
        table_id=str(uuid.uuid4()),
        schema=schema,
        statistics=statistics,
        kept=move.kept,
        written=written,
        oldest=oldest,
        retain=rules.retain,
        now=now,
    )
    observer(Moment(Point.LIVE_MOVED, epoch.number, text=state.name))
    if checkpoint_due(table, version - 1, version):
        checkpoint(table, version)
        if rules.deletes_superseded:
            trim_log(table, oldest)
    if rules.deletes_superseded and _is_bounded(state, rules):
        cut_log(table, oldest)


def _verified_move(pin: Pin, state: TableState, before: LiveState | None) -> LiveMove:
    """Plan a move with verified sources only, so that no damage is published; damaged pieces are cut from the table again.

    Raises
    ------
    DamagedFileError, MissingPartError
        When the table's own files are damaged.

    """
    table, stored = pin.root / LIVE / state.name, table_files(state, pin.snapshot(state).files)
    move = plan_move(stored, before.live_files() if before is not None else [], pin.epoch.slot)
    try:
        for cut in move.cuts:
            require_sources(table, cut, pin)
    except (DamagedFileError, MissingPartError):
        if before is None:
            raise
        return _verified_move(pin, state, None)
    if before is None:
        require_whole([path_of(file.path) for file in move.shared])
    return move


def _is_bounded(state: TableState, rules: LiveRules) -> bool:
    return state.owner in rules.bounded or state.archive_of in rules.bounded


# --- space ---


def _tables(root: Path) -> Iterator[tuple[str, Path]]:
    for table in directories_in(root / LIVE):
        yield table.name, table


def _delete_unpublished(root: Path, epoch: Epoch, rules: LiveRules, now: int, *, dry_run: bool = False) -> FreedSpace:
    """Delete the live tables that are no longer published, once their last version is older than ``retain``."""
    published = {state.name for state in published_states(epoch, rules.names)}
    space = FreedSpace()
    for name, table in _tables(root):
        if name in published:
            continue
        if _changed_at(table) + rules.retain <= now:
            space += _space_of([path for path in table.rglob("*") if path.is_file()])
            if not dry_run:
                store_of(table).remove_tree(table)
    return space


def _changed_at(table: Path) -> int:
    """Return when a table last changed, in microseconds: by its log, or by its files if the log cannot be read."""
    state = newest_state(table)
    if state is not None:
        return state.moved_at
    return max((path.stat().st_mtime_ns // 1000 for path in table.rglob("*") if path.is_file()), default=0)


def free_live_space(root: Path, epoch: Epoch, rules: LiveRules, *, now: int, grace: int, dry_run: bool = False) -> FreedSpace:
    """Delete the files that no version younger than ``retain`` needs, and leftovers older than ``grace`` (microseconds)."""
    space = _delete_unpublished(root, epoch, rules, now, dry_run=dry_run)
    for _, table in _tables(root):
        state = newest_state(table)
        if state is None:
            continue  # the next publication rebuilds it
        oldest = oldest_kept(table, state, rules.retain, now)
        unneeded = [table / name for name in superseded_files(table, state, oldest) if (table / name).exists()]
        unneeded += leftover_files(table, named_files(table, state, state.oldest), before=now - grace)
        space += _space_of([*unneeded, *(table / "_delta_log" / name for name in trim_log(table, oldest, dry_run=True))])
        if not dry_run:
            _remove(unneeded)
            trim_log(table, oldest)
    return space


def purge_live_tables(root: Path, epoch: Epoch, rules: LiveRules) -> None:
    """Delete everything in live tables except the rows of the newest epoch: former versions, their log, leftovers."""
    published = {state.name for state in published_states(epoch, rules.names)}
    for name, table in _tables(root):
        state = newest_state(table)
        if state is None or name not in published or not state.is_of(epoch):
            store_of(table).remove_tree(table)
            continue
        _remove(leftover_files(table, set(state.files), before=1 << 62))
        cut_log(table, state.version)


def live_data_files(root: Path) -> dict[str, set[str]]:
    """Return the data files of the newest version of each live table, by its directory relative to the root."""
    states = {name: newest_state(table) for name, table in _tables(root)}
    return {f"{LIVE}/{name}": set(state.files) for name, state in states.items() if state is not None}


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _space_of(paths: list[Path]) -> FreedSpace:
    return FreedSpace(len(paths), sum(path.stat().st_size for path in paths if path.exists()))


def live_rules(catalog: Catalog) -> LiveRules:
    """Return the rules for live tables of a catalog."""
    return LiveRules(catalog.published, tuple(catalog.erase_within), catalog.retain, deletes_superseded=catalog.vacuum == "auto")
