"""The definition of a coalesced table, as values. A row of it is a sequence of alike points that follow each other in a stream.

Its members are points ``(group, ts, values)`` with ``tau - window <= ts <= tau`` for the window time ``tau``, or the ``rows``
largest points by ``(ts, group)``. A row is a maximal run of members of one group that are neighbours in time and alike. It is
valid from its first stamp to the first stamp of the next row of its group; the last row of a group ends at its own last stamp
(temporal-coalescing sheet, section 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from warehouse.coalescing.budgets import CoalescedBudget  # noqa: TC001 - records are decoded by it

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LEDGER", "OWN_COLUMNS", "PREVIOUS", "STAMPS", "CoalescedDefinition", "Shed", "neighbour_column", "values_column"]

Shed = Literal["cals", "cals-v", "cals-i", "random"]
"""The words of ``shed``."""

OWN_COLUMNS = ("valid_from", "valid_to", "members", "open")
"""The columns that every coalesced table has."""
STAMPS = "_stamps"
"""The state column that holds the stamps of a row's members in microseconds, in order."""
LEDGER = "_ledger"
"""The state column of a group's open row that lists the exact runs of the group that lost members to shedding.

An entry has the ``stamps`` of all members of its run, the stamps of the ``shed`` members, the end of the run (``until``), and the
compared values ``v0``, ``v1``, ... of the run (with ``same``: of each member).
"""
PREVIOUS = "previous"
"""The name of the previous member in the condition ``same``."""
HOLDS = "holds"
_ENDS = ("first", "last", "min", "max")


def values_column(name: str) -> str:
    """Return the state column with the values of a row's members in a column that ``same`` compares."""
    return f"_values_{name}"


def neighbour_column(name: str) -> str:
    """Return the column in which a DuckDB query has a value of the previous member."""
    return f"_{PREVIOUS}_{name}"


@dataclass(frozen=True)
class CoalescedDefinition:
    """What a coalesced table computes from the points of a stream; columns are pairs of name and Spark SQL type.

    Neighbours are compared by the columns ``values``: for equality, or by the condition ``same`` (Spark SQL over them and
    ``previous``). With the condition ``of``, its truth is compared, as the column ``holds``. Either ``window``, in microseconds,
    or ``rows`` is given. With a ``budget`` members are shed by the method ``shed``. ``ledger`` is True from the first budget on:
    then the table has a column with the ledger of shed members.
    """

    source: str
    group_by: tuple[tuple[str, str], ...]
    values: tuple[tuple[str, str], ...]
    search_key: tuple[str, ...]
    window: int | None = None
    rows: int | None = None
    same: str | None = None
    of: str | None = None
    budget: CoalescedBudget | None = None
    shed: Shed = "cals"
    ledger: bool = False

    @property
    def groups(self) -> tuple[str, ...]:
        """The columns of the group."""
        return tuple(name for name, _ in self.group_by)

    @property
    def compared(self) -> tuple[str, ...]:
        """The columns by which neighbours are compared."""
        return tuple(name for name, _ in self.values)

    @property
    def shown(self) -> tuple[tuple[str, str], ...]:
        """The columns of a row that come from the values of its members.

        >>> CoalescedDefinition("s", (), (("v", "int"),), (), rows=9, same="v > previous.v").shown
        (('first_v', 'int'), ('last_v', 'int'), ('min_v', 'int'), ('max_v', 'int'))
        """
        if self.same is None:
            return self.values
        return tuple((f"{end}_{name}", kind) for name, kind in self.values for end in _ENDS)

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The columns of its rows with their types."""
        own_columns = zip(OWN_COLUMNS, ("timestamp", "timestamp", "bigint", "boolean"), strict=True)
        return (*self.group_by, *self.shown, *own_columns)

    @property
    def state(self) -> tuple[tuple[str, str], ...]:
        """The other stored columns: the stamps of the members, their values if there is ``same``, and the ledger."""
        values = () if self.same is None else ((values_column(name), f"array<{kind}>") for name, kind in self.values)
        ledger = ((LEDGER, f"array<{self._entry}>"),) if self.ledger else ()
        return ((STAMPS, "array<bigint>"), *values, *ledger)

    @property
    def _entry(self) -> str:
        kinds: Sequence[str] = [kind if self.same is None else f"array<{kind}>" for _, kind in self.values]
        values = "".join(f",v{position}:{kind}" for position, kind in enumerate(kinds))
        return f"struct<stamps:array<bigint>,shed:array<bigint>,until:bigint{values}>"
