"""What a read asks for beside its selection: columns, limit, instant; checked against a pinned epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.catalog.spelling import nearest
from warehouse.errors import UnknownNameError, UsageError
from warehouse.serving.statement import SYSTEM_COLUMNS
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.serving.pin import Pin

__all__ = ["Request", "instant_of"]

_MOST = 2**63


@dataclass(frozen=True)
class Request:
    """Columns to show (None: all of the user's), at most how many rows, the instant (None: the window time)."""

    columns: tuple[str, ...] | None
    limit: int | None
    now: int | None
    system_columns: bool

    @classmethod
    def of(cls, columns: Sequence[str] | None, limit: int | None, now: int | None, *, system_columns: bool) -> Request:
        """Return a request.

        Raises
        ------
        UsageError
            When the columns are no list of names, or the limit is no number of rows.

        """
        if columns is not None and (isinstance(columns, str) or not columns):
            raise UsageError("columns is empty or one text; allowed: a list of column names")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit < _MOST):
            raise UsageError(f"limit is {limit!r}; allowed: a number of rows, 0 or more, below 2^63")
        return cls(None if columns is None else tuple(columns), limit, now, system_columns)

    def shown(
        self, own: tuple[tuple[str, str], ...], system: tuple[tuple[str, str], ...] = SYSTEM_COLUMNS
    ) -> tuple[tuple[str, str], ...]:
        """Return the names and types to show of a table with these columns and the system's; names are found ignoring case.

        Raises
        ------
        UnknownNameError
            When a name is no column.

        """
        everything = (*own, *system)
        if self.columns is None:
            return everything if self.system_columns else own
        by_lower = {name.lower(): (name, kind) for name, kind in everything}
        for name in self.columns:
            if name.lower() not in by_lower:
                known = [each for each, _ in everything]
                raise UnknownNameError("column", name, known, nearest(name, known))
        return tuple(by_lower[name.lower()] for name in self.columns)


def instant_of(pin: Pin, now: int | None) -> int:
    """Return tau, the instant after which rows must expire: ``now``, or the window time.

    Raises
    ------
    UsageError
        When ``now`` is before the window time.

    """
    window_time = pin.epoch.window_time
    if now is not None and now < window_time:
        raise UsageError(
            f"now ({format_instant(now)}) is before the window time ({format_instant(window_time)}): "
            f"rows that expired before that are not kept; ask for an earlier epoch with as_of"
        )
    return window_time if now is None else now
