"""How finely owed work is cut, and what a part of it delivers: ``python -m benchmarks.source.unit_cuts``.

No warehouse: the streams of the promising-tuples sheet, 8.2, and the warehouse's own allocation of a budget of rows. A unit is a
key of the pairs whose later row is new, as the ledger of a view under a budget has it; or, cut further, a key of a new batch and
one batch of the other stream, as the sheet has it. Work is counted in three ways: as the rows of both inputs that a unit joins;
as the sheet does, a look at each unit in place of the new batch's rows, which lie in memory there; and, for a budget of pairs, as
the rows that making so many of them joins.
"""

from __future__ import annotations

import math
from collections import Counter
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Literal

import click

from benchmarks.field.page import markdown_table
from benchmarks.source.promising_units import BATCHES, BUDGETS, WINDOW, drawn_batches, units_of
from warehouse.promise.allocation import Worth, allocate
from warehouse.promise.units import Unit, ViewBudget

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["delivered", "delivered_by_looks", "joined", "main"]

Cut = Literal["key", "key and batch"]
_Batches = list[tuple[Counter[int], Counter[int]]]


def delivered(cut: Cut, budget: float, seeds: int, *, guided: bool) -> float:
    """Return the share of all pairs that a share of each batch's work delivers: most pairs for a row first, or in no order."""
    return fmean(_played(drawn_batches(seed), cut, budget, Random(seed), guided=guided) for seed in range(seeds))  # noqa: S311


def _played(drawn: _Batches, cut: Cut, budget: float, random: Random, *, guided: bool) -> float:
    all_pairs = pairs = 0
    for now in range(BATCHES):
        units = _by_key(drawn, now) if cut == "key" else _by_batch(drawn, now)
        rows = max(2, int(budget * sum(worth.rows for worth in units.values())))
        all_pairs += sum(worth.pairs for worth in units.values())
        pairs += sum(allocate(units, ViewBudget(rows=rows), rows).values()) if guided else _in_no_order(units, rows, random)
    return pairs / all_pairs


def delivered_by_looks(cut: Cut, budget: float, seeds: int) -> float:
    """Return the share of all pairs that a share of the work gives, counted as the sheet does; the last unit in part."""
    return fmean(_played_by_looks(drawn_batches(seed), cut, budget) for seed in range(seeds))


def _played_by_looks(drawn: _Batches, cut: Cut, budget: float) -> float:
    all_pairs = delivered_pairs = 0.0
    for now in range(BATCHES):
        units = units_of(drawn, now)
        remaining = budget * sum(unit.cost for unit in units)
        all_pairs += sum(unit.pairs for unit in units)
        sums: dict[tuple[int, ...], tuple[int, int]] = {}
        for number, unit in enumerate(units):
            if unit.pairs:
                name = (unit.key,) if cut == "key" else (unit.key, number)
                pairs, cost = sums.get(name, (0, 0))
                sums[name] = pairs + unit.pairs, cost + unit.cost
        for pairs, cost in sorted(sums.values(), key=lambda unit: -unit[0] / unit[1]):
            delivered_pairs += pairs * min(1.0, remaining / cost)
            remaining = max(0.0, remaining - cost)
    return delivered_pairs / all_pairs


def joined(cut: Cut, budget: float, seeds: int) -> float:
    """Return how many rows a budget of a share of each batch's pairs joins, as a share of all rows that whole keys join."""
    return fmean(_joined(drawn_batches(seed), cut, budget) for seed in range(seeds))


def _joined(drawn: _Batches, cut: Cut, budget: float) -> float:
    rows = all_rows = 0
    for now in range(BATCHES):
        whole = _by_key(drawn, now)
        units = whole if cut == "key" else _by_batch(drawn, now)
        all_rows += sum(worth.rows for worth in whole.values())
        most = max(1, int(budget * sum(worth.pairs for worth in units.values())))
        for unit, pairs in allocate(units, ViewBudget(pairs=most), most).items():
            worth = units[unit]
            rows += worth.right + math.ceil((worth.rows - worth.right) * pairs / worth.pairs)
    return rows / all_rows


def _by_key(drawn: _Batches, now: int) -> dict[Unit, Worth]:
    """All pairs of a key that have a new row are one unit; a row of the window counts once, however many partners it has."""
    new, first = drawn[now], max(0, now - WINDOW + 1)
    old = [sum((drawn[batch][side] for batch in range(first, now)), Counter[int]()) for side in (0, 1)]
    units = {}
    for key in new[0].keys() | new[1].keys():
        left, right = new[0][key] + old[0][key], new[1][key] + old[1][key]
        pairs = new[0][key] * right + old[0][key] * new[1][key]
        joined_rows = (left if new[1][key] else new[0][key], right if new[0][key] else new[1][key])
        units[Unit(0, key)] = Worth(pairs, sum(joined_rows), right=joined_rows[1])
    return {unit: worth for unit, worth in units.items() if worth.pairs}


def _by_batch(drawn: _Batches, now: int) -> dict[Unit, Worth]:
    """The pairs of a key of one stream's new batch and of one batch of the other stream are a unit."""
    new, units = drawn[now], {}
    for batch in range(max(0, now - WINDOW + 1), now + 1):
        for key in new[0].keys() | new[1].keys():
            units[Unit(2 * batch, key)] = _worth(new[0][key], drawn[batch][1][key])
            if batch < now:
                units[Unit(2 * batch + 1, key)] = _worth(drawn[batch][0][key], new[1][key])
    return {unit: worth for unit, worth in units.items() if worth.pairs}


def _worth(left: int, right: int) -> Worth:
    return Worth(left * right, left + right, right=right)


def _in_no_order(units: Mapping[Unit, Worth], rows: int, random: Random) -> int:
    delivered_pairs = 0
    for unit in random.sample(list(units), len(units)):
        delivered_pairs += units[unit].pairs_within(rows)
        rows = max(0, rows - units[unit].rows)
    return delivered_pairs


@click.command(epilog="Example: python -m benchmarks.source.unit_cuts --seeds 5")
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, help="Pairs of streams.")
def main(seeds: int) -> None:
    """Print what each cut delivers of the pairs, by the share of its own work, and what it joins for a share of the pairs."""
    cuts: Sequence[Cut] = ("key", "key and batch")
    rows = [["share", "a unit is a", "pairs of these rows, no order", "densest first", "of these looks", "rows of these pairs"]]
    for budget in (*BUDGETS, 1.0):
        for cut in cuts:
            outcomes = [delivered(cut, budget, seeds, guided=guided) for guided in (False, True)]
            outcomes += [delivered_by_looks(cut, budget, seeds), joined(cut, budget, seeds)]
            rows.append([f"{budget:.0%}", cut, *(f"{share:.3f}" for share in outcomes)])
    click.echo(markdown_table(rows))


if __name__ == "__main__":
    main()
