"""Joins evaluated at each arrival: Algorithm 2 (eager expiration) and Algorithm 3 (lazy expiration).

Each new row is stored and completed with the stored rows of the other inputs; a result is born now and dies with its first
part (window-joins sheet, 3.1 and 3.2). The binary join of the update-patterns sheet, 2.3, is the case of two inputs. Under
strict input Algorithm 2 removes the partner of a negative tuple and joins the negative like a row (section 6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from tests.reference.engine.changes import Change, minus, plus, refuse_negatives, timeline
from tests.reference.engine.join_state import JoinState, complete, probe_order, states
from tests.reference.engine.tuples import combine
from warehouse.time import NEVER

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tests.reference.engine.tuples import Key, Row

__all__ = ["JoinRun", "eager_join", "join"]


@dataclass(frozen=True)
class JoinRun:
    """What a join emitted, how many rows its probes looked at, and the most rows it stored at once."""

    changes: list[Change]
    probed: int
    stored: int


def join(*inputs: Sequence[Change], keys: Sequence[Key] | None = None, external: Collection[int] | None = None) -> list[Change]:
    """Algorithm 2 with nested loops in the order of the inputs: the join operator of a plan.

    Parameters
    ----------
    inputs
        Event lists.
    keys
        The join attribute of each input; the first column if left out.
    external
        The inputs whose expirations end results; all if left out. Results of internal windows only never expire, though the
        state does, so they must not be joined again (update-patterns sheet, 4.1 and TV-2).

    """
    run = eager_join(inputs, keys=keys)
    if external is None:
        return run.changes
    ends = {
        (number, change.row.id): change.row.exp for number, changes in enumerate(inputs) for change in changes if change.sign > 0
    }
    return [replace(change, row=_ended(change.row, ends, external)) for change in run.changes]


def _ended(result: Row, ends: dict[tuple[int, object], int], external: Collection[int]) -> Row:
    assert isinstance(result.id, tuple)
    return replace(result, exp=min((ends[i, result.id[i]] for i in external), default=NEVER))


def eager_join(
    inputs: Sequence[Sequence[Change]],
    *,
    keys: Sequence[Key] | None = None,
    order: Sequence[int] | None = None,
    buckets: int = 1,
    expiration: Literal["eager", "lazy"] = "eager",
    sweep: int | None = None,
) -> JoinRun:
    """Join event lists, evaluating at each change.

    Parameters
    ----------
    inputs
        Event lists of at least one input.
    keys
        The join attribute of each input; the first column if left out.
    order
        The global order of probing, a permutation of the inputs; as given if left out.
    buckets
        Hash buckets of each state; 1 is nested loops.
    expiration
        ``eager``: the other states are purged at each arrival (Algorithm 2). ``lazy``: expired rows are skipped while probing
        (Algorithm 3).
    sweep
        With lazy expiration, expired rows are purged at the first arrival this many ticks after the last purge; never if
        left out.

    Raises
    ------
    ValueError
        When Algorithm 3 gets negative tuples: it cannot predict when their partners die.

    """
    if expiration == "lazy":
        refuse_negatives("Algorithm 3", *inputs)
    windows = states(len(inputs), keys, buckets)
    result: list[Change] = []
    swept: int | None = None
    stored = 0
    for tick in timeline(*inputs):
        if expiration == "lazy" and sweep is not None and (swept is None or tick.now >= swept + sweep):
            _purge(windows, tick.now)
            swept = tick.now
        for i, change in tick.changes:
            if change.sign > 0:
                windows[i].insert(change.row)
            else:
                windows[i].remove(change.row)
            if expiration == "eager":
                _purge([window for j, window in enumerate(windows) if j != i], tick.now)
            todo = probe_order(i, order or range(len(inputs)))
            result += _results(windows, i, change, todo, skip_dead=expiration == "lazy")
            stored = max(stored, sum(len(window.rows()) for window in windows))
    return JoinRun(result, sum(window.probed for window in windows), stored)


def _purge(windows: Sequence[JoinState], now: int) -> None:
    for window in windows:
        window.drop(lambda row: row.exp <= now)


def _results(windows: Sequence[JoinState], i: int, change: Change, todo: Sequence[int], *, skip_dead: bool) -> list[Change]:
    key = windows[i].key(change.row.value)
    completed = complete(windows, {i: change.row}, key, todo, lambda row: not skip_dead or row.exp > change.at)
    rows = [combine([parts[j] for j in range(len(windows))]) for parts in completed]
    return [plus(row) if change.sign > 0 else minus(row, change.at) for row in rows]
