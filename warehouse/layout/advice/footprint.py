"""What a layout does with a workload in its steady state: the work of its updates, its files, its dead rows.

The updates of about one cycle of the grid are played with expected sizes, by the layout's own formulas for cells, blocks
and sealing, so that what is predicted is what the planner will do. Runs appended to staggered rows and block columns are
followed one by one; other assignments of `norebuild` cannot be sealed, so each of their runs simply stays until its
block has passed; of `rebuild` the planned sub-indices are summed up at some updates of a cycle.
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
    from collections.abc import Iterable, Sequence

    from warehouse.layout.advice.workload import Workload
    from warehouse.layout.layout import Layout

__all__ = ["Footprint", "footprint"]

_SAMPLES = 8
"""Updates that are looked at where no state is carried from one to the next."""
_FINEST = 150
"""Slots of a window up to which rebuilt sub-indices are played slot by slot."""
_UPDATES = 100
"""Updates that are played, or more where the grid's cycle is longer."""
_FILES = 100_000
"""Files that are looked at in all of these, about."""
_STATES = 120
"""Updates after which the files are looked at, where it is."""


@dataclass(frozen=True)
class Footprint:
    """A layout under a workload, on average over its updates.

    Parameters
    ----------
    updates
        The work of each update that was played.
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


def footprint(layout: Layout, load: Workload) -> Footprint:
    """Play a layout's updates, doubly-partitioned-index sheet, sections 5.2, 5.3 and 11.

    Parameters
    ----------
    layout
        A layout of the workload's p.
    load
        The workload; its rate is taken to be constant.
    """
    if layout.technique == "rebuild":
        return _rebuilt(layout, load)
    if (layout.insertion, layout.expiration) == ("staggered", "blocks"):
        return _Appending(layout, load).play()
    return _scattered(layout, load)


@dataclass
class _Tally:
    """Sums over the updates that were played."""

    load: Workload
    works: list[UpdateWork] = field(default_factory=list)
    files: list[float] = field(default_factory=list)
    holding: list[float] = field(default_factory=list)
    rows: list[float] = field(default_factory=list)
    written: list[float] = field(default_factory=list)
    spread: float = 0.0

    def work(self, runs: Sequence[float], read: float, cells: int) -> None:
        load, files = self.load, sum(self.expected(rows) for rows in runs)
        self.works.append(
            task_work(
                runs=runs, files=files, read=read, workers=load.workers, sub_indices=min(cells, files),
                arriving=load.arriving, landing_files=load.landing_files, target_rows=load.target_rows,
            )
        )  # fmt: skip
        self.written.append(sum(runs))

    def state(self, sizes: Sequence[float], cells: Iterable[float]) -> None:
        """Note the files of an epoch and the rows of every sub-index, empty ones too."""
        total = sum(sizes)
        self.files.append(sum(self.expected(rows) for rows in sizes))
        self.rows.append(total)
        share = [1 - (1 - min(1.0, size / total)) ** self.load.rows_per_key for size in sizes] if total else []
        self.holding.append(sum(share))
        counts = list(cells)
        mean = fmean(counts)
        if mean:
            self.spread = max(self.spread, pstdev(counts, mean) / mean)

    def expected(self, rows: float) -> float:
        """How many files a run makes that has so many rows on average: where few are expected there may be none."""
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
    """One run: the load slots of its rows, and the slot at which it was written."""

    slots: tuple[int, ...]
    cut: int
    rows: float


class _Appending:
    """Staggered rows of block columns, sealed or not: the runs of each block of each sub-index."""

    def __init__(self, layout: Layout, load: Workload) -> None:
        self.layout, self.load = layout, load
        self.upto = (0.0, *accumulate(load.shares))
        self.cells: dict[int, dict[int, list[_Run]]] = {
            cell: {} for cell in range(layout.first_cell, layout.last_cell + 1)
        }

    def mass(self, a: int, after: int, until: int) -> float:
        """Rows of load slot a that expire in slots after+1..until."""
        p = self.layout.periods
        low, high = (min(p, max(0, b - a)) for b in (after, until))
        return self.load.rate * (self.upto[high] - self.upto[low])

    def play(self) -> Footprint:
        layout, p, w = self.layout, self.layout.periods, self.layout.expiry_block
        tally = _Tally(self.load)
        rows, columns = layout.rows * layout.rows_span, w * layout.columns
        cycle = min(lcm(rows, columns), max(_UPDATES, rows, columns))  # every phase of both, or many
        seen = max(1, cycle // _STATES, cycle * p // _FILES)
        while gcd(seen, w) > 1:  # files are looked at in every phase of a block
            seen += 1
        for k in range(1, p + w + cycle + 1):
            runs, read, cells = self.update(k)
            if k > p + w:
                tally.work(runs, read, cells)
                if k % seen == 0:
                    self.note(tally)
        return tally.footprint()

    def note(self, tally: _Tally) -> None:
        rows = [[run.rows for held in blocks.values() for run in held] for blocks in self.cells.values()]
        tally.state([size for sizes in rows for size in sizes], map(sum, rows))

    def update(self, k: int) -> tuple[list[float], float, int]:
        layout, w, p = self.layout, self.layout.expiry_block, self.layout.periods
        if k % w == 0:  # a block has just passed
            for blocks in self.cells.values():
                blocks.pop(k // w - 1, None)
        fresh: dict[tuple[int, int], _Run] = {}
        for block in range(k // w, (k + p - 1) // w + 1):
            e = block % layout.columns
            rows = self.mass(k, max(k, block * w), (block + 1) * w)
            if rows > 0:
                cell = layout.base + row(layout, k, e) * layout.columns + e + 1
                fresh[cell, block] = _Run((k,), k, rows)
        read = self.sealed(k, fresh) if layout.seal else 0.0
        for (cell, block), run in fresh.items():
            self.cells[cell].setdefault(block, []).append(run)
        return [run.rows for run in fresh.values()], read, len({cell for cell, _ in fresh})

    def sealed(self, k: int, fresh: dict[tuple[int, int], _Run]) -> float:
        """Merge what closes at k into the batch's runs and return the rows that are read for it."""
        layout, w, read = self.layout, self.layout.expiry_block, 0.0
        span = layout.rows_span
        for e in range(layout.columns):
            if (k + stagger(layout, e)) % span:
                continue
            cell = layout.base + row(layout, k, e) * layout.columns + e + 1
            blocks = self.cells[cell]
            for block in [block for block in blocks if (block + 1) * w > k + span]:
                own = fresh.get((cell, block))
                if len(blocks[block]) + (own is not None) < 2:  # noqa: PLR2004 - one run is merged already
                    continue
                held = blocks.pop(block)
                slots = tuple(a for run in held for a in run.slots) + (own.slots if own else ())
                rows = sum(self.mass(a, max(k, block * w), (block + 1) * w) for a in slots)
                read += sum(run.rows for run in held)
                fresh[cell, block] = _Run(slots, k, rows)
        return read


def _scattered(layout: Layout, load: Workload) -> Footprint:
    """Appended runs that are never merged: each lies in one (sub-index, block) until that block has passed."""
    tally, p, w = _Tally(load), layout.periods, layout.expiry_block

    base = 4 * p * layout.cells
    columns = {b: expiration_column(layout, b) for b in range(base - p - w, base + 2 * p + 1)}

    def written(a: int) -> dict[tuple[int, int], float]:
        runs: dict[tuple[int, int], float] = {}
        first = row(layout, a) * layout.columns
        for distance, share in enumerate(load.shares, start=1):
            if share > 0:
                part = (first + columns[a + distance], (a + distance - 1) // w)
                runs[part] = runs.get(part, 0.0) + load.rate * share
        return runs

    batches = {a: written(a) for a in range(base - p - w, base + p + 1)}
    for k in _sampled(base, p, w):
        tally.work([*batches[k].values()], 0.0, len({cell for cell, _ in batches[k]}))
        held = [
            (cell, rows)
            for a in range(k - p - w + 1, k + 1)
            if a in batches
            for (cell, block), rows in batches[a].items()
            if block >= k // w
        ]
        cells = dict.fromkeys(range(layout.cells), 0.0)
        for cell, rows in held:
            cells[cell] += rows
        tally.state([rows for _, rows in held], cells.values())
    return tally.footprint()


def _rebuilt(layout: Layout, load: Workload) -> Footprint:
    """Planned sub-indices are read as they were after the update before, and written with the batch.

    The sizes of the parts of a long window hardly depend on how many slots it has, so it is played with fewer.
    """
    if layout.periods > _FINEST:
        layout, load = _coarser(layout, load, -(-layout.periods // _FINEST))
    tally, base = _Tally(load), 4 * layout.periods * layout.cells
    for k in _sampled(base, layout.periods):
        before, after = _live_cells(layout, load, k - 1), _live_cells(layout, load, k)
        planned = [cell - layout.first_cell for cell in planned_cells(layout, k - 1, k)]
        sizes = [after[cell] for cell in planned if after[cell] > 0]
        tally.work(sizes, sum(before[cell] for cell in planned), len(planned))
        tally.state([rows for rows in after if rows > 0], after)
    return tally.footprint()


def _coarser(layout: Layout, load: Workload, factor: int) -> tuple[Layout, Workload]:
    """The same window in slots that are ``factor`` times as long; what lands in an update stays as it is."""
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
    """How much rows that fall into sub-indices by chance add to their spread at the most, section 6."""
    return sqrt(cells / rows) if rows else 0.0
