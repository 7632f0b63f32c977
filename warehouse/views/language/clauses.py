"""Clauses of a query: reads the clauses that views support; refuses the others, and says what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.views.language.dialect import text
from warehouse.views.language.expressions import function_name
from warehouse.views.language.faults import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Ranking", "Term", "check_clauses", "compared", "limit_of", "order_of", "ranking_of", "without_order"]

_KNOWN = {
    exp.Select: {
        "expressions", "from_", "joins", "where", "group", "having", "qualify", "order", "limit", "distinct", "with_", "hint",
    },
    exp.SetOperation: {"this", "expression", "distinct", "order", "limit", "with_"},
    exp.Subquery: {"this", "alias", "order", "limit", "with_"},
    exp.Table: {"this", "alias", "hints"},
}  # fmt: skip
_SAMPLES = ("TABLESAMPLE, which picks rows by chance", "all rows, or a WHERE condition on hash(column)")
_ORDERS = ("SORT BY, CLUSTER BY or DISTRIBUTE BY", "search_key, which says how the view's table is sorted")
_INSTEAD = {
    "laterals": ("LATERAL VIEW, which makes several rows of one", "one row for each row; load the parts as rows of a stream"),
    "sample": _SAMPLES,
    "pivots": ("PIVOT or UNPIVOT", "GROUP BY with an aggregate for each column, e.g. sum(CASE WHEN b = 1 THEN a END)"),
    "windows": ("a WINDOW clause", "the window in QUALIFY: row_number() OVER (PARTITION BY ... ORDER BY ...) <= k"),
    "offset": ("OFFSET", "ORDER BY ... LIMIT k, without the rows left out"),
    "sort": _ORDERS,
    "cluster": _ORDERS,
    "distribute": _ORDERS,
    "by_name": ("UNION BY NAME", "the columns of both sides in the same order"),
    "joins": ("joins inside parentheses", "a sub-query: (SELECT ... FROM ... JOIN ...) AS alias"),
    "db": ("a qualified table name", "streams, relations and views by name alone"),
    "version": ("time travel", "the table as it is; `--as-of` reads a view as it was"),
    "when": ("time travel", "the table as it is; `--as-of` reads a view as it was"),
}
_FIRST = "ORDER BY ... LIMIT k, or QUALIFY row_number() OVER (PARTITION BY ... ORDER BY ...) <= k"


@dataclass(frozen=True)
class Term:
    """One term of an ORDER BY."""

    expression: exp.Expr
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Ranking:
    """The first ``limit`` rows of each partition in an order."""

    partition: tuple[exp.Expr, ...]
    order: tuple[Term, ...]
    limit: int


def check_clauses(node: exp.Expr) -> None:
    """Refuse the clauses that views do not have.

    Raises
    ------
    RefusedError
        For the first such clause.

    """
    kind = next((kind for kind in _KNOWN if isinstance(node, kind)), None)
    if kind is None:
        raise RefusedError(node, text(node), "SELECT ... FROM ...")
    for clause, value in node.args.items():
        if value and clause not in _KNOWN[kind]:
            word = clause.strip("_").upper()
            found, allowed = _INSTEAD.get(clause, (f"the clause {word}", "SELECT ... FROM ... WHERE ... GROUP BY"))
            first = value[0] if isinstance(value, list) else value
            raise RefusedError(first if isinstance(first, exp.Expr) and _placed(first) else node, found, allowed)
    distinct = node.args.get("distinct")
    if isinstance(distinct, exp.Distinct) and distinct.args.get("on"):
        raise RefusedError(distinct, "DISTINCT ON", "QUALIFY row_number() OVER (PARTITION BY ... ORDER BY ...) = 1")


def _placed(node: exp.Expr) -> bool:
    return any("start" in part.meta for part in node.walk())


def order_of(query: exp.Expr) -> tuple[Term, ...]:
    """Return the terms of a query's ORDER BY."""
    order = query.args.get("order")
    return _terms(order.expressions) if order else ()


def _terms(ordered: Sequence[exp.Expr]) -> tuple[Term, ...]:
    return tuple(
        Term(term.this, bool(term.args.get("desc")), bool(term.args.get("nulls_first")))
        if isinstance(term, exp.Ordered)
        else Term(term, descending=False, nulls_first=True)
        for term in ordered
    )


def without_order(query: exp.Expr) -> str:
    """Return a query without its ORDER BY."""
    copy = query.copy()
    copy.set("order", None)
    return text(copy)


def limit_of(query: exp.Expr) -> int | None:
    """Return k of LIMIT k, or None if there is no LIMIT.

    Raises
    ------
    RefusedError
        For ORDER BY and LIMIT without each other, or if k is not a constant from 1.

    """
    limit, order = query.args.get("limit"), query.args.get("order")
    if limit is None and order is None:
        return None
    if limit is None:
        allowed = "rows without an order: reading commands sort; or ORDER BY ... LIMIT k"
        raise RefusedError(order, "ORDER BY without LIMIT", allowed, without_order(query))
    number = limit.args.get("expression") or limit.args.get("count")
    if not isinstance(limit, exp.Limit) or not _is_number(number):
        raise RefusedError(limit, text(limit).strip(), "LIMIT k with a whole number from 1")
    if order is None:
        raise RefusedError(limit, "LIMIT without ORDER BY, which keeps any rows", _FIRST, f"ORDER BY ... {text(limit).strip()}")
    return int(number.name)


def _is_number(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit() and int(node.name) >= 1


def ranking_of(qualify: exp.Qualify | None) -> Ranking | None:
    """Return the ranking of a QUALIFY: the only form is ``row_number() OVER (...) <= k``, also as ``< k`` and ``= 1``.

    Raises
    ------
    RefusedError
        For every other form.

    """
    if qualify is None:
        return None
    condition = qualify.this
    while isinstance(condition, exp.Paren):
        condition = condition.this
    window, limit = compared(condition, lambda node: isinstance(node, exp.Window))
    if not isinstance(window, exp.Window) or limit is None or limit < 1:
        raise RefusedError(qualify, f"QUALIFY {text(condition)}", f"QUALIFY {_TOP}")
    function = function_name(window.this)
    order = window.args.get("order")
    if function != "row_number" or window.args.get("spec") or order is None:
        suggested_window = window.copy()
        suggested_window.set("this", exp.Anonymous(this="row_number"))
        suggested_window.set("spec", None)
        suggestion = f"QUALIFY {text(suggested_window)} <= {limit}" if order is not None else None
        raise RefusedError(qualify, f"QUALIFY with {text(window)}", f"QUALIFY {_TOP}", suggestion)
    return Ranking(tuple(window.args.get("partition_by") or ()), _terms(order.expressions), limit)


_TOP = "row_number() OVER (PARTITION BY ... ORDER BY ...) <= k, with a whole number k from 1"


def compared(condition: exp.Expr, is_number: Callable[[exp.Expr], bool]) -> tuple[exp.Expr | None, int | None]:
    """Return the expression that is compared with a constant (by ``is_number``), and how many ranks the comparison keeps."""
    if not isinstance(condition, exp.Binary):
        return None, None
    left, right = condition.this, condition.expression
    flipped = is_number(right)
    counted, number = (right, left) if flipped else (left, right)
    if not is_number(counted) or not _is_number(number):
        return None, None
    limit = int(number.name)
    below, up_to = ((exp.GT, exp.GTE) if flipped else (exp.LT, exp.LTE))
    if isinstance(condition, up_to):
        return counted, limit
    if isinstance(condition, below):
        return counted, limit - 1
    return (counted, 1) if isinstance(condition, exp.EQ) and limit == 1 else (counted, None)
