"""Which coalesced tables are stored: the sheet's costs of what was counted, with its calibrated prices (section 12)."""

from __future__ import annotations

import pytest

from warehouse.coalescing.choosing import Choice, PointCounts, choose

TABLE_5 = {0.1: (0.9367, 0.38), 0.5: (1.0833, 1.10), 0.8: (1.1933, 1.64)}
"""cp: e and s of the queries with one attribute and one group, nothing late."""


def counted(coalescing: float, late: float = 0.0) -> PointCounts:
    """A thousand members in ten groups."""
    return PointCounts(members=1000, rows=1000 - round(coalescing * 990), groups=10, late=late)


@pytest.mark.parametrize("coalescing", TABLE_5)
def test_prices_are_those_of_the_sheet(coalescing: float) -> None:
    """In a steady state, for each member."""
    [choice] = choose([("t", counted(coalescing))])
    assert (choice.eager, choice.lazy) == pytest.approx(TABLE_5[coalescing], abs=0.02)


def test_each_table_is_on_its_cheaper_side() -> None:
    """Each table is chosen by itself, because the stream is stored anyway: a table that seldom coalesces is lazy."""
    choices = choose([("restless", counted(0.1)), ("even", counted(0.5)), ("steady", counted(0.8))])
    assert [(choice.table, choice.how) for choice in choices] == [("restless", "lazy"), ("even", "eager"), ("steady", "eager")]


def test_late_points_make_storing_dearer() -> None:
    """They split rows."""
    plain, late = (choose([("t", counted(0.3, share))])[0] for share in (0.0, 0.8))
    assert late.eager > plain.eager
    assert late.lazy == plain.lazy


@pytest.mark.parametrize(
    ("how", "eager", "lazy", "build", "better"),
    [
        ("eager", 1.0, 0.91, 0.5, None),
        ("eager", 1.0, 0.89, 0.5, "lazy"),
        ("lazy", 0.5, 1.0, 0.39, "eager"),
        ("lazy", 0.5, 1.0, 0.41, None),
    ],
)
def test_the_other_side_is_better_by_a_tenth(how: str, eager: float, lazy: float, build: float, better: str | None) -> None:
    """What is stored first has to be built, which counts."""
    assert Choice("t", how, 9, 0.5, 0.0, eager, lazy, build).better == better  # type: ignore[arg-type]


def test_without_neighbours_nothing_coalesces() -> None:
    """One member in each group."""
    assert PointCounts(members=3, rows=3, groups=3).coalescing == 0.0
