"""How much of a coalesced table may be kept (temporal-load-shedding sheet, sections 6 and 12)."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

__all__ = ["CoalescedBudget"]


@dataclass(frozen=True)
class CoalescedBudget:
    """The bounds of a table's members; at least one is given.

    Parameters
    ----------
    rows
        How many members are kept.
    bytes
        Bytes of the members that are kept.
    keep
        The share of the window's members that is kept, above 0 and up to 1.
    accuracy
        The share below which shedding stops. With another bound it is a floor that takes precedence. Alone it is the only bound:
        members are shed until it is reached.

    Raises
    ------
    ValueError
        When no bound is given, several of ``rows``, ``bytes`` and ``keep`` are given, or a bound is out of range.

    """

    rows: int | None = None
    bytes: int | None = None
    keep: float | None = None
    accuracy: float | None = None

    def __post_init__(self) -> None:
        bounds = [bound for bound in (self.rows, self.bytes, self.keep) if bound is not None]
        if len(bounds) > 1 or (not bounds and self.accuracy is None):
            raise ValueError("a budget is one of rows, bytes and keep, or accuracy, which can stand beside one of them")
        if any(bound is not None and bound < 1 for bound in (self.rows, self.bytes)):
            raise ValueError("rows and bytes of a budget are at least 1")
        if any(share is not None and not 0 < share <= 1 for share in (self.keep, self.accuracy)):
            raise ValueError("keep and accuracy of a budget are shares above 0 and up to 1")

    @property
    def bounds(self) -> bool:
        """Whether it bounds the kept members or bytes, not only the accuracy."""
        return any(bound is not None for bound in (self.rows, self.bytes, self.keep))

    def excess(self, kept: int, arrived: int, size: float) -> int:
        """Return the number of members over the budget, before the accuracy is considered.

        Parameters
        ----------
        kept
            Members that are stored.
        arrived
            Members of the window, including shed members.
        size
            Bytes that a member takes.

        Examples
        --------
        >>> CoalescedBudget(rows=90).excess(100, 100, 8.0), CoalescedBudget(keep=0.5).excess(80, 101, 8.0)
        (10, 29)
        >>> CoalescedBudget(accuracy=0.9).excess(9, 9, 8.0)
        9

        """
        if self.rows is not None:
            return max(0, kept - self.rows)
        if self.bytes is not None:
            return max(0, min(kept, ceil(kept - self.bytes / size)))
        return max(0, kept - ceil(self.keep * arrived)) if self.keep is not None else kept
