"""The parts of a FROM while they are put together: each a plan, the items whose columns it has, and how it takes conditions.

Conditions on one part go below the join as filters; equalities between two parts become columns of each, computed where
they are no columns already; the rest stays on the join.
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

__all__ = ["FromPart", "Workshop", "all_hold", "base_text", "equal_sides"]


@dataclass(frozen=True)
class FromPart:
    """A part of a FROM; ``item`` is set while its columns still have their plain names."""

    operator: Operator
    owners: frozenset[int]
    item: Item | None = None

    @property
    def relation(self) -> Table | None:
        """The relation, if it is one with nothing but filters above it."""
        return self.item.relation if self.item else None


def base_text(node: exp.Expr) -> str:
    """Return a bound expression over the plain names of its one item."""

    def plain(each: exp.Expr) -> exp.Expr:
        if isinstance(each, exp.Column) and "base" in each.meta:
            return bound_column(each.meta["base"], None, each.meta["base"], None)
        return each

    return text(node.transform(plain))


def all_hold(conditions: Sequence[str], nodes: Sequence[exp.Expr]) -> str:
    """Return the conjunction of conditions, given as texts with their trees."""
    loose = [isinstance(node, (exp.Or, exp.Xor)) for node in nodes]
    several = len(conditions) > 1
    return " AND ".join(f"({each})" if or_ and several else each for each, or_ in zip(conditions, loose, strict=True))


def equal_sides(condition: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return both sides of an equality.

    The sides of ``a <=> b`` become structures of one field, which are equal if both fields are null.
    """
    if isinstance(condition, exp.EQ):
        return condition.this, condition.expression
    one, other = (
        exp.Anonymous(this="named_struct", expressions=[exp.Literal.string("v"), side.copy()])
        for side in (condition.this, condition.expression)
    )
    return one, other


class Workshop:
    """Makes new units from the units of one FROM.

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

    def items(self, unit: FromPart) -> list[Item]:
        """Return the items that a unit consists of."""
        return [self.scope.items[number] for number in sorted(unit.owners)]

    def unit(self, number: int) -> FromPart:
        """Return an item of FROM as a unit."""
        item = self.scope.items[number]
        return FromPart(item.operator, frozenset({number}), item)

    def filtered(self, unit: FromPart, conditions: Sequence[exp.Expr]) -> FromPart:
        """Return a unit with the rows for which all conditions hold."""
        if not conditions:
            return unit
        write = base_text if unit.item else text
        return replace(unit, operator=Filter(unit.operator, all_hold([write(each) for each in conditions], conditions)))

    def keyed(self, unit: FromPart, expressions: Sequence[exp.Expr]) -> tuple[FromPart, tuple[str, ...]]:
        """Return a unit under bound names, with a column for each expression, and these columns' names."""
        names, computed = [], []
        taken = {f"{item.alias}.{column}" for item in self.scope.items for column in item.columns}
        write = base_text if unit.item else text
        for each in expressions:
            if isinstance(each, exp.Column):
                names.append(each.name)
                continue
            numbered = (f"{self._alias(unit)}.#{number}" for number in self._numbers)
            name = next(free for free in numbered if free not in taken)
            names.append(name)
            computed.append(Named(name, write(each)))
        if unit.item is not None:
            needed = [column for column in unit.item.columns if column in unit.item.used]
            (number,) = unit.owners
            kept = [Named(self.scope.name(number, column), quoted(column)) for column in needed]
            operator: Operator = Project(unit.operator, (*kept, *computed))
        elif computed:
            kept = [Named(column, quoted(column)) for column in self.columns(unit.operator)]
            operator = Project(unit.operator, (*kept, *computed))
        else:
            operator = unit.operator
        return FromPart(operator, unit.owners), tuple(names)

    def sides(self, condition: exp.Expr, units: Sequence[FromPart]) -> tuple[int, int] | None:
        """Return the two units that an equality connects, left side first, or None."""
        if not isinstance(condition, (exp.EQ, exp.NullSafeEQ)):
            return None
        left, right = (self._owner(each, units) for each in (condition.this, condition.expression))
        return None if left is None or right is None or left == right else (left, right)

    def unit_of(self, condition: exp.Expr, units: Sequence[FromPart]) -> int | None:
        """Return the unit that has all columns of a condition, or None; a condition without columns belongs to the first unit."""
        owners = owners_of(condition)
        return next((number for number, unit in enumerate(units) if owners <= unit.owners), None)

    def _owner(self, expression: exp.Expr, units: Sequence[FromPart]) -> int | None:
        return self.unit_of(expression, units) if owners_of(expression) else None

    def _alias(self, unit: FromPart) -> str:
        return self.scope.items[min(unit.owners)].alias
