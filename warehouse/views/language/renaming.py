"""Other names for the columns of a group, given where they are made."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import msgspec
from sqlglot import exp

from warehouse.catalog.identifiers import quoted
from warehouse.views.algebra import Group, Named, Project
from warehouse.views.language.dialect import expression_of, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from warehouse.views.algebra import Aggregate, Operator

__all__ = ["renamed_group"]


def renamed_group(group: Group, names: Mapping[str, str], columns: tuple[str, ...]) -> Group:
    """Return a group whose keys and aggregates have other names.

    Parameters
    ----------
    group
        The group.
    names
        The new name of each of its columns.
    columns
        The columns of its input.

    """
    keys = tuple(names[key] for key in group.keys)
    aggregates = tuple(msgspec.structs.replace(each, name=names[each.name]) for each in group.aggregates)
    if keys == group.keys:
        return Group(group.input, keys, aggregates)
    below = group.input
    made = below.columns if isinstance(below, Project) else tuple(Named(each, quoted(each)) for each in columns)
    source: Operator = below.input if isinstance(below, Project) else below
    sql = {column.name: column.sql for column in made}
    free = (f"#{number}" for number in count(1) if f"#{number}" not in keys)
    arguments = dict(zip(_arguments(group, tuple(sql)), free, strict=False))
    project = Project(
        source,
        (
            *(Named(name, sql[key]) for key, name in zip(group.keys, keys, strict=True)),
            *(Named(new, sql[name]) for name, new in arguments.items()),
        ),
    )
    return Group(project, keys, tuple(_over(each, arguments) for each in aggregates))


def _arguments(group: Group, columns: tuple[str, ...]) -> list[str]:
    """The columns of the input that aggregates take."""
    named = {column.name for each in group.aggregates for column in _tree(each).find_all(exp.Column)}
    return [name for name in columns if name in named]


def _over(aggregate: Aggregate, names: Mapping[str, str]) -> Aggregate:
    """An aggregate whose arguments have other names."""

    def other(node: exp.Expr) -> exp.Expr:
        return exp.column(exp.to_identifier(names[node.name], quoted=True)) if isinstance(node, exp.Column) else node

    argument = None if aggregate.argument is None else names[aggregate.argument]
    return msgspec.structs.replace(aggregate, argument=argument, sql=text(_tree(aggregate).transform(other)))


def _tree(aggregate: Aggregate) -> exp.Expr:
    return expression_of(aggregate.sql)
