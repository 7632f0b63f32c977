"""Promising tuples: the sheet's vectors P1, P3 and P9, and its orders and factors of 8.2."""

from __future__ import annotations

from collections import Counter
from functools import cache
from random import Random
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from benchmarks.source import promising_tuples
from benchmarks.source.promising_tuples import claims, main, measured
from benchmarks.source.promising_units import (
    BATCHES,
    CUTS,
    WINDOW,
    Outcome,
    Unit,
    drawn_batches,
    histogram_error,
    looks,
    order,
    played,
    proportional,
    sampled,
    sampled_by_spark,
    units_of,
    zones_at,
)
from benchmarks.source.unit_cuts import delivered, delivered_by_looks, joined
from benchmarks.source.unit_cuts import main as unit_cuts

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from benchmarks.source.promising_tuples import Found

EXACT = {5: 6.0, 9: 1.0, 3: 1.0}


@cache
def measured_once(seeds: int) -> Found:
    """Return what all tests look at."""
    return measured(seeds)


@pytest.mark.parametrize(
    ("chosen", "output", "error"),
    [([5, 5, 5], 6, 3 / 32), ([5, 5, 9], 5, 19 / 800), ([5, 5, 3], 5, 19 / 800), ([5, 9, 3], 4, 3 / 32)],
)
def test_the_choice_of_three_rows(chosen: list[int], output: int, error: float) -> None:
    """Vector P1: output and error of the histogram for each choice."""
    partners = {5: 2, 3: 1, 9: 1}
    histogram: dict[int, float] = {}
    for key in chosen:
        histogram[key] = histogram.get(key, 0.0) + partners[key]
    assert sum(histogram.values()) == output
    assert histogram_error(EXACT, histogram) == pytest.approx(error)


def test_fading_and_orders() -> None:
    """Vector P3: the order of a key's zones by faded counts, and shares of twelve."""
    zones = {"G1.z0": (3, 0), "G1.z1": (2, 0), "G2.z0": (4, 1), "G3.z0": (4, 2)}
    units = {Unit(1, 1, count, age, count): name for name, (count, age) in zones.items()}
    random = Random(0)  # noqa: S311 - unused by these orders
    assert [units[unit] for unit in order(list(units), "desc", random, 0.8)] == ["G2.z0", "G1.z0", "G3.z0", "G1.z1"]
    same_window = {Unit(1, 1, count, age, 9): name for name, (count, age) in zones.items()}
    assert [same_window[unit] for unit in order(list(same_window), "asc", random, 0.8)] == ["G1.z1", "G1.z0", "G2.z0", "G3.z0"]
    assert proportional(12, [0.8 * 4, 3, 0.64 * 4, 2]) == [4, 3, 3, 2]


def test_a_sum_goes_by_value_times_frequency_and_a_mean_by_the_same_part_of_each() -> None:
    """Vector P9."""
    frequency = {100: 2, 5: 30, 1: 50}
    by_product = sorted(frequency, key=lambda value: -value * frequency[value])
    assert [sum(value * frequency[value] for value in by_product[:keys]) for keys in (1, 2, 3)] == [200, 350, 400]
    half = {value: count // 2 for value, count in frequency.items()}
    assert sum(value * count for value, count in half.items()) / sum(half.values()) == pytest.approx(400 / 82)


def test_orders_and_factors_are_those_of_the_sheet() -> None:
    """Section 8.2: what must hold holds for two pairs of streams, and the shares are near the sheet's."""
    outcomes = measured_once(2)
    faded = {alpha: played(0, "desc", 0.25, alpha) for alpha in (1.0, 0.8, 0.5)}
    looked = {"rare": looks(0, 24, 4), "all": looks(0, 24, 24)}
    assert looked["rare"] < 24 < looked["all"], "most keys are in most batches"
    assert [words for words, holds, _ in claims(outcomes, faded, looked) if not holds] == []
    for budget, none, desc in ((0.1, 0.099, 0.359), (0.25, 0.244, 0.735), (0.5, 0.498, 0.935)):
        assert outcomes["none", budget, "batches"].share == pytest.approx(none, abs=0.04)
        assert outcomes["desc", budget, "batches"].share == pytest.approx(desc, abs=0.04)
        for cut in CUTS:
            assert outcomes["desc", budget, cut].share >= 0.8 * desc
        assert outcomes["desc by cost", budget, "batches"].share >= outcomes["desc", budget, "batches"].share - 0.005
    poor = Outcome(0.1, 1, 0, 0, 0)
    for name, cut, words in (
        ("desc", "zones", "desc over zones"),
        ("weighted", "granularities", "the same part"),
        ("asc", "batches", "asc over"),
    ):
        bent = [claim for claim, holds, _ in claims({**outcomes, (name, 0.1, cut): poor}, faded, looked) if not holds]  # type: ignore[dict-item]
        assert [claim[: len(words)] for claim in bent] == [words]
    assert not claims(outcomes, faded, {"rare": 30.0, "all": 40.0})[-1][1]


def test_zones_and_granularities_have_each_batch_once() -> None:
    """However the window is cut, its units give the same results; they are fewer where zones are longer."""
    batches = drawn_batches(1)
    for now in (0, 5, BATCHES - 1):
        units = {cut: units_of(batches, now, cut=cut) for cut in CUTS}
        assert len({sum(unit.pairs for unit in units_of_cut) for units_of_cut in units.values()}) == 1
        for cut in CUTS:
            covered = [batch for zone in zones_at(batches, 0, now, cut) for batch in zone]
            assert covered == sorted(set(covered))
            assert covered[-min(WINDOW, now + 1) :] == [*range(now + 1)][-WINDOW:]
    assert len(units["zones"]) < len(units["batches"]) > len(units["granularities"])
    changed = [(rows, rows) for rows in (batches[0][0], batches[1][0], Counter({99: 50}), Counter({99: 40}))]
    assert zones_at(changed, 0, 3, "zones") == [[0, 1], [2, 3]]


def test_finer_units_deliver_more_of_a_small_part_of_the_work() -> None:
    """Where a tenth of the rows does not hold the most frequent key: twice as much; from a quarter on it is the same."""
    for cut, shares in (("key", (0.097, 0.592)), ("key and batch", (0.252, 0.588))):
        for budget, share in zip((0.1, 0.25), shares, strict=True):
            assert delivered(cut, budget, 2, guided=True) == pytest.approx(share, abs=0.04)
            assert delivered(cut, budget, 2, guided=True) >= 1.5 * delivered(cut, budget, 2, guided=False)
    for budget, key, finer in ((0.1, 0.334, 0.366), (0.25, 0.719, 0.73), (0.5, 0.929, 0.935)):  # by the sheet's own count
        assert delivered_by_looks("key", budget, 2) == pytest.approx(key, abs=0.04)
        assert delivered_by_looks("key and batch", budget, 2) == pytest.approx(finer, abs=0.04)


def test_finer_units_join_more_rows_for_most_of_the_pairs() -> None:
    """A row of the window counts once in a unit of a key, and once in each of its finer units: half as many again and more."""
    assert joined("key", 0.1, 2) > joined("key and batch", 0.1, 2), "only the most frequent key, in part"
    for budget, factor in ((0.5, 1.4), (1.0, 1.6)):
        assert joined("key and batch", budget, 2) >= factor * joined("key", budget, 2)
    assert joined("key", 1.0, 2) == 1.0
    ended = CliRunner().invoke(unit_cuts, ["--seeds", "1"])
    assert ended.exit_code == 0, ended.output


def test_samples_of_both_engines_are_no_better_than_no_order(spark: SparkSession) -> None:
    """A quarter of one stream's rows gives about a quarter of the pairs, where the most promising units give three quarters."""
    for outcome in (sampled(0, 0.25), sampled_by_spark(spark, 0, 0.25)):
        assert outcome.share == pytest.approx(0.25, abs=0.04)
        assert played(0, "desc", 0.25).share >= 2 * outcome.share


def test_the_page_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command judges each claim."""
    monkeypatch.setattr(promising_tuples, "measured", measured_once)
    ended = CliRunner().invoke(main, ["--seeds", "2", "--results", str(tmp_path)])
    assert ended.exit_code == 0, ended.output
    assert "holds" in (tmp_path / "promising-tuples.md").read_text()
