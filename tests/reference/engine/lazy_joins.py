"""Joins evaluated every update interval: Algorithm 4 (no-restore) and the corrected Algorithm 5 (restore).

A run at ``now`` takes the rows that arrived since the last one. The state of input i between runs is
``{ t : arrived, t.exp > planned next run }`` (no-restore) or ``{ t : arrived, t.exp > now }`` (restore). New rows of input i
are stored just before its own turn, so inputs before i hold their new rows and inputs after i do not: every result appears
once (window-joins sheet, 3.3 and 3.4; the corrections are items 3 and 4 of section 11).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.reference.engine.join_state import complete, probe_order, states
from tests.reference.engine.tuples import Row, combine

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from tests.reference.engine.join_sets import Mode
    from tests.reference.engine.strict_joins import Tombstone
    from tests.reference.engine.tuples import Key

__all__ = ["LazyJoin"]


class LazyJoin:
    """A join that is re-evaluated from time to time.

    Parameters
    ----------
    inputs
        Number of inputs, at least 2.
    mode
        ``no-restore`` (Algorithm 4) or ``restore`` (Algorithm 5).
    keys
        The join attribute of each input; the first column if left out.
    order
        The global order of probing; as given if left out.
    buckets
        Hash buckets of each state; 1 is nested loops.
    strict
        Whether tombstones may come: rows are then purged only when they are dead, as in the source, whose negative tuples
        have to find their partners. Negatives taken from the answer (:func:`.strict_joins.negative_results`) do not need it.
    guarded
        Whether no-restore leaves out results that are dead now. Without it (the source's form) every lifetime must reach
        the update interval and the runs must be exactly that far apart.

    """

    def __init__(
        self,
        inputs: int,
        mode: Mode,
        *,
        keys: Sequence[Key] | None = None,
        order: Sequence[int] | None = None,
        buckets: int = 1,
        strict: bool = False,
        guarded: bool = True,
    ) -> None:
        self.mode = mode
        self.order = tuple(range(inputs)) if order is None else tuple(order)
        self.strict, self.guarded = strict, guarded
        self.windows = states(inputs, keys, buckets)

    @property
    def probed(self) -> int:
        """How many rows the probes have looked at."""
        return sum(window.probed for window in self.windows)

    def kept(self) -> list[list[Row]]:
        """The stored rows of each input."""
        return [window.rows() for window in self.windows]

    def reevaluate(
        self,
        now: int,
        planned: int,
        arrived: Sequence[Sequence[Row]],
        tombstones: Iterable[Tombstone] = (),
    ) -> list[Row]:
        """Report the new results, then purge.

        Parameters
        ----------
        now
            The instant of this run.
        planned
            The instant of the next run.
        arrived
            The rows of each input since the last run.
        tombstones
            The deletions since the last run, with instants at or before ``now``.

        Raises
        ------
        ValueError
            When tombstones come and the join is not strict.

        """
        arrived = self._deleted(arrived, tuple(tombstones))
        results: list[Row] = []
        for i in range(len(self.windows)):
            self._admit(i, arrived)
            for key, group in self._groups(i, arrived[i]).items():
                results += self._of_group(i, key, group, now)
        self._purge(planned if self.mode == "no-restore" and not self.strict else now)
        return results

    def _admit(self, i: int, arrived: Sequence[Sequence[Row]]) -> None:
        """Store the new rows of input i, whose turn it is."""
        for row in arrived[i]:
            self.windows[i].insert(row)

    def _groups(self, i: int, rows: Iterable[Row]) -> Mapping[Hashable, list[Row]]:
        groups: defaultdict[Hashable, list[Row]] = defaultdict(list)
        for row in rows:
            groups[self.windows[i].key(row.value)].append(row)
        return groups

    def _of_group(self, i: int, key: Hashable, group: Sequence[Row], now: int) -> list[Row]:
        """Return the results of new rows of one key; the other inputs are probed once for all of them."""
        earliest = min(row.ts for row in group)
        results = []
        for partners in complete(
            self.windows,
            {},
            key,
            probe_order(i, self.order),
            lambda row: self.mode == "no-restore" or row.exp > earliest,
        ):
            for pivot in group:
                parts = {**partners, i: pivot}
                result = combine([parts[j] for j in range(len(self.windows))])
                if self._valid(result, now):
                    results.append(result)
        return results

    def _valid(self, result: Row, now: int) -> bool:
        """Whether all parts were alive together, and under no-restore still are."""
        if self.mode == "restore":
            return result.exp > result.ts
        return not self.guarded or result.exp > now

    def _purge(self, limit: int) -> None:
        for window in self.windows:
            window.drop(lambda row: row.exp <= limit)

    def _deleted(self, arrived: Sequence[Sequence[Row]], tombstones: Sequence[Tombstone]) -> list[list[Row]]:
        """Apply tombstones to the state and to the new rows, which are returned.

        No-restore deletes at once. Restore ends the row at its tombstone, since it may have met others before (section 6).
        """
        if tombstones and not self.strict:
            raise ValueError("tombstones need a strict join; pass strict=True")
        ends = {(stone.input, stone.id): stone.at for stone in sorted(tombstones, key=lambda stone: -stone.at)}
        for i, window in enumerate(self.windows):
            for row in window.rows():
                if (i, row.id) in ends:
                    window.remove(row)
                    for left in self._shortened(row, ends[i, row.id]):
                        window.insert(left)
        return [
            [left for row in rows for left in self._shortened(row, ends.get((i, row.id)))] for i, rows in enumerate(arrived)
        ]

    def _shortened(self, row: Row, end: int | None) -> list[Row]:
        """What is left of a row that ends early: nothing, or a shorter life."""
        if end is None:
            return [row]
        return [] if self.mode == "no-restore" else [replace(row, exp=min(row.exp, end))]
