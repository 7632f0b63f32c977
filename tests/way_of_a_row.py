"""The modules that a row crosses in one update, from its landing file into a join view: ``python -m tests.way_of_a_row [spark]``.

A module counts if one of its functions gets or returns the row while a step runs: an Arrow table or column that has the row's
text, or a frame (of Spark's, or of the driver's), which has no rows before it is computed and so always counts. Functions that
get only the plan, bounds or counts do not count.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame

from tests.conftest import SMALL_AND_SHORT
from tests.operations.projects import Project, csv, row, stream
from warehouse.epochs.points import Point
from warehouse.storage import lookup
from warehouse.storage.session import spark_session
from warehouse.views.maintenance import appended, cache, distinct, joins
from warehouse.views.maintenance.driver_rows import DriverRows

if TYPE_CHECKING:
    from types import FrameType

    from pyspark.sql import SparkSession

    from warehouse.epochs.points import Moment

_ROOT = Path(__file__).parent.parent
_TEXT = "the row that is followed"
_COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp", "t": "string"}
_QUERY = "SELECT l.k, l.t AS one, r.t AS other FROM a l JOIN b r ON l.k = r.k"


class Way:
    """Records, by step, the modules that the row crosses, with their functions, in order."""

    def __init__(self) -> None:
        self.steps: dict[str, dict[str, set[str]]] = {}
        self._now: dict[str, set[str]] = {}
        self._looking = False

    def observe(self, moment: Moment) -> None:
        """Begin with a step."""
        if moment.point == Point.STEP_STARTED:
            self._now = self.steps.setdefault(moment.text, {})

    def follow(self, frame: FrameType, event: str, result: Any) -> None:  # noqa: ANN401 - as Python calls a profiler
        """Look at the parameters of a call, or at its result."""
        path = frame.f_code.co_filename
        if self._looking or event not in {"call", "return"} or not path.startswith(str(_ROOT / "warehouse")):
            return
        self._looking = True
        try:
            values = [*frame.f_locals.values()] if event == "call" else [result]
            if any(_has_row(value) for value in values):
                module = Path(path).resolve().relative_to(_ROOT).as_posix()
                self._now.setdefault(module, set()).add(frame.f_code.co_name)
        finally:
            self._looking = False


def _has_row(value: object) -> bool:
    match value:
        case DataFrame() | DriverRows():
            return True
        case pa.Table() | pa.RecordBatch():
            return any(map(_has_row, value.columns))
        case pa.Array() | pa.ChunkedArray():
            return pa.types.is_string(value.type) and any(_TEXT in (text or "") for text in value.to_pylist())
        case str():
            return _TEXT in value
        case bytes():
            return _TEXT.encode() in value
        case list() | tuple():
            return any(map(_has_row, value))
        case _:
            return False


def _project(directory: Path, spark: SparkSession) -> Project:
    """Two streams and a join of them, after two updates; the row has landed."""
    streams = {name: stream(columns=_COLUMNS, landing=f"landing/{name}") for name in "ab"}
    project = Project(directory, spark, streams, views={"joined": {"sql": _QUERY, "search_key": "k"}})
    header = ",".join(_COLUMNS)
    landed = {
        1: {"a": [row("x", 0.1, 4) + ",a1", row("y", 0.2, 4) + ",a2"], "b": [row("x", 0.1, 4) + ",b1"]},
        2: {"a": [row("y", 1.1, 5) + ",a3"], "b": [row("y", 1.2, 5) + ",b2"]},
        3: {"a": [row("x", 2.1, 5) + f",{_TEXT}"]},
    }
    for hour, tables in landed.items():
        for name, lines in tables.items():
            project.land(f"{hour}.csv", csv(*lines, header=header), landing=f"landing/{name}")
        if hour < max(landed):
            project.update(hour)
    return project


def followed(directory: Path, spark: SparkSession) -> dict[str, dict[str, set[str]]]:
    """Return the modules that the row crosses, by step, with their functions; the project is created in the directory."""
    way, project = Way(), _project(directory / "project", spark)
    threading.setprofile(way.follow)
    sys.setprofile(way.follow)
    try:
        project.update(3, observer=way.observe)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert any(_TEXT in result["one"] for result in project.live("joined"))
    return way.steps


def main(engine: str = "driver") -> None:
    """Print the modules by step; with ``spark`` Spark computes the view's rows."""
    os.environ["STREAM_WH_CLASS_ARCHIVE"] = "read"
    if engine == "spark":
        lookup.LARGE = -1
        for module in (appended, cache, distinct, joins):
            module.FEW = 0
    with tempfile.TemporaryDirectory() as directory:
        steps = followed(Path(directory), spark_session(SMALL_AND_SHORT))
    for step, modules in steps.items():
        stored = [module for module in modules if module.startswith("warehouse/storage/")]
        sys.stdout.write(f"{step}: {len(modules) - len(stored)} modules, and {len(stored)} of storage\n")
        for path, functions in modules.items():
            sys.stdout.write(f"  {path:<50} {', '.join(sorted(functions))}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
