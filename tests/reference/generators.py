"""Random inputs from a seed, and the check that an operator agrees with the definition at every instant."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.reference.engine.changes import Change, answer, arrivals, lifetimes, minus
from tests.reference.engine.snapshot import Expression, snapshot
from tests.reference.engine.tuples import Row, bag, time_window

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

HORIZON = 24


def seeds(count: int) -> Iterator[Random]:
    """Independent generators."""
    for seed in range(count):
        yield Random(seed)  # noqa: S311 - a simulation


def weakest(random: Random, name: str, length: int, count: int = 8, values: str = "ab", horizon: int = HORIZON) -> list[Row]:
    """Rows with equal lifetimes, in the order of time."""
    instants = sorted(random.randint(1, horizon) for _ in range(count))
    return time_window((Row(f"{name}{i}", (random.choice(values),), ts) for i, ts in enumerate(instants)), length)


def weak(random: Random, name: str, longest: int = 10, count: int = 8, values: str = "ab", horizon: int = HORIZON) -> list[Row]:
    """Rows with lifetimes of their own, from 1, in the order of time."""
    rows = weakest(random, name, longest, count, values, horizon)
    return [Row(row.id, row.value, row.ts, row.ts + random.randint(1, longest)) for row in rows]


def cancelling(random: Random, rows: Iterable[Row]) -> list[Change]:
    """The event list of rows of which about a third is cancelled early."""
    entered = list(rows)
    early = [minus(row, random.randint(row.ts + 1, row.exp)) for row in entered if random.random() < 1 / 3]
    return sorted([*arrivals(entered), *early], key=lambda change: change.at)


def instants(*inputs: Iterable[Row]) -> range:
    """Every tick from just before the first row arrives to just after the last one expired."""
    rows = [row for rows in inputs for row in rows]
    return range(min(row.ts for row in rows) - 1, max(row.exp for row in rows) + 2)


def agrees(emitted: Sequence[Change], expression: Expression, **sources: Sequence[Change]) -> bool:
    """Whether an operator's answer is that of a query over the live rows of its inputs, at every instant."""
    real = {name: lifetimes(changes) for name, changes in sources.items()}
    return all(bag(answer(emitted, tau)) == snapshot(expression, real, tau) for tau in instants(*real.values()))
