"""Parses SQL to a plan: it binds names, places conditions, and turns each construct into an operator or refuses it.

Each part of a query has modules: FROM (sources, windows), its joins (from_parts, joining, lookups), sub-queries of WHERE
(predicates, sub_queries), and the clauses above (select_clauses, outputs, aggregation). This module combines them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.catalog.identifiers import quoted
from warehouse.views.algebra import BagDifference, Changes, Distinct, Equality, InternalRows, Join, Named, Project, Top, UnionAll
from warehouse.views.language.clauses import check_clauses
from warehouse.views.language.columns import columns_of, types_of
from warehouse.views.language.dialect import conjuncts, plain, text
from warehouse.views.language.expressions import check_expression
from warehouse.views.language.faults import FaultyError, RefusedError
from warehouse.views.language.from_parts import PartBuilder
from warehouse.views.language.internal_windows import check_internal
from warehouse.views.language.joining import collapse, combine
from warehouse.views.language.outputs import outputs_of
from warehouse.views.language.predicates import predicate_of
from warehouse.views.language.ranks import with_ranks_bounded
from warehouse.views.language.select_clauses import first_rows, shape_of
from warehouse.views.language.sources import FromReader, With, renaming
from warehouse.views.language.sub_queries import keyed_by, semi_joined, without
from warehouse.views.language.time_groups import with_window_columns
from warehouse.views.language.types import common_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.views.algebra import Operator
    from warehouse.views.language.faults import Faults
    from warehouse.views.language.joining import Step
    from warehouse.views.language.predicates import Predicate
    from warehouse.views.language.scope import Item, Table
    from warehouse.views.language.sources import Known
    from warehouse.views.language.types import Types

__all__ = ["Binder"]


class Binder:
    """Binds one view's query.

    Parameters
    ----------
    tables
        The tables that it can name.
    faults
        Collects faults of names and expressions; an unsupported construct is raised instead.

    """

    def __init__(self, tables: Mapping[str, Table], faults: Faults) -> None:
        self.tables = tables
        self.faults = faults
        self._sources = FromReader(tables, faults, self._query, self.columns)

    def bind(self, query: exp.Query) -> Operator:
        """Return the plan of a view's query.

        Raises
        ------
        RefusedError
            When something in it cannot be maintained.
        FaultyError
            When there are faults of names and expressions.

        """
        plan = self._query(query, {}, top=True)
        if self.faults.found:
            raise FaultyError
        return plan

    def columns(self, operator: Operator) -> tuple[str, ...]:
        """Return the columns of a plan."""
        return columns_of(operator, {name: tuple(table.columns) for name, table in self.tables.items()})

    def _types(self, operator: Operator) -> Types:
        return types_of(operator, {name: table.columns for name, table in self.tables.items()})

    def _query(self, query: exp.Query, known: Known, *, top: bool = False, stored: bool = True) -> Operator:
        check_clauses(query)
        known = _with(query, known)
        match query:
            case exp.Select():
                return self._select(query, known, top=top, stored=stored)
            case exp.SetOperation():
                operator = self._set_operation(query, known, stored=stored)
            case exp.Subquery(this=exp.Query() as inner):
                operator = self._query(inner, known, top=top, stored=stored)
            case _:
                raise RefusedError(query, text(query), "SELECT ... FROM ...")
        return first_rows(query, operator, self.columns, self.faults)

    def _select(self, select: exp.Select, known: Known, *, top: bool = False, stored: bool = True) -> Operator:
        check_clauses(select)
        select, known = with_ranks_bounded(with_window_columns(select), known)
        conditions, predicates = self._where(select)
        scope, steps = self._sources.read(select, known, top=top, keyed=bool(predicates))
        bound = [scope.bind(condition) for condition in conditions]
        shape = shape_of(select, scope, outputs_of(select, scope, stored=stored))
        builder = PartBuilder(scope, self.tables)
        if top:
            aggregated = shape.keys is not None
            check_internal(select, scope.items, builder.label, aggregated=aggregated, negated=_negated(predicates, steps))
            if not aggregated:
                _mark_internal(scope.items)
        keyed = keyed_by(
            predicates,
            scope,
            lambda inner: self._sources.read(inner, known, top=False, keyed=True)[0],
            lambda inner: self._keys(inner, known),
        )
        if self.faults.found:
            raise FaultyError
        parts, equal = semi_joined(keyed, scope)
        joined, rest = combine(builder, steps, bound)
        source = without(builder, collapse(builder, [*joined, *parts], [*rest, *equal]), keyed)
        plan = shape.over(source.operator, scope, self.columns)
        return Changes(plan) if any(item.internal for item in scope.items) and shape.keys is not None else plan

    def _keys(self, query: exp.Query, known: Known) -> Operator:
        """Return the plan of a sub-query of WHERE, whose columns have names that no user gave."""
        if not isinstance(query, exp.Select):
            raise TypeError("the keys of a sub-query are selected")
        return self._select(query, known, stored=False)

    def _where(self, select: exp.Select) -> tuple[list[exp.Expr], list[Predicate]]:
        where = select.args.get("where")
        conditions, predicates = [], []
        for part in conjuncts(where.this if where else None):
            predicate = predicate_of(part)
            if predicate is not None:
                predicates.append(predicate)
                continue
            if check_expression(part, self.faults, "rows"):
                conditions.append(part)
        return conditions, predicates

    def _set_operation(self, query: exp.SetOperation, known: Known, *, stored: bool) -> Operator:
        distinct = bool(query.args.get("distinct"))
        if not distinct and isinstance(query, exp.Intersect):
            distinct_query = query.copy()
            distinct_query.args["distinct"] = True
            raise RefusedError(query, "INTERSECT ALL", "INTERSECT, which keeps each row once", text(distinct_query))
        left = self._query(query.this, known, stored=stored)
        right = self._query(query.expression, known, stored=False)
        names, right_names = self.columns(left), self.columns(right)
        if len(names) != len(right_names):
            word = type(query).__name__.upper()
            found = f"{word} of {len(names)} columns ({', '.join(names)}) and {len(right_names)} ({', '.join(right_names)})"
            raise RefusedError(query, found, "as many columns on both sides, in the same order")
        if distinct and isinstance(query, exp.Except):
            raise _except(query, names, right_names)
        if isinstance(query, exp.Intersect):
            return _intersection(left, right, [self._types(side) for side in (left, right)])
        if isinstance(query, exp.Except):
            types = [self._types(side) for side in (left, right)]
            common = [
                common_type(left_type, right_type)
                for left_type, right_type in zip(*(side.values() for side in types), strict=True)
            ]
            return BagDifference(_cast(left, types[0], names, common), _cast(right, types[1], names, common))
        right = right if right_names == names else Project(right, renaming(right_names, names))
        sides = [part for side in (left, right) for part in (side.inputs if isinstance(side, UnionAll) else (side,))]
        union = UnionAll(tuple(sides))
        return Distinct(union) if distinct else union


def _with(query: exp.Query, known: Known) -> Known:
    """Return the WITH queries that a query can name."""
    clause = query.args.get("with_")
    if clause is None:
        return known
    if clause.args.get("recursive"):
        raise RefusedError(clause, "WITH RECURSIVE", "queries that do not name themselves")
    known = dict(known)
    for cte in clause.expressions:
        alias = cte.args["alias"]
        known[alias.name.lower()] = With(cte.this, tuple(column.name for column in alias.columns), dict(known))
    return known


def _mark_internal(items: Sequence[Item]) -> None:
    """Let results of internal row windows stay; a GROUP BY appends its values instead."""
    for item in items:
        if item.internal and isinstance(item.operator, Top):
            item.operator = InternalRows(item.operator)


def _negated(predicates: Sequence[Predicate], steps: Sequence[Step]) -> str | None:
    """Return the clause that keeps a SELECT from being a flat join, in words; None if it is a flat join."""
    if predicates:
        return "EXISTS, IN or a negation of them"
    return "an outer join" if any(step.side != "inner" for step in steps) else None


def _cast(side: Operator, types: Types, names: tuple[str, ...], common: Sequence[str | None]) -> Operator:
    """Return a side of EXCEPT ALL with these names and types; a column without a type stays as it is."""
    columns = tuple(
        Named(name, quoted(column) if target_type in (None, kind) else f"CAST({quoted(column)} AS {target_type})")
        for (column, kind), name, target_type in zip(types.items(), names, common, strict=True)
    )
    return side if all(column.sql == quoted(column.name) for column in columns) else Project(side, columns)


def _intersection(left: Operator, right: Operator, types: Sequence[Types]) -> Operator:
    """Return an INTERSECT: the join of both sides' distinct rows, in which null equals null (update-patterns sheet, 10).

    Its columns have the common type of both sides, as ``coalesce`` gives it.
    """
    names, right_names = map(tuple, types)
    renamed = tuple(f"#2.{name}" for name in right_names)
    sides = (Distinct(left), Distinct(Project(right, renaming(right_names, renamed))))
    equal = tuple(Equality(0, name, 1, renamed_column) for name, renamed_column in zip(names, renamed, strict=True))
    same_types = [
        left_type is not None and left_type == right_type
        for left_type, right_type in zip(*(side.values() for side in types), strict=True)
    ]
    coalesced = [f"coalesce({quoted(pair.left_column)}, {quoted(pair.right_column)})" for pair in equal]
    columns = tuple(
        Named(name, quoted(name) if is_same else sql) for name, is_same, sql in zip(names, same_types, coalesced, strict=True)
    )
    return Project(Join(sides, equal, None, null_safe=True), columns)


def _except(query: exp.SetOperation, names: Sequence[str], right_names: Sequence[str]) -> RefusedError:
    equal = " AND ".join(f"b.{plain(right_name)} = a.{plain(name)}" for name, right_name in zip(names, right_names, strict=True))
    suggestion = (
        f"SELECT DISTINCT * FROM ({text(query.this)}) AS a WHERE NOT EXISTS "
        f"(SELECT 1 FROM ({text(query.expression)}) AS b WHERE {equal})"
    )
    allowed = "EXCEPT ALL, which takes away one row for each; or NOT EXISTS over SELECT DISTINCT, in which null equals nothing"
    return RefusedError(query, "EXCEPT, which keeps each row once", allowed, suggestion)
