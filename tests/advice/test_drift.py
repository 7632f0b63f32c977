"""Signs that a layout does not fit any more, each with its remedy; no sign where it fits."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from warehouse.advice.drift import drift_signs, rate_period, shared_period
from warehouse.advice.row_sample import sample_rows
from warehouse.epochs.records import Partition
from warehouse.layout import resolve
from warehouse.layout.oracle import expected_sizes
from warehouse.serving import Reader

from .places import counted, told

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.epochs.records import Epoch

DEALT = resolve(periods=6, label="WK", technique="rebuild", grid=(2, 2))
NOW = 1_400_000_000_000_000


def warned(root: Path) -> tuple[str, ...]:
    """Return the warnings about `names`: the other tables have no counts."""
    with Reader.open(root) as reader:
        return tuple(f'"{table}": {sign}' for table, sign in drift_signs(reader, spark={}, retain=0, now=NOW))


def test_a_table_that_is_as_it_was_planned_is_not_warned_of(tmp_path: Path) -> None:
    """Steady updates at a cost that no layout could halve."""
    told(tmp_path, lambda _: counted(over_lifetime=1))
    assert warned(tmp_path) == ()


def test_lifetimes_beyond_the_bound_are_told_from_one_percent_on(tmp_path: Path) -> None:
    """Two of a hundred rows live for longer than S."""
    told(tmp_path, lambda _: counted(over_lifetime=2))
    (only,) = warned(tmp_path)
    assert '"names"' in only
    assert "2.0% of its rows live for longer than max_lifetime" in only
    assert "`stream-wh migrate names`" in only


def test_updates_that_rewrite_for_nothing_are_told(tmp_path: Path) -> None:
    """Forty seconds go into reading rows again, which another layout does not do."""
    told(tmp_path, lambda _: counted(rewritten=50_000_000), seconds=40.0)
    (only,) = warned(tmp_path)
    assert "an update interval costs 40 s" in only
    assert "`stream-wh advise names`" in only
    assert "`stream-wh migrate names`" in only


def test_slow_storage_is_not_the_layout_s_fault(tmp_path: Path) -> None:
    """The same forty seconds, with nothing but a few rows written: every layout would take as long."""
    told(tmp_path, lambda _: counted(), seconds=40.0)
    assert warned(tmp_path) == ()


def bursts(epoch: Epoch) -> int:
    """Return four times as many rows in every second slot."""
    return 400 if epoch.slot % 2 else 100


def test_a_rate_whose_period_meets_the_same_rows_is_told(tmp_path: Path) -> None:
    """Every second update brings a burst, and there are two insertion rows dealt round-robin."""
    told(tmp_path, lambda epoch: counted(bursts(epoch)), layout=DEALT)
    (only,) = warned(tmp_path)
    assert "a period of 2 updates" in only
    assert "shares a factor with its 2 insertion rows" in only
    assert 'insertion = "permuted"' in only


def test_the_same_rate_in_rows_that_permute_is_fine(tmp_path: Path) -> None:
    """Section 7: a permuted assignment, a coprime G or staggered rows do not gather the bursts."""
    told(tmp_path, lambda epoch: counted(bursts(epoch)), layout=replace(DEALT, insertion="permuted"))
    assert warned(tmp_path) == ()
    assert not shared_period(resolve(periods=9, label="WK", technique="rebuild", grid=(3, 3)), 2)
    assert not shared_period(resolve(periods=24, label="WK", grid=(4, 4)), 2)


@pytest.mark.parametrize("factor", [1, 6])
def test_cells_more_uneven_than_the_oracle_are_told(tmp_path: Path, factor: int) -> None:
    """Sizes as the oracle predicts for the rows' lifetimes give no sign; one sub-index six times as full gives one."""
    told(tmp_path / "before", lambda _: counted(), layout=DEALT)
    with Reader.open(tmp_path / "before") as reader:
        shares = sample_rows(reader, reader.pin.state("names")).shares
    sizes = expected_sizes(DEALT, 4, shares)
    rows = {cell: round(10_000 * size) * (factor if cell == 1 else 1) for cell, size in sizes.items()}
    parts = tuple(Partition(cell, 0, 1, 1, count, 100 * count, 9) for cell, count in rows.items())
    told(tmp_path / "data", lambda _: counted(), layout=DEALT, partitions=parts)
    signs = warned(tmp_path / "data")
    assert bool(signs) == (factor == 6)
    assert all("rows differ between sub-indices" in text and "`stream-wh migrate names`" in text for text in signs)


@pytest.mark.parametrize("period", [2, 3, 7, 24])
def test_the_period_of_a_rate_is_found(period: int) -> None:
    """The shortest period is found, in noise."""
    rows = [(500 if slot % period == 0 else 100) + (slot * 7919) % 23 for slot in range(max(16, 4 * period))]
    assert rate_period(rows) == period


def test_a_rate_without_a_period_has_none() -> None:
    """A growing rate, noise, silence, and too short a past."""
    rng = random.Random(7)  # noqa: S311 - arrivals
    noise = [rng.randint(10, 110) for _ in range(60)]
    for rows in (range(1, 40), noise, [0] * 30, [], [5], [1, 9, 1, 9]):
        assert rate_period(list(rows)) is None
