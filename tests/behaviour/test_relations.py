"""What must not make a difference: how slots are grouped into updates, where time begins, how files are cut.

That the grid and the technique make none, nor the order of rows and files, is what `test_layouts.py` shows: each of its
streams has another layout, and the same rows in another order and in other files.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from warehouse.testing import Row, Rules
from warehouse.time import HOUR, MINUTE, parse_instant

from .project import Bag, Layouts
from .script import arrivals

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ANCHOR = parse_instant("2013-01-01T00:00:00Z")
SHIFT = -45 * 365 * 24 * HOUR + 12_345_678_901
"""To the year 1968, and off every second."""
RULES = Rules(anchor=ANCHOR, interval=10 * MINUTE, max_lifetime=HOUR - MINUTE, null_expiry="never")
SLOTS = (3, 4, 6)
LAYOUT = {"s": {"grid": [2, 3], "expiry_block": 2}}


def moved(rows: list[Row], by: int) -> list[Row]:
    """Return rows at other times."""
    return [
        Row(
            None if row.ts is None else row.ts + by,
            None if row.exp is None else row.exp + by,
            row.key,
            row.value,
        )
        for row in rows
    ]


@pytest.fixture(scope="module")
def batches() -> list[list[Row]]:
    """Return what lands before each update."""
    return [arrivals(slot, previous) for slot, previous in zip(SLOTS, (-3, *SLOTS), strict=False)]


@pytest.fixture(scope="module")
def plain(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, batches: list[list[Row]]) -> list[Bag]:
    """Return the live rows after each of three updates."""
    project = Layouts(tmp_path_factory.mktemp("plain"), RULES, LAYOUT, spark)
    live_rows = []
    for slot, rows in zip(SLOTS, batches, strict=True):
        project.land(rows)
        project.update(RULES.time(slot))
        live_rows.append(project.scan("s"))
    assert all(live_rows)
    return live_rows


def test_shifting_all_times_shifts_the_answers(
    spark: SparkSession, tmp_path: Path, plain: list[Bag], batches: list[list[Row]]
) -> None:
    """If the anchor and all rows are moved in time, the answers are moved as well, and otherwise equal."""
    rules = Rules(anchor=ANCHOR + SHIFT, interval=RULES.interval, max_lifetime=RULES.max_lifetime, null_expiry="never")
    project = Layouts(tmp_path / "shifted", rules, LAYOUT, spark)
    for slot, rows, expected in zip(SLOTS, batches, plain, strict=True):
        project.land(moved(rows, SHIFT))
        project.update(rules.time(slot))
        shifted = Counter(
            {
                (key, value, ts + SHIFT, exp if value % 100 == NEVER_VALUE else exp + SHIFT): count
                for (key, value, ts, exp), count in expected.items()
            },
        )
        assert project.scan("s") == shifted


NEVER_VALUE = 35
"""The script's rows of this number in their hundred never expire."""


@pytest.mark.parametrize("each", [False, True], ids=["one catch-up", "slot by slot"])
def test_grouping_slots_into_updates_makes_no_difference(
    spark: SparkSession, tmp_path: Path, plain: list[Bag], batches: list[list[Row]], *, each: bool
) -> None:
    """Batches loaded together, in one update or slot by slot, leave the live rows of batches loaded one by one."""
    project = Layouts(tmp_path / "grouped", RULES, LAYOUT, spark)
    project.land(batches[0])
    project.update(RULES.time(SLOTS[0]))
    for rows in batches[1:]:
        project.land(rows)
    report = project.update(RULES.time(SLOTS[-1]), each=each)
    assert len(report.epochs) == (3 if each else 1)
    assert project.scan("s") == plain[-1]


def test_slot_by_slot_from_the_first_row_leaves_the_same_rows(
    spark: SparkSession, tmp_path: Path, plain: list[Bag], batches: list[list[Row]]
) -> None:
    """A replay from the first row, slot by slot, ends with the same live rows as one first build at the same end."""
    begin = RULES.time(2)
    all_rows = [row for rows in batches for row in rows if row.ts is None or row.ts > begin]
    ends = []
    for name, each in (("replayed", True), ("built", False)):
        project = Layouts(tmp_path / name, RULES, LAYOUT, spark)
        project.land(all_rows)
        report = project.update(RULES.time(SLOTS[-1]), each=each)
        assert len(report.epochs) == (4 if each else 1)
        ends.append(project.scan("s"))
    assert ends[0] == ends[1] == Counter({row: count for row, count in plain[-1].items() if row[2] > begin})
