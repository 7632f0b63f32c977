"""``row_number()`` in a sub-query and a bound on it outside mean the same as QUALIFY, and are parsed as QUALIFY.

``SELECT k, n FROM (SELECT k, n, row_number() OVER (PARTITION BY k ORDER BY n) AS r FROM a) t WHERE r <= 2`` keeps the first
two of each ``k``. The number itself is no column of a view (a row that comes first would change all others), but where it must
be 1 it is 1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.views.language.clauses import compared
from warehouse.views.language.dialect import conjuncts
from warehouse.views.language.expressions import function_name

if TYPE_CHECKING:
    from warehouse.views.language.sources import Known

__all__ = ["with_ranks_bounded"]

_LATER = ("qualify", "distinct", "order", "limit", "group", "having")
"""Clauses that choose or make rows in addition to the numbers."""


def with_ranks_bounded(select: exp.Select, known: Known) -> tuple[exp.Select, Known]:
    """Return a query in which bounds on ``row_number()`` of a sub-query of FROM became its QUALIFY, and the visible WITH queries.

    Parameters
    ----------
    select
        The query; it is not changed.
    known
        The WITH queries that it can name.

    """
    start, where = select.args.get("from_"), select.args.get("where")
    joins: list[exp.Join] = select.args.get("joins") or []
    if start is None or where is None or any(join.args.get("side") or join.args.get("kind") for join in joins):
        return select, known
    copy, known = select.copy(), dict(known)
    for source in [copy.args["from_"].this, *(join.this for join in copy.args.get("joins") or [])]:
        inner = _inner(source, known)
        bounded = None if inner is None else _bounded(copy, source.alias_or_name, inner, alone=not joins)
        if bounded is None:
            continue
        if isinstance(source, exp.Subquery):
            source.set("this", bounded)
            continue
        name = f"{source.name.lower()}#{len(known)}"  # a query of WITH sees other names than this query
        known[name] = replace(known[source.name.lower()], query=bounded)
        source.set("alias", exp.TableAlias(this=exp.to_identifier(source.alias_or_name, quoted=True)))
        source.set("this", exp.to_identifier(name, quoted=True))
    return copy, known


def _inner(source: exp.Expr, known: Known) -> exp.Select | None:
    alias = source.args.get("alias")
    if isinstance(alias, exp.TableAlias) and alias.columns:
        return None
    query: exp.Expr | None = None
    if isinstance(source, exp.Subquery):
        query = source.this
    elif isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        with_query = known.get(source.name.lower())
        query = None if with_query is None or with_query.columns else with_query.query
    if not isinstance(query, exp.Select) or any(query.args.get(clause) for clause in _LATER):
        return None
    return query


def _bounded(outer: exp.Select, alias: str, inner: exp.Select, *, alone: bool) -> exp.Select | None:
    """Return the sub-query with QUALIFY, if a number of its rows is bounded outside; the bound is removed there."""
    for item in inner.expressions:
        window = item.this if isinstance(item, exp.Alias) else None
        if not isinstance(window, exp.Window) or function_name(window.this) != "row_number":
            continue
        name = item.alias.lower()
        bound = next(
            (condition for condition in conjuncts(outer.args["where"].this) if _limit(condition, alias, name, alone=alone)), None
        )
        if bound is None:
            continue
        limit = _limit(bound, alias, name, alone=alone) or 1
        other_conditions = [condition for condition in conjuncts(outer.args["where"].this) if condition is not bound]
        used = [*outer.find_all(exp.Column), *outer.find_all(exp.Star)]
        used = [node for node in used if not any(ancestor is bound for ancestor in _ancestors(node))]
        if limit > 1 and any(isinstance(node, exp.Star) or node.name.lower() == name for node in used):
            return None
        copy = inner.copy()
        outputs = [
            output if output.alias.lower() != name else exp.Alias(this=exp.Literal.number(1), alias=output.args["alias"].copy())
            for output in copy.expressions
            if limit == 1 or output.alias.lower() != name
        ]
        copy.set("expressions", outputs)
        copy.set("qualify", exp.Qualify(this=exp.LTE(this=window.copy(), expression=exp.Literal.number(limit))))
        outer.set("where", exp.Where(this=exp.and_(*other_conditions, copy=False, wrap=True)) if other_conditions else None)
        return copy
    return None


def _ancestors(node: exp.Expr) -> list[exp.Expr]:
    ancestors: list[exp.Expr] = []
    above: exp.Expr | None = node
    while above is not None:
        ancestors.append(above)
        above = above.parent
    return ancestors


def _limit(condition: exp.Expr, alias: str, name: str, *, alone: bool) -> int | None:
    """Return the number of rows that a bound on the column keeps; None if the condition is no such bound."""

    def is_number(node: exp.Expr) -> bool:
        if not isinstance(node, exp.Column) or node.name.lower() != name:
            return False
        return node.table.lower() == alias.lower() if node.table else alone

    side, limit = compared(condition, is_number)
    return limit if side is not None and limit is not None and limit >= 1 else None
