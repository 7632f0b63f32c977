"""A slow model of an appended table: partitions of runs, moved by the rules of DESIGN section 4 and 5.

It keeps one number for each (run, expiration slot): rows under uniform lifetimes, in expectation, in units of u/2.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import mean

from warehouse.layout import Layout, exp_block, expired_below, seals, sub_index
from warehouse.layout.oracle import uniform_weights

Partition = tuple[int, int]
Run = Counter[int]
Table = dict[Partition, list[Run]]


@dataclass(frozen=True)
class Figures:
    """Averages over one cycle, and worst cases.

    Runs on disk; rows written for each row inserted; rows rewritten by the largest seal, in batches; expired rows on
    disk for each live one; sub-indices sealed per update.
    """

    files: float
    written: float
    largest_seal: float
    dead: float
    most_dead: float
    sealed: float


def figures(layout: Layout) -> Figures:
    """Run the model until it is steady and measure 3p updates (model C)."""
    weights = [int(2 * weight) for weight in uniform_weights(layout.periods)]
    table: Table = {}
    files, dead, rewritten, sealed = [], [], [], []
    for k in range(6 * layout.periods):
        batch: dict[Partition, Run] = {}
        for b, weight in enumerate(weights, start=k + 1):
            batch.setdefault((sub_index(layout, k, b), exp_block(layout, k, b)), Counter())[b] = weight
        merged, old = _seal(layout, k, table, batch)
        for partition, run in batch.items():
            table.setdefault(partition, []).append(run)
        for partition in [key for key in table if key[1] < expired_below(layout, k)]:
            del table[partition]
        if k >= 3 * layout.periods:
            runs = [run for runs_of_partition in table.values() for run in runs_of_partition]
            live = sum(_live(run, k).total() for run in runs)
            files.append(len(runs))
            dead.append(sum(run.total() for run in runs) / live - 1)
            rewritten.append(old / sum(weights))
            sealed.append(merged)
    return Figures(mean(files), 1 + mean(rewritten), max(rewritten), mean(dead), max(dead), mean(sealed))


def _seal(layout: Layout, k: int, table: Table, batch: dict[Partition, Run]) -> tuple[int, int]:
    """Merge the runs that close at k; return how many sub-indices were sealed, and the old rows that were rewritten."""
    merged, old = set(), 0
    for seal in seals(layout, k - 1, k, {partition: len(runs) for partition, runs in table.items()}):
        for block, runs in seal.blocks:
            partition = (seal.sub_index, block)
            if runs + (partition in batch) >= 2:
                live = sum((_live(run, k) for run in table[partition]), Counter())
                table[partition] = [live + batch.pop(partition, Counter())]
                merged.add(seal.sub_index)
                old += live.total()
    return len(merged), old


def _live(run: Run, k: int) -> Run:
    return Counter({b: rows for b, rows in run.items() if b > k})
