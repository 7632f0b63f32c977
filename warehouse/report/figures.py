"""The figures of a report: of tables, of epochs, and which view reads which table. They are values; other modules draw them.

Bytes of a file with dead rows are split by the share of its rows that are live: `live = bytes * live rows / rows`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from warehouse.layout.columns import TIMES
from warehouse.report.latencies import Latencies, logged_probes, measured_probes
from warehouse.serving.expiring_rows import HORIZONS, expiring_rows
from warehouse.serving.owed_results import owed_of
from warehouse.serving.pin import require
from warehouse.serving.pruning import all_live, any_live
from warehouse.serving.statement import instant, select
from warehouse.serving.table_status import lazy_count
from warehouse.serving.view_figures import retained
from warehouse.serving.visible_tables import inputs_of_view, readable, visible
from warehouse.storage.duckdb_sql import listed
from warehouse.time import NEVER, SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.epochs.records import Epoch, TableState
    from warehouse.layout.layout import Label
    from warehouse.serving.expiring_rows import ExpiringRows
    from warehouse.serving.owed_results import Owed
    from warehouse.serving.pin import Pin
    from warehouse.serving.reader import Reader
    from warehouse.storage.snapshot import DataFile

__all__ = ["Cell", "EpochFigures", "Figures", "LifetimeBins", "ReadEdge", "StepFigures", "TableFigures", "figures_of"]

_BINS = 24


@dataclass(frozen=True)
class Cell:
    """A cell of a table's grid (a keyed table has one column): its place from 0, its files, its live and dead bytes."""

    sub_index: int
    row: int
    column: int
    files: int
    live_bytes: int
    dead_bytes: int


@dataclass(frozen=True)
class LifetimeBins:
    """Lifetimes of live rows: counts in bins of ``width`` microseconds from 0, beyond the last bin, and without end."""

    width: int
    bins: tuple[int, ...]
    longer: int
    never: int


@dataclass(frozen=True)
class TableFigures:
    """A table at the newest epoch; ``failed`` says why a view, or a table changed by outsiders, did not move.

    ``interval`` is the update interval; rows live at most ``periods`` (p) of them.
    """

    name: str
    kind: str
    label: Label
    technique: str
    rows: int
    columns: int
    cells: tuple[Cell, ...]
    live_rows: int
    interval: int
    periods: int
    lifetimes: LifetimeBins
    measured_probes: Latencies | None
    logged_probes: Latencies | None
    failed: str | None
    owed: Owed | None = None

    @property
    def files(self) -> int:
        """The number of its files."""
        return sum(cell.files for cell in self.cells)

    @property
    def live_bytes(self) -> int:
        """Bytes of live rows."""
        return sum(cell.live_bytes for cell in self.cells)

    @property
    def dead_bytes(self) -> int:
        """Bytes of expired rows that are still stored."""
        return sum(cell.dead_bytes for cell in self.cells)


@dataclass(frozen=True)
class StepFigures:
    """Seconds of one step of an update; an empty name is the time outside of steps: planning, syncing, the epoch's record."""

    step: str
    seconds: float


@dataclass(frozen=True)
class EpochFigures:
    """One epoch: microseconds of its window time and commit, seconds by step, files and bytes of each table.

    ``owed`` are views under a budget with at most how many results they lacked.
    """

    number: int
    window_time: int
    committed_at: int
    cause: str
    steps: tuple[StepFigures, ...]
    sizes: tuple[tuple[str, int, int], ...]
    owed: tuple[tuple[str, int], ...] = ()

    @property
    def lag(self) -> float:
        """Seconds from the window time to the commit."""
        return (self.committed_at - self.window_time) / SECOND

    @property
    def seconds(self) -> float:
        """How long the update took."""
        return sum(step.seconds for step in self.steps)


@dataclass(frozen=True)
class ReadEdge:
    """An edge of the graph: a view reads a table."""

    table: str
    view: str


@dataclass(frozen=True)
class Figures:
    """The figures of a report at the newest epoch; ``epochs`` are the readable ones, oldest first.

    ``endings`` count the rows that expire next.
    """

    number: int
    window_time: int
    tables: tuple[TableFigures, ...]
    epochs: tuple[EpochFigures, ...]
    edges: tuple[ReadEdge, ...]
    endings: tuple[ExpiringRows, ...] = ()


def figures_of(reader: Reader) -> Figures:
    """Return the figures of the reader's epoch.

    It reads the times of all live rows, and probes each table a few times, so the reader must not write a read log.
    """

    def build(pin: Pin) -> Figures:
        states = readable(pin.epoch)
        logged = logged_probes(reader.root)
        return Figures(
            number=pin.epoch.number,
            window_time=pin.epoch.window_time,
            tables=tuple(_table_figures(reader, pin, state, logged.get(state.name)) for state in states),
            epochs=tuple(_epoch_figures(epoch) for epoch in retained(reader)),
            edges=tuple(
                ReadEdge(read, state.name)
                for state in states
                if state.view is not None
                for read in inputs_of_view(pin.epoch, state.name)
            ),
            endings=expiring_rows(reader, (pin.epoch.update_interval, *HORIZONS)),
        )

    return reader.retrying(build)


# --- tables ---


def _table_figures(reader: Reader, pin: Pin, state: TableState, logged: Latencies | None) -> TableFigures:
    layout = state.layout
    failed = state.view.failed if state.view else None
    stopped = state.stopped.reason if state.stopped else None
    lazy = pin.lazy(state) is not None
    files = () if lazy else pin.snapshot(state).files
    live = {"": lazy_count(pin, reader.connection, state)} if lazy else _live_rows(reader, pin, files)
    return TableFigures(
        name=state.name,
        kind=state.kind,
        label=cast("Label", state.declaration.label),
        technique=layout.technique,
        rows=layout.rows,
        columns=layout.columns,
        cells=_cells(state, files, live),
        live_rows=sum(live.values()),
        interval=pin.epoch.update_interval,
        periods=layout.periods,
        lifetimes=_lifetimes(reader, pin, state),
        measured_probes=measured_probes(reader, pin, state) if failed is None else None,
        logged_probes=logged,
        failed=failed or stopped,
        owed=owed_of(state),
    )


def _live_rows(reader: Reader, pin: Pin, files: Sequence[DataFile]) -> dict[str, int]:
    """Return how many rows of each file are live; rows are counted in files that may have live and dead rows."""
    slot = pin.epoch.slot
    mixed = [file.path for file in files if any_live(file, slot) and not (all_live(file, slot) and file.rows is not None)]
    live = {file.path: file.rows or 0 for file in files if all_live(file, slot)}
    if mixed:
        original_paths = dict(zip(pin.local(mixed), mixed, strict=True))
        require(original_paths)
        paths = listed(list(original_paths))
        scan = f"read_parquet({paths}, union_by_name = true, hive_partitioning = false, filename = '_file')"
        query = f"SELECT _file, count(*) FROM {scan} WHERE _exp > {instant(pin.epoch.window_time)} GROUP BY _file"
        live |= {original_paths[path]: rows for path, rows in reader.connection.execute(query).fetchall()}
    return live


def _cells(state: TableState, files: Sequence[DataFile], live: dict[str, int]) -> tuple[Cell, ...]:
    """Return the cells of the newest layout, and in rows below it the cells of former layouts that still have files."""
    layout = state.layout
    files_of_cell: dict[int, list[DataFile]] = {number: [] for number in range(layout.first_cell, layout.last_cell + 1)}
    for file in files:
        files_of_cell.setdefault(file.sub_index, []).append(file)
    cells = []
    for number, cell_files in sorted(files_of_cell.items()):
        live_sizes = [file.size * live.get(file.path, 0) // file.rows if file.rows else 0 for file in cell_files]
        row, column = divmod((number - layout.first_cell) % max(layout.cells, 1), layout.columns)
        former_rows = 0 if number >= layout.first_cell else layout.rows * (1 + (layout.base - number) // layout.cells)
        live_bytes, size = sum(live_sizes), sum(file.size for file in cell_files)
        cells.append(Cell(number, row + former_rows, column, len(cell_files), live_bytes, size - live_bytes))
    return tuple(cells)


def _lifetimes(reader: Reader, pin: Pin, state: TableState) -> LifetimeBins:
    width = max(1, -(-state.layout.periods * pin.epoch.update_interval // _BINS))
    source = pin.live_source(state, pin.epoch.window_time)
    require((source.schema_file, *source.files))
    times = select(source, TIMES)
    bin_of_row = f"(epoch_us(coalesce(_exp, {instant(NEVER)})) - epoch_us(_ts)) // {width}"
    bins = f"CASE WHEN _exp IS NULL THEN -1 ELSE least({bin_of_row}, {_BINS}) END"
    query = f"SELECT {bins} AS bin, count(*) FROM ({times}) GROUP BY bin"
    counts: dict[int, int] = dict(reader.connection.execute(query).fetchall())
    return LifetimeBins(width, tuple(counts.get(number, 0) for number in range(_BINS)), counts.get(_BINS, 0), counts.get(-1, 0))


# --- epochs ---


def _epoch_figures(epoch: Epoch) -> EpochFigures:
    steps = [StepFigures(step.step, step.seconds) for step in epoch.seconds if step.seconds]
    if epoch.planned_at:
        other_seconds = (epoch.committed_at - epoch.planned_at) / SECOND - sum(step.seconds for step in steps)
        steps.append(StepFigures("", max(other_seconds, 0.0)))
    sizes = tuple(
        (state.name, sum(part.files for part in state.partitions), sum(part.bytes for part in state.partitions))
        for state in visible(epoch)
    )
    owed = tuple((state.name, owed_of_table.most) for state in visible(epoch) if (owed_of_table := owed_of(state)) is not None)
    return EpochFigures(epoch.number, epoch.window_time, epoch.committed_at, epoch.cause, tuple(steps), sizes, owed)
