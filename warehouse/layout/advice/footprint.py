"""Simulates a layout under a workload in the steady state: the work of its updates, its files, its dead rows.

The updates of about one cycle of the grid are simulated with expected sizes. The formulas for cells, blocks and sealing are those
of the layout, so the prediction is what the planner will do. Runs that are appended to staggered rows and block columns are
followed one by one. Other assignments of `norebuild` cannot be sealed, so each run stays until its block has passed. For
`rebuild` the planned sub-indices are summed up at some updates of a cycle.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import accumulate, zip_longest
from math import exp, gcd, lcm, sqrt
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from warehouse.layout.advice.work import UpdateWork, task_work
from warehouse.layout.assignment import expiration_column, row, stagger
from warehouse.layout.planned import planned_cells
from warehouse.layout.tasks import largest_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from warehouse.layout.advice.workload import Workload
    from warehouse.layout.layout import Layout

__all__ = ["EXACT", "Footprint", "footprint"]

_SAMPLES = 8
"""How many updates are computed if no state is carried from one to the next."""
_FINEST = 150
"""The number of slots of a window up to which rebuilt sub-indices are simulated slot by slot."""
EXACT = 1000
"""The number of slots of a window up to which each update of appended runs is simulated."""
_SIMULATED, _OPEN = 300, 4
"""In a longer window at least this many updates are simulated, and at least this many while a row of the grid is open."""
_BLOCKS = 200
"""The number of blocks of a window up to which each block is simulated on its own."""
_UPDATES = 100
"""The number of simulated updates; more where the grid's cycle is longer."""
_FILES = 100_000
"""About how many files are counted in all of these updates together."""
_STATES = 120
"""The number of updates after which the files are counted, if state is carried from one to the next."""


@dataclass(frozen=True)
class Footprint:
    """A layout under a workload, on average over its updates.

    Parameters
    ----------
    updates
        The work of each simulated update.
    files
        Files of the newest epoch.
    key_files
        Of these, how many hold a key that is asked for.
    rows
        Rows in them, dead ones included.
    written
        Rows written by an update, wherever they go.
    spread
        Standard deviation over mean of the rows of the sub-indices, the largest that was met.
    """

    updates: tuple[UpdateWork, ...]
    files: float
    key_files: float
    rows: float
    written: float
    spread: float

    @property
    def mean_work(self) -> UpdateWork:
        """The work of a mean update: prices are linear."""
        vectors = [each.vector() for each in self.updates]
        return UpdateWork(*(fmean(values) for values in zip(*vectors, strict=True)))


def footprint(layout: Layout, load: Workload, *, stride: int | None = None) -> Footprint:
    """Simulate a layout's updates: doubly-partitioned-index sheet, sections 5.2, 5.3 and 11.

    A window of up to a thousand slots is simulated update by update. In a longer one, one of several updates is simulated and
    stands for those before it. In windows where both can be computed, the difference is below 5 percent of the rows on disk, of
    the written rows and of the cost of an update, and below 10 percent of the files. A window of more than 200 expiry blocks is
    simulated with wider blocks, which changes the files by up to a third.

    Parameters
    ----------
    layout
        A layout of the workload's p.
    load
        The workload; its rate is taken to be constant.
    stride
        If runs are appended, each ``stride``-th update is simulated; None: chosen by the length of the window.
    """
    if layout.technique == "rebuild":
        return _rebuilt(layout, load)
    every = _stride(layout) if stride is None else stride
    if (layout.insertion, layout.expiration) == ("staggered", "blocks"):
        return _Appending(layout, load, every).simulate()
    return _scattered(layout, load, every)


def _stride(layout: Layout) -> int:
    """Return how many updates one simulated update stands for: hundreds are simulated in a window, some while a row is open."""
    if layout.periods <= EXACT:
        return 1
    open_for = layout.rows_span if layout.seal else layout.periods
    stride = max(1, min(layout.periods // _SIMULATED, open_for // _OPEN))
    while gcd(stride, layout.expiry_block * layout.rows_span) > 1:  # files are looked at in every phase of a block and a row
        stride -= 1
    return stride


@dataclass(frozen=True)
class _Update:
    """The work of an update: rows of its runs, rows read again, sub-indices; and the number of updates that it stands for."""

    runs: Sequence[float]
    read: float
    cells: int
    weight: float = 1.0


@dataclass
class _Tally:
    """Sums over the simulated updates."""

    load: Workload
    works: list[UpdateWork] = field(default_factory=list)
    files: list[float] = field(default_factory=list)
    holding: list[float] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    written: list[float] = field(default_factory=list)
    spread: float = 0.0

    def work(self, *updates: _Update) -> None:
        """Note an update, or the mean of some."""
        load, whole = self.load, sum(each.weight for each in updates)
        vectors = []
        for each in updates:
            files = sum(self.expected(rows) for rows in each.runs)
            work = task_work(
                runs=each.runs, files=files, read=each.read, workers=load.workers, sub_indices=min(each.cells, files),
                arriving=load.arriving, landing_files=load.landing_files, target_rows=load.target_rows,
            )  # fmt: skip
            vectors.append([value * each.weight / whole for value in work.vector()])
        self.works.append(UpdateWork(*map(sum, zip(*vectors, strict=True))))
        self.written.append(sum(sum(each.runs) * each.weight for each in updates) / whole)

    def state(self, sizes: Sequence[float], cells: Iterable[float], counts: Sequence[float] | None = None) -> None:
        """Note the files of an epoch, how many there are of each size, and the rows of every sub-index, empty ones too."""
        often = counts or [1.0] * len(sizes)
        total = sum(size * count for size, count in zip(sizes, often, strict=True))
        self.files.append(sum(count * self.expected(rows) for rows, count in zip(sizes, often, strict=True)))
        self.rows.append(total)
        per_key = self.load.rows_per_key
        share = [count * (1 - (1 - min(1.0, size / total)) ** per_key) for size, count in zip(sizes, often, strict=True)]
        self.holding.append(sum(share) if total else 0.0)
        own = list(cells)
        mean = fmean(own)
        if mean:
            self.spread = max(self.spread, pstdev(own, mean) / mean)

    def expected(self, rows: float) -> float:
        """Return the expected number of files of a run with ``rows`` rows on average; a run of few rows may have no file."""
        target = self.load.target_rows
        return 1.0 - exp(-rows) if rows <= largest_file(target) else rows / target

    def footprint(self) -> Footprint:
        return Footprint(
            updates=tuple(self.works),
            files=fmean(self.files),
            key_files=fmean(self.holding),
            rows=fmean(self.rows),
            written=fmean(self.written),
            spread=self.spread,
        )


@dataclass
class _Run:
    """A run, or equal runs of several updates or blocks that are simulated as one: its rows, and how many runs it stands for."""

    batches: tuple[_Batch, ...]
    rows: float
    count: float = 1.0


_Batch = tuple[int, int]
"""The last of the load slots that are simulated together, and their number."""


class _Appending:
    """Simulates staggered rows with block columns, sealed or not: the runs of each block of each sub-index.

    Every ``stride``-th update is simulated and stands for those before it: each of these has its own runs until they are merged,
    at the slot at which the row closes. Slots, blocks and rows of the grid do not change. A window of very many blocks is
    simulated with wider blocks; each stands for ``together`` blocks.
    """

    def __init__(self, layout: Layout, load: Workload, stride: int) -> None:
        together = -(-layout.periods // (layout.expiry_block * _BLOCKS))
        width = min(layout.periods, layout.expiry_block * together)
        self.layout, self.load, self.stride = replace(layout, expiry_block=width), load, stride
        self.upto = (0.0, *accumulate(load.shares))
        self.shortest = next((distance for distance, share in enumerate(load.shares, start=1) if share > 0), 1)
        self.longest = next((distance for distance in range(len(load.shares), 0, -1) if load.shares[distance - 1] > 0), 1)
        blocks = 1 + (self.longest - self.shortest) / layout.expiry_block
        self.together = min(float(together), blocks)
        self.summed = (0.0, *accumulate(self.upto))
        self.cells: dict[int, dict[int, list[_Run]]] = {
            cell: {} for cell in range(layout.first_cell, layout.last_cell + 1)
        }

    def mass(self, batch: _Batch, after: int, until: int) -> float:
        """Rows of load slots that expire in slots after+1..until."""
        return self.load.rate * (self.by(batch, until) - self.by(batch, after))

    def by(self, batch: _Batch, until: int) -> float:
        """Return how many rows expire up to a slot, if one row arrives in each load slot of the batch."""
        last, count = batch
        if count == 1:
            return self.upto[min(self.layout.periods, max(0, until - last))]
        return self.total(until - last + count) - self.total(until - last)

    def total(self, count: int) -> float:
        """Return the sum of the first of the cumulated shares; beyond p they stay as they are."""
        p = self.layout.periods
        return self.summed[max(0, min(count, p + 1))] + max(0, count - p - 1) * self.upto[p]

    def simulate(self) -> Footprint:
        layout, p, w, f = self.layout, self.layout.periods, self.layout.expiry_block, self.stride
        tally = _Tally(self.load)
        rows, columns = layout.rows * layout.rows_span, w * layout.columns
        cycle = min(lcm(rows, columns), max(_UPDATES * f, rows, columns))  # every phase of both, or many
        seen = max(1, cycle // (f * _STATES), cycle * p // (f * f * _FILES))
        while gcd(seen, w) > 1:  # files are looked at in every phase of a block
            seen += 1
        for number, k in enumerate(range(f, p + w + cycle + f, f), start=1):
            self.update(k, tally if k > p + w else None)
            if k > p + w and number % seen == 0:
                self.note(tally)
        return tally.footprint()

    def note(self, tally: _Tally) -> None:
        runs = [[run for held in blocks.values() for run in held] for blocks in self.cells.values()]
        sizes = [run.rows / run.count for held in runs for run in held]
        counts = [run.count for held in runs for run in held]
        tally.state(sizes, (sum(run.rows for run in held) for held in runs), counts)

    def update(self, k: int, tally: _Tally | None) -> None:
        """Play the updates up to k, and note their work if it is asked for."""
        w = self.layout.expiry_block
        if k // w > (k - self.stride) // w:  # blocks have just passed
            for blocks in self.cells.values():
                for block in [block for block in blocks if block < k // w]:
                    del blocks[block]
        fresh: dict[tuple[int, int, int], _Run] = {}
        closing = self.closing(k) if self.layout.seal else {}
        at = {e: close for close, columns in closing.items() for e in columns}
        for block in self.blocks(k):
            e = block % self.layout.columns
            close = at.get(e, k)
            for last, count in ((close, close - k + self.stride), (k, k - close)):
                rows = self.mass((last, count), block * w, (block + 1) * w) if count else 0.0
                if rows > 0:
                    fresh[self.cell(last, e), block, last] = _Run(((last, count),), rows, self.runs(last, count, block))
        updates = [self.sealed(close, columns, fresh) for close, columns in closing.items()]
        for (cell, block, _), run in fresh.items():
            self.cells[cell].setdefault(block, []).append(run)
        if tally is not None:
            others = self.stride - len(updates)
            tally.work(*updates, *([self.work(self.written(k - self.stride // 2), 0.0, others)] if others else []))

    def work(self, runs: Mapping[tuple[int, int], _Run], read: float, weight: float = 1.0) -> _Update:
        """Return an update that writes runs, which are by sub-index and block."""
        sizes = [run.rows / run.count for run in runs.values() for _ in range(round(run.count))]
        return _Update(sizes, read, len({cell for cell, _ in runs}), weight)

    def runs(self, last: int, count: int, block: int) -> float:
        """Return how many runs the updates of load slots make in a block: one for each slot that has rows which expire there."""
        w = self.layout.expiry_block
        first, until = max(last - count, block * w - self.longest), min(last, (block + 1) * w - self.shortest)
        return max(1, until - first) * self.together

    def blocks(self, k: int) -> range:
        """Return the blocks of rows that arrive in slot k."""
        w = self.layout.expiry_block
        return range(k // w, (k + self.layout.periods - 1) // w + 1)

    def cell(self, k: int, e: int) -> int:
        return self.layout.base + row(self.layout, k, e) * self.layout.columns + e + 1

    def written(self, k: int) -> dict[tuple[int, int], _Run]:
        """Return the runs that the update of slot k alone writes, if it merges nothing."""
        w, p = self.layout.expiry_block, self.layout.periods
        runs: dict[tuple[int, int], _Run] = {}
        for block in self.blocks(k):
            low, high = (min(p, max(0, b * w - k)) for b in (block, block + 1))
            rows = self.load.rate * (self.upto[high] - self.upto[low])
            if rows > 0:
                runs[self.cell(k, block % self.layout.columns), block] = _Run(((k, 1),), rows, self.together)
        return runs

    def closing(self, k: int) -> dict[int, list[int]]:
        """Return the columns whose row closes at each of the slots that are simulated together up to k."""
        found: dict[int, list[int]] = {}
        for e in range(self.layout.columns):
            close = k - (k + stagger(self.layout, e)) % self.layout.rows_span
            if close > k - self.stride:
                found.setdefault(close, []).append(e)
        return found

    def sealed(self, close: int, columns: list[int], fresh: dict[tuple[int, int, int], _Run]) -> _Update:
        """Merge the closing runs into the runs of the batch, and return the work of the update."""
        layout, w, read = self.layout, self.layout.expiry_block, 0.0
        runs = self.written(close)
        for e in columns:
            cell = self.cell(close, e)
            blocks = self.cells[cell]
            for block in [block for block in blocks if (block + 1) * w > close + layout.rows_span]:
                own = fresh.get((cell, block, close))
                if sum(run.count for run in (*blocks[block], *([own] if own else []))) < 2 * self.together:
                    continue  # one run is merged already
                held = blocks.pop(block)
                batches = tuple(batch for run in (*held, *([own] if own else [])) for batch in run.batches)
                rows = sum(self.mass(batch, max(close, block * w), (block + 1) * w) for batch in batches)
                read += sum(run.rows for run in held)
                if own is not None:
                    read += own.rows * (1 - self.together / own.count)
                fresh[cell, block, close] = runs[cell, block] = _Run(batches, rows, self.together)
        return self.work(runs, read)


def _scattered(layout: Layout, load: Workload, stride: int) -> Footprint:
    """Simulate appended runs that are never merged: each stays in one (sub-index, block) until the block has passed.

    Every ``stride``-th load slot is simulated and stands for those before it.
    """
    while gcd(stride, layout.rows) > 1:  # so that every row of the grid is met
        stride += 1
    tally, p, w = _Tally(load), layout.periods, layout.expiry_block

    base = 4 * p * layout.cells
    columns = {b: expiration_column(layout, b) for b in range(base - p - w, base + 2 * p + stride)}

    def written(a: int) -> dict[tuple[int, int], float]:
        runs: dict[tuple[int, int], float] = {}
        first = row(layout, a) * layout.columns
        for distance, share in enumerate(load.shares, start=1):
            if share > 0:
                part = (first + columns[a + distance], (a + distance - 1) // w)
                runs[part] = runs.get(part, 0.0) + load.rate * share
        return runs

    batches = {a: written(a) for a in range(base - p - w, base + p + stride, stride)}
    for k in _sampled(base, p, w):
        latest = max(a for a in batches if a <= k)
        tally.work(_Update([*batches[latest].values()], 0.0, len({cell for cell, _ in batches[latest]})))
        held = [
            (cell, rows)
            for a in range(latest, k - p - w, -stride)
            if a in batches
            for (cell, block), rows in batches[a].items()
            if block >= k // w
        ]
        cells = dict.fromkeys(range(layout.cells), 0.0)
        for cell, rows in held:
            cells[cell] += rows * stride
        tally.state([rows for _, rows in held], cells.values(), [float(stride)] * len(held))
    return tally.footprint()


def _rebuilt(layout: Layout, load: Workload) -> Footprint:
    """Planned sub-indices are read as they were after the update before, and written with the batch.

    The sizes of the parts of a long window hardly depend on how many slots it has, so it is simulated with fewer.
    """
    if layout.periods > _FINEST:
        layout, load = _coarser(layout, load, -(-layout.periods // _FINEST))
    tally, base = _Tally(load), 4 * layout.periods * layout.cells
    for k in _sampled(base, layout.periods):
        before, after = _live_cells(layout, load, k - 1), _live_cells(layout, load, k)
        planned = [cell - layout.first_cell for cell in planned_cells(layout, k - 1, k)]
        sizes = [after[cell] for cell in planned if after[cell] > 0]
        tally.work(_Update(sizes, sum(before[cell] for cell in planned), len(planned)))
        tally.state([rows for rows in after if rows > 0], after)
    return tally.footprint()


def _coarser(layout: Layout, load: Workload, factor: int) -> tuple[Layout, Workload]:
    """Return the same window in slots that are ``factor`` times as long; the files of an update stay the same."""
    periods = -(-layout.periods // factor)
    grouped = tuple(sum(load.shares[part * factor : (part + 1) * factor]) for part in range(periods))
    mean = sum(distance * share for distance, share in enumerate(grouped, start=1))
    rate = load.live / mean if mean else load.rate
    return replace(layout, periods=periods), replace(load, periods=periods, shares=grouped, rate=rate)


def _sampled(base: int, periods: int, width: int = 1) -> range:
    """Updates spread over a cycle, in every phase of a block of `width` slots; all of them when p is small."""
    step = -(-periods // (_SAMPLES if width == 1 else 6 * _SAMPLES))
    while gcd(step, width) > 1:
        step += 1
    return range(base, base + periods, step)


def _live_cells(layout: Layout, load: Workload, k: int) -> list[float]:
    """Expected live rows of every sub-index after update k; rows first, so that the cost is p^2 additions."""
    p, shares = layout.periods, load.shares
    by_row = [[0.0] * p for _ in range(layout.rows)]
    for age in range(p):
        g = row(layout, k - age)
        by_row[g] = [total + share for total, share in zip_longest(by_row[g], shares[age:], fillvalue=0.0)]
    cells = [0.0] * layout.cells
    for rest in range(p):
        e = expiration_column(layout, k + 1 + rest)
        for g in range(layout.rows):
            cells[g * layout.columns + e] += load.rate * by_row[g][rest]
    return cells


def noise(cells: int, rows: float) -> float:
    """An upper bound of the spread that rows add which fall into sub-indices by chance, section 6."""
    return sqrt(cells / rows) if rows else 0.0
