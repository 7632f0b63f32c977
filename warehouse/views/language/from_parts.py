"""The parts of a FROM while they are joined: a part is a plan with the items whose columns it has, and conditions filter it.

Conditions on one part become filters below the join. Equalities between two parts become columns of each, which are computed if
they are not columns already. The rest stays on the join.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING

from sqlglot import exp

from warehouse.catalog.identifiers import quoted
from warehouse.views.algebra import Filter, Named, Project
from warehouse.views.labels import label
from warehouse.views.language.columns import columns_of
from warehouse.views.language.dialect import text
from warehouse.views.language.scope import bound_column, owners_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.views.algebra import Operator
    from warehouse.views.labels import Label
    from warehouse.views.language.scope import Item, Scope, Table

__all__ = ["FromPart", "PartBuilder", "all_hold", "base_text", "equal_sides"]


@dataclass(frozen=True)
class FromPart:
    """A part of a FROM; ``item`` is set while its columns still have their plain names."""

    operator: Operator
    owners: frozenset[int]
    item: Item | None = None

    @property
    def relation(self) -> Table | None:
        """The relation, if the part is a relation, perhaps with filters above it; None if not."""
        return self.item.relation if self.item else None


def base_text(node: exp.Expr) -> str:
    """Return a bound expression over the plain names of its one item."""

    def plain(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and "base" in part.meta:
            return bound_column(part.meta["base"], None, part.meta["base"], None)
        return part

    return text(node.transform(plain))


def all_hold(conditions: Sequence[str], nodes: Sequence[exp.Expr]) -> str:
    """Return the conjunction of conditions, given as texts with their trees."""
    loose = [isinstance(node, (exp.Or, exp.Xor)) for node in nodes]
    several = len(conditions) > 1
    return " AND ".join(
        f"({condition})" if or_ and several else condition for condition, or_ in zip(conditions, loose, strict=True)
    )


def equal_sides(condition: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return both sides of an equality.

    The sides of ``a <=> b`` become structures of one field, which are equal if both fields are null.
    """
    if isinstance(condition, exp.EQ):
        return condition.this, condition.expression
    left, right = (
        exp.Anonymous(this="named_struct", expressions=[exp.Literal.string("v"), side.copy()])
        for side in (condition.this, condition.expression)
    )
    return left, right


class PartBuilder:
    """Makes new parts from the parts of one FROM.

    Parameters
    ----------
    scope
        The items.
    tables
        The stored tables that can be named.

    """

    def __init__(self, scope: Scope, tables: Mapping[str, Table]) -> None:
        self.scope = scope
        self.tables = tables
        self._numbers = count(1)

    def columns(self, operator: Operator) -> tuple[str, ...]:
        """Return the columns of a plan."""
        return columns_of(operator, {name: tuple(table.columns) for name, table in self.tables.items()})

    def label(self, operator: Operator) -> Label:
        """Return the state label of a plan."""
        return label(operator, {name: table.label for name, table in self.tables.items()})

    def items(self, part: FromPart) -> list[Item]:
        """Return the items that a part consists of."""
        return [self.scope.items[number] for number in sorted(part.owners)]

    def part(self, number: int) -> FromPart:
        """Return an item of FROM as a part."""
        item = self.scope.items[number]
        return FromPart(item.operator, frozenset({number}), item)

    def filtered(self, part: FromPart, conditions: Sequence[exp.Expr]) -> FromPart:
        """Return a part with the rows for which all conditions hold."""
        if not conditions:
            return part
        write = base_text if part.item else text
        return replace(part, operator=Filter(part.operator, all_hold([write(condition) for condition in conditions], conditions)))

    def keyed(self, part: FromPart, expressions: Sequence[exp.Expr]) -> tuple[FromPart, tuple[str, ...]]:
        """Return a part under bound names, with a column for each expression, and these columns' names."""
        names, computed = [], []
        used_names = {f"{item.alias}.{column}" for item in self.scope.items for column in item.columns}
        write = base_text if part.item else text
        for expression in expressions:
            if isinstance(expression, exp.Column):
                names.append(expression.name)
                continue
            numbered = (f"{self._alias(part)}.#{number}" for number in self._numbers)
            name = next(candidate for candidate in numbered if candidate not in used_names)
            names.append(name)
            computed.append(Named(name, write(expression)))
        if part.item is not None:
            needed = [column for column in part.item.columns if column in part.item.used]
            (number,) = part.owners
            passed_on = [Named(self.scope.name(number, column), quoted(column)) for column in needed]
            operator: Operator = Project(part.operator, (*passed_on, *computed))
        elif computed:
            passed_on = [Named(column, quoted(column)) for column in self.columns(part.operator)]
            operator = Project(part.operator, (*passed_on, *computed))
        else:
            operator = part.operator
        return FromPart(operator, part.owners), tuple(names)

    def sides(self, condition: exp.Expr, parts: Sequence[FromPart]) -> tuple[int, int] | None:
        """Return the two parts that an equality connects, left side first, or None."""
        if not isinstance(condition, (exp.EQ, exp.NullSafeEQ)):
            return None
        left, right = (self._owner(side, parts) for side in (condition.this, condition.expression))
        return None if left is None or right is None or left == right else (left, right)

    def part_of(self, condition: exp.Expr, parts: Sequence[FromPart]) -> int | None:
        """Return the part that has all columns of a condition, or None; a condition without columns belongs to the first part."""
        owners = owners_of(condition)
        return next((number for number, part in enumerate(parts) if owners <= part.owners), None)

    def _owner(self, expression: exp.Expr, parts: Sequence[FromPart]) -> int | None:
        return self.part_of(expression, parts) if owners_of(expression) else None

    def _alias(self, part: FromPart) -> str:
        return self.scope.items[min(part.owners)].alias
