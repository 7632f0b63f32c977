"""Simulates a layout under a workload in the steady state: the work of its updates, its files, its dead rows.

The updates of about one cycle of the grid are simulated with expected sizes. The formulas for cells, blocks and sealing are those
of the layout, so the prediction is what the planner will do. Runs that are appended to staggered rows and block columns are
simulated one by one (:mod:`warehouse.layout.advice.appended_runs`). Other assignments of `norebuild` cannot be sealed, so each
run stays until its block has passed. For `rebuild` the planned sub-indices are summed up at some updates of a cycle.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from math import gcd, sqrt
from typing import TYPE_CHECKING

from warehouse.layout.advice.appended_runs import AppendedRuns
from warehouse.layout.advice.footprint_sums import FootprintSums, SimulatedUpdate
from warehouse.layout.assignment import expiration_column, row
from warehouse.layout.planned import planned_cells

if TYPE_CHECKING:
    from warehouse.layout.advice.footprint_sums import Footprint
    from warehouse.layout.advice.workload import Workload
    from warehouse.layout.layout import Layout

__all__ = ["MAX_EXACT_PERIODS", "chance_spread", "footprint"]

_SAMPLES = 8
"""How many updates are computed if no update depends on the one before."""
_MAX_SLOT_BY_SLOT = 150
"""The number of slots of a window up to which rebuilt sub-indices are simulated slot by slot."""
MAX_EXACT_PERIODS = 1000
"""The number of slots of a window up to which each update of appended runs is simulated."""
_MIN_SIMULATED, _MIN_WHILE_OPEN = 300, 4
"""In a longer window at least this many updates are simulated, and at least this many while a row of the grid is open."""


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
        return _simulated_rebuild(layout, load)
    every = _stride(layout) if stride is None else stride
    if (layout.insertion, layout.expiration) == ("staggered", "blocks"):
        return AppendedRuns(layout, load, every).simulate()
    return _simulated_scattered_runs(layout, load, every)


def _stride(layout: Layout) -> int:
    """Return for how many updates one simulated update stands: hundreds are simulated in a window, some while a row is open."""
    if layout.periods <= MAX_EXACT_PERIODS:
        return 1
    open_for = layout.rows_span if layout.seal else layout.periods
    stride = max(1, min(layout.periods // _MIN_SIMULATED, open_for // _MIN_WHILE_OPEN))
    while gcd(stride, layout.expiry_block * layout.rows_span) > 1:  # so that files are counted in every phase
        stride -= 1
    return stride


def _simulated_scattered_runs(layout: Layout, load: Workload, stride: int) -> Footprint:
    """Simulate appended runs that are never merged: each stays in one (sub-index, block) until the block has passed.

    Every ``stride``-th load slot is simulated and stands for those before it.
    """
    while gcd(stride, layout.rows) > 1:  # so that every row of the grid is simulated
        stride += 1
    sums, p, w = FootprintSums(load), layout.periods, layout.expiry_block

    base = 4 * p * layout.cells
    columns = {b: expiration_column(layout, b) for b in range(base - p - w, base + 2 * p + stride)}

    def runs_of_slot(a: int) -> dict[tuple[int, int], float]:
        runs: dict[tuple[int, int], float] = {}
        first = row(layout, a) * layout.columns
        for distance, share in enumerate(load.shares, start=1):
            if share > 0:
                part = (first + columns[a + distance], (a + distance - 1) // w)
                runs[part] = runs.get(part, 0.0) + load.rate * share
        return runs

    batches = {a: runs_of_slot(a) for a in range(base - p - w, base + p + stride, stride)}
    for k in _sampled(base, p, w):
        latest = max(a for a in batches if a <= k)
        sums.add_work(SimulatedUpdate([*batches[latest].values()], 0.0, len({cell for cell, _ in batches[latest]})))
        stored = [
            (cell, rows)
            for a in range(latest, k - p - w, -stride)
            if a in batches
            for (cell, block), rows in batches[a].items()
            if block >= k // w
        ]
        cells = dict.fromkeys(range(layout.cells), 0.0)
        for cell, rows in stored:
            cells[cell] += rows * stride
        sums.add_state([rows for _, rows in stored], cells.values(), [float(stride)] * len(stored))
    return sums.footprint()


def _simulated_rebuild(layout: Layout, load: Workload) -> Footprint:
    """Simulate updates that read the planned sub-indices and write them again with the arrived rows.

    The sizes of the parts of a long window hardly depend on how many slots it has, so it is simulated with fewer.
    """
    if layout.periods > _MAX_SLOT_BY_SLOT:
        layout, load = _coarser(layout, load, -(-layout.periods // _MAX_SLOT_BY_SLOT))
    sums, base = FootprintSums(load), 4 * layout.periods * layout.cells
    for k in _sampled(base, layout.periods):
        before, after = _live_cells(layout, load, k - 1), _live_cells(layout, load, k)
        planned = [cell - layout.first_cell for cell in planned_cells(layout, k - 1, k)]
        sizes = [after[cell] for cell in planned if after[cell] > 0]
        sums.add_work(SimulatedUpdate(sizes, sum(before[cell] for cell in planned), len(planned)))
        sums.add_state([rows for rows in after if rows > 0], after)
    return sums.footprint()


def _coarser(layout: Layout, load: Workload, factor: int) -> tuple[Layout, Workload]:
    """Return the same window in slots that are ``factor`` times as long; the files of an update stay the same."""
    periods = -(-layout.periods // factor)
    grouped = tuple(sum(load.shares[part * factor : (part + 1) * factor]) for part in range(periods))
    mean = sum(distance * share for distance, share in enumerate(grouped, start=1))
    rate = load.live / mean if mean else load.rate
    return replace(layout, periods=periods), replace(load, periods=periods, shares=grouped, rate=rate)


def _sampled(base: int, periods: int, width: int = 1) -> range:
    """Return updates that are spread over a cycle, in every phase of a block of ``width`` slots; all updates if p is small."""
    step = -(-periods // (_SAMPLES if width == 1 else 6 * _SAMPLES))
    while gcd(step, width) > 1:
        step += 1
    return range(base, base + periods, step)


def _live_cells(layout: Layout, load: Workload, k: int) -> list[float]:
    """Return the expected live rows of every sub-index after update k.

    They are first summed up by row of the grid, so that there are p^2 additions.
    """
    p, shares = layout.periods, load.shares
    by_row = [[0.0] * p for _ in range(layout.rows)]
    for age in range(p):
        g = row(layout, k - age)
        by_row[g] = [total + share for total, share in zip_longest(by_row[g], shares[age:], fillvalue=0.0)]
    cells = [0.0] * layout.cells
    for remaining in range(p):
        e = expiration_column(layout, k + 1 + remaining)
        for g in range(layout.rows):
            cells[g * layout.columns + e] += load.rate * by_row[g][remaining]
    return cells


def chance_spread(cells: int, rows: float) -> float:
    """Return an upper bound of the spread that chance adds, since rows fall into sub-indices at random: section 6."""
    return sqrt(cells / rows) if rows else 0.0
