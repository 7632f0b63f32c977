"""Joins as sets: the definition of what each re-evaluation reports, and the formulas F1 and F2 for a batch engine.

At tau = tau_k with p = tau_k-1 (window-joins sheet, sections 4 and 5):

* new results, no-restore: ``p < ts(c) <= tau`` and ``exp(c) > tau``; restore: ``p < ts(c) <= tau`` and ``exp(c) > ts(c)``;
* short-lived: the difference of the two; the view V: ``ts(c) <= tau < exp(c)``;
* F1 = the union over i of ``A_1 x .. x A_i-1 x N_i x O_i+1 x .. x O_n``, valid results only; N new, O prior, A = O + N;
* F2 = the valid combinations of ``A_1 x .. x A_n`` on touched keys with at least one new part.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Literal, TypeAlias

from tests.reference.engine.tuples import Row, combine, first, live_rows

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from tests.reference.engine.tuples import Key

__all__ = ["Batch", "Mode", "batches", "combinations", "f1", "f2", "new_results", "short_lived", "view"]

Mode: TypeAlias = Literal["no-restore", "restore"]
"""Whether results that were born and died between two re-evaluations are reported."""


@dataclass(frozen=True)
class Batch:
    """One input at one re-evaluation: rows known before (the pruned O) and rows that are new (N)."""

    prior: tuple[Row, ...]
    new: tuple[Row, ...]

    @property
    def upto(self) -> tuple[Row, ...]:
        """A = O + N."""
        return (*self.prior, *self.new)


# --- the definition ---


def combinations(inputs: Sequence[Sequence[Row]], keys: Sequence[Key] | None = None) -> Iterator[Row]:
    """Yield every combination of one row of each input with equal keys that are not null, alive together or not."""
    used = keys or [first] * len(inputs)
    for parts in product(*inputs):
        key_values = {key(part.value) for key, part in zip(used, parts, strict=True)}
        if len(key_values) == 1 and None not in key_values:
            yield combine(parts)


def new_results(
    inputs: Sequence[Sequence[Row]],
    previous: int,
    now: int,
    mode: Mode,
    keys: Sequence[Key] | None = None,
) -> list[Row]:
    """What the re-evaluation at ``now`` reports: ``I_nr`` or ``I_r``, with the instants of the results themselves."""
    arrived = [[row for row in rows if row.ts <= now] for rows in inputs]
    return [
        result
        for result in combinations(arrived, keys)
        if previous < result.ts and result.exp > (now if mode == "no-restore" else result.ts)
    ]


def short_lived(inputs: Sequence[Sequence[Row]], previous: int, now: int, keys: Sequence[Key] | None = None) -> list[Row]:
    """The results born and dead since the previous re-evaluation: what no-restore loses."""
    return [result for result in new_results(inputs, previous, now, "restore", keys) if result.exp <= now]


def view(inputs: Sequence[Sequence[Row]], now: int, keys: Sequence[Key] | None = None) -> list[Row]:
    """The current answer V, the same in both modes: the join of the live rows."""
    return list(combinations([live_rows(rows, now) for rows in inputs], keys))


# --- the formulas ---


def batches(inputs: Sequence[Sequence[Row]], previous: int, now: int, mode: Mode) -> list[Batch]:
    """Split the rows of each input by ``ts`` into new and prior ones, and prune the prior ones.

    Parameters
    ----------
    inputs
        All rows of each input.
    previous, now
        p and tau; rows with ``ts`` in ``(p, tau]`` are new.
    mode
        No-restore keeps prior rows that are alive after tau, restore those alive after p. Where rows may come late, new
        means loaded since p, and restore has to keep prior rows that much longer; such batches are made by the caller.

    """
    limit = now if mode == "no-restore" else previous
    return [
        Batch(
            prior=tuple(row for row in rows if row.ts <= previous and row.exp > limit),
            new=tuple(row for row in rows if previous < row.ts <= now),
        )
        for rows in inputs
    ]


def f1(inputs: Sequence[Batch], now: int, mode: Mode, keys: Sequence[Key] | None = None) -> list[Row]:
    """Formula F1: one join for each input, which starts at its new rows; every result appears once."""
    results: list[Row] = []
    for i, batch in enumerate(inputs):
        term = [*(before.upto for before in inputs[:i]), batch.new, *(after.prior for after in inputs[i + 1 :])]
        results += [combine(parts) for parts in _matches(term, keys)]
    return [result for result in results if _valid(result, now, mode)]


def f2(inputs: Sequence[Batch], now: int, mode: Mode, keys: Sequence[Key] | None = None) -> list[Row]:
    """Formula F2: one join of all rows with touched keys, from which combinations without a new part are left out."""
    used = keys or [first] * len(inputs)
    touched = {key(row.value) for key, batch in zip(used, inputs, strict=True) for row in batch.new}
    news = [set(batch.new) for batch in inputs]
    upto = [
        [row for row in batch.upto if key(row.value) in touched] for key, batch in zip(used, inputs, strict=True)
    ]
    results = [
        combine(parts)
        for parts in _matches(upto, keys)
        if any(part in new for part, new in zip(parts, news, strict=True))
    ]
    return [result for result in results if _valid(result, now, mode)]


def _valid(result: Row, now: int, mode: Mode) -> bool:
    return result.exp > (now if mode == "no-restore" else result.ts)


def _matches(inputs: Sequence[Sequence[Row]], keys: Sequence[Key] | None) -> Iterator[tuple[Row, ...]]:
    """The combinations with equal keys, key by key."""
    by_key: list[dict[Hashable, list[Row]]] = []
    for i, rows in enumerate(inputs):
        groups: defaultdict[Hashable, list[Row]] = defaultdict(list)
        for row in rows:
            groups[(keys[i] if keys else first)(row.value)].append(row)
        by_key.append(groups)
    for key in by_key[0]:
        if key is not None and all(key in groups for groups in by_key):
            yield from product(*(groups[key] for groups in by_key))
