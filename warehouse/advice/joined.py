"""Advice on the join of a view: its size, the results that a budget would leave out, and the costs of completing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.promise.allotment import densest_share
from warehouse.serving.measured import keys_of_join
from warehouse.serving.owed import owed_of
from warehouse.views.algebra import Join, stateful_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.epochs.records import TableState
    from warehouse.serving.reader import Reader

__all__ = ["join_notes"]

_WORK = 0.1
"""A budget of this share of a join's rows is evaluated in a note."""


def join_notes(reader: Reader, state: TableState) -> Iterator[str]:
    """Yield notes about the join of a view, from key summaries, and about the results that the view owes."""
    if state.view is None:
        return
    join = stateful_of(state.view.node.operator)
    keys = keys_of_join(reader, join) if isinstance(join, Join) else None
    if keys is not None:
        least, most = keys.pairs
        count = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        yield f"its join has {count} pairs of live rows with equal keys, by key summaries"
        if keys.exact and most and state.view.budget is None:
            counts = [(rows, keys.right.counts.get(key, 0)) for key, rows in keys.left.counts.items() if None not in key]
            share = densest_share(counts, _WORK)
            yield f"a budget of a tenth of the rows that it joins would make {share:.0%} of them, the densest keys first"
    owed = owed_of(state)
    if owed is not None and not owed.complete:
        yield owed.text
        if owed.units:
            yield owed.cost
