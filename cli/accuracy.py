"""``--open-until``, ``--at-least`` and ``--minimum-accuracy``: options for coalesced tables, and their messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from warehouse.cli.options import DURATION
from warehouse.time import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from warehouse.serving import Answer

__all__ = ["AccuracyOptions", "accuracy_options", "coalesced_options"]

_Function = TypeVar("_Function", bound="Callable[..., Any]")


def accuracy_options(function: _Function) -> _Function:
    """Add ``--at-least`` and ``--minimum-accuracy``."""
    least = "Of shed tables show the accuracy for rows that are at least so long."
    minimum = "Exit code 4 when shedding has left less of a table; a share."
    function = click.option("--minimum-accuracy", type=click.FloatRange(0, 1), metavar="SHARE", help=minimum)(function)
    return click.option("--at-least", type=DURATION, metavar="DURATION", help=least)(function)


def coalesced_options(function: _Function) -> _Function:
    """Add the options of commands that read rows of coalesced tables: ``--open-until``, and the options for shed tables."""
    text = "now: open rows of coalesced tables end at the window time, or at --now, not at their last point."
    return click.option("--open-until", type=click.Choice(["now"]), help=text)(accuracy_options(function))


@dataclass(frozen=True)
class AccuracyOptions:
    """The values of ``--at-least``, in microseconds, and of ``--minimum-accuracy``, a share."""

    at_least: int | None = None
    minimum: float | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> tuple[AccuracyOptions, dict[str, Any]]:
        """Split the options of a command into the options for coalesced tables and the others."""
        names = ("at_least", "minimum_accuracy")
        return cls(*map(options.get, names)), {name: value for name, value in options.items() if name not in names}

    @property
    def _length(self) -> str:
        return f" for rows of at least {format_duration(self.at_least)}" if self.at_least else ""

    def notes(self, answer: Answer) -> tuple[str, ...]:
        """Return the messages about an answer over shed tables, and over views that owe results.

        Raises
        ------
        LowAccuracyError
            When a shed table is less accurate than requested.

        """
        owed = tuple(view.text for view in answer.owed)
        share = answer.accuracy(self.at_least or 0, minimum=self.minimum or 0.0)
        if share is None:
            return owed
        return (f"members of {', '.join(answer.shed)} were shed: accuracy {share:.4f}{self._length}", *owed)

    def any_below_minimum(self, shares: Mapping[str, float]) -> bool:
        """Return whether the accuracy of a table is below the minimum."""
        return any(share < (self.minimum or 0.0) for share in shares.values())

    def lines(self, shares: Mapping[str, float]) -> Iterator[str]:
        """Yield the message about each shed table."""
        for table, share in shares.items():
            low = f", less than {self.minimum:g}" if self.minimum is not None and share < self.minimum else ""
            yield f"members of {table} were shed: accuracy {share:.4f}{self._length}{low}"
