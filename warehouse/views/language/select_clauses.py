"""The clauses of a SELECT over the rows of its FROM: groups, first rows, output columns, DISTINCT, in SQL's order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.catalog.identifiers import quoted
from warehouse.views.algebra import Distinct, Filter, Named, Order, Project, Top
from warehouse.views.language.aggregation import grouped
from warehouse.views.language.binding import replaced_columns, with_field
from warehouse.views.language.clauses import limit_of, order_of, ranking_of
from warehouse.views.language.dialect import conjuncts, meaning, text
from warehouse.views.language.expressions import aggregates_in, check_expression
from warehouse.views.language.faults import RefusedError
from warehouse.views.language.from_parts import all_hold
from warehouse.views.language.outputs import projected
from warehouse.views.language.resolution import Names, over_names, position
from warehouse.views.language.scope import bound_column

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from warehouse.views.algebra import Operator
    from warehouse.views.language.clauses import Term
    from warehouse.views.language.faults import Faults
    from warehouse.views.language.outputs import Output
    from warehouse.views.language.scope import Scope

__all__ = ["SelectClauses", "first_rows", "shape_of"]

_ONE_GROUPING = "GROUP BY columns; several groupings are views of their own, or UNION ALL"
_SETS = ("grouping_sets", "rollup", "cube", "totals")


@dataclass(frozen=True)
class SelectClauses:
    """The clauses of a SELECT above its FROM and WHERE, bound.

    ``keys`` is None if rows are not grouped; ``order`` and ``ranked`` are (expression, term).
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
        outputs = [(output.name, output.node) for output in self.outputs]
        distinct = self.order if self.distinct else ()
        after = [(over_names(node, outputs, term.expression, " of SELECT DISTINCT"), term) for node, term in distinct]
        expressions = [
            *(output.node for output in self.outputs),
            *self.having,
            *self.partition,
            *(node for node, _ in self.ranked),
            *(() if self.distinct else (node for node, _ in self.order)),
        ]
        if self.keys is not None:
            names = {meaning(output.node): output.name for output in reversed(self.outputs)}
            grouping = grouped(source, self.keys, expressions, names, scope.faults)
            source, expressions = grouping.operator, grouping.expressions
        bound = iter(expressions)
        output_nodes = [(output.name, next(bound)) for output in self.outputs]
        having = [next(bound) for _ in self.having]
        if having:
            source = Filter(source, all_hold([text(condition) for condition in having], having))
        carried = _Carried(output_nodes)
        partition = tuple(carried.column(next(bound)) for _ in self.partition)
        ranked = tuple(_order(carried.column(next(bound)), term) for _, term in self.ranked)
        order = () if self.distinct else tuple(_order(carried.column(next(bound)), term) for _, term in self.order)
        plan = projected(source, carried.columns, columns_of)
        if self.rank_limit is not None:
            plan = Top(plan, partition, ranked, self.rank_limit)
        names_out = tuple(name for name, _ in output_nodes)
        if self.distinct:
            plan = Distinct(_only(plan, names_out, columns_of))
        if self.limit is not None:
            plan = _first(plan, after, self.limit, columns_of) if self.distinct else Top(plan, (), order, self.limit)
        return _only(plan, names_out, columns_of)


class _Carried:
    """Output columns, and further columns that an order or a partition needs until rows are chosen."""

    def __init__(self, columns: Sequence[tuple[str, exp.Expr]]) -> None:
        self.columns = list(columns)

    def column(self, node: exp.Expr) -> str:
        node_meaning = meaning(node)
        for name, expression in self.columns:
            if meaning(expression) == node_meaning:
                return name
        column_name = node.name if isinstance(node, exp.Column) else None
        used_names = {name.lower() for name, _ in self.columns}
        name = column_name if column_name is not None and column_name.lower() not in used_names else f"#order{len(self.columns)}"
        self.columns.append((name, node))
        return name


def _order(column: str, term: Term) -> Order:
    return Order(column, term.descending, term.nulls_first)


def _only(operator: Operator, names: tuple[str, ...], columns_of: Callable[[Operator], tuple[str, ...]]) -> Operator:
    if columns_of(operator) == names:
        return operator
    return Project(operator, tuple(Named(name, quoted(name)) for name in names))


def first_rows(
    query: exp.Query, operator: Operator, columns_of: Callable[[Operator], tuple[str, ...]], faults: Faults
) -> Operator:
    """Return ORDER BY ... LIMIT over a whole query, whose order can name output columns only."""
    limit = limit_of(query)
    if limit is None:
        return operator
    names = columns_of(operator)
    outputs = [(name, bound_column(name, None, name, None)) for name in names]
    order = []
    for term in order_of(query):
        output_name = position(term.expression, names)
        if output_name is None and not check_expression(term.expression, faults, "rows"):
            continue
        node = (
            dict(outputs)[output_name]
            if output_name is not None
            else replaced_columns(term.expression, lambda column: _of(column, outputs))
        )
        order.append((over_names(node, outputs, term.expression), term))
    return _first(operator, order, limit, columns_of)


def _of(column: exp.Column, outputs: Sequence[tuple[str, exp.Column]]) -> exp.Expr:
    first, *fields = [part.name for part in column.parts]
    expression: exp.Expr = next((node for name, node in outputs if name.lower() == first.lower()), column).copy()
    for field in fields if expression != column else ():
        expression = with_field(expression, field)
    return expression


def _first(
    operator: Operator,
    order: Sequence[tuple[exp.Expr, Term]],
    limit: int,
    columns_of: Callable[[Operator], tuple[str, ...]],
) -> Operator:
    """Return the first rows in an order of expressions over their columns."""
    names = columns_of(operator)
    carried = _Carried([(name, bound_column(name, None, name, None)) for name in names])
    terms = tuple(_order(carried.column(node), term) for node, term in order)
    return _only(Top(projected(operator, carried.columns, columns_of), (), terms, limit), names, columns_of)


def shape_of(select: exp.Select, scope: Scope, outputs: list[Output]) -> SelectClauses:
    """Read and bind the clauses of a SELECT above its FROM and WHERE.

    Raises
    ------
    RefusedError
        For a clause that cannot be maintained; faults of names and expressions are added to the scope's.

    """
    ranking, limit = ranking_of(select.args.get("qualify")), limit_of(select)
    having_clause, group = select.args.get("having"), select.args.get("group")
    names = Names(scope, outputs)
    conditions = list(conjuncts(having_clause.this if having_clause else None))
    by, terms = (ranking.partition, ranking.order) if ranking else ((), ())
    clause_expressions = [*conditions, *by, *(term.expression for term in [*terms, *order_of(select)])]
    all_expressions = [*(output.node for output in outputs), *clause_expressions]
    aggregated = group is not None or any(next(aggregates_in(expression), None) for expression in all_expressions)
    if having_clause is not None and not aggregated:
        raise RefusedError(having_clause, "HAVING without GROUP BY or an aggregate", "WHERE", f"WHERE {text(having_clause.this)}")
    keys = _keys(group, names) if aggregated else None

    def bound(node: exp.Expr) -> exp.Expr:
        return names.in_rows(node) if keys is None else names.in_groups(node, keys)

    having = [bound(condition) for condition in conditions]
    distinct = bool(select.args.get("distinct"))
    order = [(names.in_order(term.expression), term) for term in order_of(select)]
    partition = [bound(expression) for expression in by]
    ranked = [(bound(term.expression), term) for term in terms]
    return SelectClauses(outputs, keys, having, partition, ranked, ranking.limit if ranking else None, distinct, order, limit)


def _keys(group: exp.Group | None, names: Names) -> list[exp.Expr]:
    outputs = names.outputs
    if group is None:
        return []
    for clause in _SETS:
        if group.args.get(clause):
            raise RefusedError(group, text(group).strip(), _ONE_GROUPING)
    if group.args.get("all"):
        return [output.node for output in outputs if next(aggregates_in(output.node), None) is None]
    keys: list[exp.Expr] = []
    for expression in group.expressions:
        if isinstance(expression, (exp.Rollup, exp.Cube, exp.GroupingSets)):
            raise RefusedError(group, f"GROUP BY {text(expression)}", _ONE_GROUPING)
        if isinstance(expression, exp.Literal) and expression.name.isdigit():
            if not 1 <= int(expression.name) <= len(outputs):
                raise RefusedError(
                    expression, f"GROUP BY {expression.name}", f"a number from 1 to {len(outputs)}, or an expression"
                )
            key = outputs[int(expression.name) - 1].node
        else:
            key = names.in_rows(expression)
        if next(aggregates_in(key), None) is not None:
            raise RefusedError(expression, f"GROUP BY {text(expression)}, an aggregate", "columns and expressions of them")
        if meaning(key) not in {meaning(earlier) for earlier in keys}:
            keys.append(key)
    return keys
