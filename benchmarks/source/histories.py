"""Histories of window movements and queries, judged: window-concurrency sheet, sections 1 to 3.

A history is a line of operations: ``r[2]`` a read of slot 2, ``w5[0]`` the write of movement 5, ``c5`` its commit, ``cQ`` that
of the query. It is window-serializable (WS) if the query read a state that the window had, latest-window-serializable (LWS) if
that was the state when it committed, commit-order-preserving (CPS) if conflicting operations are ordered as the commits are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Verdict", "judged"]

_OPERATION = re.compile(r"r\[(?P<read>\d+)\]|w(?P<write>\d+)\[(?P<slot>\d+)\]|c(?P<commit>\d+|Q)")
_QUERY = "Q"


@dataclass(frozen=True)
class Verdict:
    """What a history is.

    Attributes
    ----------
    read
        The movements whose content the query read, ascending.
    edges
        Those of the serialization graph: ``(5, "Q")`` is movement 5 before the query.
    ws, lws, cps
        The three levels.

    """

    read: tuple[int, ...]
    edges: frozenset[tuple[int | str, int | str]]
    ws: bool
    lws: bool
    cps: bool


def judged(history: str, slots: int, needed: int, newest: int) -> Verdict:
    """Judge a history.

    Parameters
    ----------
    history
        The operations, separated by blanks.
    slots
        n, the sub-windows of the window.
    needed
        n_k, the number of slots that the query needs: the youngest.
    newest
        The last movement before the history.

    >>> judged("r[0] w5[0] c5 w6[1] c6 r[1] r[2] r[3] r[4] cQ", 5, 5, 4).ws
    False
    """
    content = {movement % slots: movement for movement in range(newest - slots + 1, newest + 1)}
    read: dict[int, int] = {}  # slot to movement
    commit_positions: dict[int | str, int] = {}  # when each transaction committed
    edges: set[tuple[int | str, int | str]] = set()
    written = newest
    at_commit = newest
    for number, operation in enumerate(_OPERATION.finditer(history)):
        if operation["read"] is not None:
            slot = int(operation["read"])
            read[slot] = content[slot]
            if content[slot] > newest:
                edges.add((content[slot], _QUERY))
        elif operation["write"] is not None:
            written, slot = int(operation["write"]), int(operation["slot"])
            content[slot] = written
            if slot in read:
                edges.add((_QUERY, written))
        else:
            commit = operation["commit"]
            commit_positions[_QUERY if commit == _QUERY else int(commit)] = number
            if commit == _QUERY:
                at_commit = written
    movements = tuple(sorted(read.values()))
    ws = len(set(movements)) == needed and movements[-1] - movements[0] == needed - 1
    return Verdict(
        read=movements,
        edges=frozenset(edges),
        ws=ws,
        lws=ws and movements[-1] == at_commit,
        cps=all(commit_positions[first] < commit_positions[second] for first, second in edges),
    )
