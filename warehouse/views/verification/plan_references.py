"""Finds the references of a query, node by node, in Spark's analysed plan (as JSON). Pure.

Every attribute is followed by its id to its source: a column of a scanned table, or fields of it. The result does not depend on
how the query is written: it has the sources of each output column, of each condition of a conjunction (also of sub-queries), of
each group key, partition column and term of an order.

A lookup of a relation by LEFT JOIN keeps every row, so the other conditions of its ON only decide whether its columns are null.
They count as sources of these columns and not as conditions, both in the text and in the nodes, which compute the nulls by CASE.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from warehouse.views.verification.references import ColumnSource, Fact, References, Sources

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["UnknownPlanError", "references"]


def references(plan: str, lookups: Mapping[str, Sequence[str]] | None = None) -> References:
    """Return the references of a query.

    Parameters
    ----------
    plan
        Its analysed plan, as ``toJSON`` of Spark gives it.
    lookups
        The relations of the nodes' outer lookups, with the columns of their keys.

    Raises
    ------
    UnknownPlanError
        When the plan has a node of an unknown kind.

    """
    keys = {name.lower(): [column.lower() for column in columns] for name, columns in (lookups or {}).items()}
    reading = _Reading(lookups=keys)
    try:
        columns = reading.columns(_tree(json.loads(plan)), {})
    except (AttributeError, IndexError, KeyError, StopIteration, TypeError) as error:
        raise UnknownPlanError(f"a plan of another form ({type(error).__name__}: {error})") from error
    for _, _, value in columns:
        reading.others |= value.owing
    named_sources = tuple((name, None if value.ranked else value.sources) for _, name, value in columns)
    return References(named_sources, frozenset(reading.others))


@dataclass
class _Tree:
    """A node of a plan or an expression: its class, its fields and its children."""

    kind: str
    fields: Mapping[str, Any]
    children: list[_Tree] = field(default_factory=list)

    def expression(self, name: str) -> _Tree | None:
        nodes = self.fields.get(name)
        return _tree(nodes) if nodes else None

    def expressions(self, name: str) -> list[_Tree]:
        return [_tree(nodes) for nodes in self.fields.get(name) or ()]

    @property
    def id(self) -> int:
        try:
            return int(self.fields["exprId"]["id"])
        except (KeyError, TypeError):
            raise UnknownPlanError(f"{self.kind} without an id") from None

    @property
    def name(self) -> str:
        return str(self.fields.get("name", ""))


def _tree(nodes: Sequence[Mapping[str, Any]]) -> _Tree:
    remaining = iter(nodes)

    def made() -> _Tree:
        node = next(remaining)
        tree = _Tree(str(node["class"]).rpartition(".")[2], node)
        tree.children = [made() for _ in range(int(node["num-children"]))]
        return tree

    return made()


@dataclass(frozen=True)
class _Value:
    """The sources of a column.

    ``plain``: it is one source, so its fields can be followed. ``owing`` are references that count once the column is used: group
    keys of an aggregate, since DISTINCT is kept with counts that nobody reads, and the order of a rank, which makes it
    ``ranked``.
    """

    sources: Sources
    plain: bool = False
    ranked: bool = False
    owing: frozenset[Fact] = frozenset()


_Columns = list[tuple[int, str, _Value]]
"""The columns of a plan: id, name, value."""
_Known = dict[int, _Value]
_Scan = tuple[str, int]
_NOTHING = _Value(frozenset())
_PASSING = frozenset({
    "Filter", "Sort", "GlobalLimit", "LocalLimit", "Limit", "Offset", "SubqueryAlias", "Distinct", "Deduplicate", "ResolvedHint",
    "Repartition", "LocalLimitAndOffset", "UnresolvedHint",
})  # fmt: skip
_RANKS = frozenset({"RowNumber", "Rank", "DenseRank"})
_LIMITS = frozenset({"GlobalLimit", "LocalLimit", "Limit", "Offset", "Tail"})


@dataclass
class _Reading:
    """Reads the references of one plan."""

    others: set[tuple[str, Sources]] = field(default_factory=set)
    scans: Counter[str] = field(default_factory=Counter)
    queries: dict[int, _Tree] = field(default_factory=dict)
    lookups: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def columns(self, plan: _Tree, outer: _Known, *, limited: bool = False) -> _Columns:
        """Return the columns of a plan, and note its other references; ``outer`` has the names outside of a sub-query."""
        if plan.kind == "View":
            return self._table(plan)
        if plan.kind == "WithCTE":
            *queries, last = plan.children
            self.queries |= {int(query.fields["id"]): query for query in queries}
            return self.columns(last, outer)
        if plan.kind == "CTERelationRef":
            inner = self.columns(self.queries[int(plan.fields["cteId"])].children[0], {})
            return [
                (attribute.id, attribute.name, value)
                for attribute, (_, _, value) in zip(plan.expressions("output"), inner, strict=True)
            ]
        sorts = plan.kind in _LIMITS or (limited and plan.kind == "Project")
        below = [self.columns(child, outer, limited=sorts) for child in plan.children]
        attributes = outer | {number: value for columns in below for number, _, value in columns}
        return self._node(plan, below, attributes, limited=limited)

    def _node(self, plan: _Tree, below: list[_Columns], attributes: _Known, *, limited: bool) -> _Columns:
        match plan.kind:
            case "Project":
                return self._named(plan.expressions("projectList"), attributes)
            case "Aggregate":
                keys = self._facts("group", plan.expressions("groupingExpressions"), attributes)
                expressions = plan.expressions("aggregateExpressions")
                return [
                    (number, name, _owing(value, keys) if _has(expression, "AggregateExpression") else value)
                    for expression, (number, name, value) in zip(expressions, self._named(expressions, attributes), strict=True)
                ]
            case "Window":
                terms = self._facts("partition", plan.expressions("partitionSpec"), attributes)
                terms |= self._facts("order", plan.expressions("orderSpec"), attributes)
                ranks = self._named(plan.expressions("windowExpressions"), attributes)
                return [*below[0], *((number, name, _owing(value, terms)) for number, name, value in ranks)]
            case "Join":
                return self._joined(plan, below, attributes)
            case "Union" | "Intersect":
                return _united(below)
            case "Except":
                for (_, _, left), (_, _, right) in zip(*below, strict=True):
                    self.others.add(("without", left.sources | right.sources))
                return below[0]
            case "Expand":
                sides = [self._named_as(plan, projection, attributes) for projection in plan.fields["projections"]]
                return _united(sides)
            case "Range" | "LocalRelation" | "OneRowRelation" | "LogicalRDD":
                return [(attribute.id, attribute.name, _NOTHING) for attribute in plan.expressions("output")]
            case kind if kind in _PASSING:
                if kind == "Filter":
                    self._conditions(plan.expression("condition"), attributes)
                if kind == "Sort" and limited:
                    self._note("order", plan.expressions("order"), attributes)
                return below[0]
            case _:
                raise UnknownPlanError(plan.kind)

    def _joined(self, join: _Tree, below: list[_Columns], attributes: _Known) -> _Columns:
        kind = str(join.fields["joinType"])
        condition = join.expression("condition")
        nullable = 1 if "LeftOuter" in kind else 0 if "RightOuter" in kind else None
        scan = None if nullable is None else self._looked_up(below[nullable])
        if nullable is None or scan is None:
            self._conditions(condition, attributes)
            return below[0] if "Semi" in kind or "Anti" in kind else [*below[0], *below[1]]
        parts = list(_conjuncts(condition))
        keys = self._key_equalities(parts, scan, attributes)
        self._note("condition", keys, attributes)
        rest = [self._value(part, attributes) for part in parts if all(part is not key for key in keys)]
        if rest:
            below[nullable] = [(number, name, _together([value, *rest])) for number, name, value in below[nullable]]
        return [*below[0], *below[1]]

    def _looked_up(self, columns: _Columns) -> _Scan | None:
        """Return the scan of a looked-up relation from which all these columns come; None if they have another source."""
        scans = {(source.table, source.scan) for _, _, value in columns for source in value.sources}
        scan = next(iter(scans)) if len(scans) == 1 else ("", 0)
        return scan if scan[0] in self.lookups else None

    def _key_equalities(self, parts: Sequence[_Tree], scan: _Scan, attributes: _Known) -> list[_Tree]:
        """Return the equalities of an ON that find a version: for each key column the first equality with other inputs.

        An equality with a constant does not count. The first of several equalities may have a conversion, which the text may or
        may not write.
        """
        equalities: dict[str, list[tuple[_Tree, bool]]] = {}
        for part in parts:
            if part.kind != "EqualTo":
                continue
            sides = [self._value(child, attributes) for child in part.children]
            from_scan = [any((source.table, source.scan) == scan for source in side.sources) for side in sides]
            if from_scan.count(True) != 1 or not all(side.sources for side in sides):
                continue
            side = part.children[from_scan.index(True)]
            column = _column_of(side, attributes)
            if column in self.lookups[scan[0]]:
                equalities.setdefault(column, []).append((part, side.kind == "Cast"))
        if len(equalities) < len(self.lookups[scan[0]]):
            raise UnknownPlanError(f"{scan[0]} is looked up by something else than its key")
        if any(len(candidates) > 1 and candidates[0][1] for candidates in equalities.values()):
            raise UnknownPlanError(f"{scan[0]} is looked up by one of several equalities")
        return [candidates[0][0] for candidates in equalities.values()]

    def _table(self, view: _Tree) -> _Columns:
        table = str(view.fields["desc"]["identifier"]["table"]).lower()
        scan = self.scans[table]
        self.scans[table] += 1
        inner = _Reading().columns(view.children[0], {})
        return [
            (number, name, _Value(frozenset({ColumnSource(table, scan, name.lower())}), plain=True)) for number, name, _ in inner
        ]

    def _named(self, expressions: Iterable[_Tree], attributes: _Known) -> _Columns:
        return [(expression.id, expression.name, self._value(expression, attributes)) for expression in expressions]

    def _named_as(self, plan: _Tree, projection: Sequence[Any], attributes: _Known) -> _Columns:
        values = [self._value(_tree(nodes), attributes) for nodes in projection]
        return [
            (attribute.id, attribute.name, value) for attribute, value in zip(plan.expressions("output"), values, strict=True)
        ]

    def _note(self, kind: str, expressions: Iterable[_Tree], attributes: _Known) -> None:
        self.others |= self._facts(kind, expressions, attributes)

    def _facts(self, kind: str, expressions: Iterable[_Tree], attributes: _Known) -> frozenset[Fact]:
        """Return the references of expressions of a kind; for an expression of a rank only its order."""
        values = [self._value(expression, attributes) for expression in expressions]
        facts = frozenset((kind, value.sources) for value in values if value.sources and not value.ranked)
        return facts.union(*(value.owing for value in values))

    def _conditions(self, condition: _Tree | None, attributes: _Known) -> None:
        for conjunct in _conjuncts(condition):
            self._condition(conjunct, attributes)

    def _condition(self, condition: _Tree, attributes: _Known) -> None:
        query = next((node for node in _every(condition) if node.kind in {"Exists", "InSubquery"}), None)
        if query is None:
            self._note("condition", [condition], attributes)
        elif query.kind == "Exists":
            self.columns(_inside(query), attributes)
        else:
            self._membership(query, attributes)

    def _membership(self, query: _Tree, attributes: _Known) -> None:
        """Note that each value of IN is compared with the column of the sub-query at the same position."""
        list_query = next((child for child in query.children if child.kind == "ListQuery"), None)
        values = [child for child in query.children if child.kind != "ListQuery"]
        if list_query is None:
            raise UnknownPlanError(query.kind)
        inner = self.columns(_inside(list_query), attributes)
        for expression, (_, _, value) in zip(values, inner, strict=False):
            compared = self._value(expression, attributes)
            self.others |= {("condition", compared.sources | value.sources)} | compared.owing | value.owing

    def _value(self, tree: _Tree, attributes: _Known) -> _Value:
        match tree.kind:
            case "AttributeReference":
                return attributes.get(tree.id, _NOTHING)
            case "OuterReference":
                inner = tree.expression("e") or next(iter(tree.children), None)
                return _NOTHING if inner is None else self._value(inner, attributes)
            case "Alias":
                return self._value(tree.children[0], attributes)
            case "GetStructField" | "GetArrayStructFields":
                return _with_field(self._value(tree.children[0], attributes), _field_of(tree))
            case "ScalarSubquery" | "LateralSubquery":
                raise UnknownPlanError(tree.kind)
        values = [self._value(child, attributes) for child in tree.children]
        return _together(values, ranked=tree.kind in _RANKS)


def _conjuncts(condition: _Tree | None) -> Iterator[_Tree]:
    if condition is None:
        return
    if condition.kind != "And":
        yield condition
        return
    for child in condition.children:
        yield from _conjuncts(child)


def _column_of(tree: _Tree, attributes: _Known) -> str:
    """Return the name of the column if an expression is a column, perhaps with a cast; an empty text otherwise."""
    if tree.kind == "Cast":
        return _column_of(tree.children[0], attributes)
    value = attributes.get(tree.id, _NOTHING) if tree.kind == "AttributeReference" else _NOTHING
    return next(iter(value.sources)).column if value.plain else ""


def _together(values: Sequence[_Value], *, ranked: bool = False) -> _Value:
    return _Value(
        frozenset[ColumnSource]().union(*(value.sources for value in values)),
        ranked=ranked or any(value.ranked for value in values),
        owing=frozenset[Fact]().union(*(value.owing for value in values)),
    )


def _owing(value: _Value, facts: frozenset[Fact]) -> _Value:
    return replace(value, owing=value.owing | facts)


def _united(sides: Sequence[_Columns]) -> _Columns:
    """Return the columns that come from one of several plans, each with the id and the name of the first plan's column."""
    columns = []
    for alternatives in zip(*sides, strict=True):
        number, name, value = alternatives[0]
        values = [value for _, _, value in alternatives]
        columns.append((number, name, value if len(set(values)) == 1 else _together(values)))
    return columns


def _with_field(value: _Value, name: str) -> _Value:
    if not value.plain:
        return value
    return replace(value, sources=frozenset(source._replace(fields=(*source.fields, name.lower())) for source in value.sources))


def _field_of(tree: _Tree) -> str:
    name = tree.fields.get("name")
    return str(name if isinstance(name, str) else tree.fields["field"]["name"])


def _every(tree: _Tree) -> Iterator[_Tree]:
    yield tree
    for child in tree.children:
        yield from _every(child)


def _has(tree: _Tree, kind: str) -> bool:
    return any(node.kind == kind for node in _every(tree))


def _inside(query: _Tree) -> _Tree:
    plan = query.expression("plan")
    if plan is None:
        raise UnknownPlanError(query.kind)
    return plan


class UnknownPlanError(ValueError):
    """A plan has a node of an unknown kind, so its columns cannot be compared."""
