"""Random inputs: all forms of a join report the same results, each once; and what goes wrong in the source's forms."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.reference.engine.changes import arrivals, lifetimes
from tests.reference.engine.join_sets import Batch, Mode, batches, combinations, f1, f2, new_results, short_lived, view
from tests.reference.engine.joins import eager_join
from tests.reference.engine.lazy_joins import LazyJoin
from tests.reference.engine.strict_joins import Tombstone, as_changes, effective, negative_results
from tests.reference.engine.tuples import BEGINNING, Boundary, Row, with_boundary

from .generators import seeds, weak, weakest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

LAST = 30
MODES: tuple[Mode, Mode] = ("no-restore", "restore")


class Case(NamedTuple):
    """Random inputs, the update interval, the runs with the one before each, a probe order and hash buckets."""

    inputs: list[list[Row]]
    interval: int
    runs: list[tuple[int, int]]
    order: list[int]
    buckets: int


def case(random: Random, *, shortest: int | None = None, sizes: Sequence[int] = (0, 0, 9, 6, 4)) -> Case:
    """Inputs of 2 to 4 streams with windows from the update interval (or ``shortest``) to 12, under both boundaries."""
    n, interval = random.randint(2, 4), random.choice([1, 3, 5])
    lengths = [random.randint(interval if shortest is None else shortest, 12) for _ in range(n)]
    boundary: Boundary = "inclusive" if random.random() < 1 / 2 else "exclusive"
    inputs = [
        with_boundary(weakest(random, f"s{i}-", length, sizes[n], horizon=LAST - 10), boundary)
        for i, length in enumerate(lengths)
    ]
    instants = [BEGINNING, *range(interval, LAST + interval, interval)]
    order = random.sample(range(n), n)
    return Case(inputs, interval, list(pairwise(instants)), order, random.choice([1, 2, 5]))


def fresh(case: Case, previous: int, now: int) -> list[list[Row]]:
    """The rows that arrived in ``(previous, now]``."""
    return [[row for row in rows if previous < row.ts <= now] for rows in case.inputs]


def lazily(join: LazyJoin, case: Case) -> list[Counter[Row]]:
    """What each run of a lazy join reports."""
    return [Counter(join.reevaluate(now, now + case.interval, fresh(case, previous, now))) for previous, now in case.runs]


def by_definition(case: Case, mode: Mode) -> list[Counter[Row]]:
    """What each run has to report."""
    return [Counter(new_results(case.inputs, previous, now, mode)) for previous, now in case.runs]


@pytest.mark.parametrize("mode", MODES)
def test_lazy_forms_agree(mode: Mode) -> None:
    """F1, F2, Algorithm 4 or 5 and the definition report the same at every run, and each result once."""
    reported = 0
    for random in seeds(150):
        drawn = case(random)
        expected = by_definition(drawn, mode)
        assert all(count == 1 for run in expected for count in run.values())
        split = [(batches(drawn.inputs, previous, now, mode), now) for previous, now in drawn.runs]
        assert [Counter(f1(parts, now, mode)) for parts, now in split] == expected
        assert [Counter(f2(parts, now, mode)) for parts, now in split] == expected
        join = LazyJoin(len(drawn.inputs), mode, order=drawn.order, buckets=drawn.buckets, guarded=False)
        assert lazily(join, drawn) == expected
        reported += sum(run.total() for run in expected)
    assert reported > 1000


def test_restore_reports_what_eager_evaluation_emits() -> None:
    """Algorithms 2 and 3 in any order, hashed or not, emit in each interval what a run with restore reports."""
    for random in seeds(150):
        drawn = case(random)
        expected = by_definition(drawn, "restore")
        changes = [arrivals(rows) for rows in drawn.inputs]
        for run in (
            eager_join(changes, order=drawn.order, buckets=drawn.buckets),
            eager_join(changes, order=drawn.order, expiration="lazy"),
            eager_join(changes, buckets=drawn.buckets, expiration="lazy", sweep=drawn.interval),
        ):
            emitted = [
                Counter(change.row for change in run.changes if previous < change.at <= now) for previous, now in drawn.runs
            ]
            assert emitted == expected


def test_lazy_expiration_stores_more_and_probes_more() -> None:
    """Rows that wait for a sweep are stored and looked at longer."""
    for random in seeds(20):
        rows = [arrivals(weakest(random, name, 5, 40, horizon=100)) for name in "lr"]
        eager, swept, never = (
            eager_join(rows),
            eager_join(rows, expiration="lazy", sweep=10),
            eager_join(rows, expiration="lazy"),
        )
        assert eager.stored <= swept.stored < never.stored == 80
        assert eager.probed <= swept.probed < never.probed


def test_everything_inserted_first_gives_duplicates() -> None:
    """Algorithm 4 that stores all new rows before it probes reports some results more than once."""

    class InsertsFirst(LazyJoin):
        def _admit(self, i: int, arrived: Sequence[Sequence[Row]]) -> None:
            if i == 0:
                for j in range(len(arrived)):
                    super()._admit(j, arrived)

    duplicates = 0
    for random in seeds(50):
        drawn = case(random)
        for wrong, right in zip(
            lazily(InsertsFirst(len(drawn.inputs), "no-restore"), drawn), by_definition(drawn, "no-restore"), strict=True
        ):
            assert set(wrong) == set(right)
            duplicates += (wrong - right).total()
    assert duplicates > 100


def test_windows_below_the_update_interval() -> None:
    """With windows shorter than the interval Algorithm 4 without a guard reports dead results; F1, F2 and the guard do not."""
    dead = 0
    for random in seeds(100):
        drawn = case(random, shortest=1)
        expected = by_definition(drawn, "no-restore")
        split = [(batches(drawn.inputs, previous, now, "no-restore"), now) for previous, now in drawn.runs]
        assert [Counter(f1(parts, now, "no-restore")) for parts, now in split] == expected
        assert [Counter(f2(parts, now, "no-restore")) for parts, now in split] == expected
        assert lazily(LazyJoin(len(drawn.inputs), "no-restore"), drawn) == expected
        unguarded = lazily(LazyJoin(len(drawn.inputs), "no-restore", guarded=False), drawn)
        dead += sum((wrong - right).total() for wrong, right in zip(unguarded, expected, strict=True))
    assert dead > 20


def test_rows_with_lifetimes_of_their_own() -> None:
    """Guarded Algorithm 4, Algorithm 5, F1 and the definition agree on rows that live from 1 to 10 ticks."""
    for random in seeds(80):
        drawn = case(random)
        inputs = [weak(random, f"w{i}-", count=6, horizon=LAST - 10) for i in range(len(drawn.inputs))]
        drawn = drawn._replace(inputs=inputs)
        for mode in MODES:
            expected = by_definition(drawn, mode)
            assert lazily(LazyJoin(len(inputs), mode, order=drawn.order), drawn) == expected
            split = [(batches(inputs, previous, now, mode), now) for previous, now in drawn.runs]
            assert [Counter(f1(parts, now, mode)) for parts, now in split] == expected


def test_short_lived_results_are_the_difference() -> None:
    """Restore reports the results of no-restore and the short-lived ones, nothing else."""
    lost = 0
    for random in seeds(40):
        drawn = case(random)
        for (previous, now), short, long in zip(
            drawn.runs, by_definition(drawn, "no-restore"), by_definition(drawn, "restore"), strict=True
        ):
            assert Counter(short_lived(drawn.inputs, previous, now)) == long - short
            lost += (long - short).total()
    assert lost > 20


def test_null_keys_match_nothing() -> None:
    """No form of the join matches null with null."""
    rows = [[Row("l", (None,), 1, 9), Row("m", ("a",), 1, 9)], [Row("r", (None,), 2, 9), Row("s", ("a",), 2, 9)]]
    split = batches(rows, BEGINNING, 5, "restore")
    for results in (
        list(combinations(rows)),
        f1(split, 5, "restore"),
        f2(split, 5, "restore"),
        LazyJoin(2, "restore").reevaluate(5, 10, rows),
        [change.row for change in eager_join([arrivals(side) for side in rows]).changes],
    ):
        assert [row.id for row in results] == [("m", "s")]


def test_late_rows() -> None:
    """F1 by load batch reports each result once, late rows included, if prior rows are kept longer by the lateness."""
    lateness, lost_without = 6, 0
    for random in seeds(60):
        inputs = [weakest(random, name, random.randint(5, 12), horizon=20) for name in "lr"]
        loaded = {row: row.ts + random.randint(0, lateness) for rows in inputs for row in rows}
        for kept_for in (lateness, 0):
            reported: list[Row] = []
            for previous, now in pairwise(range(-5, 45, 5)):
                split = [
                    Batch(
                        prior=tuple(row for row in rows if loaded[row] <= previous and row.exp > previous - kept_for),
                        new=tuple(row for row in rows if previous < loaded[row] <= now),
                    )
                    for rows in inputs
                ]
                reported += f1(split, now, "restore")
            expected = Counter(row for row in combinations(inputs) if row.ts < row.exp)
            if kept_for:
                assert Counter(reported) == expected
            else:
                assert not Counter(reported) - expected
                lost_without += (expected - Counter(reported)).total()
    assert lost_without > 10


def deletions(random: Random, inputs: Sequence[Sequence[Row]]) -> list[Tombstone]:
    """Tombstones of about a third of the rows, from their arrival on, some after their natural end."""
    return [
        Tombstone(i, row.id, random.randint(row.ts, row.exp + 2))
        for i, rows in enumerate(inputs)
        for row in rows
        if random.random() < 1 / 3
    ]


def test_strict_input() -> None:
    """With tombstones the sets, Algorithms 4 and 5 and the events of Algorithm 2 agree, and negatives keep the view right."""
    cancelled = 0
    for random in seeds(100):
        drawn = case(random, sizes=(0, 0, 7, 5, 3))
        stones = deletions(random, drawn.inputs)
        eager = lifetimes(eager_join(as_changes(drawn.inputs, stones)).changes)
        lazy = {mode: LazyJoin(len(drawn.inputs), mode, order=drawn.order, strict=True) for mode in MODES}
        answer_keys: Counter[tuple[object, int]] = Counter()
        for previous, now in drawn.runs:
            known_rows = effective(drawn.inputs, stones, now)
            recent = [stone for stone in stones if previous < stone.at <= now]
            for mode in MODES:
                # ends after now are not known yet, so only names and births are compared
                expected = Counter((row.id, row.ts) for row in new_results(known_rows, previous, now, mode))
                limit = now if mode == "no-restore" else BEGINNING
                emitted = Counter((row.id, row.ts) for row in eager if previous < row.ts <= now and row.exp > limit)
                reported = lazy[mode].reevaluate(now, now + drawn.interval, fresh(drawn, previous, now), recent)
                assert expected == emitted == Counter((row.id, row.ts) for row in reported)
            deleted = negative_results(drawn.inputs, stones, previous, now)
            cancelled += len(deleted)
            answer_keys += Counter((row.id, row.ts) for row in new_results(known_rows, previous, now, "no-restore"))
            answer_keys -= Counter((change.row.id, change.row.ts) for change in deleted)
            natural = [key for key in answer_keys if _natural_end(drawn.inputs, key) <= now]
            for key in natural:
                del answer_keys[key]
            assert answer_keys == Counter((row.id, row.ts) for row in view(known_rows, now))
    assert cancelled > 50


def _natural_end(inputs: Sequence[Sequence[Row]], result: tuple[object, int]) -> int:
    assert isinstance(result[0], tuple)
    return min(row.exp for rows, part in zip(inputs, result[0], strict=True) for row in rows if row.id == part)


def test_strict_input_is_refused_where_it_cannot_be_handled() -> None:
    """Algorithm 3 takes no negative tuples, and a lazy join takes tombstones only when it was told."""
    rows = [[Row("l", ("a",), 1, 9)], [Row("r", ("a",), 2, 9)]]
    stones = [Tombstone(0, "l", 4)]
    with pytest.raises(ValueError, match="Algorithm 3 takes no negative tuples"):
        eager_join(as_changes(rows, stones), expiration="lazy")
    with pytest.raises(ValueError, match="strict=True"):
        LazyJoin(2, "restore").reevaluate(5, 10, rows, stones)
