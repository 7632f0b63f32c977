"""The views of a catalog, compiled: checked SQL, labelled plans, the tables that keep them, in the order they depend.

Pure: it needs neither Spark nor a file, and takes about a second for a dozen views.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.catalog.spelling import nearest
from warehouse.catalog.types import is_key_type, parse_type
from warehouse.errors import ConfigurationError, Problem
from warehouse.layout import LayoutError, resolve
from warehouse.time import format_duration
from warehouse.views.algebra import AsOf, OutputWindow, inputs_of, scanned
from warehouse.views.columns import types_of
from warehouse.views.compile import Known, compile_plan
from warehouse.views.dialect import parse_query
from warehouse.views.expressions import function_name
from warehouse.views.faults import Faults, RefusedError
from warehouse.views.labels import STR
from warehouse.views.lifetimes import lifetime
from warehouse.views.nullability import never_null
from warehouse.views.output_windows import check_output_window
from warehouse.views.parse import Binder
from warehouse.views.scope import Table, declared_tables
from warehouse.views.simplify import simplified
from warehouse.views.windows import WINDOW_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.catalog.model import Catalog, View
    from warehouse.views.algebra import Node, Operator
    from warehouse.views.labels import Label
    from warehouse.views.types import Types

__all__ = ["ViewPlan", "ViewPlans", "compile_views"]


@dataclass(frozen=True)
class ViewPlan:
    """One view, compiled.

    Parameters
    ----------
    view
        Its declaration.
    tree
        The plan of its SQL; the columns of its rows are those of ``columns``.
    nodes
        The tables that keep it, each after those that it reads; the last is the view's own.
    columns
        The view's columns with their types, as far as they are certain without Spark.
    reads
        The streams, relations and views that it reads, each once.
    label, state
        The output label, that of the view's own rows, and the state label of the root.
    lifetime
        S of the view's rows in microseconds; none when nothing bounds it.
    tables
        What is known of the tables that it can name, for :mod:`warehouse.views.describe`.
    warnings
        What ``validate`` tells without failing.

    """

    view: View
    tree: Operator
    nodes: tuple[Node, ...]
    columns: Types
    reads: tuple[str, ...]
    label: Label
    state: Label
    lifetime: int | None
    tables: Mapping[str, Table]
    warnings: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The view's name."""
        return self.view.name


@dataclass(frozen=True)
class ViewPlans:
    """The compiled views of a catalog, each after those that it reads."""

    views: tuple[ViewPlan, ...]

    def __iter__(self) -> Iterator[ViewPlan]:
        """Yield the views, each after those that it reads."""
        return iter(self.views)

    def view(self, name: str) -> ViewPlan | None:
        """Return the view of that name."""
        return next((view for view in self.views if view.name == name), None)

    def warnings(self) -> tuple[str, ...]:
        """Return all warnings, each with the key that it is about."""
        return tuple(f"views.{view.name}.{text}" for view in self.views for text in view.warnings)


def compile_views(catalog: Catalog) -> ViewPlans:
    """Check and compile all views of a catalog.

    Raises
    ------
    ConfigurationError
        With every fault of every view: its place in the SQL, what is allowed, and the nearest query that could be
        maintained. A view over a faulty one is not looked at.

    """
    problems: list[Problem] = []
    tables = declared_tables(catalog)
    queries = _parsed(catalog, problems)
    plans: dict[str, ViewPlan] = {}
    faulty = {view.name for view in catalog.views} - set(queries)
    for name in _ordered(catalog, queries, problems):
        view = next(each for each in catalog.views if each.name == name)
        faults = Faults(view.sql)
        if _named_in(queries[name]) & faulty:
            faulty.add(name)
            continue
        plan = _planned(catalog, view, queries[name], tables, faults)
        problems += [_problem(catalog, view, "sql", fault.found, fault.allowed, fault.nearest) for fault in faults.found]
        if plan is not None and not faults.found:
            found = [*_key_problems(catalog, plan), *_option_problems(catalog, plan)]
            problems += found
            tables[name] = _table(plan)
            plans[name] = plan
        else:
            faulty.add(name)
    if problems:
        raise ConfigurationError(problems)
    return ViewPlans(tuple(plans.values()))


def _problem(catalog: Catalog, view: View, key: str, found: str, allowed: str, suggestion: str | None = None) -> Problem:
    return Problem(str(catalog.file), f"views.{view.name}.{key}", found, allowed, suggestion)


def _parsed(catalog: Catalog, problems: list[Problem]) -> dict[str, exp.Query]:
    queries = {}
    for view in catalog.views:
        try:
            queries[view.name] = parse_query(view.sql)
        except RefusedError as error:
            faults = Faults(view.sql)
            faults.add_refused(error)
            problems += [_problem(catalog, view, "sql", fault.found, fault.allowed, fault.nearest) for fault in faults.found]
    return queries


# --- in which order ---


def _named_in(query: exp.Query) -> set[str]:
    """The names that can be tables, in lower case."""
    own = {each.alias.lower() for each in query.find_all(exp.CTE)}
    names = {table.name.lower() for table in query.find_all(exp.Table)}
    for call in query.find_all(exp.Anonymous):
        if function_name(call) in WINDOW_FUNCTIONS and call.expressions:
            names.add(call.expressions[0].name.lower())
    return names - own


def _ordered(catalog: Catalog, queries: Mapping[str, exp.Query], problems: list[Problem]) -> list[str]:
    """The views that parse, each after those that it names; those of a cycle are problems."""
    needs = {name: {each for each in _named_in(query) if each in queries} for name, query in queries.items()}
    ordered: list[str] = []
    while ready := [name for name in needs if name not in ordered and needs[name] <= set(ordered)]:
        ordered += ready
    stuck = {name: needs[name] - set(ordered) for name in needs if name not in ordered}
    for name in stuck:
        cycle = _cycle(name, stuck)
        if cycle is not None:
            view = next(each for each in catalog.views if each.name == name)
            faults = Faults(view.sql)
            at = next((table for table in queries[name].find_all(exp.Table) if table.name.lower() == cycle[1]), None)
            faults.add(at, f"a cycle: {' reads '.join(cycle)}", "views over streams, relations and other views")
            problems += [_problem(catalog, view, "sql", fault.found, fault.allowed) for fault in faults.found]
    return ordered


def _cycle(start: str, needs: Mapping[str, set[str]]) -> list[str] | None:
    """The way from a view back to itself."""
    paths = [[start]]
    seen = set()
    while paths:
        path = paths.pop(0)
        for each in sorted(needs.get(path[-1], ())):
            if each == start:
                return [*path, start]
            if each not in seen:
                seen.add(each)
                paths.append([*path, each])
    return None


# --- one view ---


def _planned(
    catalog: Catalog, view: View, query: exp.Query, tables: Mapping[str, Table], faults: Faults
) -> ViewPlan | None:
    try:
        tree = Binder(tables, faults).bind(query)
        if view.output_length is not None or view.output_rows is not None:
            if not faults.found:
                check_output_window(query, tree, {name: table.label for name, table in tables.items()})
            tree = OutputWindow(tree, view.output_length, view.output_rows)
    except RefusedError as error:
        faults.add_refused(error)
        return None
    if faults.found:
        return None
    known = Known(
        {name: table.label for name, table in tables.items()},
        {name: table.lifetime for name, table in tables.items()},
        {name: table.columns for name, table in tables.items()},
    )
    tree = simplified(tree, {name: tuple(table.columns) for name, table in tables.items()})
    columns = types_of(tree, known.types)
    key = tuple(next((name for name in columns if name.lower() == each.lower()), each) for each in view.search_key)
    nodes = compile_plan(view.name, tree, key, known, catalog.update_interval)
    reads = tuple(name for name in tables if name in _read_by(nodes))
    label, state = known.label(tree, output=True), known.label(tree)
    bound = lifetime(tree, known.lifetimes, output=True)
    warnings = tuple(_warnings(catalog, view, label))
    return ViewPlan(view, tree, nodes, columns, reads, label, state, bound, dict(tables), warnings)


def _read_by(nodes: Sequence[Node]) -> set[str]:
    found: set[str] = set()

    def visit(operator: Operator) -> None:
        found.update(scanned(operator))
        if isinstance(operator, AsOf):
            found.add(operator.relation)
        for each in inputs_of(operator):
            visit(each)

    for node in nodes:
        visit(node.operator)
    return found


def _table(plan: ViewPlan) -> Table:
    facts = {name: table.never_null for name, table in plan.tables.items()}
    sound = never_null(plan.tree, facts)
    key = plan.nodes[-1].search_key
    return Table(plan.name, "view", plan.columns, plan.label, plan.lifetime, key, never_null=sound)


def _key_problems(catalog: Catalog, plan: ViewPlan) -> Iterator[Problem]:
    names = list(plan.columns)
    for given, name in zip(plan.view.search_key, plan.nodes[-1].search_key, strict=True):
        if name not in plan.columns:
            allowed = f"columns that the view gives ({', '.join(names)})"
            yield _problem(catalog, plan.view, "search_key", f'the unknown column "{given}"', allowed, nearest(given, names))
            continue
        kind = plan.columns[name]
        if kind is not None and not is_key_type(parse_type(kind)):
            allowed = "key columns that are strings, integers, decimals, dates, timestamps or booleans"
            yield _problem(catalog, plan.view, "search_key", f'the column "{name}" of type {kind}', allowed)


def _option_problems(catalog: Catalog, plan: ViewPlan) -> Iterator[Problem]:
    view = plan.view
    keys = [key for key, value in vars(view.layout).items() if value is not None]
    if plan.label == STR:
        for key in keys:
            found = f"{key} for a view whose rows can leave before their own end (STR)"
            yield _problem(catalog, view, f"layout.{key}", found, "nothing: its table is cut by the search key")
    elif keys:
        try:
            resolve(periods=plan.nodes[-1].periods, label=plan.label.kind, **vars(view.layout))
        except LayoutError as error:
            for problem in error.problems:
                allowed = f"{problem.allowed}: {problem.message.rstrip('.')}"
                yield _problem(catalog, view, f"layout.{problem.key}", problem.found, allowed)
    if view.short_lived == "report" and isinstance(plan.tree, OutputWindow):
        found = '"report" with an output window'
        yield _problem(catalog, view, "short_lived", found, '"drop": an output window has no place for results that are gone')


def _warnings(catalog: Catalog, view: View, label: Label) -> Iterator[str]:
    if view.short_lived == "drop" and label.kind in {"WK", "STR"}:
        interval = format_duration(catalog.update_interval)
        yield (
            f"short_lived: results that come and go between two updates ({interval}) are not kept;"
            ' "report" keeps a record of them'
        )
