"""One script of arrivals and updates, run over many layouts at once: a covering set, not the full product.

    slot      .. -2 -1  0  1  2  3 | 4 | 5  6 | 7 | 8  9 10 11 12 13 |
    update                      U0   U1     U2  U3                U4
    what            first build    |   | catch-up |  catch-up of p   |
                                       | late     |  slots, late     |
                                               nothing arrives

Every update but U3 has rows of all lifetimes, duplicates and null keys; deferred rows wait for slots 5 and 11, one is
dead when its slot comes; some live longer than S, some for ever, many are dead on arrival, U1 has invalid ones.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.testing import Model, Row, Rules
from warehouse.time import HOUR, MINUTE, parse_instant

from .project import Layouts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.epochs.records import Epoch

ANCHOR = parse_instant("2013-01-01T00:00:00Z")
DELTA = 10 * MINUTE
RULES = Rules(anchor=ANCHOR, interval=DELTA, max_lifetime=HOUR - MINUTE, null_expiry="never")
"""p = 6, and S is no multiple of the interval."""
SLOTS = (3, 4, 6, 7, 13)
QUIET = 7
KEYS = ("", "a", "b", "c", "naïve", None)


def _layout(technique: str, grid: tuple[int, int], insertion: str, expiration: str, **more: object) -> dict[str, object]:
    return {"technique": technique, "grid": grid, "insertion": insertion, "expiration": expiration, **more}


LAYOUTS: Mapping[str, Mapping[str, object]] = {
    "rebuild_1x1": _layout("rebuild", (1, 1), "round-robin", "round-robin"),
    "rebuild_2x3_permuted": _layout("rebuild", (2, 3), "permuted", "permuted", seed=7),
    "rebuild_3x2_mixed": _layout("rebuild", (3, 2), "chronological", "round-robin"),
    "append_1x1": _layout("norebuild", (1, 1), "staggered", "blocks", expiry_block=2),
    "append_3x1": _layout("norebuild", (3, 1), "staggered", "blocks", expiry_block=2),
    "append_1x3_open": _layout("norebuild", (1, 3), "staggered", "blocks", seal=False),
    "append_2x3_wide": _layout("norebuild", (2, 3), "staggered", "blocks", expiry_block=3),
    "append_2x3_uneven": _layout("norebuild", (2, 3), "chronological", "round-robin", expiry_block=1),
}
"""Both techniques on 1x1, n x 1, 1 x n and G x E; each assignment on each axis; sealing on and off.

The sheet's data set (`test_sheet.py`) adds wave indices and square grids, round-robin and chronological, and `test_time.py`
permuted rows of appended blocks.
"""


@dataclass(frozen=True)
class Run:
    """The warehouse and the model after the script, and the epoch of each update."""

    project: Layouts
    model: Model
    epochs: tuple[Epoch, ...]


def arrivals(slot: int, previous: int, seed: int = 0) -> list[Row]:
    """Return the rows that land before the update at ``slot``."""
    if slot == QUIET:
        return []
    chance = random.Random(f"{seed}/{slot}")  # noqa: S311 - rows of a test
    now, before = RULES.time(slot), RULES.time(previous)
    lifetime = RULES.max_lifetime or 0
    rows = []
    for value in range(24):
        # Most arrive within the update's slots, some before them: late.
        ts = chance.randrange(before - 2 * DELTA, now + 1)
        life = chance.choice([1, DELTA // 2, DELTA, lifetime // 2, lifetime, chance.randrange(lifetime)])
        rows.append(Row(ts, ts + life, chance.choice(KEYS), 100 * slot + value))
    rows += [
        rows[0],
        rows[0],
        Row(before + 1, now, "a", 100 * slot + 30),
        Row(before + 1, now + 1, "a", 100 * slot + 31),
        Row(now, now + lifetime, "b", 100 * slot + 32),
        Row(now, now, "b", 100 * slot + 33),
        Row(now - DELTA // 3, now + lifetime + 4 * DELTA, "c", 100 * slot + 34),
        Row(now - DELTA // 3, None, "c", 100 * slot + 35),
    ]
    if slot == SLOTS[1]:
        rows += [Row(now - 1, now - 2, "bad", 100 * slot + 36), Row(None, now, "bad", 100 * slot + 37)]
    if slot == SLOTS[0]:
        rows += [
            Row(RULES.time(-20), now + DELTA, "old", 1),
            Row(RULES.time(5) - 1, RULES.time(9), "later", 2),
            Row(RULES.time(5), RULES.time(5) + 1, "later", 3),
            Row(RULES.time(10) + 1, RULES.time(15), "later", 4),
        ]
    return rows


def run_script(directory: Path, spark: SparkSession, layouts: Mapping[str, Mapping[str, object]] = LAYOUTS) -> Run:
    """Run the script; each stream gets the same rows, cut into other files and in another order."""
    project = Layouts(directory, RULES, layouts, spark, warehouse_keys={"publish": "delta"})
    model = Model(RULES)
    epochs: list[Epoch] = []
    previous = SLOTS[0] - RULES.periods
    for slot in SLOTS:
        rows = arrivals(slot, previous)
        model.arrive(*rows)
        for number, stream in enumerate(layouts):
            mixed = random.Random(f"{slot}/{number}").sample(rows, len(rows))  # noqa: S311 - rows of a test
            cuts = number % 3 + 1
            for part in range(cuts if rows else 0):
                project.land(mixed[part::cuts], streams=[stream])
        # Off the grid, the update works up to the last grid point.
        at = RULES.time(slot) + (DELTA - 1 if slot % 2 else 0)
        model.update(at)
        epochs.extend(project.update(at).epochs)
        previous = slot
    return Run(project, model, tuple(epochs))
