"""The columns that a SELECT gives: ``*`` expanded, each with a name that can be stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.catalog.types import unusable_name
from warehouse.layout.columns import is_reserved
from warehouse.views.algebra import Named, Project
from warehouse.views.language.dialect import column_of, text
from warehouse.views.language.expressions import check_expression, function_name
from warehouse.views.language.scope import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from warehouse.views.algebra import Operator
    from warehouse.views.language.faults import Faults
    from warehouse.views.language.scope import Scope

__all__ = ["Output", "outputs_of", "projected"]



@dataclass(frozen=True)
class Output:
    """One column of a SELECT: its name, its bound expression, and its place in the SQL."""

    name: str
    node: exp.Expr
    at: exp.Expr

    def of(self, node: exp.Expr) -> Output:
        """Return the column with another expression."""
        return replace(self, node=node)


def outputs_of(select: exp.Select, scope: Scope, *, stored: bool) -> list[Output]:
    """Return a SELECT's columns, bound.

    Parameters
    ----------
    select
        The query.
    scope
        The names that it can use.
    stored
        Whether the names are the user's and must be valid; False if other names are given by position.

    """
    outputs = [output for item in select.expressions for output in _expanded(item, scope, stored=stored)]
    if stored:
        _check_names(outputs, scope.faults)
        return outputs
    names = [output.name.lower() for output in outputs]
    return [
        replace(output, name=f"{output.name}#{number}") if output.name.lower() in names[:number] else output
        for number, output in enumerate(outputs)
    ]


def _expanded(item: exp.Expr, scope: Scope, *, stored: bool) -> Iterator[Output]:
    faults = scope.faults
    if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
        star = item if isinstance(item, exp.Star) else item.this
        if any(value for value in star.args.values()):
            faults.add(item, text(item), "the columns that are wanted, by name")
        alias = item.table if isinstance(item, exp.Column) else None
        star_columns = scope.columns(alias)
        if alias and not star_columns:
            faults.add(item, f"{text(item)} of an unknown input", ", ".join(f"{from_item.alias}.*" for from_item in scope.items))
        yield from (Output(name, node, item) for name, node in star_columns)
        return
    expression = item.this if isinstance(item, exp.Alias) else item
    is_valid = check_expression(expression, faults, "groups")
    bound = scope.bind(expression) if is_valid else exp.Null()
    yield Output(_name(item, faults if stored else None), bound, item)


def _name(item: exp.Expr, faults: Faults | None) -> str:
    match item:
        case exp.Alias():
            return item.alias
        case exp.Column():
            return item.name
        case exp.Dot():
            return str(item.expression.name)
        case _:
            suggestion = function_name(item) or "value"
            if faults is not None and not isinstance(item, (exp.Query, exp.Window)):
                faults.add(item, f"{text(item)} without a name", "an output column with a name", f"{text(item)} AS {suggestion}")
            return suggestion


def _check_names(outputs: Sequence[Output], faults: Faults) -> None:
    seen: dict[str, str] = {}
    for output in outputs:
        name = output.name
        if isinstance(output.node, exp.Column) and output.node.name == UNKNOWN:
            continue
        if is_reserved(name):
            allowed = "names other than sub_index, exp_block and _*"
            faults.add(output.at, f'the reserved name "{name}"', allowed, name.lstrip("_") or None)
        elif why := unusable_name(name):
            faults.add(output.at, f'{why} in the name "{name}"', "letters, digits and underscores")
        elif name.lower() in seen:
            allowed = "names that are unique ignoring case: write the columns out, with AS"
            faults.add(output.at, f'the output column "{name}" twice', allowed, f"{name}_2")
        seen[name.lower()] = name


def projected(
    operator: Operator, named: Sequence[tuple[str, exp.Expr]], columns_of: Callable[[Operator], tuple[str, ...]]
) -> Operator:
    """Return the projection to named expressions, or the operator itself if the projection would change nothing."""
    columns = tuple(Named(name, text(node)) for name, node in named)
    same_names = tuple(column.name for column in columns) == columns_of(operator)
    if same_names and all(column_of(column.sql) == column.name for column in columns):
        return operator
    return Project(operator, columns)
