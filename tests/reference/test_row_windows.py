from __future__ import annotations

from collections import defaultdict

import pytest

from tests.reference.engine.changes import answer, arrivals, lifetimes, minus, plus
from tests.reference.engine.row_windows import row_window
from tests.reference.engine.stateless import selection
from tests.reference.engine.tuples import Row, live_rows

from .generators import instants, seeds, weak
from .notation import labels, stream


def test_selection_does_not_commute_with_a_count_window() -> None:
    """TV-10: selecting from the newest 2 rows is not the newest 2 of the selected."""
    rows = arrivals(stream("a1 b2 a3"))
    after = selection(row_window(rows, 2), lambda value: value == ("a",))
    before = row_window(selection(rows, lambda value: value == ("a",)), 2)
    assert (labels(answer(after, 3)), labels(answer(before, 3))) == (["a3"], ["a1", "a3"])


def test_the_newest_rows_of_all_and_of_each_group() -> None:
    """At every instant the window holds the newest rows that arrived, of all or of each group."""
    for random in seeds(60):
        rows = [Row(row.id, row.value, row.ts) for row in weak(random, "r", count=15, values="abc")]
        size = random.randint(1, 4)
        for by in (None, lambda value: value[0]):
            windowed = row_window(arrivals(rows), size, by)
            for tau in range(26):
                groups = defaultdict(list)
                for row in live_rows(rows, tau):
                    groups[by(row.value) if by else None].append(row)
                expected = [row for group in groups.values() for row in group[-size:]]
                assert labels(answer(windowed, tau)) == labels(expected)


def test_rows_that_end_by_themselves_keep_their_place() -> None:
    """A row with an exp of its own leaves the answer then; the window still counts it as one of the newest."""
    for random in seeds(30):
        rows = weak(random, "r", count=12)
        windowed = row_window(arrivals(rows), 3)
        for tau in instants(rows):
            newest = [row for row in rows if row.ts <= tau][-3:]
            assert labels(answer(windowed, tau)) == labels(live_rows(newest, tau))


def test_rows_pushed_through_within_a_tick() -> None:
    """A row that enters and leaves within one tick is never in the answer."""
    rows = [Row(n, (n,), 5) for n in range(4)]
    changes = row_window(arrivals(rows), 2)
    assert [row.id for row in lifetimes(changes)] == [2, 3]
    assert [row.id for row in answer(changes, 5)] == [2, 3]


def test_cancelled_rows_are_refused() -> None:
    """A window of the newest rows is a leaf of a plan."""
    row = Row("a", ("a",), 1)
    with pytest.raises(ValueError, match="takes no negative tuples"):
        row_window([plus(row), minus(row, 4)], 2)
