"""The problems of a layout, as data: each is listed, and no problem hides another."""

from __future__ import annotations

from dataclasses import dataclass

from warehouse.errors import WarehouseError

__all__ = ["LayoutError", "LayoutProblem"]


@dataclass(frozen=True)
class LayoutProblem:
    """An impossible value of a layout.

    Parameters
    ----------
    key
        The key of `[streams.NAME.layout]` to change: `grid`, `insertion`, `expiration`, `technique`, `expiry_block` or
        `seal`; for a stored layout also `periods`, `base`, `version`.
    found, allowed
        The value, and what is allowed, as they are written in `warehouse.toml`.
    message
        One sentence that says why.
    """

    key: str
    found: str
    allowed: str
    message: str


class LayoutError(WarehouseError, ValueError):
    """A layout that cannot exist; `problems` holds everything that is wrong with it."""

    code = "layout"
    exit_code = 2

    def __init__(self, problems: tuple[LayoutProblem, ...]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(
            f"{problem.key} = {problem.found}: {problem.message} Allowed: {problem.allowed}." for problem in self.problems
        )
