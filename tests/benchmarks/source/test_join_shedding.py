"""Joins that cannot keep everything: the sheet's vectors A1 to A4 and its order of methods."""

from __future__ import annotations

from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from benchmarks.source.join_shedding import (
    MEMORIES,
    archive_metric,
    best,
    claims,
    exact,
    kept,
    main,
    optimum,
    play,
    shares,
    streams,
)  # fmt: skip

if TYPE_CHECKING:
    from pathlib import Path

A1 = ([1, 1, 1, 3, 2], [2, 3, 1, 1, 3])
A2 = ([1, 3, 2, 3, 1, 1, 1, 1, 1, 4], [4, 1, 3, 1, 3, 2, 3, 4, 1, 2])
A3 = ([2, 1, 2, 2, 1], [2, 1, 2, 2, 1])
VECTORS = [
    (A1, 3, 2, "PROB", False, {(0, 2), (1, 3), (3, 1)}, 6),
    (A1, 3, 2, "PROB", True, {(1, 3), (3, 1), (3, 4)}, 5),
    (A1, 3, 2, "LIFE", False, {(0, 2), (1, 3), (3, 1)}, 6),
    (A1, 3, 2, "LIFE", True, {(0, 2), (1, 3), (3, 1)}, 6),
    (A2, 4, 4, "PROB", False, {(2, 5), (3, 6), (5, 8), (9, 7)}, 8),
    (A2, 4, 4, "PROB", True, {(2, 5), (3, 2), (9, 7)}, 6),
    (A2, 4, 4, "LIFE", False, {(0, 3), (1, 4), (2, 5), (3, 6), (5, 8)}, 10),
    (A2, 4, 4, "LIFE", True, {(0, 3), (1, 4), (2, 5), (3, 6), (5, 8), (9, 7)}, 12),
]


@pytest.mark.parametrize(("given", "window", "cells", "policy", "variable", "missing", "incomplete"), VECTORS)
def test_a_policy_misses_the_pairs_of_the_sheet(given, window, cells, policy, variable, missing, incomplete) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """Vectors A1 and A2: missing pairs and the Archive-metric."""
    pairs = exact(given, window)
    joined = kept(pairs, play(given, window, cells, policy, variable=variable))
    assert set(pairs) - set(joined) == missing
    assert archive_metric(pairs, joined) == incomplete


def test_memory_is_that_of_the_sheet() -> None:
    """Vector A1, PROB: what is held after each step, with cells for each stream and for both."""
    def shown(variable: bool) -> list[str]:
        run = play(A1, 3, 2, "PROB", variable=variable)
        return [" ".join(f"{'rs'[stream]}{place}" for stream, place in held) for held in run.memory]

    assert shown(variable=False) == ["r0 s0", "r1 s1", "r2 s2", "r3 s3", "r3 s3"]
    assert shown(variable=True)[:2] == ["r0 s0", "r0 r1"]


@pytest.mark.parametrize(
    ("given", "window", "cells", "fixed", "variable", "pairs"),
    [(A1, 3, 2, 5, 6, 7), (A2, 4, 4, 15, 16, 17), (A3, 4, 2, 9, 9, 13)],
)
def test_the_optimum_is_that_of_the_sheet(
    given: tuple[list[int], list[int]], window: int, cells: int, fixed: int, variable: int, pairs: int
) -> None:
    """Vectors A1 to A3: the most output of any schedule."""
    pytest.importorskip("scipy")
    assert len(exact(given, window)) == pairs
    assert (optimum(given, window, cells), optimum(given, window, cells, variable=True)) == (fixed, variable)


def test_a_static_join_keeps_the_best_tuples() -> None:
    """Vector A4, and every way to keep tuples of small components."""
    components = [(4, 1), (3, 3), (2, 2)]
    assert [best(components, kept_)[0] for kept_ in range(16)] == [0, 0, 1, 2, 4, 6, 9, 9, 10, 11, 13, 13, 14, 15, 16, 17]
    assert best(components, 6)[1] == (0, 6, 0)
    assert best(components, 13)[1] == (3, 6, 4)
    assert best([(3, 3), (5, 2)], 7)[0] == 10
    for nodes in range(8):
        ways = product(*(product(range(left + 1), range(right + 1)) for left, right in [(2, 1), (3, 2)]))
        most = max(sum(one * other for one, other in way) for way in ways if sum(map(sum, way)) <= nodes)
        assert best([(2, 1), (3, 2)], nodes)[0] == most


def test_methods_are_in_the_order_of_the_sheet() -> None:
    """Small drawn streams: RAND by its closed form, then LIFE, PROB; the claims are judged by what was found."""
    found = shares(300, 30, 2, with_optimum=False)
    for kind in ("uncorrelated", "correlated"):
        for memory in MEMORIES:
            cells = 2 * round(memory * 15)
            rand, life, prob = (found[kind, memory, name][0] for name in ("RAND", "LIFE", "PROB"))  # type: ignore[index]
            assert abs(rand - (cells + 1) / 59) < 0.08
            assert rand <= life + 0.03 <= prob + 0.06
    full = {(*key[:2], name): found[(*key[:2], "PROBV")] for key in found for name in ("OPT", "OPTV")} | found
    judged = {words: holds for _, words, holds, _ in claims(full, 30)}  # type: ignore[arg-type]
    assert judged["PROB <= OPT <= OPTV"] in (True, False)
    full["correlated", 1.0, "PROB"] = (0.1, 1.0)
    judged = {words: holds for _, words, holds, _ in claims(full, 30)}  # type: ignore[arg-type]
    assert not judged["correlated, M = w: PROB is above 96 % of OPT"]


def test_no_policy_beats_the_optimum() -> None:
    """On drawn streams; and OPT is the best of all schedules of a few tuples, tried one by one."""
    pytest.importorskip("scipy")
    for seed in range(4):
        drawn = streams(60, "uncorrelated", 1.0, seed, values=5)
        pairs = exact(drawn, 8)
        fixed, both = optimum(drawn, 8, 6), optimum(drawn, 8, 6, variable=True)
        for policy in ("PROB", "LIFE", "RAND"):
            assert len(kept(pairs, play(drawn, 8, 6, policy))) <= fixed  # type: ignore[arg-type]
            assert len(kept(pairs, play(drawn, 8, 6, policy, variable=True))) <= both <= len(pairs)  # type: ignore[arg-type]
        assert fixed <= both
    small = streams(5, "uncorrelated", 0.5, 1, values=2)
    assert optimum(small, 3, 2) == _tried(small, 3)


def _tried(given: tuple[list[int], list[int]], window: int) -> int:
    """Return the best output with one cell for each stream, by trying what each cell could hold at each time."""
    pairs = exact(given, window)
    together = sum(one == other for one, other in pairs)
    length, most = len(given[0]), [0, 0]
    for stream in (0, 1):
        turned = [pair if stream == 0 else pair[::-1] for pair in pairs]
        older = [(first, partner) for first, partner in turned if first < partner]
        spans = [(first, end) for first in range(length) for end in range(first + 1, min(first + window, length))]
        for size in range(length):
            for chosen in combinations(spans, size):
                if all(one[1] <= other[0] for one, other in pairwise(chosen)):
                    gained = sum(first == place and partner <= end for first, end in chosen for place, partner in older)
                    most[stream] = max(most[stream], gained)
    return together + sum(most)


def test_the_page_is_written(tmp_path: Path) -> None:
    """The command judges each claim and writes a page with its picture."""
    pytest.importorskip("scipy")
    pytest.importorskip("matplotlib")
    ended = CliRunner().invoke(main, ["--length", "120", "--window", "12", "--seeds", "1", "--results", str(tmp_path)])
    assert ended.exit_code == 0, ended.output
    assert "does not hold here" in ended.output or "holds" in ended.output
    assert (tmp_path / "join-shedding.png").exists()
