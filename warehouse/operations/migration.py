"""Migrates tables: a table gets another layout, columns or grid of times without loading its files again.

There are the two ways of the doubly-partitioned-index sheet, section 8.4. A *rebuild* writes the live rows again and switches at
one epoch of the same window time. *Side by side*, new rows go to the new layout from the next update on, while rows of the old
one only expire; readers know files, not layouts, and read both. This module decides which migrations are possible;
:mod:`warehouse.operations.migrate_plan` makes the plan of a rebuild, :mod:`warehouse.planning.former_layouts` lets former layouts
age.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from warehouse.catalog.declaration import with_added
from warehouse.catalog.drift import DeclarationDifference, compare, differences
from warehouse.catalog.model import LayoutSpec
from warehouse.catalog.spelling import as_written
from warehouse.epochs.records import FormerLayout
from warehouse.errors import ChangedDeclarationError, MigrationError, Problem, UnknownNameError, UsageError
from warehouse.layout import migrated, same_cells
from warehouse.objects.path import parquet_source, path_of
from warehouse.operations.load_order import require_no_load_order
from warehouse.operations.migrate_plan import Target, migration_base, migration_plan
from warehouse.planning.declared_nodes import nodes_above, with_columns
from warehouse.planning.node_plans import unbuilt
from warehouse.planning.regridding import Regridding
from warehouse.storage.fingerprint import naming_damage
from warehouse.storage.snapshot import read_snapshot
from warehouse.time import format_duration, format_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog, Stream
    from warehouse.epochs.records import Epoch, TableState
    from warehouse.layout import Layout
    from warehouse.planning.node_plans import NodeInput
    from warehouse.planning.plan_record import Plan

__all__ = ["MigratedTable", "Migration", "MigrationReport", "MigrationRequest", "MigrationWork"]

_GRID_POINTS = 100_000
"""The number of points of the former grid of times that are searched for a point of the new grid."""


@dataclass(frozen=True)
class MigrationRequest:
    """The request of a migration, in addition to ``warehouse.toml``.

    ``layout`` has keys of the layout that the file leaves out; ``renamed`` pairs of former and new names of columns. Side by
    side, the remaining rows move once they are less than the share ``move_below`` of the former rows (None: they only expire).
    """

    layout: LayoutSpec = field(default_factory=LayoutSpec)
    side_by_side: bool = False
    move_below: float | None = None
    renamed: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class MigratedTable:
    """A table with its layout before and after, and the number of rows in its files at the epoch before."""

    name: str
    before: Layout
    after: Layout
    rows: int


@dataclass(frozen=True)
class MigrationReport:
    """The result of a migration: the epoch it made (None: nothing to do), and its tables.

    ``switched`` are coalesced tables with their new kind: ``"eager"`` or ``"lazy"``.
    """

    epoch: Epoch | None
    tables: tuple[MigratedTable, ...] = ()
    side_by_side: bool = False
    views: tuple[str, ...] = ()
    finished: tuple[Epoch, ...] = ()
    warnings: tuple[str, ...] = ()
    switched: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class MigrationWork:
    """The work of a migration: execute a plan, or write an epoch with changed records of ``tables``.

    Without both there is nothing to do. ``followed`` are the declarations that the new epoch fits.
    """

    report: MigrationReport
    plan: Plan | None = None
    tables: tuple[TableState, ...] | None = None
    followed: Catalog | None = None


@dataclass(frozen=True)
class Migration:
    """Finds the work of a migration for the newest epoch ``last``; it writes nothing.

    ``nodes`` are the nodes of the declared views, ``clock`` is in microseconds.
    """

    catalog: Catalog
    nodes: Sequence[NodeInput]
    last: Epoch
    clock: int
    spark: Callable[[], SparkSession]

    def outcome(self, table: str | None, request: MigrationRequest, *, dry_run: bool = False) -> MigrationWork:
        """Return the work of migrating a table, or every table whose declaration changed; a dry run gets no plan.

        Raises
        ------
        MigrationError, UsageError, LayoutError
            When the migration is impossible, or needs other options.

        """
        changes = differences(self.catalog, self.last)
        reslotted = any(change.kind == "time" for change in changes)
        if reslotted:
            self._require_common_time(table, request)
            require_no_load_order(self.catalog.root, self.last)
        streams = self._streams(table, request, changes, everything=reslotted)
        for stream in streams:
            stopped = self._state(stream).stopped
            if stopped is not None:
                raise MigrationError(stream.name, f"it stands still: {stopped.reason}")
        self._require_no_files_left()
        if request.side_by_side:
            return self._side_by_side(streams, request, changes, dry_run=dry_run)
        targets = [target for stream in streams if (target := self._target(stream, request, changes, reslotted=reslotted))]
        return self._rebuild(targets, changes, reslotted=reslotted, dry_run=dry_run)

    # --- the request ---

    def _streams(
        self, table: str | None, request: MigrationRequest, changes: Sequence[DeclarationDifference], *, everything: bool
    ) -> list[Stream]:
        catalog, last = self.catalog, self.last
        if table is None:
            if request.layout != LayoutSpec() or request.renamed:
                raise UsageError("name the TABLE that is to get another layout or other columns")
            changed = {change.table for change in changes}
            return [source for source in catalog.sources if last.table(source.name) and (everything or source.name in changed)]
        stream = catalog.source(table)
        if catalog.view(table) is not None:
            raise MigrationError(
                table, f"it is a view: change [views.{table}.layout] in warehouse.toml, and the next update rebuilds it"
            )
        if stream is None or last.table(table) is None:
            raise UnknownNameError(
                "stream or relation", table, [source.name for source in catalog.sources if last.table(source.name)]
            )
        if stream.changes is not None:
            raise MigrationError(
                table,
                "it is a relation, which is cut by its key and has no layout; after a change of its columns or key "
                f"`stream-wh restate {table} --since first` loads it again",
            )
        for key, requested in asdict(request.layout).items():
            declared = getattr(stream.layout, key)
            if requested is not None and declared is not None and requested != declared:
                option = "--" + key.replace("_", "-")
                raise UsageError(
                    f"warehouse.toml says {key} = {as_written(declared)} for {table}; change it there, or leave {option} out"
                )
        return [stream]

    def _require_common_time(self, table: str | None, request: MigrationRequest) -> None:
        """Raise an error if the grid of times cannot change: for all tables at once, at the end of a slot of both grids."""
        if table is not None or request.side_by_side:
            raise UsageError(
                "anchor or update_interval changed, so the slots of all tables are counted again: `stream-wh migrate --rebuild`"
            )
        catalog, last = self.catalog, self.last
        declared = {declaration.name for tables in (catalog.sources, catalog.views, catalog.coalesced) for declaration in tables}
        declared |= {declaration.name for declaration in catalog.aggregates}
        archive = next((state.name for state in last.tables if state.kind == "archive"), None)
        if archive is not None:
            reason = f'"{archive}" has the slots of rows that are dead, which are not counted again'
            raise MigrationError(None, f'{reason}: set on_expiry = "drop" and `stream-wh drop {archive}` first')
        frozen = sorted({state.owner for state in last.tables} - declared)
        if frozen:
            reason = f'"{frozen[0]}" is no longer declared, so its slots cannot be counted again'
            raise MigrationError(None, f"{reason}: `stream-wh drop {frozen[0]}` first")
        interval, anchor = catalog.update_interval, catalog.anchor
        if (last.window_time - anchor) % interval:
            raise MigrationError(None, self._no_common_time())

    def _no_common_time(self) -> str:
        catalog, last = self.catalog, self.last
        times = (last.window_time + steps * last.update_interval for steps in range(1, _GRID_POINTS))
        common = next((time for time in times if not (time - catalog.anchor) % catalog.update_interval), None)
        fault = f"the window time {format_instant(last.window_time)} does not end a slot of the new grid"
        old_keys = f'anchor = "{format_instant(last.anchor)}", update_interval = "{format_duration(last.update_interval)}"'
        if common is None:
            return f"{fault}, nor does any later one: choose an anchor such that slots of both end together; it was {old_keys}"
        return (
            f"{fault}; the next time that ends one of both is {format_instant(common)}: restore {old_keys}, "
            f"`stream-wh update --at {format_instant(common)}`, then change it and migrate"
        )

    def _require_no_files_left(self) -> None:
        stream = next((entry.stream for entry in self.last.files if entry.more), None)
        if stream is not None:
            raise MigrationError(stream, "the last update left files of it for another epoch; run `stream-wh update` first")

    def _target(
        self, stream: Stream, request: MigrationRequest, changes: Sequence[DeclarationDifference], *, reslotted: bool
    ) -> Target | None:
        """Return the target of a table that is written again; None if the table fits its declaration."""
        state = self._state(stream)
        stream = with_added(stream, state.declaration)
        own_changes = [change for change in changes if change.table == stream.name]
        if any(change.kind == "archive" for change in own_changes):
            raise ChangedDeclarationError(self._problems())
        reshaped = self._reshaped(stream, state, own_changes, request)
        if stream.changes is not None:
            if own_changes:
                raise ChangedDeclarationError(self._problems())
            if reslotted and state.deferred is not None and state.deferred.rows:
                raise MigrationError(
                    stream.name,
                    f"{state.deferred.rows} changes of it wait for their time and cannot be counted again; migrate when there "
                    "are none",
                )
            return Target(state, stream, state.layout) if reslotted else None
        layout = self._layout(stream, state, request)
        keyed = any(change.kind == "search_key" for change in own_changes)
        if not (reslotted or reshaped or keyed or state.former or not same_cells(layout, state.layout)):
            return None
        renamed = {old for old, _ in request.renamed}  # a renamed column may have come with files
        columns = tuple(column for column in stream.columns if column.name not in renamed)
        stream = replace(stream, columns=columns, added=tuple(name for name in stream.added if name not in renamed))
        return Target(state, stream, layout, request.renamed, reshaped)

    def _layout(self, stream: Stream, state: TableState, request: MigrationRequest) -> Layout:
        spec = {
            key: value if (requested := getattr(request.layout, key)) is None else requested
            for key, value in asdict(stream.layout).items()
        }
        periods = stream.periods(self.catalog.update_interval)
        return migrated(state.layout, spec, periods=periods, label=stream.label, widest=stream.widest_block)

    def _reshaped(
        self, stream: Stream, state: TableState, own_changes: Sequence[DeclarationDifference], request: MigrationRequest
    ) -> bool:
        """Return whether columns get other names or types; refuse changes that would lose values."""
        declared = {column.name: column.type for column in stream.columns}
        recorded = {column.name: column.type for column in state.declaration.columns}
        for old, new in request.renamed:
            if old not in recorded or new not in declared:
                raise UsageError(f"--rename {old}={new}: {old} must be a column of the table as it is, {new} a declared one")
            if declared[new] != recorded[old]:
                raise UsageError(f"--rename {old}={new}: {old} is {recorded[old]}, {new} is declared {declared[new]}")
            if old in declared or new in recorded:
                raise UsageError(f"--rename {old}={new}: {old} must not be declared any more, and {new} no column so far")
        renamed = {old for old, _ in request.renamed}
        removed = [
            change
            for change in own_changes
            if change.kind == "removed" and change.key.removeprefix("columns.") not in renamed
        ]
        retyped = [change for change in own_changes if change.kind == "retyped"]
        if removed or any(not change.fits for change in retyped):
            raise ChangedDeclarationError(self._problems())
        return bool(retyped or renamed)

    def _problems(self) -> tuple[Problem, ...]:
        return compare(self.catalog, self.last).problems

    def _state(self, stream: Stream) -> TableState:
        state = self.last.table(stream.name)
        if state is None:
            raise UnknownNameError("stream or relation", stream.name, [table.name for table in self.last.tables])
        return state

    def _followed(self, changes: Sequence[DeclarationDifference], done_tables: Sequence[str]) -> Catalog:
        """Return the declarations that the new epoch fits: the present ones, unless other tables must still follow them."""
        pending = [change for change in changes if change.kind != "time" and change.table not in done_tables]
        if not pending:
            return self.catalog
        return replace(self.catalog, digest=self.last.catalog_digest, keys=self.last.declared)

    # --- the work ---

    def _rebuild(
        self, targets: Sequence[Target], changes: Sequence[DeclarationDifference], *, reslotted: bool, dry_run: bool
    ) -> MigrationWork:
        if not targets and not reslotted:
            return MigrationWork(MigrationReport(None))
        nodes = self._nodes_to_build(targets, everything=reslotted)
        views = tuple(dict.fromkeys(node_input.view for node_input in nodes))
        tables = tuple(
            MigratedTable(
                target.stream.name, target.state.layout, target.layout, sum(part.rows for part in target.state.partitions)
            )
            for target in targets
        )
        if dry_run:
            return MigrationWork(MigrationReport(None, tables, views=views))
        grids = Regridding(self.catalog, self.last) if reslotted else None
        base = migration_base(self.catalog, self.last, [node_input.node.table for node_input in nodes], grids)
        built_nodes = with_columns(self.nodes, self.catalog, base, base.slot, self.spark) if nodes else []
        chosen = {node_input.node.table for node_input in nodes}
        plan = migration_plan(
            self._followed(changes, [target.stream.name for target in targets]),
            base,
            targets,
            [node_input for node_input in built_nodes if node_input.node.table in chosen],
            grids=grids,
            clock=self.clock,
        )
        return MigrationWork(MigrationReport(None, tables, views=views), plan)

    def _nodes_to_build(self, targets: Sequence[Target], *, everything: bool) -> list[NodeInput]:
        """Return the nodes of views whose inputs change; another layout changes no input."""
        if everything:
            return list(self.nodes)
        names = {target.stream.name for target in targets if target.reshaped}
        rebuilt: dict[str, NodeInput] = {}
        for name in names:
            rebuilt.update({above.node.table: above for above in nodes_above(name, self.nodes, unbuilt(self.nodes, self.last))})
        return [node_input for node_input in self.nodes if node_input.node.table in rebuilt]

    def _side_by_side(
        self, streams: Sequence[Stream], request: MigrationRequest, changes: Sequence[DeclarationDifference], *, dry_run: bool
    ) -> MigrationWork:
        chosen = {stream.name for stream in streams}
        unfit = next((change for change in changes if change.table in chosen and change.kind != "layout"), None)
        if unfit is not None:
            reason = f"{unfit.dotted_key} changed too, which old rows cannot follow where they are"
            raise UsageError(f"{reason}: migrate with --rebuild")
        moved_states, tables = [], []
        for stream in streams:
            state = self._state(stream)
            layout = self._layout(stream, state, request)
            new_state = state if same_cells(layout, state.layout) else self._giving_way(state, layout)
            former = tuple(replace(former_layout, move_below=request.move_below) for former_layout in new_state.former)
            new_state = replace(new_state, former=former)
            if new_state != state:
                moved_states.append(new_state)
                tables.append(
                    MigratedTable(state.name, state.layout, new_state.layout, sum(part.rows for part in state.partitions))
                )
        report = MigrationReport(None, tuple(tables), side_by_side=True)
        if dry_run or not moved_states:
            return MigrationWork(report)
        states = {state.name: state for state in moved_states}
        all_tables = tuple(states.get(state.name, state) for state in self.last.tables)
        return MigrationWork(report, tables=all_tables, followed=self._followed(changes, [stream.name for stream in streams]))

    def _giving_way(self, state: TableState, layout: Layout) -> TableState:
        filled = [part for part in state.partitions if not any(former.holds(part.sub_index) for former in state.former)]
        if not filled:
            return replace(state, layout=layout)
        cells = {(part.sub_index, part.exp_block) for part in filled}
        rows = _live_rows(self.catalog.root, state, self.last, cells)
        return replace(state, layout=layout, former=(*state.former, FormerLayout(state.layout, self.last.slot, rows)))


def _live_rows(root: Path, state: TableState, epoch: Epoch, cells: set[tuple[int, int]]) -> int:
    """Count the live rows of partitions; only files in which some have expired are read."""
    return sum(_live_in(root, state, epoch, cells))


def _live_in(root: Path, state: TableState, epoch: Epoch, cells: set[tuple[int, int]]) -> Iterator[int]:
    import pyarrow.compute as pc  # noqa: PLC0415 - only this verb reads rows here
    import pyarrow.parquet as pq  # noqa: PLC0415 - same

    for file in read_snapshot(root, state.path, state.version, ("_exp_slot",)).files:
        if (file.sub_index, file.exp_block) not in cells or (file.max_exp_slot is not None and file.max_exp_slot <= epoch.slot):
            continue
        if file.rows is not None and file.min_exp_slot is not None and file.min_exp_slot > epoch.slot:
            yield file.rows
        else:
            with naming_damage(path := path_of(file.path)):
                stored = pq.ParquetFile(parquet_source(path), page_checksum_verification=True)
                ends = stored.read(columns=["_exp_slot"]).column(0)
            yield int(pc.sum(pc.greater(ends, epoch.slot)).as_py() or 0)
