"""FROM: its items as plans with names, and how each is joined."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from warehouse.catalog.functions import GENERATORS
from warehouse.catalog.identifiers import quoted
from warehouse.catalog.spelling import nearest
from warehouse.time import format_duration
from warehouse.views.algebra import Named, Project, Scan, TimeWindow, Top
from warehouse.views.language.clauses import check_clauses
from warehouse.views.language.columns import types_of
from warehouse.views.language.dialect import conjuncts, text
from warehouse.views.language.expressions import check_expression, function_name
from warehouse.views.language.faults import RefusedError
from warehouse.views.language.joining import Step
from warehouse.views.language.scope import Item, Scope, bound_column
from warehouse.views.language.windows import WINDOW_FUNCTIONS, read_window
from warehouse.views.lifetimes import lifetime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from warehouse.views.algebra import Operator
    from warehouse.views.language.faults import Faults
    from warehouse.views.language.scope import Table
    from warehouse.views.language.windows import DeclaredWindow

__all__ = ["FromReader", "Known", "With", "renaming"]

_IN_FROM = "streams, relations, views, windows over them and sub-queries in FROM"


@dataclass(frozen=True)
class With:
    """A query of a WITH clause, the names it gives its columns, and the queries that it can name."""

    query: exp.Query
    columns: tuple[str, ...]
    known: Known


Known = dict[str, With]
"""The queries of WITH clauses by lower-case name."""


@dataclass(frozen=True)
class FromReader:
    """Reads FROM clauses.

    ``plan`` gives the plan of a sub-query, ``columns`` the columns of a plan.
    """

    tables: Mapping[str, Table]
    faults: Faults
    plan: Callable[[exp.Query, Known], Operator]
    columns: Callable[[Operator], tuple[str, ...]]

    def read(self, select: exp.Select, known: Known, *, top: bool, keyed: bool) -> tuple[Scope, list[Step]]:
        """Return the names of a SELECT, and the joins of its FROM in order.

        Parameters
        ----------
        select
            The query.
        known
            The WITH queries that it can name.
        top
            Whether it is the view's own query, where internal windows can be.
        keyed
            Whether its rows are joined by a sub-query in WHERE, so that names must be qualified.

        Raises
        ------
        RefusedError
            For an input or a join that cannot be maintained.

        """
        start = select.args.get("from_")
        if start is None:
            raise RefusedError(select, "a query without FROM", "SELECT ... FROM a stream, relation or view")
        joins: list[exp.Join] = select.args.get("joins") or []
        items = [self._item(source, known, top=top) for source in (start.this, *(join.this for join in joins))]
        for number, item in enumerate(items):
            if item.alias.lower() in {other.alias.lower() for other in items[:number]}:
                suggestion = f"{text(_unaliased(item.node))} AS {item.alias}_2"
                raise RefusedError(item.node, f'two inputs called "{item.alias}"', "an alias for each", suggestion)
        scope = Scope(items, self.faults, qualified=keyed or len(items) > 1)
        steps = [Step(0, "inner", [])]
        for number, join in enumerate(joins, start=1):
            steps.append(self._step(scope, join, number))
            if steps[-1].side in {"right", "full"} and any(_is_cross(earlier) for earlier in joins[:number]):
                found = f"a {steps[-1].side.upper()} JOIN after a comma"
                raise RefusedError(items[number].node, found, "JOIN ... ON in place of the comma")
        return scope, steps

    # --- items ---

    def _item(self, source: exp.Expr, known: Known, *, top: bool) -> Item:
        if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Query):
            check_clauses(source)
            operator = self.plan(source, known)
            return self._aliased(source, self._planned(source.alias or "_", source, operator))
        if not isinstance(source, exp.Table) or not isinstance(source.this, (exp.Identifier, exp.Anonymous)):
            raise RefusedError(source, text(source), _IN_FROM)
        check_clauses(source)
        item = self._window(source, known, top=top) if isinstance(source.this, exp.Anonymous) else self._named(source, known)
        return self._aliased(source, item)

    def _named(self, source: exp.Table, known: Known) -> Item:
        name = source.name
        query = known.get(name.lower())
        if query is not None:
            operator = self.plan(query.query, query.known)
            if query.columns:
                operator = self._renamed(source, operator, query.columns)
            return self._planned(source.alias_or_name, source, operator)
        table = next((candidate for candidate in self.tables.values() if candidate.name == name.lower()), None)
        if table is None:
            names = [*self.tables, *known]
            raise RefusedError(source, f'the unknown table "{name}"', ", ".join(names) or "none", nearest(name, names))
        if table.lazy:
            found = f'"{name}", a coalesced table with how = "lazy"'
            raise RefusedError(source, found, f'how = "eager" in [coalesced.{name}]: a view follows what changes in files')
        relation = table if table.kind == "relation" else None
        return Item(source.alias_or_name, source, Scan(table.name), tuple(table.columns), relation, types=table.columns)

    def _planned(self, alias: str, source: exp.Expr, operator: Operator) -> Item:
        types = types_of(operator, {table.name: table.columns for table in self.tables.values()})
        return Item(alias, source, operator, tuple(types), types=types)

    def _window(self, source: exp.Table, known: Known, *, top: bool) -> Item:
        call: exp.Anonymous = source.this
        name = function_name(call) or ""
        if name in GENERATORS:
            raise RefusedError(source, f"{name}() in FROM, which makes rows of its own", _IN_FROM)
        if name not in WINDOW_FUNCTIONS:
            allowed = "time_window(table, INTERVAL ...), row_window(table, n)"
            raise RefusedError(source, f"the unknown table function {name}()", allowed, nearest(name, WINDOW_FUNCTIONS))
        window = read_window(call)
        inner = window.source if isinstance(window.source, exp.Subquery) else exp.Table(this=window.source.this.copy())
        below = self._item(inner, known, top=False)
        if below.relation:
            found = f"a window over the relation {below.relation.name}"
            raise RefusedError(source, found, "the relation itself: its rows end when their key changes", below.relation.name)
        if window.internal and not top:
            copy = call.copy()
            copy.set("expressions", [argument for argument in copy.expressions if not isinstance(argument, exp.Kwarg)])
            allowed = "internal windows in the view's own FROM, which decides what becomes of results"
            raise RefusedError(source, "an internal window inside a sub-query", allowed, text(copy))
        alias = source.alias or (below.alias if below.alias != "_" else name)
        operator = self._windowed(source, window, below)
        return Item(alias, source, operator, below.columns, internal=window.internal, types=below.types)

    def _windowed(self, source: exp.Expr, window: DeclaredWindow, below: Item) -> Operator:
        if window.length is not None:
            bound = lifetime(below.operator, {table.name: table.lifetime for table in self.tables.values()})
            if bound is not None and window.length > bound:
                length, longest = format_duration(window.length), format_duration(bound)
                found = f"a window of {length} over {below.alias}, whose rows live {longest} at most"
                allowed = f"a window up to {longest}, or {below.alias} itself: a longer one ends nothing"
                raise RefusedError(source, found, allowed, below.alias)
            return TimeWindow(below.operator, window.length, window.internal)
        partition: tuple[str, ...] = ()
        if window.partition is not None:
            column = Scope([below], self.faults, qualified=False).resolve(window.partition)
            if not isinstance(column, exp.Column):
                raise RefusedError(window.partition, f"{text(window.partition)}, a field", "a column of the window's input")
            partition = (column.name,)
        return Top(below.operator, partition, (), window.rows or 1)

    def _aliased(self, source: exp.Expr, item: Item) -> Item:
        alias = source.args.get("alias")
        columns = tuple(column.name for column in alias.columns) if isinstance(alias, exp.TableAlias) else ()
        if not columns:
            return item
        if item.relation:
            found = f"other names for the columns of the relation {item.relation.name}"
            raise RefusedError(source, found, "its columns by their names, with AS in the SELECT")
        types = dict(zip(columns, item.types.values(), strict=False))
        operator = self._renamed(source, item.operator, columns)
        return replace(item, operator=operator, columns=columns, relation=None, types=types)

    def _renamed(self, at: exp.Expr, operator: Operator, columns: tuple[str, ...]) -> Operator:
        names = self.columns(operator)
        if len(names) != len(columns):
            raise RefusedError(at, f"{len(columns)} names for {len(names)} columns", f"a name for each of {', '.join(names)}")
        return Project(operator, renaming(names, columns))

    # --- joins ---

    def _step(self, scope: Scope, join: exp.Join, number: int) -> Step:
        side = _side(join, scope, number)
        parts = [part for part in conjuncts(join.args.get("on")) if check_expression(part, self.faults, "rows")]
        conditions = [scope.bind(part) for part in parts]
        conditions += [self._using(scope, name, number, side) for name in join.args.get("using") or ()]
        return Step(number, side, conditions)

    def _using(self, scope: Scope, identifier: exp.Expr, number: int, side: str) -> exp.Expr:
        """Return the equality of a USING column; its name alone then means the side that is not null."""
        name = identifier.name
        item = scope.items[number]
        column = item.column(name)
        if column is None:
            allowed = f"columns of both sides ({', '.join(item.columns)})"
            self.faults.add(identifier, f'the unknown column "{name}" of {item.alias}', allowed, nearest(name, item.columns))
            return exp.Null()
        before = Scope(scope.items[:number], self.faults, scope.qualified, dict(scope.merged))
        left = before.resolve(exp.Column(this=identifier.copy()))
        right = bound_column(scope.name(number, column), number, column, identifier)
        merged: exp.Expr = right if side == "right" else left
        if side == "full":
            merged = exp.Anonymous(this="coalesce", expressions=[left.copy(), right.copy()])
        scope.merged[name.lower()] = merged.copy()
        return exp.EQ(this=left, expression=right)


def _side(join: exp.Join, scope: Scope, number: int) -> Literal["inner", "left", "right", "full"]:
    item = scope.items[number]
    kind, side = str(join.args.get("kind") or "").upper(), str(join.args.get("side") or "").upper()
    if join.args.get("method"):
        allowed = "JOIN ... USING (column, ...), with the columns by name"
        common = [name for name in item.columns if any(other.column(name) for other in scope.items[:number])]
        suggestion = f"JOIN {text(item.node)} USING ({', '.join(common)})" if common else None
        raise RefusedError(item.node, f"{join.args['method']} JOIN", allowed, suggestion)
    if kind in {"SEMI", "ANTI"}:
        word = "EXISTS" if kind == "SEMI" else "NOT EXISTS"
        on = join.args.get("on")
        suggestion = f"WHERE {word} (SELECT 1 FROM {text(item.node)} WHERE {text(on)})" if on else None
        raise RefusedError(item.node, f"{side or 'LEFT'} {kind} JOIN", f"{word} in WHERE", suggestion)
    if kind not in {"", "INNER", "CROSS", "OUTER"}:
        raise RefusedError(item.node, f"{kind} JOIN", "JOIN, LEFT JOIN, RIGHT JOIN, FULL JOIN")
    return "left" if side == "LEFT" else "right" if side == "RIGHT" else "full" if side == "FULL" else "inner"


def _is_cross(join: exp.Join) -> bool:
    return str(join.args.get("kind") or "").upper() == "CROSS"


def _unaliased(source: exp.Expr) -> exp.Expr:
    """Return a parenthesised query, or a table, without its alias."""
    copy = source.copy()
    copy.set("alias", None)
    return copy


def renaming(names: tuple[str, ...], others: tuple[str, ...]) -> tuple[Named, ...]:
    """Return the projection that gives columns other names."""
    return tuple(Named(other, quoted(name)) for name, other in zip(names, others, strict=True))
