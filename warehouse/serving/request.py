"""The parameters of a read in addition to its selection (columns, limit, instant), checked against a pinned epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from warehouse.catalog.spelling import nearest
from warehouse.errors import UnknownNameError, UsageError
from warehouse.serving.statement import SYSTEM_COLUMNS
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.serving.pin import Pin

__all__ = ["OpenUntil", "Request", "check_open_until", "instant_of"]

OpenUntil = Literal["now"]
"""Until when the open rows of a coalesced table are shown as valid; None: until their last point."""

_MOST = 2**63


@dataclass(frozen=True)
class Request:
    """Columns to show (None: all of the user's), at most how many rows, the instant (None: the window time).

    ``open_until`` is ``"now"`` if the open rows of a coalesced table end at that instant.
    """

    columns: tuple[str, ...] | None
    limit: int | None
    now: int | None
    system_columns: bool
    open_until: OpenUntil | None = None

    @classmethod
    def of(
        cls, columns: Sequence[str] | None, limit: int | None, now: int | None, *, system_columns: bool,
        open_until: OpenUntil | None = None,
    ) -> Request:  # fmt: skip
        """Return a request.

        Raises
        ------
        UsageError
            When the columns are no list of names, the limit is no number of rows, or ``open_until`` is another word.

        """
        if columns is not None and (isinstance(columns, str) or not columns):
            raise UsageError("columns is empty or one text; allowed: a list of column names")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or not 0 <= limit < _MOST):
            raise UsageError(f"limit is {limit!r}; allowed: a number of rows, 0 or more, below 2^63")
        check_open_until(open_until)
        return cls(None if columns is None else tuple(columns), limit, now, system_columns, open_until)

    def shown(
        self, own: tuple[tuple[str, str], ...], system: tuple[tuple[str, str], ...] = SYSTEM_COLUMNS
    ) -> tuple[tuple[str, str], ...]:
        """Return the names and types of the columns to show, from a table's own and system columns; case does not matter.

        Raises
        ------
        UnknownNameError
            When a name is no column.

        """
        all_columns = (*own, *system)
        if self.columns is None:
            return all_columns if self.system_columns else own
        by_lower = {name.lower(): (name, kind) for name, kind in all_columns}
        for name in self.columns:
            if name.lower() not in by_lower:
                names = [column for column, _ in all_columns]
                raise UnknownNameError("column", name, names, nearest(name, names))
        return tuple(by_lower[name.lower()] for name in self.columns)


def check_open_until(given: object) -> None:
    """Refuse other words than ``"now"``.

    Raises
    ------
    UsageError
        For another value.

    """
    if given not in (None, "now"):
        raise UsageError(f'open_until is {given!r}; allowed: "now"')


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
