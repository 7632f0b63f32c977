"""The columns to which queries refer, and whether two queries refer to the same ones. Pure.

Two queries whose names have the same meaning have the same references. If one resolves a name to another column, the references
differ, unless both columns have the same role.

A table that is scanned twice has two scans. It is unknown which scans of two queries correspond: the queries agree if they agree
for one pairing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, prod
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ColumnSource", "References", "agree", "differing"]

_MOST_WAYS = 720
"""The most pairings of scans that are tried; if there are more, the scans of a table count as one."""


class ColumnSource(NamedTuple):
    """A column of a table by the scan that reads it, and the fields that are read of it; names in lower case."""

    table: str
    scan: int
    column: str
    fields: tuple[str, ...] = ()


Sources = frozenset[ColumnSource]
Fact = tuple[str, Sources]
"""The kind of an expression, and the sources to which it refers."""


@dataclass(frozen=True)
class References:
    """The references of a query: the sources of its columns, in order, and of expressions by kind (condition, group, ...).

    A column that is a rank has no sources; its order has a separate entry.
    """

    columns: tuple[tuple[str, Sources | None], ...]
    others: frozenset[Fact]


def agree(one: References, other: References) -> bool:
    """Whether two queries have the same references for some pairing of their scans."""
    if len(one.columns) != len(other.columns):
        return False
    ours, theirs = _numbered(one), _numbered(other)
    counts = Counter(table for table, _ in _scans(ours))
    if counts != Counter(table for table, _ in _scans(theirs)) or prod(map(factorial, counts.values())) > _MOST_WAYS:
        return _same(_as_one_scan(ours), _as_one_scan(theirs))
    pairings = product(*(permutations(range(count)) for count in counts.values()))
    return any(_same(_paired(ours, dict(zip(counts, pairing, strict=True))), theirs) for pairing in pairings)


def differing(ours: References, theirs: References) -> str:
    """Return, as text, the columns and the other references in which two queries differ."""
    columns = [
        f"column {name} from {_source_names(our_sources)} where Spark has it from {_source_names(their_sources)}"
        for (name, our_sources), (_, their_sources) in zip(ours.columns, theirs.columns, strict=False)
        if our_sources != their_sources
    ]
    only_ours, only_theirs = (
        sorted(f"{kind} of {_source_names(sources)}" for kind, sources in left - right)
        for left, right in ((ours.others, theirs.others), (theirs.others, ours.others))
    )
    rest = (
        [f"{', '.join(only_ours) or 'nothing'} where Spark has {', '.join(only_theirs) or 'nothing'}"]
        if only_ours or only_theirs
        else []
    )
    return "; ".join([*columns, *rest]) or "other occurrences of the same tables"


def _source_names(sources: Sources | None) -> str:
    names = sorted({".".join([source.table, source.column, *source.fields]) for source in sources or ()})
    return " and ".join(names) or "no column"


def _same(left: References, right: References) -> bool:
    pairs = zip(left.columns, right.columns, strict=True)
    columns = all(
        None in (left_sources, right_sources) or left_sources == right_sources for (_, left_sources), (_, right_sources) in pairs
    )
    return columns and left.others == right.others


def _scans(references: References) -> list[tuple[str, int]]:
    all_sources = [sources for _, sources in (*references.columns, *references.others) if sources]
    return sorted({(source.table, source.scan) for sources in all_sources for source in sources})


def _changed(references: References, scan: Mapping[tuple[str, int], int]) -> References:
    def changed(sources: Sources) -> Sources:
        return frozenset(source._replace(scan=scan[source.table, source.scan]) for source in sources)

    columns = tuple((name, None if sources is None else changed(sources)) for name, sources in references.columns)
    return References(columns, frozenset((kind, changed(sources)) for kind, sources in references.others))


def _as_one_scan(references: References) -> References:
    return _changed(references, dict.fromkeys(_scans(references), 0))


def _numbered(references: References) -> References:
    """Return the same references with the scans of each table numbered from 0."""
    counts: Counter[str] = Counter()
    numbers = {}
    for table, scan in _scans(references):
        numbers[table, scan] = counts[table]
        counts[table] += 1
    return _changed(references, numbers)


def _paired(references: References, pairing: Mapping[str, Sequence[int]]) -> References:
    return _changed(references, {(table, scan): pairing[table][scan] for table, scan in _scans(references)})
