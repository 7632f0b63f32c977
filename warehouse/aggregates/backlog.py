"""The order in which due answers are computed when an update may not have time for all of them.

The end of an answer is fixed, so it saves nothing to refresh a window more often. Therefore one part of the sheet's schedulers
(shared-aggregates, 8.3, 8.4) is used: the choice of the next answers. As in late-pending hybrid synchronisation, the group with
the latest window comes first, together with all waiting windows of the group; each window gets its newest end. Older ends come
after these, the newest first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.aggregates.definition import Due

__all__ = ["Round", "rounds"]

Round = tuple[tuple[str, tuple["Due", ...]], ...]
"""Answers that are calculated together: aggregates, each with some of its due windows."""


def rounds(waiting: Mapping[str, Sequence[Due]], groups: Mapping[str, str]) -> Iterator[Round]:
    """Yield the due answers in rounds; the answers of a round are computed together.

    Parameters
    ----------
    waiting
        The due windows of each aggregate.
    groups
        The group of each aggregate. Aggregates of one group read the same synopsis.

    Examples
    --------
    >>> from warehouse.aggregates.definition import Due
    >>> hourly = [Due("1h", 1, 7, late=1), Due("1h", 1, 8)]
    >>> waiting = {"a": [Due("1d", 24, 8)], "b": hourly, "c": [Due("2h", 2, 8)]}
    >>> for answers in rounds(waiting, {"a": "s", "b": "t", "c": "t"}):
    ...     print([(name, due.text, due.end) for name, dues in answers for due in dues])
    [('b', '1h', 8), ('c', '2h', 8)]
    [('a', '1d', 8)]
    [('b', '1h', 7)]
    """
    newest: dict[str, tuple[Due, ...]] = {}
    older: dict[tuple[int, str], dict[str, list[Due]]] = {}
    for name, dues in waiting.items():
        last = {due.text: due for due in sorted(dues, key=lambda due: due.end)}
        newest[name] = tuple(last.values())
        for due in dues:
            if last[due.text] != due:
                older.setdefault((due.end, groups[name]), {}).setdefault(name, []).append(due)
    members: dict[str, list[str]] = {}
    for name in sorted(newest):
        if newest[name]:
            members.setdefault(groups[name], []).append(name)
    for group in sorted(members, key=lambda group_name: (-_latest(waiting, members[group_name]), group_name)):
        yield tuple((name, newest[name]) for name in members[group])
    for key in sorted(older, key=lambda older_key: (-older_key[0], older_key[1])):
        yield tuple((name, tuple(dues)) for name, dues in sorted(older[key].items()))


def _latest(waiting: Mapping[str, Sequence[Due]], names: Sequence[str]) -> int:
    return max(due.late for name in names for due in waiting[name])
