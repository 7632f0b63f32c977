"""The best that a memory can keep: the sheet's vectors A1 to A4, both graphs, and all schedules of short streams, tried."""

from __future__ import annotations

from itertools import combinations, product
from random import Random

import pytest

from benchmarks.source.join_memory import archive_metric, exact, kept, play, streams
from benchmarks.source.join_optimum import best, best_of_each, full_graph, greedy, optimum, optimum_of_full_graph

pytest.importorskip("scipy")
Given = tuple[list[int], list[int]]
A1: Given = ([1, 1, 1, 3, 2], [2, 3, 1, 1, 3])
A2: Given = ([1, 3, 2, 3, 1, 1, 1, 1, 1, 4], [4, 1, 3, 1, 3, 2, 3, 4, 1, 2])
A3: Given = ([2, 1, 2, 2, 1], [2, 1, 2, 2, 1])


def outcomes(given: Given, window: int, cells: int, *, variable: bool) -> set[tuple[int, int]]:
    """Return (pairs, incomplete tuples) of each schedule: memory is kept full, since a tuple more never harms."""
    start: tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]] = (frozenset(), frozenset())
    states = {(*start, 0, 0)}
    for now in range(len(given[0])):
        following = set()
        for memory, incomplete, pairs, finished in states:
            joins, missed = given[0][now] == given[1][now], set(incomplete)
            count = int(joins)
            for stream in (0, 1):
                for older in range(max(0, now - window + 1), now):
                    if given[stream][older] == given[1 - stream][now]:
                        count += (stream, older) in memory
                        missed |= set() if (stream, older) in memory else {(stream, older), (1 - stream, now)}
            candidates = [row for row in (*sorted(memory), (0, now), (1, now)) if row[1] > now - window + 1]
            parts = [candidates] if variable else [[row for row in candidates if row[0] == stream] for stream in (0, 1)]
            room = cells if variable else cells // 2
            ways = product(*(combinations(part, min(room, len(part))) for part in parts))
            past = {row for row in missed if row[1] <= now - window + 1}
            for way in ways:
                after = frozenset(row for part in way for row in part)
                following.add((after, frozenset(missed - past), pairs + count, finished + len(past)))
        states = following
    return {(pairs, finished + len(incomplete)) for _, incomplete, pairs, finished in states}


@pytest.mark.parametrize(
    ("given", "window", "cells", "fixed", "variable", "pairs"),
    [(A1, 3, 2, 5, 6, 7), (A2, 4, 4, 15, 16, 17), (A3, 4, 2, 9, 9, 13)],
)
def test_the_optimum_is_that_of_the_sheet(
    given: Given, window: int, cells: int, fixed: int, variable: int, pairs: int
) -> None:
    """Vectors A1 to A3: the most output of any schedule, by both graphs."""
    assert len(exact(given, window)) == pairs
    for best_of in (optimum, optimum_of_full_graph):
        assert (best_of(given, window, cells), best_of(given, window, cells, variable=True)) == (fixed, variable)


def test_the_graph_is_that_of_the_sheet() -> None:
    """Vector A1: nodes and arcs of the source's graph."""
    graphs = [full_graph(A1, 3, 2, variable=variable) for variable in (False, True)]
    assert [(len(graph.nodes), len(graph.arcs)) for graph in graphs] == [(27, 38), (27, 52)]


LEAST = [
    *[(A1, 3, 2, False, 3), (A1, 3, 2, True, 2)],
    *[(A2, 4, 4, False, 4), (A2, 4, 4, True, 2)],
    *[(A3, 4, 2, False, 6), (A3, 4, 2, True, 6)],
]


@pytest.mark.parametrize(("given", "window", "cells", "variable", "least"), LEAST)
def test_the_fewest_incomplete_tuples_are_those_of_the_sheet(
    given: Given, window: int, cells: int, least: int, *, variable: bool
) -> None:
    """Vectors A1 to A3: the least Archive-metric of any schedule."""
    assert min(incomplete for _, incomplete in outcomes(given, window, cells, variable=variable)) == least


@pytest.mark.parametrize(("variable", "least"), [(False, 8), (True, 7)])
def test_the_two_goals_conflict(*, variable: bool, least: int) -> None:
    """Vector A3: no schedule has the most pairs and the fewest incomplete tuples."""
    schedules = outcomes(A3, 4, 2, variable=variable)
    assert max(pairs for pairs, _ in schedules) == 9
    assert min(incomplete for pairs, incomplete in schedules if pairs == 9) == least
    assert max(pairs for pairs, incomplete in schedules if incomplete == 6) == 7


def test_both_graphs_find_what_trying_all_schedules_finds() -> None:
    """Over drawn short streams, counted from a drawn time on by the graphs alone."""
    random = Random(5)  # noqa: S311 - a test draws its data
    for _ in range(40):
        length, window = random.randint(2, 7), random.randint(2, 4)
        drawn = tuple([random.randrange(3) for _ in range(length)] for _ in range(2))
        cells = 2 * random.randint(1, 2)
        for variable in (False, True):
            most = max(pairs for pairs, _ in outcomes(drawn, window, cells, variable=variable))  # type: ignore[arg-type]
            assert optimum(drawn, window, cells, variable=variable) == most  # type: ignore[arg-type]
            since = random.randrange(length)
            small, full = (
                best_of(drawn, window, cells, variable=variable, since=since)  # type: ignore[arg-type]
                for best_of in (optimum, optimum_of_full_graph)
            )
            assert small == full
            assert optimum_of_full_graph(drawn, window, cells, variable=variable) == most  # type: ignore[arg-type]


def test_no_policy_beats_the_optimum() -> None:
    """On drawn streams, with a memory for each stream and for both."""
    for seed in range(4):
        drawn = streams(60, "uncorrelated", 1.0, seed, values=5)
        pairs = exact(drawn, 8)
        fixed, both = optimum(drawn, 8, 6), optimum(drawn, 8, 6, variable=True)
        for policy in ("PROB", "LIFE", "RAND"):
            assert len(kept(pairs, play(drawn, 8, 6, policy))) <= fixed  # type: ignore[arg-type]
            assert len(kept(pairs, play(drawn, 8, 6, policy, variable=True))) <= both <= len(pairs)  # type: ignore[arg-type]
        assert fixed <= both


def test_a_policy_leaves_no_fewer_incomplete_tuples_than_the_best_schedule() -> None:
    """The Archive-metric of a policy is the metric of one of the schedules."""
    for policy in ("PROB", "LIFE", "RAND"):
        joined = kept(exact(A2, 4), play(A2, 4, 4, policy))  # type: ignore[arg-type]
        assert (len(joined), archive_metric(exact(A2, 4), joined)) in outcomes(A2, 4, 4, variable=False)


def test_a_static_join_keeps_the_best_tuples() -> None:
    """Vector A4, and every way to keep tuples of small components."""
    components = [(4, 1), (3, 3), (2, 2)]
    expected = (
        [0, 0, 1, 2, 3, 4],
        [0, 0, 1, 2, 4, 6, 9, 9, 10, 11, 12, 13],
        [0, 0, 1, 2, 4, 6, 9, 9, 10, 11, 13, 13, 14, 15, 16, 17],
    )
    for number, most in enumerate(expected, start=1):
        assert [best(components[:number], nodes)[0] for nodes in range(len(most))] == most
    assert {nodes: best(components, nodes)[1] for nodes in (6, 10, 13)} == {6: (0, 6, 0), 10: (0, 6, 4), 13: (3, 6, 4)}
    of_each = {(3, 3): 9, (4, 2): 6, (2, 4): 6, (5, 3): 9, (6, 1): 4, (4, 4): 10, (5, 4): 11}
    assert {sides: best_of_each(components, *sides) for sides in of_each} == of_each
    assert (greedy([(3, 3), (5, 2)], 7), best([(3, 3), (5, 2)], 7)) == (9, (10, (0, 7)))
    for nodes in range(8):
        ways = [*product(*(product(range(left + 1), range(right + 1)) for left, right in [(2, 1), (3, 2)]))]
        most = max(sum(a * b for a, b in way) for way in ways if sum(map(sum, way)) <= nodes)
        assert best([(2, 1), (3, 2)], nodes)[0] == most >= greedy([(2, 1), (3, 2)], nodes)
        for left in range(6):
            fitting = [way for way in ways if sum(a for a, _ in way) <= left and sum(b for _, b in way) <= nodes]
            assert best_of_each([(2, 1), (3, 2)], left, nodes) == max(sum(a * b for a, b in way) for way in fitting)
