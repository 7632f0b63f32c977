"""Whether a query that takes first rows has more than one answer: rows at the border that its order does not tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.catalog.identifiers import quoted
from warehouse.views.algebra import Top, inputs_of, scanned
from warehouse.views.maintenance.feeds import feed, looked_up
from warehouse.views.maintenance.replaced import terms_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame

    from warehouse.views.algebra import Operator

__all__ = ["has_ties"]


def has_ties(operators: Iterable[Operator], rows: Callable[[str], DataFrame], now: int) -> bool:
    """Whether some first rows could be others; ``rows`` gives the live rows of a table, ``now`` is in microseconds."""
    return any(_tied(top, rows, now) for operator in operators for top in _tops(operator))


def _tops(operator: Operator) -> Iterator[Top]:
    if isinstance(operator, Top):
        yield operator
    for each in inputs_of(operator):
        yield from _tops(each)


def _tied(top: Top, rows: Callable[[str], DataFrame], now: int) -> bool:
    read, versions = ({name: rows(name) for name in names(top.input)} for names in (scanned, looked_up))
    below = feed(top.input, read, versions).where(f"unix_micros(_exp) > {now}L")
    order = ", ".join(terms_of(top.order) or ["_ts DESC", "_exp DESC"])
    partition = [quoted(name) for name in top.partition]
    by = f"PARTITION BY {', '.join(partition)} " if partition else ""
    first = below.selectExpr("*", f"rank() OVER ({by}ORDER BY {order}) AS _rank").where(f"_rank <= {top.limit}")
    return bool(first.groupBy(*partition).count().where(f"count > {top.limit}").limit(1).collect())
