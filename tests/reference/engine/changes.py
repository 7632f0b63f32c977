"""Event lists: arrivals and negative tuples, what an operator reads and what it emits.

A change is a row that enters (``sign`` 1, at its ``ts``) or a negative tuple that cancels an equal row which entered before
(``sign`` -1). A row that reaches its ``exp`` leaves without a change. The answer of an operator at tau is
``{ row : entered at or before tau, not cancelled at or before tau, exp > tau }`` (update-patterns sheet, 1.3 and 2.1).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tests.reference.engine.tuples import Row, live_rows
from warehouse.time import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Change", "Tick", "answer", "arrivals", "lifetimes", "minus", "plus", "refuse_negatives", "timeline"]


@dataclass(frozen=True)
class Change:
    """A row that enters, or the cancellation of one that entered; ``at`` is an instant."""

    at: int
    sign: Literal[1, -1]
    row: Row

    @property
    def idle(self) -> bool:
        """Whether it changes no answer: the row lives for no tick, or is cancelled when it has expired."""
        return self.row.exp <= self.row.ts or self.row.exp <= self.at


@dataclass(frozen=True)
class Tick:
    """All that happens at one instant: first rows whose ``exp`` is ``now`` expire, then the changes in their order.

    ``changes`` are pairs of the number of the input and the change.
    """

    now: int
    changes: tuple[tuple[int, Change], ...]


def plus(row: Row) -> Change:
    """A row enters at its ``ts``."""
    return Change(row.ts, 1, row)


def minus(row: Row, at: int) -> Change:
    """A row that entered is cancelled."""
    return Change(at, -1, row)


def arrivals(rows: Iterable[Row]) -> list[Change]:
    """The event list of rows that nothing cancels: in the order of ``ts``, ties as given."""
    return [plus(row) for row in sorted(rows, key=lambda row: row.ts)]


def answer(changes: Iterable[Change], tau: int) -> list[Row]:
    """The live rows at an instant, in the order in which they entered.

    >>> row = Row("a1", ("a",), 1, 11)
    >>> changes = [plus(row), minus(row, 5)]
    >>> len(answer(changes, 4)), len(answer(changes, 5))
    (1, 0)
    """
    rows: list[Row] = []
    for change in changes:
        if change.at > tau:
            continue
        if change.sign > 0:
            rows.append(change.row)
        else:
            rows.remove(change.row)
    return live_rows(rows, tau)


def lifetimes(changes: Iterable[Change]) -> list[Row]:
    """Return the rows with the intervals in which they were in the answer; rows of no tick are left out.

    Raises
    ------
    ValueError
        When a negative tuple cancels a row that is not there.

    """
    rows: list[Row] = []
    cancelled: list[bool] = []
    for change in changes:
        if change.sign > 0:
            rows.append(change.row)
            cancelled.append(False)
            continue
        position = next((i for i, row in enumerate(rows) if row == change.row and not cancelled[i]), None)
        if position is None:
            raise ValueError(f"nothing to cancel at {change.at}: {change.row}")
        rows[position] = replace(rows[position], exp=min(rows[position].exp, change.at))
        cancelled[position] = True
    return [row for row in rows if row.ts < row.exp]


def timeline(*inputs: Sequence[Change]) -> Iterator[Tick]:
    """Every instant at which something happens, in order: a change, or the expiration of a row of the inputs.

    Within a tick cancellations of rows that entered before come first (window-joins sheet, section 6), then everything
    else, input by input and in the order of its list; changes that change nothing are left out.
    """
    at: defaultdict[int, list[tuple[int, Change]]] = defaultdict(list)
    for number, changes in enumerate(inputs):
        for change in changes:
            if change.idle:
                continue
            at[change.at].append((number, change))
            if change.sign > 0 and change.row.exp != NEVER:
                at.setdefault(change.row.exp, [])
    for now in sorted(at):
        yield Tick(now, tuple(sorted(at[now], key=lambda numbered: numbered[1].sign > 0 or numbered[1].row.ts == now)))


def refuse_negatives(operator: str, *inputs: Sequence[Change]) -> None:
    """Refuse strict input.

    Raises
    ------
    ValueError
        When an input holds a negative tuple.

    """
    if any(change.sign < 0 for changes in inputs for change in changes):
        raise ValueError(f"{operator} takes no negative tuples; choose a form for strict input")
