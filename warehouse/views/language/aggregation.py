"""GROUP BY: keys and arguments become columns of the input, expressions over aggregates a projection above it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.catalog.identifiers import quoted
from warehouse.views.algebra import AggregateCall, Distinct, Group, Named, Project
from warehouse.views.language.dialect import meaning, text
from warehouse.views.language.expressions import aggregates_in, function_name
from warehouse.views.language.scope import UNKNOWN, bound_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.views.algebra import Operator
    from warehouse.views.language.faults import Faults

__all__ = ["Grouping", "grouped"]

_SYNONYMS = {"mean": "avg", "some": "bool_or", "any": "bool_or", "every": "bool_and"}


@dataclass(frozen=True)
class Grouping:
    """A plan whose rows are groups, and expressions over its columns, in the order of the request."""

    operator: Operator
    expressions: list[exp.Expr]


def grouped(
    source: Operator, keys: Sequence[exp.Expr], expressions: Sequence[exp.Expr], names: Mapping[str, str], faults: Faults
) -> Grouping:
    """Group rows by keys; without aggregates the groups are the distinct keys.

    Parameters
    ----------
    source
        The rows.
    keys
        Bound expressions; empty: one group of all rows.
    expressions
        Bound expressions over keys and aggregates. Columns that are neither are faults.
    names
        The view's name of an expression, by its meaning: keys and aggregates get these names if they are free.
    faults
        Where faults go.

    """
    builder = _Builder(names)
    key_names = {meaning(key): builder.key(key) for key in keys}
    for expression in expressions:
        for call in aggregates_in(expression):
            builder.aggregate(call)
    over_groups = [_over_groups(expression, key_names, builder.calls, faults) for expression in expressions]
    inputs = Project(source, tuple(builder.inputs))
    if key_names and not builder.aggregates:
        return Grouping(Distinct(inputs), over_groups)
    return Grouping(Group(inputs, tuple(key_names.values()), tuple(builder.aggregates)), over_groups)


class _Builder:
    def __init__(self, names: Mapping[str, str]) -> None:
        self._wanted = names
        self._taken: set[str] = set()
        self._numbers = count(1)
        self.inputs: list[Named] = []
        self.aggregates: list[AggregateCall] = []
        self.calls: dict[str, str] = {}

    def key(self, node: exp.Expr) -> str:
        name = self._free(self._wanted.get(meaning(node)) or (node.name if isinstance(node, exp.Column) else None))
        self.inputs.append(Named(name, text(node)))
        return name

    def aggregate(self, call: exp.Anonymous) -> None:
        call_meaning = meaning(call)
        if call_meaning in self.calls:
            return
        name = self._free(self._wanted.get(call_meaning))
        self.calls[call_meaning] = name
        self.aggregates.append(self._aggregate(name, call))

    def _aggregate(self, name: str, call: exp.Anonymous) -> AggregateCall:
        function = function_name(call) or ""
        function = _SYNONYMS.get(function, function)
        arguments = list(call.expressions)
        distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
        if distinct:
            arguments = list(arguments[0].expressions)
        if function == "count" and not distinct:
            arguments = _counted(arguments)
            if not arguments:
                return AggregateCall(name, "count", None, "count(*)")
        columns = [argument if _constant(argument) else self._argument(argument) for argument in arguments]
        sql = ", ".join(text(column) if isinstance(column, exp.Expr) else quoted(column) for column in columns)
        first_column = next((column for column in columns if isinstance(column, str)), None)
        return AggregateCall(name, function, first_column, f"{function}({'DISTINCT ' if distinct else ''}{sql})", distinct)

    def _argument(self, node: exp.Expr) -> str:
        sql = text(node)
        for column in self.inputs:
            if column.sql == sql:
                return column.name
        name = self._free(node.name if isinstance(node, exp.Column) else None)
        self.inputs.append(Named(name, sql))
        return name

    def _free(self, preferred: str | None) -> str:
        candidates = chain([preferred] if preferred is not None else [], (f"#{number}" for number in self._numbers))
        name = next(candidate for candidate in candidates if candidate.lower() not in self._taken)
        self._taken.add(name.lower())
        return name


def _counted(arguments: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Return, as a list, the argument of a count that is null if the count ignores a row; an empty list for ``count(*)``."""
    if any(isinstance(argument, exp.Null) for argument in arguments):
        return [exp.Null()]
    relevant = [argument for argument in arguments if not _constant(argument) and not isinstance(argument, exp.Star)]
    if len(relevant) <= 1:
        return relevant
    present: exp.Expr = exp.and_(
        *(exp.Not(this=exp.Is(this=argument.copy(), expression=exp.Null())) for argument in relevant), copy=False
    )
    return [exp.Case(ifs=[exp.If(this=present, true=exp.Literal.number(1))])]


def _constant(node: exp.Expr) -> bool:
    return isinstance(node, (exp.Literal, exp.Boolean))


def _over_groups(node: exp.Expr, keys: Mapping[str, str], calls: Mapping[str, str], faults: Faults) -> exp.Expr:
    def replaced(part: exp.Expr) -> exp.Expr:
        part_meaning = meaning(part)
        if part_meaning in keys or part_meaning in calls:
            return bound_column(keys.get(part_meaning) or calls[part_meaning], None, "", part)
        if isinstance(part, exp.Column) and part.name != UNKNOWN:
            base = part.meta.get("base") or part.name
            allowed = "columns that are grouped, and aggregates of the others"
            faults.add(part, f'the column "{base}", which is neither grouped nor aggregated', allowed, f"GROUP BY ..., {base}")
        return part

    return node.transform(replaced)
