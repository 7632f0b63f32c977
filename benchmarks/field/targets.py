"""What this warehouse is to reach beside the field, and whether it did in a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from benchmarks.field.figures import QUANTITIES, beside
from benchmarks.field.roster import HOT, OURS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.field.job import Job
    from benchmarks.field.results import Results

__all__ = ["TARGETS", "Target", "better_at_all"]

WAVES = ("r-ins", "r-exp", "d-ins", "d-exp")
ON_SPARK = ("delta-delete", "delta-vectors", "delta-partitioned")
_MILLION = 1_000_000


@dataclass(frozen=True)
class Target:
    """A contender's quantity is at least ``times`` that of ``of``, for each of some contenders, from ``rows`` live rows on."""

    text: str
    quantity: str
    contenders: tuple[str, ...]
    times: float
    rows: int = 0
    of: str = OURS

    def verdict(self, results: Results, job: Job) -> tuple[Literal["holds", "does not hold", "not measured"], str]:
        """Return the verdict, and the smallest ratio with the name of its contender."""
        if job.rows < self.rows:
            return "not measured", f"from {self.rows:,} live rows on"
        ratios = {}
        for name in self.contenders:
            ratio = _ratio(results, job, name, self.quantity, self.of)
            if ratio is None:
                return "not measured", f"{name} or {self.of} made no update"
            ratios[name] = ratio
        name = min(ratios, key=lambda contender: ratios[contender])
        return "holds" if ratios[name] >= self.times else "does not hold", f"{ratios[name]:.3g} times ours ({name})"


TARGETS: tuple[Target, ...] = (
    Target("update faster than every wave index", "update", WAVES, 1, _MILLION),
    Target("update faster than every other contender on Spark", "update", ON_SPARK, 1, _MILLION),
    Target(
        "update 10 times faster than the best REINDEX wave index and Delta append + DELETE",
        "update",
        ("r-ins", "r-exp", "delta-delete"),
        10,
        10 * _MILLION,
    ),
    Target("probe of few rows within 1.5 times of ClickHouse's primary key", "few", ("clickhouse-partitions",), 1 / 1.5),
    Target("aggregate of two columns within 3 times of a DuckDB table: from files", "aggregate", ("duckdb",), 1 / 3),
    Target("the same: in memory", "aggregate", ("duckdb",), 1 / 3, of=HOT),
)


def better_at_all(results: Results, job: Job, contenders: Sequence[str], of: str = OURS) -> list[str]:
    """Return who is better than ``of``, this warehouse, at update, probe (few rows) and space at once."""
    better = []
    for name in contenders:
        ratios = [_ratio(results, job, name, quantity, of) for quantity in ("update", "few", "space")]
        if name not in (OURS, HOT) and all(value is not None and value < 1 for value in ratios):
            better.append(name)
    return better


def _ratio(results: Results, job: Job, name: str, quantity: str, of: str) -> float | None:
    if results.of(name).failed or results.of(of).failed:
        return None
    compared = beside(results, name, of, next(candidate for candidate in QUANTITIES if candidate.name == quantity), job)
    return None if compared is None else compared.value
