"""Units of work of a join batch by batch, and what an order of them delivers under a budget.

No warehouse: two drawn streams (promising-tuples sheet, 8.2 and 11). A unit of work is a key of the new batch and a zone of the
other stream's window; its promise is how many results it gives. A zone is a batch, some batches that are alike (sheet, 4.2), or a
zone of a granularity, which is the longer the older it is (4.3). Tables of keys are exact, or a Count-Sketch of each zone.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import pyarrow as pa

from benchmarks.source.stream_summaries import CountSketch, Granularities, found_by_pyramid, zones

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

__all__ = [
    "BATCHES",
    "BUDGETS",
    "CUTS",
    "KEYS",
    "ROWS",
    "WINDOW",
    "Cut",
    "Outcome",
    "Unit",
    "drawn_batches",
    "histogram_error",
    "looks",
    "order",
    "played",
    "proportional",
    "sampled",
    "sampled_by_spark",
    "units_of",
    "zones_at",
]

KEYS, BATCHES, WINDOW, ROWS = 75, 30, 6, 100
BUDGETS = (0.1, 0.25, 0.5)
SKETCH = (5, 32)
"""Rows and counters of the sketch of a zone: 160 numbers for 75 keys, too few to tell them all apart."""
Cut = Literal["batches", "zones", "granularities"]
CUTS: tuple[Cut, ...] = ("batches", "zones", "granularities")
_THETA, _LONGEST = 0.6, 3
"""The least confidence in a zone, and the most batches that it has."""
_RATE, _DEPTH = 2, 3
"""Zones of a granularity, and how many granularities there are: together they reach back a window."""
_RARE = 0.05
_Batches = list[tuple[Counter[int], Counter[int]]]


@dataclass(frozen=True)
class Unit:
    """A key of a new batch and a zone of the other stream: rows of each with the key, how old, rows of the key in the window.

    ``sketched`` is what a Count-Sketch makes of ``others``.
    """

    key: int
    rows: int
    others: int
    age: int
    in_window: int
    sketched: float = 0.0

    @property
    def pairs(self) -> int:
        """The results that it gives."""
        return self.rows * self.others

    @property
    def cost(self) -> int:
        """Its work: a look, and each row that it reaches."""
        return 1 + self.others


@dataclass(frozen=True)
class Outcome:
    """The outcome of an order under a budget.

    Attributes
    ----------
    share
        Of the exact results.
    error
        The sum of squared differences between the shares of keys in the exact results and in these.
    precision, recall
        The share of results whose keys are rare, and the share of the rare results that were delivered.
    age
        The mean age of the joined rows, in batches.

    """

    share: float
    error: float
    precision: float
    recall: float
    age: float


def histogram_error(exact: Mapping[int, float], found: Mapping[int, float]) -> float:
    """Return the sum of squared differences between the shares of keys.

    >>> histogram_error({5: 6, 9: 1, 3: 1}, {5: 6})
    0.09375
    """
    exact_total, found_total = sum(exact.values()), sum(found.values())
    return sum((exact.get(key, 0) / exact_total - found.get(key, 0) / found_total) ** 2 for key in exact.keys() | found.keys())


def proportional(budget: int, weights: Sequence[float]) -> list[int]:
    """Return shares of a budget in the ratio of weights, rounded by largest remainders.

    >>> proportional(12, [3.2, 3, 2.56, 2])
    [4, 3, 3, 2]
    """
    exact = [budget * weight / sum(weights) for weight in weights]
    shares = [math.floor(share) for share in exact]
    for position in sorted(range(len(exact)), key=lambda index: shares[index] - exact[index])[: budget - sum(shares)]:
        shares[position] += 1
    return shares


def order(units: Sequence[Unit], name: str, random: Random, alpha: float = 1.0) -> list[Unit]:
    """Return units in an order; of equal promise the newer first, then the smaller key. Promise fades with age by alpha."""
    if name == "none":
        return random.sample(list(units), len(units))
    if name == "asc":
        return sorted(units, key=lambda unit: (unit.in_window, unit.pairs / alpha**unit.age, unit.age, unit.key))
    by_cost = name == "desc by cost"

    def promise(unit: Unit) -> float:
        if name == "desc by sketch":
            return alpha**unit.age * unit.rows * unit.sketched
        return alpha**unit.age * unit.pairs / (unit.cost if by_cost else 1)

    return sorted(units, key=lambda unit: (-promise(unit), unit.age, unit.key))


def drawn_batches(seed: int) -> _Batches:
    """Return the rows of each key in each batch of two streams."""
    random = Random(seed)  # noqa: S311 - a benchmark draws its data
    weights = [1 / rank for rank in range(1, KEYS + 1)]

    def drawn() -> Counter[int]:
        rows = 0
        reached = -math.log(1 - random.random())
        while reached < ROWS:  # Poisson, by the gaps between arrivals
            rows += 1
            reached += -math.log(1 - random.random())
        return Counter(random.choices(range(KEYS), weights, k=rows))

    return [(drawn(), drawn()) for _ in range(BATCHES)]


def zones_at(batches: _Batches, side: int, now: int, cut: Cut) -> list[list[int]]:
    """Return the zones of a stream's batches up to now, the oldest first."""
    if cut == "batches":
        return [[batch] for batch in range(now + 1)]
    if cut == "zones":
        rows = [[str(key) for key in batches[batch][side].elements()] for batch in range(now + 1)]
        return zones(rows, _THETA, _LONGEST)
    levels = Granularities(_RATE, _DEPTH)
    for batch in range(now + 1):
        levels.add(batch)
    return [zone for level in reversed(levels.levels) for zone in level]


def units_of(batches: _Batches, now: int, *, sketched: bool = False, cut: Cut = "batches") -> list[Unit]:
    """Return the work that a batch brings: of each stream's new rows against the other's window; new against new once."""
    units = []
    first = max(0, now - WINDOW + 1)
    for side in (0, 1):
        window = sum((batches[other][1 - side] for other in range(first, now + 1)), Counter[int]())
        for zone in zones_at(batches, 1 - side, now, cut):
            inside = [other for other in zone if first <= other < now + (1 - side)]
            if not inside:
                continue
            table = sum((batches[other][1 - side] for other in inside), Counter[int]())
            sketch = _sketch([batches[other][1 - side] for other in inside]) if sketched else None
            for key, rows in batches[now][side].items():
                estimate = sketch.estimate(key) if sketch else 0.0
                units.append(Unit(key, rows, table[key], now - inside[-1], window[key], estimate))
    return units


def _sketch(batches: Sequence[Counter[int]]) -> CountSketch:
    """The sketch of a zone: the sum of its batches' sketches."""
    whole = CountSketch.seeded(*SKETCH, seed=1)
    for rows in batches:
        sketch = CountSketch.seeded(*SKETCH, seed=1)
        for key, count in rows.items():
            sketch.summarize(key, count)
        whole = whole.plus(sketch)
    return whole


def looks(seed: int, window: int, most: int) -> float:
    """Return how many sums of a pyramid are looked at, on average, to find the batches of a window that have a new row's key.

    Keys that more than ``most`` of the batches have are left out; a flat list has a table for each batch.
    """
    batches = drawn_batches(seed)
    numbers = []
    for now in range(window - 1, BATCHES):
        for key in batches[now][0]:
            counts = [batches[other][1][key] for other in range(now - window + 1, now + 1)]
            if sum(map(bool, counts)) <= most:
                *_, (_, number) = found_by_pyramid(counts)
                numbers.append(number)
    return sum(numbers) / len(numbers)


def sampled(seed: int, share: float) -> Outcome:
    """Return the outcome of the join with a sample of the second stream by DuckDB (TABLESAMPLE)."""
    batches = drawn_batches(seed)
    with duckdb.connect() as engine:
        for name, numbers in _tables(batches).items():
            engine.register(name, numbers)
        part = f"(SELECT * FROM b TABLESAMPLE bernoulli({100 * share}%) REPEATABLE ({seed}))"
        return _of_sample(batches, part, lambda query: engine.execute(query).fetchall())


def sampled_by_spark(spark: SparkSession, seed: int, share: float) -> Outcome:
    """Return the same as :func:`sampled`, with a sample by Spark."""
    batches = drawn_batches(seed)
    for name, numbers in _tables(batches).items():
        spark.createDataFrame(numbers).createOrReplaceTempView(name)
    part = f"(SELECT * FROM b TABLESAMPLE ({100 * share:g} PERCENT) REPEATABLE ({seed}))"
    return _of_sample(batches, part, lambda query: [tuple(row) for row in spark.sql(query).collect()])


def _tables(batches: _Batches) -> dict[str, pa.Table]:
    """The rows of both streams."""
    tables = {}
    for side, table in enumerate(("a", "b")):
        rows = [{"batch": batch, "k": key} for batch, pair in enumerate(batches) for key in pair[side].elements()]
        tables[table] = pa.Table.from_pylist(rows)
    return tables


def _of_sample(batches: _Batches, part: str, ask: Callable[[str], Sequence[tuple[Any, ...]]]) -> Outcome:
    join = f"FROM a JOIN {{}} AS b ON a.k = b.k AND abs(a.batch - b.batch) < {WINDOW}"
    exact, delivered = (dict(ask(f"SELECT a.k, count(*) {join.format(source)} GROUP BY a.k")) for source in ("b", part))
    age = ask(f"SELECT avg(abs(a.batch - b.batch)) {join.format(part)}")[0][0]
    return _outcome(batches, exact, delivered, age)


def played(seed: int, name: str, budget: float, alpha: float = 1.0, cut: Cut = "batches") -> Outcome:
    """Return the outcome of an order under a budget, a share of the work of each batch; the last unit is done in part."""
    if name == "sample":
        return sampled(seed, budget)
    batches, random = drawn_batches(seed), Random(f"{seed} order")  # noqa: S311 - as above
    exact: Counter[int] = Counter()
    delivered: dict[int, float] = {}
    ages = 0.0
    for now in range(BATCHES):
        units = units_of(batches, now, sketched=name == "desc by sketch", cut=cut)
        exact.update({key: sum(unit.pairs for unit in units if unit.key == key) for key in {unit.key for unit in units}})
        remaining = budget * sum(unit.cost for unit in units)
        if name not in ("none", "desc by sketch"):  # by the tables, what gives nothing is not looked at
            units = [unit for unit in units if unit.pairs]
        common_share = min(1.0, remaining / max(1, sum(unit.cost for unit in units)))
        joined = [(unit, common_share) for unit in units] if name == "weighted" else []
        for unit in [] if name == "weighted" else order(units, name, random, alpha):
            part = min(1.0, remaining / unit.cost)
            remaining -= part * unit.cost
            if part <= 0:
                break
            joined.append((unit, part))
        for unit, part in joined:
            delivered[unit.key] = delivered.get(unit.key, 0.0) + part * unit.pairs
            ages += part * unit.pairs * unit.age
    return _outcome(batches, exact, delivered, ages / sum(delivered.values()))


def _outcome(
    batches: Sequence[tuple[Counter[int], Counter[int]]], exact: Mapping[int, int], delivered: Mapping[int, float], age: float
) -> Outcome:
    rows = sum((sum(pair, Counter[int]()) for pair in batches), Counter[int]())
    limit = _rare_limit(rows)
    total = sum(delivered.values())
    rare = sum(pairs for key, pairs in delivered.items() if rows[key] <= limit)
    all_rare = sum(pairs for key, pairs in exact.items() if rows[key] <= limit)
    error = histogram_error({key: float(pairs) for key, pairs in exact.items()}, delivered)
    return Outcome(total / sum(exact.values()), error, rare / total, rare / all_rare if all_rare else 1.0, age)


def _rare_limit(rows: Counter[int]) -> int:
    """The frequency of keys that the rarest twentieth of rows has at the most."""
    passed, whole = 0, sum(rows.values())
    for count in sorted(rows.values()):
        passed += count
        if passed >= _RARE * whole:
            return count
    return 0
