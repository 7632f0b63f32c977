"""Promising tuples, the batch form of the source's goals: ``python -m benchmarks.source.promising_tuples``.

No warehouse: two drawn streams, joined batch by batch under a budget of work (promising-tuples sheet, 8.2 and 11). A unit of work
is a key of the new batch and a batch of the other stream; its promise is how many results it gives by exact tables of keys. Units
are taken in no order, most results first, the same part of each, or rare keys first. Beside exact tables there are a
Count-Sketch of each batch, and a sample of as large a part of one stream, by DuckDB and, if asked for, by Spark.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING, Any

import click
import duckdb
import pyarrow as pa

from benchmarks.field.page import markdown_table
from benchmarks.source.stream_summaries import CountSketch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

__all__ = [
    "BATCHES",
    "BUDGETS",
    "WINDOW",
    "Outcome",
    "Unit",
    "claims",
    "drawn_batches",
    "histogram_error",
    "main",
    "order",
    "played",
    "proportional",
    "sampled",
    "sampled_by_spark",
    "units_of",
]

KEYS, BATCHES, WINDOW, ROWS = 75, 30, 6, 100
BUDGETS = (0.1, 0.25, 0.5)
ORDERS = ("none", "sample", "desc", "desc by cost", "desc by sketch", "weighted", "asc")
SKETCH = (5, 32)
"""Rows and counters of the sketch of a batch: 160 numbers for 75 keys, too few to tell them all apart."""
_RARE = 0.05
_Batches = list[tuple[Counter[int], Counter[int]]]
_RESULTS = Path(__file__).parents[1] / "results" / "source"


@dataclass(frozen=True)
class Unit:
    """A key of a new batch and a batch of the other stream: rows of each with the key, how old, rows of the key in the window.

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
    """What came of an order under a budget.

    Attributes
    ----------
    share
        Of the exact results.
    error
        The sum of squared differences between the shares of keys in the exact results and in these.
    precision, recall
        The share of results whose keys are rare, and of the rare ones that were delivered.
    age
        The mean age of what was joined, in batches.

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
    one, other = sum(exact.values()), sum(found.values())
    return sum((exact.get(key, 0) / one - found.get(key, 0) / other) ** 2 for key in exact.keys() | found.keys())


def proportional(budget: int, weights: Sequence[float]) -> list[int]:
    """Return shares of a budget in the ratio of weights, rounded by largest remainders.

    >>> proportional(12, [3.2, 3, 2.56, 2])
    [4, 3, 3, 2]
    """
    exact = [budget * weight / sum(weights) for weight in weights]
    found = [math.floor(share) for share in exact]
    for place in sorted(range(len(exact)), key=lambda place: found[place] - exact[place])[: budget - sum(found)]:
        found[place] += 1
    return found


def order(units: Sequence[Unit], name: str, random: Random, alpha: float = 1.0) -> list[Unit]:
    """Return units as they are taken: of equal promise the newer one first, then the smaller key. Older ones fade by alpha."""
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


def units_of(batches: Sequence[tuple[Counter[int], Counter[int]]], now: int, *, sketched: bool = False) -> list[Unit]:
    """Return the work that a batch brings: of each stream's new rows against the other's window; new against new once."""
    found = []
    first = max(0, now - WINDOW + 1)
    for side in (0, 1):
        window = sum((batches[other][1 - side] for other in range(first, now + 1)), Counter[int]())
        for other in range(first, now + (1 - side)):
            sketch = _sketch(batches[other][1 - side]) if sketched else None
            for key, rows in batches[now][side].items():
                estimate = sketch.estimate(key) if sketch else 0.0
                found.append(Unit(key, rows, batches[other][1 - side][key], now - other, window[key], estimate))
    return found


def _sketch(rows: Counter[int]) -> CountSketch:
    sketch = CountSketch.seeded(*SKETCH, seed=1)
    for key, count in rows.items():
        sketch.summarize(key, count)
    return sketch


def sampled(seed: int, share: float) -> Outcome:
    """Return what the join gives with a part of the second stream that DuckDB samples (TABLESAMPLE)."""
    batches = drawn_batches(seed)
    with duckdb.connect() as engine:
        for name, numbers in _tables(batches).items():
            engine.register(name, numbers)
        part = f"(SELECT * FROM b TABLESAMPLE bernoulli({100 * share}%) REPEATABLE ({seed}))"
        return _of_sample(batches, part, lambda query: engine.execute(query).fetchall())


def sampled_by_spark(spark: SparkSession, seed: int, share: float) -> Outcome:
    """Return what :func:`sampled` does of a part that Spark samples."""
    batches = drawn_batches(seed)
    for name, numbers in _tables(batches).items():
        spark.createDataFrame(numbers).createOrReplaceTempView(name)
    part = f"(SELECT * FROM b TABLESAMPLE ({100 * share:g} PERCENT) REPEATABLE ({seed}))"
    return _of_sample(batches, part, lambda query: [tuple(row) for row in spark.sql(query).collect()])


def _tables(batches: _Batches) -> dict[str, pa.Table]:
    """The rows of both streams."""
    found = {}
    for side, table in enumerate(("a", "b")):
        rows = [{"batch": batch, "k": key} for batch, pair in enumerate(batches) for key in pair[side].elements()]
        found[table] = pa.Table.from_pylist(rows)
    return found


def _of_sample(batches: _Batches, part: str, ask: Callable[[str], Sequence[tuple[Any, ...]]]) -> Outcome:
    met = f"FROM a JOIN {{}} AS b ON a.k = b.k AND abs(a.batch - b.batch) < {WINDOW}"
    exact, found = (dict(ask(f"SELECT a.k, count(*) {met.format(source)} GROUP BY a.k")) for source in ("b", part))
    age = ask(f"SELECT avg(abs(a.batch - b.batch)) {met.format(part)}")[0][0]
    return _outcome(batches, exact, found, age)


def played(seed: int, name: str, budget: float, alpha: float = 1.0) -> Outcome:
    """Return what an order delivers under a budget, a share of the work of each batch; the last unit is done in part."""
    if name == "sample":
        return sampled(seed, budget)
    batches, random = drawn_batches(seed), Random(f"{seed} order")  # noqa: S311 - as above
    exact: Counter[int] = Counter()
    found: dict[int, float] = {}
    ages = 0.0
    for now in range(BATCHES):
        units = units_of(batches, now, sketched=name == "desc by sketch")
        exact.update({key: sum(unit.pairs for unit in units if unit.key == key) for key in {unit.key for unit in units}})
        left = budget * sum(unit.cost for unit in units)
        if name not in ("none", "desc by sketch"):  # by the tables, what gives nothing is not looked at
            units = [unit for unit in units if unit.pairs]
        each = min(1.0, left / max(1, sum(unit.cost for unit in units)))
        taken = [(unit, each) for unit in units] if name == "weighted" else []
        for unit in [] if name == "weighted" else order(units, name, random, alpha):
            part = min(1.0, left / unit.cost)
            left -= part * unit.cost
            if part <= 0:
                break
            taken.append((unit, part))
        for unit, part in taken:
            found[unit.key] = found.get(unit.key, 0.0) + part * unit.pairs
            ages += part * unit.pairs * unit.age
    return _outcome(batches, exact, found, ages / sum(found.values()))


def _outcome(
    batches: Sequence[tuple[Counter[int], Counter[int]]], exact: Mapping[int, int], found: Mapping[int, float], age: float
) -> Outcome:
    rows = sum((sum(pair, Counter[int]()) for pair in batches), Counter[int]())
    limit = _rare_limit(rows)
    total = sum(found.values())
    rare = sum(pairs for key, pairs in found.items() if rows[key] <= limit)
    all_rare = sum(pairs for key, pairs in exact.items() if rows[key] <= limit)
    error = histogram_error({key: float(pairs) for key, pairs in exact.items()}, found)
    return Outcome(total / sum(exact.values()), error, rare / total, rare / all_rare if all_rare else 1.0, age)


def _rare_limit(rows: Counter[int]) -> int:
    """The frequency of keys that the rarest twentieth of rows has at the most."""
    passed, whole = 0, sum(rows.values())
    for count in sorted(rows.values()):
        passed += count
        if passed >= _RARE * whole:
            return count
    return 0


Found = dict[tuple[str, float], Outcome]


def measured(seeds: int) -> Found:
    """Return the mean outcome of each order and budget."""
    return {
        (name, budget): _mean([played(seed, name, budget) for seed in range(seeds)]) for budget in BUDGETS for name in ORDERS
    }


def _measured_by_spark(seeds: int) -> Found:
    """The mean outcome of Spark's sample."""
    from warehouse.storage.session import spark_session  # noqa: PLC0415 - few runs need Spark

    session = spark_session(())
    return {
        ("sample by Spark", budget): _mean([sampled_by_spark(session, seed, budget) for seed in range(seeds)])
        for budget in BUDGETS
    }


def _mean(each: Sequence[Outcome]) -> Outcome:
    names = ("share", "error", "precision", "recall", "age")
    return Outcome(*(fmean(getattr(one, quantity) for one in each) for quantity in names))


def claims(found: Found, faded: dict[float, Outcome]) -> list[tuple[str, bool, str]]:
    """Return each claim, whether it holds here, and what was measured; ``faded`` is `desc` at a quarter of the work by alpha."""
    times = [found["desc", budget].share / found["none", budget].share for budget in BUDGETS]
    errors = [found["weighted", budget].error < found["none", budget].error for budget in BUDGETS]
    rare = [found["asc", budget].precision / max(found["none", budget].precision, 1e-9) for budget in BUDGETS]
    sketched = [found["desc by sketch", budget].share / found["none", budget].share for budget in BUDGETS]
    ages = [faded[alpha].age for alpha in sorted(faded)]
    return [
        ("desc gives at least 1.5 times the results of no order", min(times) >= 1.5, ", ".join(f"{t:.2f}" for t in times)),
        (
            "so does a Count-Sketch of each batch in place of exact tables",
            min(sketched) >= 1.5,
            ", ".join(f"{t:.2f}" for t in sketched),
        ),
        ("the same part of each is the better sample", all(errors), f"{sum(errors)} of {len(errors)} budgets"),
        ("asc: rare keys are at least 5 times as many of the results", min(rare) >= 5, ", ".join(f"{t:.1f}" for t in rare)),
        ("a smaller alpha gives fresher results", ages == sorted(ages), ", ".join(f"{age:.2f}" for age in ages)),
    ]


@click.command(epilog="Example: python -m benchmarks.source.promising_tuples --seeds 5")
@click.option("--seeds", type=click.IntRange(1), default=5, show_default=True, help="Pairs of streams.")
@click.option("--spark", is_flag=True, help="Sample by Spark, too.")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, help="Where the page goes.")
def main(seeds: int, results: Path, *, spark: bool) -> None:
    """Play each order under each budget, and judge each claim."""
    found = {**measured(seeds), **(_measured_by_spark(seeds) if spark else {})}
    faded = {}
    for alpha in (1.0, 0.9, 0.8, 0.5):
        each = [played(seed, "desc", 0.25, alpha) for seed in range(seeds)]
        faded[alpha] = Outcome(fmean(one.share for one in each), 0.0, 0.0, 0.0, fmean(one.age for one in each))
    judged = [[words, "holds" if holds else "does not hold here", told] for words, holds, told in claims(found, faded)]
    rows = [["order", "budget", "share", "Hist-MSE", "precision of rare keys", "recall", "age, batches"]]
    for (name, budget), one in found.items():
        numbers = (one.share, one.error, one.precision, one.recall, one.age)
        rows.append([name, f"{budget:.0%}", *(f"{number:.4f}" for number in numbers)])
    page = "\n\n".join([
        "# Promising tuples: three goals under a budget",
        f"{seeds} pairs of streams, {KEYS} keys, Zipf 1, {ROWS} rows a batch, a window of {WINDOW} of {BATCHES} batches.",
        markdown_table([["claim", "verdict", "measured"], *judged], numbers=False),
        markdown_table(rows),
    ])  # fmt: skip
    results.mkdir(parents=True, exist_ok=True)
    (results / "promising-tuples.md").write_text(page + "\n")
    click.echo(page)


if __name__ == "__main__":
    main()
