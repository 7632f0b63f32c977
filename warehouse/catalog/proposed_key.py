"""The search key that ``init --from`` proposes, by the names of columns and how often their values repeat."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.catalog.types import is_key_type, parse_type

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from warehouse.catalog.sniffed_file import SniffedColumn

__all__ = ["ProposedKey", "proposed_key", "snake_case"]

_IDENTITY = re.compile(
    r"(^|_)(id|ids|key|uuid|guid|code|iata|icao|isin|symbol|ticker|sku|user\w*|number|no|nr|host\w*|device|account|customer|client|"
    r"session|plate|licen[cs]e|vehicle|car|ip|addr|address|mac|e?mail|phone|serial|imei|sensor|station|ticket|card|tag|asset|kennzeichen|"
    r"nummer|kunde|location|place|site|room|series|domain|url)(_|$)"
)
_NAME = re.compile(r"(^|_)name(_|$)")
_PART_OF_A_NAME = re.compile(r"(^|_)(first|last|middle|given|family|sur)_?name(_|$)")
_NO_IDENTITY = re.compile(
    r"(^|_)(agent|p|port|proto|status|type|class|zone|lat|lon|amount|price|count|year|month|day|date|time|hour|week|total|value|dir|direction|speed|"
    r"temp\w*|pressure|wind\w*|humid\w*)(_|$)"
)
_INTEGERS = frozenset({"int", "bigint", "smallint", "tinyint", "decimal(20,0)", "decimal(38,0)"})
_REPEATED = 1.5
"""A column has repeated values if each value has at least this many rows on average."""
_MOST_OTHERS = 4


@dataclass(frozen=True)
class ProposedKey:
    """The columns of the key; ``unsure`` says why the sample does not decide it, ``others`` are alternatives."""

    columns: tuple[str, ...]
    unsure: str | None = None
    others: tuple[str, ...] = ()


def snake_case(name: str) -> str:
    """Return a name in lower case, with underscores between its words.

    >>> snake_case("customerId"), snake_case("Ticket No."), snake_case("id.orig_h")
    ('customer_id', 'ticket_no_', 'id_orig_h')
    """
    return re.sub(r"[^0-9a-z\u00df-\uffff]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


def proposed_key(usable: Sequence[SniffedColumn], times: Collection[str], rows: int) -> ProposedKey:
    """Return the column by which probes most likely look rows up.

    Parameters
    ----------
    usable
        The columns that can be declared.
    times
        The columns of arrival and end. A time or a measurement is a key only if there is no other column.
    rows
        How many rows the sample has.
    """
    keys = [column for column in usable if column.type and is_key_type(parse_type(column.type))]
    candidates = [column for column in keys if column.name not in times]
    identifiers = [column for column in candidates if _may_be_identifier(column) and not _is_measurement(column, rows)]
    if not identifiers:
        rest = [column for column in keys if column.name in times] or keys or list(usable)
        return ProposedKey((rest[0].name,), "no column is one of names or numbers that say what a row is about")

    def rank(column: SniffedColumn) -> tuple[bool, bool, bool, int, bool, int]:
        identity = _identity_rank(column)
        return identity == _BEST, identity >= 0, _repeats(column, rows), identity, column.type == "string", column.distinct

    ranked = sorted(identifiers, key=rank, reverse=True)  # of equal ones the first
    best = ranked[0]
    unsure = None
    if not _repeats(best, rows) and _identity_rank(best) < _BEST:
        unsure = "no column is called like a key, and none has values that come again"
        if best.distinct <= 1:
            unsure = "no column has several values"
    return ProposedKey((best.name,), unsure, tuple(column.name for column in ranked[1 : 1 + _MOST_OTHERS]))


_BEST = 2


def _may_be_identifier(column: SniffedColumn) -> bool:
    return (column.type == "string" and not column.is_time_of_day) or column.type in _INTEGERS


def _is_measurement(column: SniffedColumn, rows: int) -> bool:
    """Whether a column has numbers that rarely repeat, and its name does not name an identifier."""
    return column.type != "string" and rows > 1 and _identity_rank(column) < 1 and not _repeats(column, rows)


def _repeats(column: SniffedColumn, rows: int) -> bool:
    return 1 < column.distinct <= rows / _REPEATED


def _identity_rank(column: SniffedColumn) -> int:
    """Return how surely a name names an identifier: 2 an identity, 1 a name, 0 unknown, -1 something else."""
    words = snake_case(column.source or column.name)
    if _NO_IDENTITY.search(words) or _PART_OF_A_NAME.search(words):
        return -1
    return 2 if _IDENTITY.search(words) else 1 if _NAME.search(words) else 0
