"""Changes of real tables, applied: over the live rows of one epoch they must give those of every later one."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

from warehouse.epochs.journal import epoch_numbers, read_epoch
from warehouse.serving import Reader
from warehouse.serving.visible_tables import visible

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["LEAVING", "replayed"]

LEAVING = ("expire", "delete", "update_preimage")
Bag = Counter[str]


def replayed(root: Path, tables: Iterable[str] | None = None) -> Counter[tuple[str, str]]:
    """Check the changes of tables (all of the newest epoch) between any two readable epochs.

    Returns how many changes there are of each table and type between neighbouring epochs, so that a test can see that
    there was something to tell.
    """
    epochs = [read_epoch(root, number) for number in epoch_numbers(root)]
    names = list(tables or (state.name for state in visible(epochs[-1])))
    counts: Counter[tuple[str, str]] = Counter()
    live: dict[tuple[str, int], Bag] = {}
    for epoch in epochs:
        with Reader(root, epoch) as reader:
            for name in names:
                live[name, epoch.number] = _live(reader, name) if epoch.table(name) else Counter()
    with Reader(root, epochs[-1]) as reader:
        for name in names:
            for before, after in combinations(epochs, 2):
                leaving, coming, kinds = _changes(reader, name, before.number, after.number)
                # in between there may be rows that came and left: they are in both bags
                state = live[name, before.number] + coming
                assert leaving <= state, (name, before.number, after.number)
                assert state - leaving == live[name, after.number], (name, before.number, after.number)
                if after.number == before.number + 1:
                    counts.update({(name, kind): count for kind, count in kinds.items()})
    return counts


def _live(reader: Reader, name: str) -> Bag:
    columns = [column for column, _ in reader.columns(name)]
    return Counter(map(repr, reader.scan(name, columns=[*columns, "_ts", "_exp"]).all()))


def _changes(reader: Reader, name: str, since: int, to: int) -> tuple[Bag, Bag, Counter[str]]:
    leaving: Bag = Counter()
    coming: Bag = Counter()
    kinds: Counter[str] = Counter()
    for *row, kind, epoch, _ in reader.changes(name, since=since, to=to, system_columns=True).all():
        assert since < epoch <= to
        (leaving if kind in LEAVING else coming)[repr(tuple(row))] += 1
        kinds[kind] += 1
    return leaving, coming, kinds
