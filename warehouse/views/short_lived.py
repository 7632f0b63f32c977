"""Which tables of views know their short-lived results: those that began and ended between two updates.

Rows that end by themselves carry their times, and an anti-join knows the lives of both sides, as far as these are rows that
end by themselves; a selection knows those of what it selects from. What is recomputed for the keys that changed (groups,
outer joins, first rows, bag differences, joins of such) sees two contents and nothing in between (update-patterns sheet, 4.4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.views.algebra import AntiJoin, InternalRows, TimeWindow, inputs_of, scanned, stateful_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from warehouse.views.algebra import Node, Operator

__all__ = ["telling"]


def telling(nodes: Iterable[Node], streams: Iterable[str], relations: Iterable[str]) -> frozenset[str]:
    """Return the tables whose short-lived rows are known.

    Parameters
    ----------
    nodes
        The nodes of all views, each after those that it reads.
    streams, relations
        The declared names; versions of a relation are no results.

    """
    told, keyed = set(streams), set(relations)
    for node in nodes:
        read, core = set(scanned(node.operator)), stateful_of(node.operator)
        if node.label == "STR":
            keyed.add(node.table)
        windowed = any(isinstance(each, TimeWindow) for each in _operators(node.operator))
        counted = any(isinstance(each, InternalRows) for each in _operators(node.operator))
        if (
            (node.label != "STR" and not counted)
            or (isinstance(core, AntiJoin) and not read & keyed)
            or (core is None and not windowed and read <= told)
        ):
            told.add(node.table)
    return frozenset(told)


def _operators(tree: Operator) -> Iterator[Operator]:
    yield tree
    for each in inputs_of(tree):
        yield from _operators(each)
