"""Makes the query for frequent items from the merged states of the due windows, in DuckDB's SQL.

It is :mod:`warehouse.aggregates.frequent` over tables (frequent-items sheet, sections 3, 4 and 8). The least count of an item is
the sum over the lists of the window that have it. Its greatest count adds its possible count in the other lists: the count of the
first item after each list. That is the tight choice (section 9, item 2), under which all guarantees hold.
:mod:`warehouse.steps.merging` computes these sums once for all aggregates that read the lists.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from warehouse.aggregates.synopses import AFTER, FAILED, RANK, ROWS, VALUE
from warehouse.catalog.duck_sql import quoted
from warehouse.steps.merging import PLACE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.aggregates.definition import AggregateDefinition

__all__ = ["merged_items"]

_DUE = ("_text", "_end")


def merged_items(definition: AggregateDefinition, *, synopses: int = 1, ends: str, epoch: int) -> str:
    """Return the query for the frequent items of each due window and group.

    The tables ``synopsis_0`` and so on have the sums over the lists of each synopsis, by the number ``_place`` of the windows.

    An item above a share is certain if its least count is above it, possible if its greatest is. One of the top n is certain if
    fewer than n others can occur as often, and left out if n others surely occur more often. An answer is complete if no unlisted
    item can belong to it (G6).

    Parameters
    ----------
    definition
        The definition of the aggregate; it has ``frequent``.
    synopses
        The number of tables; their rows are disjoint. Several conditions may together have the rows of the answer.
    ends
        The SQL of the instant at which a window ends, by its last slot ``_end``.
    epoch
        The epoch of the rows in the answers.

    """
    frequent = definition.frequent
    if frequent is None:
        raise TypeError("only frequent items are merged from lists")
    groups = [quoted(name) for name, _ in definition.group_by]
    keys = [*_DUE, *groups]
    by = ", ".join(keys)
    tables = " UNION ALL BY NAME ".join(f"SELECT * FROM synopsis_{number}" for number in range(synopses))
    lists = f"SELECT d.*, s.* EXCLUDE ({PLACE}) FROM due AS d JOIN ({tables}) AS s USING ({PLACE})"
    whole = (
        f"SELECT {by}, any_value(_full) AND sum({FAILED}) = 0 AS _sound, any_value(_late) AS _waited, sum({ROWS}) AS _total, "
        f"sum({AFTER}) AS _unlisted FROM lists WHERE {RANK} = 0 GROUP BY {by}"
    )
    sums = f"sum({ROWS}) AS _least, sum({AFTER}) AS _listed"
    items = f"SELECT {by}, {VALUE}, {sums} FROM lists WHERE {RANK} > 0 GROUP BY {by}, {VALUE}"
    equal = " AND ".join(f"i.{name} IS NOT DISTINCT FROM w.{name}" for name in keys)
    bounds = f"SELECT i.*, w.* EXCLUDE ({by}), _least + _unlisted - _listed AS _most FROM items AS i JOIN whole AS w ON {equal}"
    judged = _top(keys, frequent.top) if frequent.top is not None else _above(frequent.above or 0.0)
    columns = [
        *groups,
        "_text AS window_length",
        f"{ends} AS window_end",
        f"{VALUE} AS item",
        "CAST(_least AS BIGINT) AS at_least",
        "CAST(_most AS BIGINT) AS at_most",
        "_certain AS certain",
        "_complete AS complete",
        f"CAST({epoch} AS BIGINT) AS epoch",
        '_sound AS "full"',
        "_waited AS late",
        "_end",
        "CAST(_total AS BIGINT) AS _total",
    ]
    return (
        f"WITH lists AS ({lists}), whole AS ({whole}), items AS ({items}), bounds AS ({bounds}), judged AS ({judged}) "
        f"SELECT {', '.join(columns)} FROM judged WHERE _possible"
    )


def _above(share: float) -> str:
    """Items that make up more than a share, as it is written: 0.1 is a tenth."""
    part = Fraction(repr(share))
    threshold = f"_total * {part.numerator}::HUGEINT"
    least, most, unlisted = (f"{name} * {part.denominator}::HUGEINT" for name in ("_least", "_most", "_unlisted"))
    complete = f"{threshold} >= {unlisted} AS _complete"
    return f"SELECT *, {most} > {threshold} AS _possible, {least} > {threshold} AS _certain, {complete} FROM bounds"


def _top(keys: Sequence[str], most: int) -> str:
    """Return the query for items with whether each possibly and certainly belongs to the ``most`` most frequent items."""
    by = ", ".join(keys)
    part = f"PARTITION BY {by}"
    needed = f"coalesce(nth_value(_least, {most}) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING), 0)"
    rivals = (
        f"SELECT {by}, {VALUE}, _own, count(*) FILTER (NOT _own) OVER ({part} ORDER BY _bound DESC) - 1 AS _rivals FROM ("
        f"SELECT {by}, {VALUE}, true AS _own, _least AS _bound FROM bounds UNION ALL "
        f"SELECT {by}, {VALUE}, false AS _own, _most AS _bound FROM bounds)"
    )
    conditions = " AND ".join(f"b.{name} IS NOT DISTINCT FROM r.{name}" for name in (*keys, VALUE))
    return (
        f"SELECT b.* EXCLUDE (_needed), _most >= _needed AS _possible, "
        f"_rivals < {most} AND (_unlisted < _least OR _unlisted = 0) AS _certain, "
        f"_unlisted < _needed OR _unlisted = 0 AS _complete "
        f"FROM (SELECT *, {needed} AS _needed FROM bounds WINDOW w AS ({part} ORDER BY _least DESC)) AS b "
        f"JOIN ({rivals}) AS r ON r._own AND {conditions}"
    )
