"""Decides whether a view equals its query: two right answers can differ, and then a difference is no fault."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.catalog.identifiers import quoted
from warehouse.views.algebra import Top, inputs_of, scanned
from warehouse.views.maintenance.answers import terms_of
from warehouse.views.maintenance.inputs import user_columns
from warehouse.views.maintenance.pipelines import looked_up, rows_of
from warehouse.views.verification.comparison import Comparison, Difference, compared
from warehouse.views.verification.float_sums import OpenParts, open_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.promise.units import Ledger
    from warehouse.views.algebra import Node, Operator
    from warehouse.views.language.types import Types
    from warehouse.views.verification.verifying_query import VerifyingQuery

__all__ = ["Doubt", "has_ties", "judged", "misses_only"]


_ERROR = 1e-12
"""The relative error of a sum of floats: the worst case of some thousand additions."""


@dataclass(frozen=True)
class Doubt:
    """Why an answer that differs may be right."""

    reason: str


def judged(
    session: SparkSession,
    query: VerifyingQuery,
    nodes: Sequence[Node],
    rows: Callable[[str], DataFrame],
    now: int,
    names: Mapping[str, str],
) -> Difference | Doubt | None:
    """Return how a view differs from its query, or why this is unknown; None if the view equals it.

    Parameters
    ----------
    session, query, rows, now, names
        As in :func:`warehouse.views.verification.comparison.compared`.
    nodes
        The tables that keep the view.

    """
    stored_rows = rows(next(node.table for node in nodes if not node.hidden))

    def difference(without: frozenset[str] = frozenset(), error: float = 0.0) -> Difference | None:
        comparison = compared(session, query, rows, stored_rows, now, names=names, without=without, error=error)
        return comparison.difference() if isinstance(comparison, Comparison) else comparison

    result = difference()
    if result is None or result.refused:
        return result
    if has_ties([node.operator for node in nodes], rows, now):
        return Doubt("its ORDER BY has ties at the rows that it takes: it has more than one answer")
    types = {name: _types(rows(name)) for node in nodes for name in {node.table, *scanned(node.operator)}}
    open_ = _open(nodes, types)
    if open_.rows:
        return Doubt("it chooses rows by a sum of floats, whose last digits depend on the order of addition")
    error = _error([rows(names[table]) for table in query.tables if table in names]) if open_.columns else 0.0
    if error and difference(error=error) is None:
        return None
    if open_.values and difference(open_.values, error) is None:
        columns = ", ".join(name for name in stored_rows.columns if name.lower() in open_.values)
        return Doubt(f"only {columns} differs, computed from a sum of floats, whose last digits depend on the order of addition")
    return result


def misses_only(found: Difference | Doubt, ledger: Ledger | None) -> bool:
    """Whether a differing view under a budget only lacks owed results or results that it need not make, and has no wrong ones."""
    if ledger is None or ledger.complete or isinstance(found, Doubt):
        return False
    return not found.held and not found.refused


def _open(nodes: Sequence[Node], types: Mapping[str, Types]) -> OpenParts:
    """Return the parts that sums leave open; no parts if the nodes cannot be analysed, since there is a difference already."""
    try:
        return open_parts(nodes, types)
    except Exception as error:  # a view that cannot be analysed does not stop the others
        logging.getLogger("warehouse").debug("the sums of a view cannot be told", exc_info=error)
        return OpenParts()


def _types(rows: DataFrame) -> Types:
    columns = user_columns(rows)
    return {name: kind for name, kind in rows.dtypes if name in columns}


def _error(tables: Sequence[DataFrame]) -> float:
    """Return by how much two sums of the same floats of these tables can differ."""
    largest = 0.0
    for rows in tables:
        floats = [f"`{name}`" for name, kind in rows.dtypes if kind in {"float", "double"}]
        if floats:
            finite = [f"sum(CASE WHEN abs({name}) < double('Infinity') THEN abs(double({name})) END)" for name in floats]
            (sums,) = rows.selectExpr(*finite).collect()
            largest = max(largest, *(column_sum or 0.0 for column_sum in sums))
    return largest * _ERROR


# A query that takes first rows has more than one answer if its order does not tell the rows at the border apart.


def has_ties(operators: Iterable[Operator], rows: Callable[[str], DataFrame], now: int) -> bool:
    """Whether the order of first rows has ties at the border; ``rows`` gives a table's live rows, ``now`` is in microseconds."""
    return any(_tied(top, rows, now) for operator in operators for top in _tops(operator))


def _tops(operator: Operator) -> Iterator[Top]:
    if isinstance(operator, Top):
        yield operator
    for input_operator in inputs_of(operator):
        yield from _tops(input_operator)


def _tied(top: Top, rows: Callable[[str], DataFrame], now: int) -> bool:
    read, versions = ({name: rows(name) for name in names(top.input)} for names in (scanned, looked_up))
    below = rows_of(top.input, read, versions).where(f"unix_micros(_exp) > {now}L")
    order = ", ".join(terms_of(top.order) or ["_ts DESC", "_exp DESC"])
    partition = [quoted(name) for name in top.partition]
    by = f"PARTITION BY {', '.join(partition)} " if partition else ""
    first = below.selectExpr("*", f"rank() OVER ({by}ORDER BY {order}) AS _rank").where(f"_rank <= {top.limit}")
    return bool(first.groupBy(*partition).count().where(f"count > {top.limit}").limit(1).collect())
