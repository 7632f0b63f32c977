"""Coalesced tables beside their model: a project with drawn points, 40 % of them late, in batches of any size.

Closed rows lie in cells of their own, however few they are. With each way to compare stand tables with a budget, which
:func:`tests.operations.test_shed.verify` holds against those without.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse.epochs.points import nobody
from warehouse.limits import limited, limits
from warehouse.operations.update import UpdateOptions
from warehouse.serving import Reader
from warehouse.steps.stream_source import StreamSource

from .projects import Project, StoppedError, at, csv, stop_at, stream, text
from .test_coalesced import SAME, Row, expected, models, runs, stamp
from .test_shed import verify

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from tests.coalescing.model import Model, Reading
    from warehouse.epochs.points import Observer, Point

__all__ = ["DrawnPoints", "Way", "declare", "in_parquet"]

Way = Literal["driver", "arrays", "spark"]
"""How an update makes the rows."""


def declare(project: Project, form: str = "csv") -> Project:
    """Declare a stream, with files of a format, and tables of each way to compare, with a budget and without."""
    columns = {"k": "string", "v": "int", "b": "timestamp", "e": "timestamp"}
    project.streams = {"a": stream(columns=columns, format=form, max_lifetime="12h")}
    base = {"from": "a", "group_by": "k"}
    tables: dict[str, dict[str, object]] = {
        "by_value": {**base, "values": "v", "window": "4h"},
        "rising": {**base, "same": "v >= previous.v", "window": "4h"},
        "truth": {**base, "of": "v > 1", "window": "4h"},
        "newest": {**base, "values": "v", "rows": 6},
    }
    project.coalesced = {
        **tables,
        "shed_values": {**tables["by_value"], "budget": {"rows": 9}},
        "shed_rising": {**tables["rising"], "budget": {"keep": 0.6}, "shed": "random"},
        "shed_truth": {**tables["truth"], "budget": {"accuracy": 0.6}},
        "shed_newest": {**tables["newest"], "budget": {"rows": 4}, "shed": "cals-v"},
    }
    project.declare()
    return project


def in_parquet(rows: Sequence[Row]) -> bytes:
    """Return points as a Parquet file."""
    kinds = (("k", pa.string()), ("v", pa.int32()), ("b", pa.timestamp("us", "UTC")), ("e", pa.timestamp("us", "UTC")))
    values = zip(*((k or None, v, stamp(begins), stamp(ends)) for k, v, begins, ends in rows), strict=True)
    content = pa.BufferOutputStream()
    pq.write_table(pa.table({name: pa.array(column, kind) for (name, kind), column in zip(kinds, values, strict=True)}), content)
    return content.getvalue().to_pybytes()


@dataclass
class DrawnPoints:
    """A project, its random numbers, the points that wait for their slot, and a model of each table."""

    project: Project
    draw: random.Random
    waiting: list[Row] = field(default_factory=list)
    models: dict[str, Model] = field(default_factory=models)
    files: int = 0
    now: int = 0

    def land(self, *, lively: bool = False) -> None:
        """Land a file of points: some long past, some with the time of another, some that wait for the next slot.

        If they are ``lively``, none is dead on arrival.
        """
        rows: list[Row] = [("p", 1, self.now - 0.5, self.now + 1)]
        for _ in range(self.draw.randrange(9)):
            late = self.draw.random() < 0.4
            end = self.now * 6
            begins = self.draw.randrange(max(0, end - 36), end) if late else end - self.draw.randrange(-3, 6)
            value = self.draw.choice([1, 1, 1, 2, 3, None])
            lives = 9 if lively else self.draw.choice([0, 0.1, 9])
            rows.append((self.draw.choice(["p", "p", "q", ""]), value, begins / 6, begins / 6 + lives))
        if self.project.streams["a"]["format"] == "parquet":
            self.project.land(f"{self.files}.parquet", in_parquet(rows))
        else:
            lines = (f"{k},{'' if v is None else v},{text(begins)},{text(ends)}" for k, v, begins, ends in rows)
            self.project.land(f"{self.files}.csv", csv(*lines, header="k,v,b,e"))
        self.files += 1
        self.waiting += rows

    def update(
        self, slots: int, *, way: Way = "driver", stopped: tuple[Point, float] | None = None, observer: Observer = nobody
    ) -> None:
        """Move by a number of slots with a file, observed; first stopped at a point of one of the steps.

        What is made as arrays is made of points that Spark classified, and half of the time reads them back from the stream.
        """
        self.now += slots
        self.land(lively=way == "arrays" and self.draw.random() < 0.5)
        rows, values = limits().driver_rows, limits().array_values
        bounds = {"driver_rows": rows if way == "driver" else 0, "array_values": 0 if way == "spark" else values, "apart_rows": 0}
        with limited(**bounds), pytest.MonkeyPatch.context() as patch:
            if way == "arrays":
                patch.setattr(StreamSource, "is_few", False)
            if stopped is not None:
                plan, _ = self.project.updater().plan(UpdateOptions(at=at(self.now)))
                assert plan is not None
                point, share = stopped
                with suppress(StoppedError):  # a step without rows makes no commit
                    self.project.update(self.now, observer=stop_at(point, int(share * len(plan.steps))))
            self.project.update(self.now, observer=observer)
        arrived = [row for row in self.waiting if stamp(row[2]) <= stamp(self.now)]
        self.waiting = [row for row in self.waiting if row not in arrived]
        for name, model in self.models.items():
            points: list[Reading] = [(k or None, stamp(begins), v) for k, v, begins, _ in arrived]
            if name == "truth":
                points = [(k, begins, None if v is None else v > 1) for k, begins, v in points]
            model.arrive(points, stamp(self.now))

    def require_equal(self) -> None:
        """Compare the newest epoch with the models, and tables with a budget with those without."""
        with Reader.open(self.project.root) as reader:
            for name in self.project.coalesced.keys() & SAME.keys():
                assert runs(reader.scan(name).arrow().to_pylist()) == expected(self.models[name]), name
        if "shed_values" in self.project.coalesced:
            verify(self.project)
