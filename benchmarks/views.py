"""Views: maintaining a join of windows, a DISTINCT and a negation, beside computing them again in Spark from the live rows.

Two streams with windows of 400 update intervals, so that each update brings 0.25 % of the live rows. The join key has
about as many values as a window has rows: every arriving row finds about one partner. Maintenance is the time of the
view's own steps (plan, read, join, commit); computing again is a plain Spark job over the same live rows that writes
Parquet. The floor of a join is what no maintenance by Spark over such files does without: one job that reads the windows
once, probes what arrived, which is at hand already, and writes what comes of it as it comes.
"""

from __future__ import annotations

import shutil
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the customary name

from benchmarks import data
from benchmarks.plain import measured
from benchmarks.project import moved
from benchmarks.ratio import Ratio, Sample, ratio
from warehouse import Warehouse
from warehouse.time import HOUR, at_slot, parse_instant

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.bench import Bench
    from warehouse.epochs.records import Epoch

__all__ = ["measure", "step_seconds"]

_NAME = "views"
_WINDOW = 400
"""Update intervals of a window: one brings 0.25 % of it."""
_FEW = 1_000
_UPDATES = 9
_WARM_UP = 2
_ANCHOR = parse_instant("2024-01-01T00:00:00Z")
_TIMES_FASTER = 5
_VIEWS = {
    "joined": ("SELECT l.k, l.v AS lv, r.v AS rv, l.s AS ls FROM l JOIN r ON l.k = r.k", "k"),
    "few": ("SELECT DISTINCT c FROM l", "c"),
    "few_counted": ("SELECT c, count(*) AS n FROM l GROUP BY c", "c"),
    "many": ("SELECT DISTINCT k FROM l", "k"),
    "many_counted": ("SELECT k, count(*) AS n FROM l GROUP BY k", "k"),
    "without": ("SELECT k, v FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k)", "k"),
    "negated_below": (
        (
            "SELECT a.k, a.v, b.c FROM (SELECT k, v FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k)) a "
            "JOIN l b ON a.k = b.k"
        ),
        "k",
    ),
    "negated_on_top": (
        (
            "SELECT j.k, j.v, j.c FROM (SELECT x.k, x.v, y.c FROM l x JOIN l y ON x.k = y.k) j "
            "WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = j.k)"
        ),
        "k",
    ),
}
_AGAIN = ("joined", "few", "few_counted", "many", "many_counted", "without")
"""The views that are computed again beside."""
_STREAM = """
[streams.{name}]
landing = "landing/{name}"
format = "parquet"
search_key = "k"
arrival = "at"
expires = "ts + INTERVAL {window} HOURS"
max_lifetime = "{window}h"
columns = {{ k = "bigint", at = "timestamp", c = "int", v = "int", s = "string" }}
"""


@dataclass
class _Windows:
    """A warehouse of two windows and the views over them."""

    directory: Path
    rows: int
    views: Sequence[str]
    seed: int
    slot: int = 0

    def declare(self) -> None:
        """Write ``warehouse.toml``."""
        (self.directory / "landing").mkdir(parents=True)
        parts = ['[warehouse]\nanchor = "2024-01-01T00:00:00Z"\nupdate_interval = "1h"\nretain = "0s"\n']
        parts += [_STREAM.format(name=name, window=_WINDOW) for name in ("l", "r")]
        for name in self.views:
            sql, key = _VIEWS[name]
            parts.append(f'\n[views.{name}]\nsql = "{sql}"\nsearch_key = "{key}"\n')
        (self.directory / "warehouse.toml").write_text("".join(parts))

    def land(self, slot: int, count: int, span: int) -> None:
        """Let rows arrive in the ``span`` slots that end with ``slot``."""
        until = at_slot(slot, _ANCHOR, HOUR)
        for number, name in enumerate(("l", "r")):
            rng = np.random.default_rng([self.seed, slot, number])
            letters = rng.integers(ord("a"), ord("z") + 1, (count, 60), dtype=np.uint8)
            rows = pa.table(
                {
                    "k": rng.integers(0, self.rows, count),
                    "at": pa.array(until - rng.integers(0, span * HOUR, count), pa.timestamp("us", "UTC")),
                    "c": pa.array(rng.integers(0, _FEW, count), pa.int32()),
                    "v": pa.array(rng.integers(0, 1000, count), pa.int32()),
                    "s": letters.view("S60").reshape(-1).astype("U60"),
                }
            )
            data.write(rows, self.directory / "landing" / name, f"{slot:06d}", files=1)

    def update(self, spark: SparkSession) -> Epoch:
        """Move the windows to the next slot."""
        self.slot += 1
        return moved(self.directory, at_slot(self.slot - 1, _ANCHOR, HOUR), spark)

    def start(self, spark: SparkSession) -> Epoch:
        """Fill the windows."""
        self.declare()
        self.slot = _WINDOW
        pieces = max(1, self.rows // 1_000_000)
        for piece in range(pieces):
            span = _WINDOW // pieces
            self.land((piece + 1) * span, self.rows // pieces, span)
        return self.update(spark)

    def stored(self, spark: SparkSession, table: str) -> DataFrame:
        """Return a table's rows as any engine reads them, with the ended ones that are still there."""
        with Warehouse.open(self.directory) as warehouse:
            files = warehouse.sql(f"SELECT path FROM _files WHERE table_name = '{table}'").all()
        place = self.directory / "data"
        return spark.read.parquet(*[str(place / path) for (path,) in files])

    def live(self, spark: SparkSession, table: str) -> DataFrame:
        """Return a table's live rows as any engine reads them."""
        now = at_slot(self.slot - 1, _ANCHOR, HOUR)
        return self.stored(spark, table).where(f"unix_micros(_exp) > {now}")

    def floor(self, spark: SparkSession) -> float:
        """Join what arrived last with the windows and write it, bare and without adaptive execution; return the seconds."""
        own = spark.newSession()
        own.conf.set("spark.sql.adaptive.enabled", "false")
        windows = {name: self.stored(own, name) for name in ("l", "r")}
        came = {name: rows.where(f"_load_slot = {self.slot - 1}").toArrow() for name, rows in windows.items()}
        out = self.directory / "floor"

        def probed(arrived: str, window: str) -> DataFrame:
            delta = F.broadcast(own.createDataFrame(came[arrived]).alias(arrived))
            overlap = f"greatest({arrived}._ts, {window}._ts) < least({arrived}._exp, {window}._exp)"
            rows = windows[window].alias(window).join(delta, F.expr(f"l.k = r.k AND {overlap}"))
            ends = ("greatest(l._ts, r._ts) AS _ts", "least(l._exp, r._exp) AS _exp")
            return rows.selectExpr("l.k", "l.v AS lv", "r.v AS rv", "l.s AS ls", *ends)

        cost = measured(spark, lambda: probed("l", "r").unionByName(probed("r", "l")).write.parquet(str(out)))
        shutil.rmtree(out)
        return cost.wall

    def again(self, spark: SparkSession, view: str) -> float:
        """Compute a view again from the live rows and write it; return the seconds."""
        own = spark.newSession()
        for name in ("l", "r"):
            self.live(own, name).createOrReplaceTempView(name)
        out = self.directory / "again"
        cost = measured(spark, lambda: own.sql(_VIEWS[view][0]).write.parquet(str(out)))
        shutil.rmtree(out)
        return cost.wall


def step_seconds(epoch: Epoch, view: str) -> float:
    """Return the seconds of the steps of a view or another table."""
    return sum(step.seconds for step in epoch.seconds if step.step.split(":")[0].split("/")[1].split(".")[0] == view)


def _counted(epoch: Epoch, view: str) -> tuple[int, int]:
    """Rows that entered a view and bytes that its tables wrote."""
    own = [counts for counts in epoch.counts if counts.stream.split(".")[0] == view]
    return sum(counts.inserted for counts in own if counts.stream == view), sum(counts.bytes_written for counts in own)


def _stored(epoch: Epoch, view: str) -> int:
    return sum(part.bytes for table in epoch.tables if table.owner == view for part in table.partitions)


def measure(bench: Bench) -> list[Ratio]:
    """Return the ratios of views: a join at three sizes of its windows, DISTINCT in two forms at one."""
    lines: list[Ratio] = []
    rows = 2 * bench.settings.rows
    joins: dict[int, list[float]] = {}
    for size in (rows // 4, rows // 2, rows):
        views = list(_VIEWS) if size == rows // 4 else ["joined"]
        windows = _Windows(bench.scratch / f"windows-{size}", size, views, bench.settings.seed)
        bench.say(f"building two windows of {size:,} rows and {len(views)} view(s)")
        windows.start(bench.spark)
        kept, again, floor = _played(bench, windows)
        lines += _lines(size, kept, again, whole=size == rows)
        lines += _floors(size, kept, again["joined"], floor)
        joins[size] = [step_seconds(epoch, "joined") for epoch in kept]
        bench.details[f"join of windows of {size} rows"] = {
            "seconds of maintenance": joins[size],
            "seconds of computing again": again["joined"],
            "seconds of the floor": floor,
            "results entered": [_counted(epoch, "joined")[0] for epoch in kept],
            "bytes written": [_counted(epoch, "joined")[1] for epoch in kept],
        }
        shutil.rmtree(windows.directory)
    small, large = joins[rows // 4], joins[rows]
    lines.append(
        ratio(
            _NAME,
            f"maintaining a join of windows of {rows:,} rows / of {rows // 4:,}",
            Sample("large windows", "s", tuple(large)),
            Sample("small windows", "s", tuple(small)),
        )
    )
    return lines


def _played(bench: Bench, windows: _Windows) -> tuple[list[Epoch], dict[str, list[float]], list[float]]:
    kept: list[Epoch] = []
    floor: list[float] = []
    again: dict[str, list[float]] = {view: [] for view in windows.views if view in _AGAIN}
    for number in range(min(bench.settings.updates, _UPDATES) + _WARM_UP):
        windows.land(windows.slot, windows.rows // _WINDOW, 1)
        epoch = windows.update(bench.spark)
        took = {view: windows.again(bench.spark, view) for view in again}
        bare = windows.floor(bench.spark)
        if number >= _WARM_UP:
            kept.append(epoch)
            floor.append(bare)
            for view, seconds in took.items():
                again[view].append(seconds)
    return kept, again, floor


def _floors(size: int, kept: Sequence[Epoch], again: list[float], floor: list[float]) -> list[Ratio]:
    """How far below computing again a step could be at best, and how far above that it is."""
    bare = Sample("floor", "s", tuple(floor))
    steps = Sample("maintaining", "s", tuple(step_seconds(epoch, "joined") for epoch in kept))
    return [
        ratio(
            _NAME, f"computing `joined` again / the floor of maintaining it, windows of {size:,} rows",
            Sample("computing again", "s", tuple(again)), bare,
        ),
        ratio(_NAME, f"maintaining `joined` / its floor, windows of {size:,} rows", steps, bare),
    ]  # fmt: skip


def _lines(size: int, kept: Sequence[Epoch], again: dict[str, list[float]], *, whole: bool) -> list[Ratio]:
    lines = []
    for view, seconds in again.items():
        target = _TIMES_FASTER if view == "joined" and whole else None
        lines.append(
            ratio(
                _NAME,
                f"computing `{view}` again / maintaining it, windows of {size:,} rows",
                Sample("computing again", "s", tuple(seconds)),
                Sample("maintaining", "s", tuple(step_seconds(epoch, view) for epoch in kept)),
                target=target,
                at_least=target is not None,
            )
        )
    for view in ("few", "many"):
        if view in again:
            lines += _forms(size, kept, view)
    if "few" in again:
        lines.append(_placements(size, kept))
    return lines


def _placements(size: int, kept: Sequence[Epoch]) -> Ratio:
    """The two plans of one query (update-patterns sheet, 6.3 and 8, Q4)."""
    return ratio(
        _NAME,
        f"a negation below a join / on top of it, windows of {size:,} rows",
        Sample("below", "s", tuple(step_seconds(epoch, "negated_below") for epoch in kept)),
        Sample("on top", "s", tuple(step_seconds(epoch, "negated_on_top") for epoch in kept)),
    )


def _forms(size: int, kept: Sequence[Epoch], view: str) -> list[Ratio]:
    """DISTINCT kept as shown and spare rows, beside the counting form."""
    counted = f"{view}_counted"
    return [
        ratio(
            _NAME,
            f"maintaining `{view}` with counts / as delta*, windows of {size:,} rows",
            Sample("counting", "s", tuple(step_seconds(epoch, counted) for epoch in kept)),
            Sample("delta*", "s", tuple(step_seconds(epoch, view) for epoch in kept)),
        ),
        ratio(
            _NAME,
            f"bytes written by `{view}` with counts / as delta*",
            Sample("counting", "B", tuple(float(_counted(epoch, counted)[1]) for epoch in kept)),
            Sample("delta*", "B", tuple(float(max(1, _counted(epoch, view)[1])) for epoch in kept)),
        ),
        ratio(
            _NAME,
            f"space of `{view}` with counts / as delta*",
            Sample("counting", "B", (statistics.fmean(_stored(epoch, counted) for epoch in kept),)),
            Sample("delta*", "B", (statistics.fmean(_stored(epoch, view) for epoch in kept),)),
        ),
    ]
