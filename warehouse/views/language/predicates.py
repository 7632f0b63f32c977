"""EXISTS, IN and their negations in WHERE: the sub-query, and the equalities with the outer query.

Such a sub-query may refer to the outer query only in equalities, so that it becomes a join by keys: EXISTS and IN a join with the
distinct keys of the sub-query's rows, NOT EXISTS and NOT IN an anti-join (update-patterns sheet, 2.4 and 10).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.views.language.dialect import conjuncts, text
from warehouse.views.language.expressions import aggregates_in
from warehouse.views.language.faults import RefusedError
from warehouse.views.language.from_parts import equal_sides

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warehouse.views.language.scope import Scope

__all__ = ["Predicate", "SubQuery", "predicate_of", "sub_query_of"]

_CLAUSES = ("group", "having", "qualify", "order", "limit", "offset", "distinct", "with_")


@dataclass(frozen=True)
class Predicate:
    """``[NOT] EXISTS (query)``, or ``[NOT] IN`` with the expressions that are looked for."""

    node: exp.Expr
    query: exp.Query
    left: tuple[exp.Expr, ...] | None
    negated: bool


@dataclass(frozen=True)
class SubQuery:
    """A sub-query that gives one column for each equality, named by ``names``, and the outer expressions, unbound."""

    query: exp.Query
    names: tuple[str, ...]
    outer: tuple[exp.Expr, ...]


def predicate_of(condition: exp.Expr) -> Predicate | None:
    """Return a part of WHERE as a predicate; None if it is another condition."""
    negated, node = False, condition
    while isinstance(node, (exp.Not, exp.Paren)):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    if isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
        return Predicate(node, _unwrapped(node.this), None, negated)
    query = node.args.get("query") if isinstance(node, exp.In) else None
    if isinstance(query, exp.Query):
        left = node.this
        parts = left.expressions if isinstance(left, exp.Tuple) else [left]
        return Predicate(node, _unwrapped(query), tuple(parts), negated)
    return None


def _unwrapped(query: exp.Query) -> exp.Query:
    while isinstance(query, exp.Subquery) and isinstance(query.this, exp.Query) and not _modified(query):
        query = query.this
    return query


def _modified(query: exp.Query) -> bool:
    return any(query.args.get(clause) for clause in _CLAUSES)


def sub_query_of(predicate: Predicate, outer: Scope, inner_scope: Callable[[exp.Select], Scope], prefix: str) -> SubQuery:
    """Return the sub-query of a predicate, with its equalities to the outer query.

    Parameters
    ----------
    predicate
        The predicate.
    outer
        The names of the outer query.
    inner_scope
        Returns the names of a sub-query itself.
    prefix
        The prefix of the column names, so that no two inputs of a join share a name.

    Raises
    ------
    RefusedError
        When the sub-query names the outer query in other conditions than equalities, or does not name it.

    """
    query = predicate.query
    inner: list[exp.Expr] = []
    pairs_outer: list[exp.Expr] = []
    if predicate.left is not None:
        inner = _listed(query, predicate)
        pairs_outer = list(predicate.left)
    if not isinstance(query, exp.Select) or _modified(query) or _aggregated(query):
        return _closed(predicate, query, inner, prefix, pairs_outer)
    scope = inner_scope(query)
    conditions = []
    where = query.args.get("where")
    for part in conjuncts(where.this if where else None):
        pair = _correlation(part, scope, outer)
        if pair is None:
            conditions.append(part)
        else:
            inner.append(pair[0])
            pairs_outer.append(pair[1])
    if not inner:
        raise _unrelated(predicate)
    names = _names(inner, prefix)
    narrowed = query.copy()
    narrowed.set("expressions", [_named(expression, name) for expression, name in zip(inner, names, strict=True)])
    narrowed.set("where", exp.Where(this=exp.and_(*conditions, copy=True, wrap=True)) if conditions else None)
    return SubQuery(narrowed, names, tuple(pairs_outer))


def _listed(query: exp.Query, predicate: Predicate) -> list[exp.Expr]:
    """Return the columns with which IN compares."""
    left = predicate.left or ()
    columns: Sequence[exp.Expr] = query.selects
    starred = any(isinstance(column, exp.Star) or isinstance(column.unalias().this, exp.Star) for column in columns)
    if starred or len(columns) != len(left):
        found = f"IN with {len(left)} on the left and {'*' if starred else len(columns)} in the sub-query"
        raise RefusedError(predicate.node, found, "as many columns, by name, on both sides of IN")
    return [column.unalias() for column in columns]


def _aggregated(query: exp.Select) -> bool:
    return any(next(aggregates_in(expression), None) for expression in query.expressions)


def _closed(
    predicate: Predicate, query: exp.Query, inner: Sequence[exp.Expr], prefix: str, outer: Sequence[exp.Expr]
) -> SubQuery:
    """Return, unchanged, a sub-query that groups, unites or limits; it cannot name the outer query."""
    if not inner:
        raise _unrelated(predicate)
    names = _names(inner, prefix)
    columns = [exp.column(exp.to_identifier(column.alias_or_name, quoted=True)) for column in query.selects]
    if any(not column.alias_or_name for column in query.selects):
        raise RefusedError(predicate.node, "a grouped or united sub-query whose columns have no name", "columns with AS")
    outside = exp.Select(expressions=[_named(column, name) for column, name in zip(columns, names, strict=True)])
    alias = exp.TableAlias(this=exp.to_identifier(prefix, quoted=True))
    outside.set("from_", exp.From(this=exp.Subquery(this=query.copy(), alias=alias)))
    return SubQuery(outside, names, tuple(outer))


def _names(inner: Sequence[exp.Expr], prefix: str) -> tuple[str, ...]:
    names: list[str] = []
    for number, expression in enumerate(inner, start=1):
        name = f"{prefix}.{expression.name if isinstance(expression, exp.Column) else number}"
        names.append(name if name.lower() not in {used.lower() for used in names} else f"{prefix}.{number}")
    return tuple(names)


def _named(node: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=node.copy(), alias=exp.to_identifier(name, quoted=True))


def _unrelated(predicate: Predicate) -> RefusedError:
    word = "NOT EXISTS" if predicate.negated else "EXISTS"
    found = f"{word} with a sub-query that no equality relates to the outer query's rows"
    return RefusedError(predicate.node, found, f"{word} (SELECT 1 FROM ... WHERE inner.column = outer.column), not grouped")


def _correlation(part: exp.Expr, inner: Scope, outer: Scope) -> tuple[exp.Expr, exp.Expr] | None:
    """Return both sides of an equality with the outer query, the inner one first; None if a part does not name that query."""
    if part.find(exp.Query):
        return None
    outside = [column for column in part.find_all(exp.Column) if not inner.has(column) and outer.has(column)]
    if not outside:
        return None
    if isinstance(part, (exp.EQ, exp.NullSafeEQ)):
        left, right = equal_sides(part)
        for inner_side, outer_side in ((left, right), (right, left)):
            inner_columns, other_columns = list(inner_side.find_all(exp.Column)), list(outer_side.find_all(exp.Column))
            if (
                inner_columns
                and all(inner.has(column) for column in inner_columns)
                and all(not inner.has(column) for column in other_columns)
            ):
                return inner_side, outer_side
    found = f"{text(part)}, which relates a sub-query to the outer query by more than an equality"
    raise RefusedError(part, found, "equalities between a column of the sub-query and one of the outer query")
