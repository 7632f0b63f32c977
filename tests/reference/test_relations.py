from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.reference.engine import snapshot as q
from tests.reference.engine.changes import answer, arrivals, lifetimes, minus
from tests.reference.engine.relations import (
    TableUpdate,
    as_of_join,
    join_non_retroactive,
    join_relation,
    split_reused,
    versions,
)
from tests.reference.engine.tuples import Row, bag, live_rows

from .generators import instants, seeds, weak
from .notation import negatives, spans, stream

if TYPE_CHECKING:
    from random import Random

STREAM = arrivals(stream("Z2 A3 Z4 Z5 A6 A7", 10))
UPDATES = [TableUpdate(0, "A"), TableUpdate(4, "Z"), TableUpdate(6, "A", None)]


def random_updates(random: Random, *, reuse: bool) -> list[TableUpdate]:
    """Upserts and deletes of keys a and b at distinct and equal instants."""
    updates = []
    for at in sorted(random.randint(0, 24) for _ in range(8)):
        columns = None if random.random() < 1 / 3 else (random.randint(1, 3),)
        updates.append(TableUpdate(at, random.choice("ab"), columns))
    return updates if reuse else split_reused(updates)[0]


def test_non_retroactive_updates() -> None:
    """TV-11: a row sees the updates stamped before its ts, and keeps what it saw."""
    expected = [("A3", 3, 13), ("Z5", 5, 15), ("A6", 6, 16)]
    assert spans(lifetimes(join_non_retroactive(STREAM, UPDATES))) == expected
    assert spans(as_of_join([change.row for change in STREAM], versions(UPDATES))) == expected


def test_retroactive_updates() -> None:
    """TV-11: an insert finds rows that are already in the window, a delete cancels results."""
    changes = join_relation(STREAM, UPDATES)
    results = sorted((row.id[0], row.ts, row.exp) for row in lifetimes(changes) if isinstance(row.id, tuple))
    assert results == [("A3", 3, 6), ("Z2", 4, 12), ("Z4", 4, 14), ("Z5", 5, 15)]
    assert [(change.at, change.row.exp) for change in changes if change.sign < 0] == [(6, 13)]


def test_a_deleted_key_is_not_used_again() -> None:
    """TV-11: a later insert of A into a non-retroactive relation is rejected; changing a known key is not."""
    reinsertion = TableUpdate(9, "A")
    good, rejected = split_reused([*UPDATES, TableUpdate(8, "Z", (1,)), reinsertion])
    assert (len(good), rejected) == (4, [reinsertion])
    with pytest.raises(ValueError, match="inserted again"):
        join_non_retroactive(STREAM, [*UPDATES, reinsertion])


def test_versions_follow_each_other() -> None:
    """Each update of a key ends its version before; of several at one instant only the last lives."""
    updates = [TableUpdate(1, "A", (1,)), TableUpdate(5, "A", (2,)), TableUpdate(5, "A", (3,)), TableUpdate(9, "A", None)]
    assert [(row.value, row.ts, row.exp) for row in versions(updates)] == [
        (("A", 1), 1, 5),
        (("A", 2), 5, 5),
        (("A", 3), 5, 9),
    ]


def test_events_and_formula_agree_without_retroaction() -> None:
    """Probing the table of the moment finds what the interval condition finds."""
    for random in seeds(100):
        rows, updates = weak(random, "r"), random_updates(random, reuse=False)
        events = join_non_retroactive(arrivals(rows), updates)
        assert negatives(events) == 0
        assert bag(change.row for change in events) == bag(as_of_join(rows, versions(updates)))


def test_retroactive_joins_agree_with_the_definition() -> None:
    """At every instant the answer is the join of the live rows with the state of the relation."""
    for random in seeds(100):
        rows, updates = weak(random, "r"), random_updates(random, reuse=True)
        changes = join_relation(arrivals(rows), updates)
        query = q.join(q.scan("rows"), q.scan("table"), q.matches())
        sources = {"rows": rows, "table": versions(updates)}
        assert all(bag(answer(changes, tau)) == q.snapshot(query, sources, tau) for tau in instants(rows))


def test_a_relation_that_never_changes() -> None:
    """Both kinds of join agree when every update was before the first row."""
    for random in seeds(30):
        rows = weak(random, "r")
        updates = [TableUpdate(0, "a", (1,)), TableUpdate(0, "b", (2,))]
        retroactive, reflecting = join_relation(arrivals(rows), updates), as_of_join(rows, versions(updates))
        assert all(bag(answer(retroactive, tau)) == bag(live_rows(reflecting, tau)) for tau in instants(rows))


def test_strict_streams_are_refused() -> None:
    """A negative tuple could not reproduce the results of its row after an update."""
    changes = [*STREAM, minus(STREAM[0].row, 8)]
    with pytest.raises(ValueError, match="join with a relation takes no negative tuples"):
        join_relation(changes, UPDATES)
    with pytest.raises(ValueError, match="non-retroactive relation takes no negative tuples"):
        join_non_retroactive(changes, UPDATES)


def test_null_joins_no_table_row() -> None:
    """A stream row with a null key joins nothing, whatever the table holds."""
    rows, updates = [Row("n", (None,), 3, 9)], [TableUpdate(0, None)]
    assert join_relation(arrivals(rows), updates) == []
    assert join_non_retroactive(arrivals(rows), updates) == []
    assert as_of_join(rows, versions(updates)) == []
