"""EXISTS and IN as joins with distinct keys, NOT EXISTS and NOT IN as anti-joins.

The distinct rows of one key have disjoint lifetimes, so a row of the outer query is in the answer exactly while some row
of the sub-query lives, as often as it occurs (update-patterns sheet, 10).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.views.algebra import AntiJoin, Distinct
from warehouse.views.language.columns import never_null
from warehouse.views.language.dialect import text
from warehouse.views.language.expressions import check_expression
from warehouse.views.language.faults import RefusedError
from warehouse.views.language.from_parts import FromPart
from warehouse.views.language.predicates import sub_query_of
from warehouse.views.language.scope import Item, bound_column, owners_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warehouse.views.algebra import Operator
    from warehouse.views.language.from_parts import PartBuilder
    from warehouse.views.language.predicates import Predicate
    from warehouse.views.language.scope import Scope

__all__ = ["Keyed", "keyed_by", "semi_joined", "without"]


@dataclass(frozen=True)
class Keyed:
    """A predicate as a plan of keys: the plan of its rows, their column names, and the expressions that they must equal."""

    predicate: Predicate
    operator: Operator
    names: tuple[str, ...]
    outer: tuple[exp.Expr, ...]


def keyed_by(
    predicates: Sequence[Predicate],
    scope: Scope,
    inner_scope: Callable[[exp.Select], Scope],
    plan: Callable[[exp.Query], Operator],
) -> list[Keyed]:
    """Return the plans of the sub-queries of WHERE, and bind the expressions with which they are compared.

    Parameters
    ----------
    predicates
        The predicates.
    scope
        The names of the outer query.
    inner_scope
        Returns the names of a sub-query itself.
    plan
        Returns the plan of a sub-query.

    """
    keyed = []
    aliases = {item.alias.lower() for item in scope.items}
    for number, predicate in enumerate(predicates, start=1):
        sub_query = sub_query_of(predicate, scope, inner_scope, _prefix(predicate, number, aliases))
        aliases.add(sub_query.names[0].split(".", 1)[0].lower())
        for expression in sub_query.outer:
            check_expression(expression, scope.faults, "rows")
        outer = tuple(scope.bind(expression) for expression in sub_query.outer)
        if not all(owners_of(expression) for expression in outer) and not predicate.negated:
            raise RefusedError(predicate.node, text(predicate.node), "a column of the outer query on the left of IN")
        keyed.append(Keyed(predicate, plan(sub_query.query), sub_query.names, outer))
    return keyed


def _prefix(predicate: Predicate, number: int, aliases: set[str]) -> str:
    """Return the prefix of the sub-query's columns: its input's alias, if the outer query has no such input."""
    start = predicate.query.args.get("from_")
    alias = start.this.alias_or_name if start is not None else ""
    return f"{alias}#{number}" if not alias or alias.lower() in aliases else str(alias)


def semi_joined(keyed: Sequence[Keyed], scope: Scope) -> tuple[list[FromPart], list[exp.Expr]]:
    """Return EXISTS and IN as further inputs of the join, and their equalities."""
    parts: list[FromPart] = []
    conditions: list[exp.Expr] = []
    for key_plan in keyed:
        if key_plan.predicate.negated:
            continue
        owner = len(scope.items)
        distinct = Distinct(key_plan.operator)
        scope.items.append(Item(key_plan.names[0].split(".", 1)[0], key_plan.predicate.node, distinct, ()))
        parts.append(FromPart(distinct, frozenset({owner})))
        keys = [bound_column(name, owner, name, key_plan.predicate.node) for name in key_plan.names]
        conditions += [exp.EQ(this=left, expression=key) for left, key in zip(key_plan.outer, keys, strict=True)]
    return parts, conditions


def without(builder: PartBuilder, part: FromPart, keyed: Sequence[Keyed]) -> FromPart:
    """Return a part with the rows for which NOT EXISTS and NOT IN hold.

    Raises
    ------
    RefusedError
        When a side of NOT IN may be null.

    """
    for key_plan in keyed:
        if not key_plan.predicate.negated:
            continue
        part, columns = builder.keyed(part, key_plan.outer)
        on = tuple(zip(columns, key_plan.names, strict=True))
        if key_plan.predicate.left is not None:
            _check_nulls(builder, key_plan, part.operator, on[: len(key_plan.predicate.left)])
        part = FromPart(AntiJoin(part.operator, key_plan.operator, on), part.owners)
    return part


def _check_nulls(builder: PartBuilder, keyed: Keyed, left: Operator, on: Sequence[tuple[str, str]]) -> None:
    facts = {table.name: table.never_null for table in builder.tables.values()}
    never_null_left, never_null_right = never_null(left, facts), never_null(keyed.operator, facts)
    for number, (left_name, right_name) in enumerate(on):
        for name, never_null_names, side in (
            (left_name, never_null_left, "on the left of NOT IN"),
            (right_name, never_null_right, "in the sub-query of NOT IN"),
        ):
            if name.lower() not in never_null_names:
                column_text = _written(keyed.predicate, number, left=never_null_names is never_null_left)
                found = f"{column_text} {side}, where a null would empty the answer"
                proofs = f"{column_text} IS NOT NULL in that WHERE, or coalesce({column_text}, ...)"
                allowed = f"NOT EXISTS, which nulls do not disturb; or {proofs}"
                raise RefusedError(keyed.predicate.node, found, allowed, _not_exists(builder, keyed))


def _written(predicate: Predicate, number: int, *, left: bool) -> str:
    if left:
        return text((predicate.left or ())[number])
    return text(predicate.query.selects[number].unalias())


def _not_exists(builder: PartBuilder, keyed: Keyed) -> str | None:
    """Return the query with NOT EXISTS, its columns qualified; None if that needs more than a new condition."""
    query, left = keyed.predicate.query, keyed.predicate.left or ()
    start = query.args.get("from_")
    if not isinstance(query, exp.Select) or query.args.get("group") or query.args.get("joins") or start is None:
        return None
    alias = start.this.alias_or_name
    if alias.lower() in {item.alias.lower() for item in builder.scope.items}:
        return None

    def inner(node: exp.Expr) -> exp.Expr:
        return exp.column(node.name, table=alias) if isinstance(node, exp.Column) and not node.table else node

    def outer(node: exp.Expr) -> exp.Expr:
        owner = node.meta.get("owner")
        return node if owner is None else exp.column(node.meta["base"], table=builder.scope.items[owner].alias)

    rewritten = query.copy()
    rewritten.set("expressions", [exp.Literal.number(1)])
    rewritten.set("distinct", None)
    pairs = zip(query.selects, keyed.outer[: len(left)], strict=True)
    equal = [
        exp.EQ(this=column.unalias().transform(inner), expression=expression.transform(outer)) for column, expression in pairs
    ]
    where = query.args.get("where")
    conditions = [where.this.copy()] if where else []
    rewritten.set("where", exp.Where(this=exp.and_(*conditions, *equal, copy=False)))
    return f"NOT EXISTS ({text(rewritten)})"
