"""Checks the keys of ``[views.NAME]`` except its SQL against the plan: search key, layout, short-lived results, windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.catalog.spelling import nearest
from warehouse.catalog.types import is_key_type, parse_type
from warehouse.layout import LayoutError, resolve
from warehouse.time import format_duration
from warehouse.views.algebra import AsOf, OutputWindow, Scan, TimeWindow, inputs_of
from warehouse.views.labels import STR
from warehouse.views.language.faults import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.catalog.model import View
    from warehouse.views.algebra import Node, Operator
    from warehouse.views.labels import Label
    from warehouse.views.language.scope import Table
    from warehouse.views.language.types import Types

__all__ = ["key_faults", "layout_faults", "tables_of", "warnings_of"]


def tables_of(operator: Operator) -> Iterator[str]:
    """Yield the tables that a plan reads, including relations that it looks up."""
    if isinstance(operator, Scan):
        yield operator.table
    if isinstance(operator, AsOf):
        yield operator.relation
    for input_operator in inputs_of(operator):
        yield from tables_of(input_operator)


def key_faults(view: View, columns: Types) -> Iterator[Fault]:
    """Yield the columns of the search key that the view does not have, or by which no table can be sorted."""
    by_lower = {name.lower(): (name, kind) for name, kind in columns.items()}
    for key_column in view.search_key:
        if key_column.lower() not in by_lower:
            allowed = f"columns that the view gives ({', '.join(columns)})"
            yield Fault(f'the unknown column "{key_column}"', allowed, nearest(key_column, columns))
            continue
        name, kind = by_lower[key_column.lower()]
        if kind is not None and not is_key_type(parse_type(kind)):
            allowed = "key columns that are strings, integers, decimals, dates, timestamps or booleans"
            yield Fault(f'the column "{name}" of type {kind}', allowed)


def layout_faults(view: View, tree: Operator, node: Node, label: Label, *, counted: bool) -> Iterator[tuple[str, Fault]]:
    """Yield (key, fault) of the layout and of the handling of short-lived results; ``counted``: whether the view counts these."""
    options = {key: value for key, value in vars(view.layout).items() if value is not None}
    if label == STR:
        for key in options:
            found = f"{key} for a view whose rows can leave before their own end (STR)"
            yield f"layout.{key}", Fault(found, "nothing: its table is cut by the search key")
    elif options:
        try:
            resolve(periods=node.periods, label=label.kind, **options)
        except LayoutError as error:
            for problem in error.problems:
                yield f"layout.{problem.key}", Fault(problem.found, f"{problem.allowed}: {problem.message.rstrip('.')}")
    if view.short_lived == "report" and isinstance(tree, OutputWindow):
        allowed = '"drop": an output window has no place for results that are gone'
        yield "short_lived", Fault('"report" with an output window', allowed)
    elif view.short_lived == "report" and not counted:
        found = '"report" for a view that is recomputed where its inputs changed'
        allowed = (
            '"drop": what came and went in between is not known then. It is of joins, DISTINCT and unions, and of NOT EXISTS'
            " and NOT IN, over rows that live to their own end"
        )
        yield "short_lived", Fault(found, allowed)


def warnings_of(tree: Operator, tables: Mapping[str, Table], interval: int) -> Iterator[str]:
    """Yield warnings about a valid view's behaviour that its owner may not expect; each begins with its key."""
    update = format_duration(interval)
    for length in sorted({operator.length for operator in _operators(tree) if isinstance(operator, TimeWindow)}):
        if length < interval:
            yield (
                f"sql: a window of {format_duration(length)} is shorter than the update interval ({update});"
                " rows that are older than it at an update are in no answer"
            )
    yield from _relations(tree, tables)


def _relations(tree: Operator, tables: Mapping[str, Table]) -> Iterator[str]:
    read: Sequence[Table] = [tables[operator.table] for operator in _operators(tree) if isinstance(operator, Scan)]
    if all(table.kind == "relation" for table in read):
        return
    for table in dict.fromkeys(table.name for table in read if table.kind == "relation" and not table.retroactive):
        yield (
            f"sql: {table} is read as it is now, so its changes act on rows that came before them;"
            f" joined ON its key ({', '.join(tables[table].key)}) it is read as of each row's time"
        )


def _operators(tree: Operator) -> Iterator[Operator]:
    yield tree
    for input_operator in inputs_of(tree):
        yield from _operators(input_operator)
