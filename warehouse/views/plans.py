"""The views of a catalog, compiled: checked SQL, labelled plans, the tables that keep them, in the order of dependencies.

Pure: it needs neither Spark nor a file, and takes about a second for a dozen views.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.errors import ConfigurationError, Problem
from warehouse.time import format_duration
from warehouse.views.algebra import AntiJoin, InternalRows, OutputWindow, TimeWindow, inputs_of, scanned, stateful_of
from warehouse.views.compile import KnownTables, compile_plan
from warehouse.views.language.budgets import budget_faults, partial_below
from warehouse.views.language.columns import never_null, types_of
from warehouse.views.language.dialect import parse_query
from warehouse.views.language.expressions import function_name
from warehouse.views.language.faults import TOO_DEEP, Faults, FaultyError, RefusedError
from warehouse.views.language.options import key_faults, layout_faults, tables_of, warnings_of
from warehouse.views.language.parse import Binder
from warehouse.views.language.scope import Table, declared_tables
from warehouse.views.language.simplify import simplified
from warehouse.views.language.storable import unstorable
from warehouse.views.language.temporal import with_plain_intervals
from warehouse.views.language.windows import WINDOW_FUNCTIONS, check_output_window
from warehouse.views.lifetimes import lifetime

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from warehouse.catalog.model import Catalog, View
    from warehouse.views.algebra import Node, Operator
    from warehouse.views.labels import Label
    from warehouse.views.language.types import Types

__all__ = ["ViewPlan", "ViewPlans", "compile_views", "cycles", "judged_views", "named_in", "ordered", "with_short_lived"]


_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ViewPlan:
    """One view, compiled.

    Parameters
    ----------
    view
        Its declaration.
    tree
        The plan of its SQL; its rows have the columns ``columns``.
    nodes
        Its nodes, each after the nodes that it reads; the last is the view's own table.
    columns
        The view's columns with their types, as far as they are certain without Spark.
    reads
        The streams, relations and views that it reads, each once.
    label, state
        The output label (of the view's own rows), and the state label of the root.
    lifetime
        S of the view's rows in microseconds; None if it is unbounded.
    tables
        The properties of the tables that it can name, for :mod:`warehouse.views.describe`.
    warnings
        Warnings of ``validate``.
    counts_short_lived
        Whether its short-lived results are known.

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
    counts_short_lived: bool = True

    @property
    def name(self) -> str:
        """The view's name."""
        return self.view.name

    @property
    def drops_by_default(self) -> bool:
        """Whether short-lived results are dropped by default although they could be reported."""
        # Under a budget it is unknown which owed pairs are short-lived.
        is_decided = self.view.short_lived_declared or partial_of(self) is not None
        return self.counts_short_lived and self.label.kind in {"WK", "STR"} and not is_decided


@dataclass(frozen=True)
class ViewPlans:
    """The compiled views of a catalog, each after the views that it reads.

    ``refused`` has the other views with the reason: views with a fault, and views that read them. ``interval`` is in
    microseconds.
    """

    views: tuple[ViewPlan, ...]
    interval: int = 0
    refused: Mapping[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[ViewPlan]:
        """Yield the views, each after the views that it reads."""
        return iter(self.views)

    def view(self, name: str) -> ViewPlan | None:
        """Return the view of that name."""
        return next((view for view in self.views if view.name == name), None)

    def warnings(self) -> tuple[str, ...]:
        """Return all warnings, each with the key that it is about; one for all views that lose short-lived results."""
        messages = [f"views.{view.name}.{text}" for view in self.views for text in view.warnings]
        losing = [plan.name for plan in self.views if plan.drops_by_default]
        if losing:
            messages.append(
                f"views.*.short_lived: of {', '.join(losing)}, results that come and go between two updates"
                f' ({format_duration(self.interval)}) are not kept; "report" records them, "drop" says that none is wanted'
            )
        return tuple(messages)


def compile_views(catalog: Catalog) -> ViewPlans:
    """Check and compile all views of a catalog.

    Raises
    ------
    ConfigurationError
        With every fault of every view: its place in the SQL, what is allowed, and the nearest query that could be maintained. A
        view over a faulty one is not checked.

    """
    plans, problems = judged_views(catalog)
    if problems:
        raise ConfigurationError(problems)
    return plans


def judged_views(catalog: Catalog) -> tuple[ViewPlans, tuple[Problem, ...]]:
    """Check all views of a catalog; return the compiled views that can be maintained, and every fault of the others."""
    problems: list[Problem] = []
    tables = declared_tables(catalog)
    queries = _parsed(catalog, problems)
    plans: dict[str, ViewPlan] = {}
    faulty = {view.name for view in catalog.views} - set(queries)
    for name, cycle_faults in cycles(queries, {view.name: view.sql for view in catalog.views}).items():
        problems += _problems(catalog, name, cycle_faults)
    for name in ordered(queries):
        view = next(declared_view for declared_view in catalog.views if declared_view.name == name)
        if named_in(queries[name]) & faulty:
            faulty.add(name)
            continue
        plan, faults = _judged(catalog, view, queries[name], tables, plans)
        problems += faults
        if plan is not None:
            plans[name] = plan
        else:
            faulty.add(name)
    refused = _refused(queries, problems)
    maintainable = tuple(plan for name, plan in plans.items() if name not in refused)
    return ViewPlans(maintainable, catalog.update_interval, refused), tuple(problems)


def _judged(
    catalog: Catalog, view: View, query: exp.Query, tables: dict[str, Table], plans: Mapping[str, ViewPlan]
) -> tuple[ViewPlan | None, list[Problem]]:
    """Compile a view and add it to ``tables``; return its plan (None if there is none) and its faults, errors included."""
    faults = Faults(view.sql)
    try:
        plan = _planned(catalog, view, query, tables, faults)
        if plan is None:
            return None, _problems(catalog, view.name, faults)
        all_nodes = (*(node for other_plan in plans.values() for node in other_plan.nodes), *plan.nodes)
        plan = replace(plan, counts_short_lived=view.name in with_short_lived(all_nodes, *_arriving(catalog)))
        problems = [*_problems(catalog, view.name, faults), *_option_problems(catalog, plan)]
        tables[view.name] = _table(plan)
        return plan, problems  # noqa: TRY300 - the errors of all of it are caught
    except RecursionError:
        faults.add(None, *TOO_DEEP)
    except Exception as error:  # noqa: BLE001 - one view never takes the others down
        faults.add(None, *_unexpected(error))
    return None, _problems(catalog, view.name, faults)


def _unexpected(error: Exception) -> tuple[str, str]:
    """Return the fault of a view whose check raises an unexpected error."""
    _log.debug("a view cannot be judged", exc_info=error)
    message = str(error).splitlines()[0] if str(error) else ""
    return f"a query that this version fails to read: {type(error).__name__}: {message}", "the same query written in another way"


def _refused(queries: Mapping[str, exp.Query], problems: Sequence[Problem]) -> dict[str, str]:
    """Return the views with a fault (the first fault of each), and the views that read them."""
    reasons: dict[str, str] = {}
    for problem in problems:
        reasons.setdefault(problem.key.split(".")[1], f"{problem.found}; allowed: {problem.allowed}")
    while above := {name for name, query in queries.items() if name not in reasons and named_in(query) & reasons.keys()}:
        for name in above:
            below = min(named_in(queries[name]) & reasons.keys())
            reasons[name] = f"it reads {below}, which cannot be maintained"
    return reasons


def _arriving(catalog: Catalog) -> tuple[list[str], list[str]]:
    streams = [table.name for tables in (catalog.streams, catalog.aggregates) for table in tables]
    return streams, [relation.name for relation in catalog.relations]


def _problems(catalog: Catalog, name: str, faults: Faults) -> list[Problem]:
    key = f"views.{name}.sql"
    return [Problem(str(catalog.file), key, fault.found, fault.allowed, fault.nearest) for fault in faults.found]


def _option_problems(catalog: Catalog, plan: ViewPlan) -> Iterator[Problem]:
    columns = {name: tuple(table.columns) for name, table in plan.tables.items()}
    kinds = [(name.lower(), kind) for table in plan.tables.values() for name, kind in table.columns.items()]
    not_times = {name for name, kind in kinds if kind not in ("timestamp", "date")}
    keyed = [("sql", fault) for fault in unstorable(plan.nodes, columns, {name for name, _ in kinds} - not_times)]
    keyed += [("search_key", fault) for fault in key_faults(plan.view, plan.columns)]
    keyed += layout_faults(plan.view, plan.tree, plan.nodes[-1], plan.label, counted=plan.counts_short_lived)
    for key, fault in [*keyed, *budget_faults(plan.view, plan.nodes, plan.tables)]:
        yield Problem(str(catalog.file), f"views.{plan.name}.{key}", fault.found, fault.allowed, fault.nearest)


def _parsed(catalog: Catalog, problems: list[Problem]) -> dict[str, exp.Query]:
    queries = {}
    for view in catalog.views:
        try:
            queries[view.name] = with_plain_intervals(parse_query(view.sql))
        except RefusedError as error:
            faults = Faults(view.sql)
            faults.add_refused(error)
            problems += _problems(catalog, view.name, faults)
        except Exception as error:  # noqa: BLE001 - as above
            faults = Faults(view.sql)
            faults.add(None, *_unexpected(error))
            problems += _problems(catalog, view.name, faults)
    return queries


def _planned(
    catalog: Catalog, view: View, query: exp.Query, tables: Mapping[str, Table], faults: Faults
) -> ViewPlan | None:
    try:
        tree = Binder(tables, faults).bind(query)
        if view.output_length is not None or view.output_rows is not None:
            check_output_window(query, tree, {name: table.label for name, table in tables.items()})
            tree = OutputWindow(tree, view.output_length, view.output_rows)
    except RefusedError as error:
        faults.add_refused(error)
        return None
    except FaultyError:
        return None
    known_tables = KnownTables(
        {name: table.label for name, table in tables.items()},
        {name: table.lifetime for name, table in tables.items()},
        {name: table.columns for name, table in tables.items()},
    )
    tree = simplified(tree, {name: tuple(table.columns) for name, table in tables.items()})
    columns = types_of(tree, known_tables.types)
    key = tuple(
        next((name for name in columns if name.lower() == key_column.lower()), key_column) for key_column in view.search_key
    )
    nodes = compile_plan(view.name, tree, key, known_tables, catalog.update_interval)
    read = {table for node in nodes for table in tables_of(node.operator)}
    label, state = known_tables.label(tree, output=True), known_tables.label(tree)
    bound = lifetime(tree, known_tables.lifetimes, output=True)
    warnings = tuple(warnings_of(tree, tables, catalog.update_interval))
    reads = tuple(table for table in tables if table in read)
    return ViewPlan(view, tree, nodes, columns, reads, label, state, bound, dict(tables), warnings)


def partial_of(plan: ViewPlan) -> str | None:
    """Return the view under a budget that a view is, or that it reads."""
    return plan.name if plan.view.budget is not None else partial_below(plan.nodes, plan.tables)


def _table(plan: ViewPlan) -> Table:
    facts = {name: table.never_null for name, table in plan.tables.items()}
    not_null = never_null(plan.tree, facts)
    key = plan.nodes[-1].search_key
    return Table(plan.name, "view", plan.columns, plan.label, plan.lifetime, key, never_null=not_null, partial=partial_of(plan))


# --- tables of views that know their short-lived results, which begin and end between two updates ---
#
# Rows that end by themselves carry their times. An anti-join knows the lifetimes of both sides if their rows end by themselves. A
# selection knows the short-lived rows of its input. Operators that are recomputed for changed keys (groups, outer joins, first
# rows, bag differences, joins of these) see two contents and nothing in between (update-patterns sheet, 4.4).


def with_short_lived(nodes: Iterable[Node], streams: Iterable[str], relations: Iterable[str]) -> frozenset[str]:
    """Return the tables that know their short-lived rows.

    Parameters
    ----------
    nodes
        The nodes of all views, each after the nodes that it reads.
    streams, relations
        The declared names; versions of a relation are no results.

    """
    known, keyed = set(streams), set(relations)
    for node in nodes:
        read, core = set(scanned(node.operator)), stateful_of(node.operator)
        if node.label == "STR":
            keyed.add(node.table)
        windowed = any(isinstance(operator, TimeWindow) for operator in _operators(node.operator))
        counted = any(isinstance(operator, InternalRows) for operator in _operators(node.operator))
        if (
            (node.label != "STR" and not counted)
            or (isinstance(core, AntiJoin) and not read & keyed)
            or (core is None and not windowed and read <= known)
        ):
            known.add(node.table)
    return frozenset(known)


def _operators(tree: Operator) -> Iterator[Operator]:
    yield tree
    for input_operator in inputs_of(tree):
        yield from _operators(input_operator)


# --- the order of views: each after the views that it names ---


def named_in(query: exp.Query) -> set[str]:
    """Return the names in a query that can be tables, in lower case."""
    cte_names = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
    names = {table.name.lower() for table in query.find_all(exp.Table)}
    for call in query.find_all(exp.Anonymous):
        if function_name(call) in WINDOW_FUNCTIONS and call.expressions:
            names.add(call.expressions[0].name.lower())
    return names - cte_names


def ordered(queries: Mapping[str, exp.Query]) -> list[str]:
    """Return the views, each after the views that it names; views of a cycle, and views over one, are left out."""
    needs = _needs(queries)
    in_order: list[str] = []
    while ready := [name for name in needs if name not in in_order and needs[name] <= set(in_order)]:
        in_order += ready
    return in_order


def cycles(queries: Mapping[str, exp.Query], texts: Mapping[str, str]) -> dict[str, Faults]:
    """Return the faults of the views that read themselves, directly or through others; ``texts`` has the SQL of all views."""
    needs = _needs(queries)
    faults = {}
    for name, query in queries.items():
        path = _cycle(name, needs)
        if path is not None:
            faults[name] = Faults(texts[name])
            found = f"a cycle: {' reads '.join(path)}"
            faults[name].add(_mention(query, path[1]), found, "views over streams, relations and other views")
    return faults


def _mention(query: exp.Query, name: str) -> exp.Expr | None:
    """Return the node where a query names a table; None if it does not."""
    tables: list[exp.Expr] = list(query.find_all(exp.Table))
    windowed = [call.expressions[0] for call in query.find_all(exp.Anonymous) if function_name(call) in WINDOW_FUNCTIONS]
    return next((table for table in [*tables, *windowed] if table.name.lower() == name), None)


def _needs(queries: Mapping[str, exp.Query]) -> dict[str, set[str]]:
    return {name: named_in(query) & set(queries) for name, query in queries.items()}


def _cycle(start: str, needs: Mapping[str, set[str]]) -> list[str] | None:
    """Return the path on which a view reads itself, from the view back to it; None if there is none."""
    paths = [[start]]
    seen = set()
    while paths:
        path = paths.pop(0)
        for view in sorted(needs.get(path[-1], ())):
            if view == start:
                return [*path, start]
            if view not in seen:
                seen.add(view)
                paths.append([*path, view])
    return None
