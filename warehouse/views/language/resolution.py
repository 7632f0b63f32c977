"""Resolves names above FROM and WHERE, where output columns have names, too, like Spark's analyser.

* ``ORDER BY`` sees the output columns first, for each name of an expression; other names are names of the inputs.
* ``GROUP BY``, and ``QUALIFY`` without groups, see the inputs first, then the output columns.
* ``HAVING``, and ``QUALIFY`` over groups, see the inputs inside aggregates and in grouped expressions, and else the output
  columns.

A name of several parts is an input's column, an output's field, or an input's field, whichever comes first in that order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.catalog.types import Array, Struct, parse_type
from warehouse.views.language.binding import replaced_columns, with_field
from warehouse.views.language.dialect import meaning, text
from warehouse.views.language.expressions import aggregates_in, check_expression, function_name
from warehouse.views.language.faults import RefusedError
from warehouse.views.language.scope import bound_column
from warehouse.views.language.types import type_of_node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.views.language.outputs import Output
    from warehouse.views.language.scope import Scope

__all__ = ["Names", "over_names", "position"]

_INSTEAD = "instead"
_ATOMS = (exp.Column, exp.Literal, exp.Paren, exp.Anonymous, exp.Dot, exp.Null, exp.Boolean)


@dataclass(frozen=True)
class Names:
    """The names for the clauses of one SELECT above its WHERE: the items of its FROM, and its output columns."""

    scope: Scope
    outputs: Sequence[Output]

    def in_order(self, node: exp.Expr) -> exp.Expr:
        """Return a bound term of ORDER BY.

        Raises
        ------
        RefusedError
            For an output column inside an aggregate, which Spark refuses too.

        """
        name = position(node, [output.name for output in self.outputs])
        if name is not None:
            return self._output(name).node.copy()
        if not check_expression(node, self.scope.faults, "groups"):
            return exp.Null()
        inside = _inside_aggregates(node)

        def meant(column: exp.Column) -> exp.Expr:
            expression = None if self._keeps_its_input(column) else self._of_output(column)
            if expression is None:
                return self.scope.resolve(column)
            if isinstance(expression, exp.Dot) and self._could_be_either(column):
                found = f"{text(column)} in ORDER BY, where it can be an input's column or a field of an output column"
                raise RefusedError(column, found, "another name for that output column")
            if id(column) not in inside:
                return expression
            if self.scope.has(column) and meaning(self.scope.resolve(column)) == meaning(_bare(expression)):
                return _bare(expression)
            found = f"{text(column)} inside an aggregate in ORDER BY, where it is the output column of that name"
            raise RefusedError(column, found, "the aggregate as an output column, by its name; or another name for that column")

        return replaced_columns(node, meant)

    def in_rows(self, node: exp.Expr) -> exp.Expr:
        """Return a bound expression of GROUP BY, or of QUALIFY without groups."""
        if not check_expression(node, self.scope.faults, "groups"):
            return exp.Null()

        def meant(column: exp.Column) -> exp.Expr:
            expression = None if self.scope.has(column) else self._of_output(column)
            return self.scope.resolve(column) if expression is None else expression

        return replaced_columns(node, meant)

    def in_groups(self, node: exp.Expr, keys: Sequence[exp.Expr]) -> exp.Expr:
        """Return a bound expression of HAVING, or of QUALIFY over groups of these keys."""
        if not check_expression(node, self.scope.faults, "groups"):
            return exp.Null()
        inside = _inside_aggregates(node)

        def meant(column: exp.Column) -> exp.Expr:
            expression = None if id(column) in inside else self._of_output(column)
            if expression is None:
                return self.scope.resolve(column)
            if not self.scope.has(column):
                return expression
            bound = self.scope.resolve(column)
            bound.meta[_INSTEAD] = expression
            return bound

        return _settled(replaced_columns(node, meant), frozenset(map(meaning, keys)))

    def _output(self, name: str) -> Output:
        return next(output for output in self.outputs if output.name == name)

    def _of_output(self, column: exp.Column) -> exp.Expr | None:
        """Return the expression of the output column at the beginning of a name, with the fields that follow."""
        first, *fields = [part.name for part in column.parts]
        output = next((candidate for candidate in self.outputs if candidate.name.lower() == first.lower()), None)
        if output is None or (fields and self._has_field(output.node, fields[0]) is False):
            return None
        expression = output.node.copy()
        expression = expression if isinstance(expression, _ATOMS) else exp.Paren(this=expression)
        for field in fields:
            expression = with_field(expression, field)
        return expression

    def _could_be_either(self, column: exp.Column) -> bool:
        """Whether a dotted name is an input's column, and only Spark can tell whether it is an output's field."""
        first, field, *_ = [part.name for part in column.parts]
        output = next(candidate for candidate in self.outputs if candidate.name.lower() == first.lower())
        return self._has_field(output.node, field) is None and self.scope.has(column)

    def _has_field(self, node: exp.Expr, field: str) -> bool | None:
        """Whether an output column has a field of that name; None if only Spark knows."""
        types = {
            (f"{item.alias}.{name}" if self.scope.qualified else name).lower(): kind
            for item in self.scope.items
            for name, kind in item.types.items()
        }
        type_text = type_of_node(node, types)
        if type_text is None:
            return None
        kind = parse_type(type_text)
        while isinstance(kind, Array):
            kind = kind.element
        return isinstance(kind, Struct) and field.lower() in {struct_field.name.lower() for struct_field in kind.fields}

    def _keeps_its_input(self, column: exp.Column) -> bool:
        """Whether a name of several parts means an input's column that is an output column under its own name."""
        alias, *rest = [part.name.lower() for part in column.parts]
        return bool(rest) and any(
            isinstance(output.node, exp.Column)
            and not isinstance(output.at, exp.Alias)
            and output.name.lower() == rest[0]
            and self._alias(output.node) == alias
            for output in self.outputs
        )

    def _alias(self, column: exp.Column) -> str | None:
        owner = column.meta.get("owner")
        return None if owner is None else self.scope.items[owner].alias.lower()


def _bare(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.Paren) else node


def _inside_aggregates(node: exp.Expr) -> set[int]:
    return {id(column) for call in aggregates_in(node) for column in call.find_all(exp.Column)}


def _settled(node: exp.Expr, keys: frozenset[str]) -> exp.Expr:
    """Choose the output column for each name that is neither inside an aggregate nor grouped."""
    if meaning(node) in keys or (function_name(node) and next(aggregates_in(node), None) is node):
        return node
    instead = node.meta.get(_INSTEAD)
    if isinstance(instead, exp.Expr):
        return instead.copy()
    for child in list(node.iter_expressions()):
        settled = _settled(child, keys)
        if settled is not child:
            child.replace(settled)
    return node


def position(node: exp.Expr, names: Sequence[str]) -> str | None:
    """Return the name of the output column if an expression is one, by name or number; None if not."""
    if isinstance(node, exp.Literal) and node.name.isdigit() and 1 <= int(node.name) <= len(names):
        return names[int(node.name) - 1]
    if isinstance(node, exp.Column) and not node.table:
        return next((name for name in names if name.lower() == node.name.lower()), None)
    return None


def over_names(node: exp.Expr, outputs: Sequence[tuple[str, exp.Expr]], at: exp.Expr, of: str = "") -> exp.Expr:
    """Return an expression over rows that have only named output columns.

    Parameters
    ----------
    node
        The expression. Output columns in it, and parts that are computed like one, become references to the column.
    outputs
        The names, each with its expression.
    at
        The expression as it was written.
    of
        What it orders, for the message.

    Raises
    ------
    RefusedError
        When it needs other columns.

    """
    by_meaning = {meaning(expression): name for name, expression in reversed(outputs)}

    def named(part: exp.Expr) -> exp.Expr:
        name = by_meaning.get(meaning(part))
        if name is not None:
            return bound_column(name, None, name, None)
        if isinstance(part, exp.Column):
            listed = ", ".join(name for name, _ in outputs)
            raise RefusedError(at, f"ORDER BY {text(at)}{of}", f"output columns ({listed})")
        return part

    return node.transform(named)
