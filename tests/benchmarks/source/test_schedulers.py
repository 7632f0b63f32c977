"""Chapter 7: histories are judged, and schedulers read, as the window-concurrency sheet has it (sections 6 and 7)."""

from __future__ import annotations

import pytest

from benchmarks.source.histories import judged
from benchmarks.source.schedulers import Partitions, Query, Window

HISTORIES = {
    "Ha": ("r[0] w5[0] c5 w6[1] c6 r[1] r[2] r[3] r[4] cQ", 5, 4, "02346", "Q5 6Q", (False, False, False)),
    "Hb": ("r[0] w5[0] c5 r[1] w6[1] c6 r[2] r[3] r[4] cQ", 5, 4, "01234", "Q5 Q6", (True, False, False)),
    "Hc": ("w5[0] c5 r[0] r[1] r[2] r[3] w6[1] c6 r[4] cQ", 5, 4, "12345", "5Q Q6", (True, False, False)),
    "Hd": ("w5[0] c5 r[0] w6[1] c6 r[1] r[2] r[3] r[4] cQ", 5, 4, "23456", "5Q 6Q", (True, True, True)),
    "He": ("r[4] w5[0] c5 r[0] r[3] r[2] w6[1] c6 r[1] cQ", 5, 4, "23456", "5Q 6Q", (True, True, True)),
    "Hf": ("r[0] w5[0] c5 r[1] r[2] r[3] w6[1] c6 r[4] cQ", 5, 4, "01234", "Q5 Q6", (True, False, False)),
    "Hg": ("r[0] w5[0] w6[1] c6 r[1] r[2] r[3] r[4] cQ c5", 5, 4, "02346", "Q5 6Q", (False, False, True)),
    "Hh": ("r[0] r[1] r[2] r[3] w9[4] r[4] cQ c9", 5, 8, "56789", "9Q", (True, True, False)),
    "K1": ("r[4] r[3] r[2] w5[0] c5 cQ", 3, 4, "234", "", (True, False, True)),
    "K2": ("r[4] r[3] w5[0] c5 r[2] cQ", 3, 4, "234", "", (True, False, True)),
    "K3": ("r[4] r[3] w5[0] c5 r[0] cQ", 3, 4, "345", "5Q", (True, True, True)),
    "K4": ("r[2] w5[0] c5 r[3] r[0] cQ", 3, 4, "235", "5Q", (False, False, True)),
    "K5": ("r[4] w5[0] c5 r[0] r[3] cQ", 3, 4, "345", "5Q", (True, True, True)),
    "K6": ("r[4] r[3] w5[0] c5 w6[1] c6 r[0] cQ", 3, 4, "345", "5Q", (True, False, True)),
    "K7": ("r[4] w5[0] c5 w6[1] c6 r[1] r[0] cQ", 3, 4, "456", "5Q 6Q", (True, True, True)),
    "K8": ("r[2] r[3] r[4] cQ w5[0] c5", 3, 4, "234", "", (True, True, True)),
}
SCHEDULES = {
    "S1": (5, "QTQQQTQ", "40321", True, "0", False),
    "S2": (5, "QQQTQQ", "43201", True, "012", False),
    "S3": (3, "QQTQ", "430", True, "23", False),
    "S4": (3, "QQTT", "43", False, "23", False),
    "S5": (3, "QTTQQ", "410", True, "2", False),
    "S6": (5, "QQQQTT", "4321", False, "0123", False),
    "S7": (5, "QQQTTQQ", "43210", True, "012", False),
}


def _edge(text: str) -> tuple[int | str, int | str]:
    first, second = (character if character == "Q" else int(character) for character in text)
    return first, second


@pytest.mark.parametrize("name", HISTORIES)
def test_histories(name: str) -> None:
    """Movements read, edges, and the three levels."""
    history, needed, newest, read, edges, levels = HISTORIES[name]
    verdict = judged(history, 5, needed, newest)
    assert "".join(map(str, verdict.read)) == read
    assert verdict.edges == {_edge(edge) for edge in edges.split()}
    assert (verdict.ws, verdict.lws, verdict.cps) == levels


def _played(window: Window, query: Query, schedule: str) -> tuple[str, bool]:
    """Return the slots that a query read, and whether it committed."""
    slots = ""
    for event in schedule:
        if query.done or query.aborted:
            break
        if event == "T":
            window.move()
        else:
            slots += str(window.step(query))
    return slots, query.done


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name: str) -> None:
    """Algorithm 8 ends fewer queries than a fixed order; a committed query has read the newest window."""
    needed, schedule, youngest_first, commits, fixed, fixed_commits = SCHEDULES[name]
    window = Window("TTU", 5, 4)
    query = window.begin(needed)
    assert _played(window, query, schedule) == (youngest_first, commits)
    if commits:
        assert sorted(query.read) == list(range(window.newest - needed + 1, window.newest + 1))
    window = Window("LWS", 5, 4)
    assert _played(window, window.begin(needed), schedule) == (fixed, fixed_commits)


def test_a_short_window_goes_on_without_what_expired() -> None:
    """S8: in a fixed order the new slot takes the place of the slot that expired unread."""
    for kind, slots in (("TTU", "1024"), ("LWS", "0124")):
        window = Window(kind, 5, 4)  # type: ignore[arg-type]
        window.move()
        window.move()
        query = window.begin(4)
        assert _played(window, query, "QQTQQ") == (slots, True)
        assert sorted(query.read) == [4, 5, 6, 7]


def test_two_queries_by_priority() -> None:
    """Both read the newest window; a query that waits too long is ended, the other is not."""
    window = Window("TTU", 5, 4)
    low = window.begin(5)
    slots = [window.step(low), window.step(low)]
    high = window.begin(3)
    slots.append(window.step(high))
    window.move()
    slots += [window.step(high), window.step(high), window.step(low), window.step(low), window.step(low)]
    assert slots == [4, 3, 4, 0, 3, 0, 2, 1]
    assert low.done
    assert high.done
    window = Window("TTU", 5, 4)
    low = window.begin(5)
    for _ in range(4):
        window.step(low)
    high = window.begin(3)
    window.step(high)
    assert window.move() == []
    window.step(high)
    assert window.move() == [low]
    window.step(high)
    assert high.done
    assert sorted(high.read) == [4, 5, 6]


def test_serial_and_ws_only() -> None:
    """A movement waits for the query; WS-only reads the state at its start and is ended when an unread slot expires."""
    window = Window("Serial", 5, 4)
    query = window.begin(2)
    with pytest.raises(ValueError, match="waits"):
        window.move()
    window.step(query)
    window.step(query)
    assert window.move() == []
    window = Window("WS", 5, 4)
    query = window.begin(5)
    assert window.step(query) == 0
    assert window.move() == []
    assert window.move() == [query]  # slot 1 was not read


def test_inserted_rows_are_handed_over() -> None:
    """Section 7, the last vector: without the copy of y it would be missing."""
    results = Partitions({1: ["a"], 2: ["b"], 3: ["c"]})
    results.step()
    assert results.move({2: ["x"], 3: ["y"], 4: ["z"]})
    results.step()
    results.step()
    assert results.handed == ["c", "y", "z", "b", "x"]
    assert sorted(results.handed) == sorted(row for rows in results.rows.values() for row in rows)
    assert not results.move({})
