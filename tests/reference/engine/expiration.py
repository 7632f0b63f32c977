"""The two ways to expire state: by the rows' own ``exp``, or by a negative tuple for every expiration.

The same operators serve both. DIRECT: they find expired rows in their state by ``exp``. NT: each base window is turned by
:func:`announced` into rows without a known end and a negative tuple for each expiration, and the operators see nothing
else; so they process every row twice, and any plan is possible (update-patterns sheet, 1.4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.reference.engine.changes import Change, lifetimes, minus, plus
from warehouse.time import NEVER

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["announced"]


def announced(changes: Iterable[Change]) -> list[Change]:
    """The window operator of the negative-tuple approach: every end, natural or premature, becomes a negative tuple.

    >>> from tests.reference.engine.changes import arrivals
    >>> from tests.reference.engine.tuples import Row
    >>> [(change.at, change.sign) for change in announced(arrivals([Row("a1", ("a",), 1, 11), Row("a4", ("a",), 4)]))]
    [(1, 1), (4, 1), (11, -1)]
    """
    result = []
    for row in lifetimes(changes):
        unending = replace(row, exp=NEVER)
        result.append(plus(unending))
        if row.exp != NEVER:
            result.append(minus(unending, row.exp))
    return sorted(result, key=lambda change: (change.at, change.sign))
