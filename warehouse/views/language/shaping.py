"""What a SELECT makes of the rows of its FROM: groups, first rows, output columns, DISTINCT, in SQL's order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.catalog.identifiers import quoted
from warehouse.views.algebra import Distinct, Filter, Named, Order, Project, Top
from warehouse.views.language.aggregation import grouped
from warehouse.views.language.clauses import limit_of, order_of, ranking_of
from warehouse.views.language.dialect import conjuncts, meaning, text
from warehouse.views.language.expressions import aggregates_in, check_expression
from warehouse.views.language.faults import RefusedError
from warehouse.views.language.outputs import projected
from warehouse.views.language.units import all_hold

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warehouse.views.algebra import Operator
    from warehouse.views.language.clauses import Term
    from warehouse.views.language.outputs import Output
    from warehouse.views.language.scope import Scope

__all__ = ["Shape", "first_rows", "shape_of"]

_ONE_GROUPING = "GROUP BY columns; several groupings are views of their own, or UNION ALL"
_SETS = ("grouping_sets", "rollup", "cube", "totals")


@dataclass(frozen=True)
class Shape:
    """The clauses of a SELECT above its FROM and WHERE, bound.

    ``keys`` is none when rows are not grouped; ``order`` and ``ranked`` are (expression, term).
    """

    outputs: list[Output]
    keys: list[exp.Expr] | None
    having: list[exp.Expr]
    partition: list[exp.Expr]
    ranked: list[tuple[exp.Expr, Term]]
    rank_limit: int | None
    distinct: bool
    order: list[tuple[exp.Expr, Term]]
    limit: int | None

    def over(self, source: Operator, scope: Scope, columns_of: Callable[[Operator], tuple[str, ...]]) -> Operator:
        """Return the plan over the rows of FROM and WHERE."""
        expressions = [
            *(output.node for output in self.outputs),
            *self.having,
            *self.partition,
            *(node for node, _ in self.ranked),
            *(node for node, _ in self.order),
        ]
        if self.keys is not None:
            names = {meaning(output.node): output.name for output in reversed(self.outputs)}
            grouping = grouped(source, self.keys, expressions, names, scope.faults)
            source, expressions = grouping.operator, grouping.expressions
        made = iter(expressions)
        named = [(output.name, next(made)) for output in self.outputs]
        having = [next(made) for _ in self.having]
        if having:
            source = Filter(source, all_hold([text(each) for each in having], having))
        carried = _Carried(named)
        partition = tuple(carried.column(next(made)) for _ in self.partition)
        ranked = tuple(_order(carried.column(next(made)), term) for _, term in self.ranked)
        order = tuple(_order(carried.column(next(made)), term) for _, term in self.order)
        plan = projected(source, carried.columns, columns_of)
        if self.rank_limit is not None:
            plan = Top(plan, partition, ranked, self.rank_limit)
        names_out = tuple(name for name, _ in named)
        if self.distinct:
            plan = Distinct(_only(plan, names_out, columns_of))
        if self.limit is not None:
            plan = Top(plan, (), order, self.limit)
        return _only(plan, names_out, columns_of)


class _Carried:
    """Output columns, and further ones that an order or a partition needs until rows are chosen."""

    def __init__(self, named: Sequence[tuple[str, exp.Expr]]) -> None:
        self.columns = list(named)

    def column(self, node: exp.Expr) -> str:
        written = meaning(node)
        for name, each in self.columns:
            if meaning(each) == written:
                return name
        own = node.name if isinstance(node, exp.Column) else None
        taken = {name.lower() for name, _ in self.columns}
        name = own if own is not None and own.lower() not in taken else f"#order{len(self.columns)}"
        self.columns.append((name, node))
        return name


def _order(column: str, term: Term) -> Order:
    return Order(column, term.descending, term.nulls_first)


def _only(operator: Operator, names: tuple[str, ...], columns_of: Callable[[Operator], tuple[str, ...]]) -> Operator:
    if columns_of(operator) == names:
        return operator
    return Project(operator, tuple(Named(name, quoted(name)) for name in names))


def first_rows(query: exp.Query, operator: Operator, names: Sequence[str]) -> Operator:
    """Return ORDER BY ... LIMIT over a whole query, whose order can name output columns only."""
    limit = limit_of(query)
    if limit is None:
        return operator
    order = []
    for term in order_of(query):
        name = _position(term.expression, names)
        if name is None:
            found = f"ORDER BY {text(term.expression)}"
            raise RefusedError(term.expression, found, f"output columns ({', '.join(names)})")
        order.append(_order(name, term))
    return Top(operator, (), tuple(order), limit)


def _position(node: exp.Expr, names: Sequence[str]) -> str | None:
    """The output column that an expression names, by its name or number."""
    if isinstance(node, exp.Literal) and node.name.isdigit() and 1 <= int(node.name) <= len(names):
        return names[int(node.name) - 1]
    if isinstance(node, exp.Column) and not node.table:
        return next((name for name in names if name.lower() == node.name.lower()), None)
    return None


def shape_of(select: exp.Select, scope: Scope, outputs: list[Output]) -> Shape:
    """Read and bind the clauses of a SELECT above its FROM and WHERE.

    Raises
    ------
    RefusedError
        For a clause that cannot be maintained; faults of names and expressions are added to the scope's.

    """
    ranking, limit = ranking_of(select.args.get("qualify")), limit_of(select)
    having_clause, group = select.args.get("having"), select.args.get("group")
    having = [_bound(each, scope, outputs, first="input") for each in conjuncts(having_clause.this if having_clause else None)]
    distinct = bool(select.args.get("distinct"))
    order = [(_bound(term.expression, scope, outputs, first="output"), term) for term in order_of(select)]
    if distinct:
        _check_distinct_order(order, outputs)
    partition = [_bound(each, scope, outputs, first="input") for each in (ranking.partition if ranking else ())]
    ranked = [(_bound(term.expression, scope, outputs, first="input"), term) for term in (ranking.order if ranking else ())]
    every = [*(output.node for output in outputs), *having, *partition, *(node for node, _ in [*ranked, *order])]
    aggregated = group is not None or any(next(aggregates_in(each), None) for each in every)
    if having_clause is not None and not aggregated:
        raise RefusedError(having_clause, "HAVING without GROUP BY or an aggregate", "WHERE", f"WHERE {text(having_clause.this)}")
    keys = _keys(group, scope, outputs) if aggregated else None
    return Shape(outputs, keys, having, partition, ranked, ranking.limit if ranking else None, distinct, order, limit)


def _bound(node: exp.Expr, scope: Scope, outputs: Sequence[Output], *, first: str) -> exp.Expr:
    """Bind an expression that may also name output columns; those come first in ORDER BY, the inputs' elsewhere."""
    if first == "output":
        name = _position(node, [output.name for output in outputs])
        if name is not None:
            return next(output.node for output in outputs if output.name == name)
    if not check_expression(node, scope.faults, "groups"):
        return exp.Null()
    by_name = {output.name.lower(): output.node for output in outputs}

    def named(each: exp.Expr) -> exp.Expr:
        if not isinstance(each, exp.Column):
            return each
        if not each.table and not scope.has(each) and each.name.lower() in by_name:
            return by_name[each.name.lower()].copy()
        return scope.resolve(each)

    return node.transform(named)


def _check_distinct_order(order: Sequence[tuple[exp.Expr, Term]], outputs: Sequence[Output]) -> None:
    written = {meaning(output.node) for output in outputs}
    for node, term in order:
        if meaning(node) not in written:
            found = f"ORDER BY {text(term.expression)} of SELECT DISTINCT"
            raise RefusedError(term.expression, found, f"output columns ({', '.join(output.name for output in outputs)})")


def _keys(group: exp.Group | None, scope: Scope, outputs: Sequence[Output]) -> list[exp.Expr]:
    if group is None:
        return []
    for clause in _SETS:
        if group.args.get(clause):
            raise RefusedError(group, text(group).strip(), _ONE_GROUPING)
    if group.args.get("all"):
        return [output.node for output in outputs if next(aggregates_in(output.node), None) is None]
    keys: list[exp.Expr] = []
    for each in group.expressions:
        if isinstance(each, (exp.Rollup, exp.Cube, exp.GroupingSets)):
            raise RefusedError(group, f"GROUP BY {text(each)}", _ONE_GROUPING)
        if isinstance(each, exp.Literal) and each.name.isdigit():
            if not 1 <= int(each.name) <= len(outputs):
                raise RefusedError(each, f"GROUP BY {each.name}", f"a number from 1 to {len(outputs)}, or an expression")
            key = outputs[int(each.name) - 1].node
        else:
            key = _bound(each, scope, outputs, first="input")
        if next(aggregates_in(key), None) is not None:
            raise RefusedError(each, f"GROUP BY {text(each)}, an aggregate", "columns and expressions of them")
        if meaning(key) not in {meaning(other) for other in keys}:
            keys.append(key)
    return keys
