"""What a layout does with a workload, beside a slow model of tables and the numbers of the sheet."""

from __future__ import annotations

import pytest

from tests.layout.sealing_model import figures
from warehouse.layout import Layout, resolve
from warehouse.layout.advice import Lifetimes, Workload, footprint, shares


def uniform(periods: int, rate: float = 1000.0) -> Workload:
    """Return model C: uniform lifetimes up to p."""
    return Workload(periods=periods, rate=rate, shares=shares(Lifetimes("uniform", periods), periods), arriving=rate)


def union_share(layout: Layout, load: Workload) -> float:
    """Return the share of the live rows that an update reads."""
    return footprint(layout, load).mean_work.row_read * _tasks(layout, load) / load.live


def _tasks(layout: Layout, load: Workload) -> float:
    work, written = footprint(layout, load).mean_work, footprint(layout, load).written
    return written / work.row_written


SEALED = [
    resolve(periods=24, label="WK"),
    resolve(periods=36, label="WK"),
    resolve(periods=36, label="WK", grid=(6, 8)),
    resolve(periods=13, label="WK", grid=(3, 2)),
    resolve(periods=10, label="WK", grid=(4, 1), expiry_block=2),
    resolve(periods=24, label="WK", seal=False),
    resolve(periods=7, label="WK", grid=(1, 3), seal=False),
]


@pytest.mark.parametrize("layout", SEALED, ids=str)
def test_appended_runs_are_those_of_the_slow_model(layout: Layout) -> None:
    """Mean files, rows written again and dead rows agree with a model of tables with a counter for each run."""
    # the model averages 3p updates and looks after each; the footprint about a cycle, and at some updates only
    slow, predicted, load = figures(layout), footprint(layout, uniform(layout.periods)), uniform(layout.periods)
    assert predicted.files == pytest.approx(slow.files, rel=0.05)
    assert predicted.written / load.rate == pytest.approx(slow.written, rel=0.05)
    assert predicted.rows / load.live - 1 == pytest.approx(slow.dead, abs=0.03)


@pytest.mark.parametrize(("periods", "files", "written"), [(24, 26, 1.63), (36, 32, 1.71), (144, 66, 1.86)])
def test_the_default_layout_keeps_the_files_that_the_contract_states(periods: int, files: int, written: float) -> None:
    """DESIGN section 4: p = 24, 36, 144 keep 26, 32, 66 files, and write each row 1.63, 1.71, 1.86 times."""
    predicted = footprint(resolve(periods=periods, label="WK"), uniform(periods))
    assert predicted.files == pytest.approx(files, rel=0.05)
    assert predicted.written / 1000.0 == pytest.approx(written, rel=0.05)


UNION = [
    (Lifetimes("uniform", 36), {2: (0.750, 0.750), 4: (0.438, 0.438), 6: (0.306, 0.306)}),
    (Lifetimes("exponential", 3.6), {2: (0.755, 0.994), 4: (0.462, 0.918), 6: (0.351, 0.811)}),
    (Lifetimes("uniform", 9), {2: (0.753, 1.000), 4: (0.432, 1.000), 6: (0.333, 0.889)}),
    (Lifetimes("constant", 36), {2: (0.500, 0.500), 4: (0.250, 0.250), 6: (0.167, 0.167)}),
]


@pytest.mark.parametrize(("lifetimes", "expected"), UNION, ids=["uniform", "exponential", "overestimated", "equal"])
def test_rebuilding_reads_what_the_sheet_expects(lifetimes: Lifetimes, expected: dict[int, tuple[float, float]]) -> None:
    """Sheet, section 5.2: the share of N that an update touches, p = 36, round-robin and chronological."""
    load = Workload(periods=36, rate=1e6, shares=shares(lifetimes, 36), arriving=1e6, workers=1)
    for side, (even, contiguous) in expected.items():
        dealt = resolve(periods=36, label="WK", technique="rebuild", grid=(side, side))
        cut = resolve(
            periods=36, label="WK", technique="rebuild", grid=(side, side), insertion="chronological", expiration="chronological"
        )
        assert footprint(dealt, load).mean_work.row_read / load.live == pytest.approx(even, abs=0.03)
        assert footprint(cut, load).mean_work.row_read / load.live == pytest.approx(contiguous, abs=0.03)


def test_runs_that_cannot_be_sealed_are_counted_block_by_block() -> None:
    """Contiguous columns of half a window are blocks: the same files and rows as blocks that are not sealed."""
    blocks = resolve(periods=12, label="WK", grid=(2, 2), seal=False)
    contiguous = Layout("norebuild", 2, 2, "chronological", "chronological", periods=12, expiry_block=6, seal=False)
    first, second = (footprint(layout, uniform(12)) for layout in (blocks, contiguous))
    assert (second.files, second.rows, second.written) == pytest.approx((first.files, first.rows, first.written), rel=0.02)


def test_more_rows_for_a_key_lie_in_more_files() -> None:
    """A key of one row lies in one file; a key of many rows lies in nearly all."""
    layout = resolve(periods=24, label="WK")
    single, many = (
        footprint(layout, Workload(24, 1000.0, uniform(24).shares, 1000.0, rows_per_key=rows)) for rows in (1.0, 10_000.0)
    )
    assert single.key_files == pytest.approx(1.0)
    assert 0.9 * many.files < many.key_files <= many.files


def test_runs_that_nobody_is_expected_in_are_no_files() -> None:
    """Of exponential lifetimes the tail is nearly empty: ten rows in each of 200 updates do not make a thousand files."""
    load = Workload(200, 10.0, shares(Lifetimes("exponential", 0.5), 200), 10.0)
    predicted = footprint(resolve(periods=200, label="WK", grid=(1, 1), expiry_block=5, seal=False), load)
    assert predicted.files < 3 * load.mean_lifetime + 5
