"""Simulates runs that updates append to staggered rows and block columns, one by one, until they are merged or have expired."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from math import gcd, lcm
from typing import TYPE_CHECKING

from warehouse.layout.advice.footprint_sums import FootprintSums, SimulatedUpdate
from warehouse.layout.assignment import row, stagger

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.layout.advice.footprint_sums import Footprint
    from warehouse.layout.advice.workload import Workload
    from warehouse.layout.layout import Layout

__all__ = ["AppendedRuns"]

_MAX_BLOCKS = 200
"""The number of blocks of a window up to which each block is simulated by itself."""
_MIN_UPDATES = 100
"""The least number of simulated updates; there are more if the cycle of the grid is longer."""
_MAX_FILES = 100_000
"""About how many files are counted in total."""
_MAX_STATES = 120
"""About how many times the files are counted."""


@dataclass
class _Run:
    """A run, or equal runs of several updates or blocks that are simulated as one: their rows, and how many runs they are."""

    batches: tuple[_Batch, ...]
    rows: float
    count: float = 1.0


_Batch = tuple[int, int]
"""Load slots that are simulated together: the last one, and their number."""


class AppendedRuns:
    """Simulates staggered rows with block columns, sealed or not: the runs of each block of each sub-index.

    Every ``stride``-th update is simulated and stands for the updates before it. Each of those has runs of its own until they are
    merged, at the slot at which the row closes. Slots, blocks and rows of the grid do not change. A window of very many blocks is
    simulated with wider blocks; each stands for ``blocks_together`` blocks.

    Letters are as in the sheet: k is a slot, e a column, w the width of a block, p the slots of a window, f the stride.
    """

    def __init__(self, layout: Layout, load: Workload, stride: int) -> None:
        blocks_together = -(-layout.periods // (layout.expiry_block * _MAX_BLOCKS))
        width = min(layout.periods, layout.expiry_block * blocks_together)
        self.layout, self.load, self.stride = replace(layout, expiry_block=width), load, stride
        self.cumulative_shares = (0.0, *accumulate(load.shares))
        self.shortest = next((distance for distance, share in enumerate(load.shares, start=1) if share > 0), 1)
        self.longest = next((distance for distance in range(len(load.shares), 0, -1) if load.shares[distance - 1] > 0), 1)
        blocks = 1 + (self.longest - self.shortest) / layout.expiry_block
        self.blocks_together = min(float(blocks_together), blocks)
        self.cumulative_sums = (0.0, *accumulate(self.cumulative_shares))
        self.cells: dict[int, dict[int, list[_Run]]] = {
            cell: {} for cell in range(layout.first_cell, layout.last_cell + 1)
        }

    def expiring_rows(self, batch: _Batch, after: int, until: int) -> float:
        """Return how many rows of load slots expire in slots after+1..until."""
        return self.load.rate * (self.expiring_share(batch, until) - self.expiring_share(batch, after))

    def expiring_share(self, batch: _Batch, until: int) -> float:
        """Return how many rows expire up to a slot, if one row arrives in each load slot of the batch."""
        last, count = batch
        if count == 1:
            return self.cumulative_shares[min(self.layout.periods, max(0, until - last))]
        return self.sum_of_shares(until - last + count) - self.sum_of_shares(until - last)

    def sum_of_shares(self, count: int) -> float:
        """Return the sum of the first ``count`` cumulative shares; they are constant beyond p."""
        p = self.layout.periods
        return self.cumulative_sums[max(0, min(count, p + 1))] + max(0, count - p - 1) * self.cumulative_shares[p]

    def simulate(self) -> Footprint:
        """Return the footprint after a simulation of about one cycle of the grid."""
        layout, p, w, f = self.layout, self.layout.periods, self.layout.expiry_block, self.stride
        sums = FootprintSums(self.load)
        rows, columns = layout.rows * layout.rows_span, w * layout.columns
        cycle = min(lcm(rows, columns), max(_MIN_UPDATES * f, rows, columns))  # every phase of rows and columns, or many of them
        every = max(1, cycle // (f * _MAX_STATES), cycle * p // (f * f * _MAX_FILES))
        while gcd(every, w) > 1:  # so that files are counted in every phase of a block
            every += 1
        for number, k in enumerate(range(f, p + w + cycle + f, f), start=1):
            self.advance(k, sums if k > p + w else None)
            if k > p + w and number % every == 0:
                self.record_files(sums)
        return sums.footprint()

    def record_files(self, sums: FootprintSums) -> None:
        """Add the runs that exist now to the sums."""
        runs = [[run for stored in blocks.values() for run in stored] for blocks in self.cells.values()]
        sizes = [run.rows / run.count for stored in runs for run in stored]
        counts = [run.count for stored in runs for run in stored]
        sums.add_state(sizes, (sum(run.rows for run in stored) for stored in runs), counts)

    def advance(self, k: int, sums: FootprintSums | None) -> None:
        """Simulate the updates up to slot k, and add their work to the sums, if there are any."""
        w = self.layout.expiry_block
        if k // w > (k - self.stride) // w:  # blocks have passed since the update before
            for blocks in self.cells.values():
                for block in [block for block in blocks if block < k // w]:
                    del blocks[block]
        new_runs: dict[tuple[int, int, int], _Run] = {}
        closing = self.closing_columns(k) if self.layout.seal else {}
        close_of_column = {e: close for close, columns in closing.items() for e in columns}
        for block in self.blocks_of_slot(k):
            e = block % self.layout.columns
            close = close_of_column.get(e, k)
            for last, count in ((close, close - k + self.stride), (k, k - close)):
                rows = self.expiring_rows((last, count), block * w, (block + 1) * w) if count else 0.0
                if rows > 0:
                    run = _Run(((last, count),), rows, self.run_count(last, count, block))
                    new_runs[self.cell_of(last, e), block, last] = run
        updates = [self.seal_runs(close, columns, new_runs) for close, columns in closing.items()]
        for (cell, block, _), run in new_runs.items():
            self.cells[cell].setdefault(block, []).append(run)
        if sums is not None:
            other_updates = self.stride - len(updates)
            sums.add_work(
                *updates,
                *([self.as_update(self.runs_of_slot(k - self.stride // 2), 0.0, other_updates)] if other_updates else []),
            )

    def as_update(self, runs: Mapping[tuple[int, int], _Run], read: float, weight: float = 1.0) -> SimulatedUpdate:
        """Return the update that writes the given runs, by sub-index and block."""
        sizes = [run.rows / run.count for run in runs.values() for _ in range(round(run.count))]
        return SimulatedUpdate(sizes, read, len({cell for cell, _ in runs}), weight)

    def run_count(self, last: int, count: int, block: int) -> float:
        """Return how many runs the updates of load slots add to a block: one for each slot with rows that expire there."""
        w = self.layout.expiry_block
        first, until = max(last - count, block * w - self.longest), min(last, (block + 1) * w - self.shortest)
        return max(1, until - first) * self.blocks_together

    def blocks_of_slot(self, k: int) -> range:
        """Return the blocks of rows that arrive in slot k."""
        w = self.layout.expiry_block
        return range(k // w, (k + self.layout.periods - 1) // w + 1)

    def cell_of(self, k: int, e: int) -> int:
        """Return the sub-index of rows that arrive in slot k and expire in column e."""
        return self.layout.base + row(self.layout, k, e) * self.layout.columns + e + 1

    def runs_of_slot(self, k: int) -> dict[tuple[int, int], _Run]:
        """Return the runs that the update of slot k alone writes, if it merges nothing."""
        w, p = self.layout.expiry_block, self.layout.periods
        runs: dict[tuple[int, int], _Run] = {}
        for block in self.blocks_of_slot(k):
            low, high = (min(p, max(0, b * w - k)) for b in (block, block + 1))
            rows = self.load.rate * (self.cumulative_shares[high] - self.cumulative_shares[low])
            if rows > 0:
                runs[self.cell_of(k, block % self.layout.columns), block] = _Run(((k, 1),), rows, self.blocks_together)
        return runs

    def closing_columns(self, k: int) -> dict[int, list[int]]:
        """Return, for each slot that is simulated together with k, the columns whose row closes then."""
        columns_of_slot: dict[int, list[int]] = {}
        for e in range(self.layout.columns):
            close = k - (k + stagger(self.layout, e)) % self.layout.rows_span
            if close > k - self.stride:
                columns_of_slot.setdefault(close, []).append(e)
        return columns_of_slot

    def seal_runs(self, close: int, columns: list[int], new_runs: dict[tuple[int, int, int], _Run]) -> SimulatedUpdate:
        """Merge the closing runs into the runs of the batch, and return the work of the update."""
        layout, w, rows_read = self.layout, self.layout.expiry_block, 0.0
        runs = self.runs_of_slot(close)
        for e in columns:
            cell = self.cell_of(close, e)
            blocks = self.cells[cell]
            for block in [block for block in blocks if (block + 1) * w > close + layout.rows_span]:
                new_run = new_runs.get((cell, block, close))
                if sum(run.count for run in (*blocks[block], *([new_run] if new_run else []))) < 2 * self.blocks_together:
                    continue  # one run is merged already
                stored = blocks.pop(block)
                batches = tuple(batch for run in (*stored, *([new_run] if new_run else [])) for batch in run.batches)
                rows = sum(self.expiring_rows(batch, max(close, block * w), (block + 1) * w) for batch in batches)
                rows_read += sum(run.rows for run in stored)
                if new_run is not None:
                    rows_read += new_run.rows * (1 - self.blocks_together / new_run.count)
                new_runs[cell, block, close] = runs[cell, block] = _Run(batches, rows, self.blocks_together)
        return self.as_update(runs, rows_read)
