"""Results that come and go between two updates: the restored rows and the view's history are what the definitions say.

Random rows that live for minutes, updated every hour; the third update catches up over two slots. Times are minutes.
"""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.operations.projects import Project, text
from tests.reference.engine import join_sets
from tests.reference.engine.changes import answer, arrivals, lifetimes
from tests.reference.engine.negation import anti_join
from tests.reference.engine.tuples import Row
from warehouse.project import Warehouse

from .warehouses import land, ticks, view, windowed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import SparkSession

    from warehouse.epochs.records import Counts

HOURS = (0, 1, 2, 4, 5)
PAIR = "SELECT l.id || ' ' || r.id AS id, l.k FROM a l JOIN b r ON l.k = r.k"
TRIPLE = "SELECT l.id || ' ' || m.id || ' ' || r.id AS id, l.k FROM a l JOIN b m ON l.k = m.k JOIN c r ON r.k = m.k"
LONELY = "SELECT id, k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)"
VIEWS = {
    "pair": view(PAIR, short_lived="report"),
    "pair_dropped": view(PAIR),
    "triple": view(TRIPLE, short_lived="report"),
    "lonely": view(LONELY, short_lived="report"),
    "lonely_dropped": view(LONELY),
    "lonely_ids": view(LONELY.replace("id, k", "id"), "id", short_lived="report"),
    "lonely_k": view("SELECT id, k FROM lonely WHERE k = 'k'", short_lived="report"),
}
Times = list[tuple[str, int, int]]


class Seen(NamedTuple):
    """A view after an update: all rows, the new ones, the restored ones, and what was counted."""

    shown: Times
    new: Times
    restored: Times
    counts: Counts


class Story(NamedTuple):
    """The rows of each stream, and every view after every update."""

    rows: dict[str, list[Row]]
    seen: dict[str, list[Seen]]
    project: Project


def _random_rows(chance: random.Random, name: str) -> list[Row]:
    rows = []
    for number in range(40):
        begins = chance.randrange(1, HOURS[-1] * 60 + 1)
        rows.append(Row(f"{name}{number}", (chance.choice("klm"),), begins, begins + chance.choice([3, 10, 25, 50, 90, 150])))
    return rows


def _line(row: Row) -> str:
    return f"{row.value[0]},{text(row.ts / 60)},{text(row.exp / 60)},{row.id}"


def _times(rows: Iterable[dict[str, object]]) -> Times:
    return sorted((str(row["id"]), round(ticks(row["_ts"]) * 60), round(ticks(row["_exp"]) * 60)) for row in rows)


def _named(rows: Iterable[Row]) -> Times:
    return sorted((" ".join(row.id) if isinstance(row.id, tuple) else str(row.id), row.ts, row.exp) for row in rows)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Story:
    """Return the rows, the results and the project of a whole run."""
    chance = random.Random(11)  # noqa: S311 - test data
    rows = {name: _random_rows(chance, name) for name in "abc"}
    directory = tmp_path_factory.mktemp("lost") / "project"
    project = Project(directory, spark, {name: windowed(name, 3) for name in "abc"}, views=VIEWS)
    project.update(0)
    seen: dict[str, list[Seen]] = {name: [] for name in VIEWS}
    for previous, now in pairwise(HOURS):
        arrived = {name: [_line(row) for row in own if previous * 60 < row.ts <= now * 60] for name, own in rows.items()}
        land(project, now, arrived, "k,b,e,id")
        project.update(now)
        with Warehouse.open(project.directory) as warehouse:
            for name in VIEWS:
                live = project.live(name)
                reported = [row for row in warehouse.restored(name).arrow().to_pylist() if row["_epoch"] == project.epoch.number]
                new = [row for row in live if row["_load_slot"] > previous]
                seen[name].append(Seen(_times(live), _times(new), _times(reported), project.counts(name)))
    return Story(rows, seen, project)


@pytest.mark.parametrize(("name", "streams"), [("pair", "ab"), ("triple", "abc")])
def test_joins_report_what_the_definition_says(story: Story, name: str, streams: str) -> None:
    """At each update: the new results, those that nobody could see, and the whole answer, with their times."""
    inputs: Sequence[Sequence[Row]] = [story.rows[stream] for stream in streams]
    lost = 0
    for (previous, now), seen in zip(pairwise(HOURS), story.seen[name], strict=True):
        span = (previous * 60, now * 60)
        assert seen.new == _named(join_sets.new_results(inputs, *span, "no-restore"))
        assert seen.restored == _named(join_sets.short_lived(inputs, *span))
        assert seen.shown == _named(join_sets.view(inputs, now * 60))
        assert seen.counts.dead == len(seen.restored)
        lost += len(seen.restored)
    assert lost


def test_anti_joins_report_what_the_definition_says(story: Story) -> None:
    """At each update: the left rows without a partner, and the appearances that began and ended since the last one."""
    changes = anti_join(arrivals(story.rows["a"]), arrivals(story.rows["b"]))
    appearances, lost = lifetimes(changes), 0
    for (previous, now), seen in zip(pairwise(HOURS), story.seen["lonely"], strict=True):
        gone = [row for row in appearances if previous * 60 < row.ts and row.exp <= now * 60]
        assert seen.restored == _named(gone)
        assert [name for name, _, _ in seen.shown] == sorted(str(row.id) for row in answer(changes, now * 60))
        assert seen.counts.dead == len(gone)
        lost += len(gone)
    assert lost


def test_selections_from_an_anti_join_report_what_it_does(story: Story) -> None:
    """Its own key need not be an output, nor need it be the same view: the state below knows what came and went."""
    keys = {row.id: row.value[0] for row in story.rows["a"]}
    whole = story.seen["lonely"]
    for seen, ids, chosen in zip(whole, story.seen["lonely_ids"], story.seen["lonely_k"], strict=True):
        assert (ids.shown, ids.restored, ids.counts.dead) == (seen.shown, seen.restored, seen.counts.dead)
        assert chosen.restored == [row for row in seen.restored if keys[row[0]] == "k"]
        assert chosen.counts.dead == len(chosen.restored)
    assert any(chosen.restored for chosen in story.seen["lonely_k"])


@pytest.mark.parametrize("name", ["pair", "lonely"])
def test_drop_keeps_none_and_counts_them(story: Story, name: str) -> None:
    """A view that drops short-lived results has equal rows and counts, restores nothing, and has no table for them."""
    for reporting, dropping in zip(story.seen[name], story.seen[f"{name}_dropped"], strict=True):
        assert (dropping.shown, dropping.restored) == (reporting.shown, [])
        assert dropping.counts.dead == reporting.counts.dead
    state = story.project.epoch.table(f"{name}_dropped")
    assert state is not None
    assert state.restored is None
    assert not (story.project.root / "restored" / f"{name}_dropped").exists()
