"""A slow model of an appended table: partitions of runs, moved by the rules of DESIGN section 4 and 5.

It keeps one number for each (run, expiration slot): rows under uniform lifetimes, in expectation.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from warehouse.layout import Layout, exp_block, expired_below, seals, sub_index
from warehouse.layout.oracle import uniform_weights

Partition = tuple[int, int]
Run = dict[int, float]


@dataclass(frozen=True)
class Figures:
    """Averages over one period, and worst cases, after a warm-up."""

    files: float
    written: float
    largest_seal: float
    dead: float
    most_dead: float
    seals: float


def figures(layout: Layout) -> Figures:
    """Run the model until it is steady and measure one cycle of 3p updates (model C)."""
    weights = [float(weight) for weight in uniform_weights(layout.periods)]
    table: dict[Partition, list[Run]] = {}
    files, rewritten, dead, sealed = [], [], [], []
    for k in range(6 * layout.periods):
        batch: dict[Partition, Run] = defaultdict(dict)
        for lifetime, weight in enumerate(weights, start=1):
            batch[sub_index(layout, k, k + lifetime), exp_block(layout, k, k + lifetime)][k + lifetime] = weight
        old = merged = 0.0
        for seal in seals(layout, k - 1, k, {partition: len(runs) for partition, runs in table.items()}):
            for block, runs in seal.blocks:
                partition = (seal.sub_index, block)
                if runs + (partition in batch) < 2:
                    continue
                one: Run = defaultdict(float)
                for run in table[partition]:
                    old += sum(rows for b, rows in run.items() if b > k)
                    for b, rows in run.items():
                        if b > k:
                            one[b] += rows
                for b, rows in batch.pop(partition, {}).items():
                    one[b] += rows
                table[partition] = [dict(one)]
                merged += 1
        for partition, run in batch.items():
            table.setdefault(partition, []).append(run)
        table = {at: runs for at, runs in table.items() if at[1] >= expired_below(layout, k)}
        if k >= 3 * layout.periods:
            stored = [(b, rows) for runs in table.values() for run in runs for b, rows in run.items()]
            live = sum(rows for b, rows in stored if b > k)
            files.append(sum(map(len, table.values())))
            rewritten.append(old / sum(weights))
            dead.append((sum(rows for _, rows in stored) - live) / live)
            sealed.append(merged)
    return Figures(
        files=sum(files) / len(files),
        written=1 + sum(rewritten) / len(rewritten),
        largest_seal=max(rewritten),
        dead=sum(dead) / len(dead),
        most_dead=max(dead),
        seals=sum(sealed) / len(sealed),
    )
