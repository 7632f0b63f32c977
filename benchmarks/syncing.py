"""Durability: what syncing to the disk adds to an update, for few and for many rows."""

from __future__ import annotations

import os
import shutil
import statistics
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from unittest.mock import patch

from benchmarks.project import Project
from benchmarks.ratio import Ratio, Sample, ratio
from warehouse.storage import local_disk

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.bench import Bench

__all__ = ["measure"]

_NAME = "durability"
_UPDATES = 24
_FEW = 100
_LIVE = 10
"""Live rows, as a multiple of the rows of an update."""


@dataclass(frozen=True)
class _Update:
    seconds: float
    syncs: int


def measure(bench: Bench) -> list[Ratio]:
    """Return the ratios of updates with syncs to updates of an equal warehouse without any sync, in turn."""
    return [line for batch in (_FEW, bench.settings.batch) for line in _measured(bench, batch)]


def _measured(bench: Bench, batch: int) -> list[Ratio]:
    files = 1 if batch == _FEW else bench.settings.files
    settings = replace(bench.settings, rows=max(1000, _LIVE * batch), batch=batch, files=files)
    synced, other = (Project(bench.scratch / f"{name}-{batch}", settings) for name in ("synced", "not-synced"))
    bench.say(f"two warehouses of {settings.rows:,} live rows")
    for project in (synced, other):
        project.build(settings.rows, bench.spark)
    bench.say(f"updates of {batch:,} rows in turn")
    pairs = []
    for number in range(min(settings.updates, _UPDATES)):
        order = (synced, other) if number % 2 else (other, synced)
        done = {id(project): _update(bench, project, syncs=project is synced) for project in order}
        if number >= settings.warm_up:
            pairs.append((done[id(synced)], done[id(other)]))
    bench.details[f"syncs of an update of {batch:,} rows (median)"] = statistics.median(update.syncs for update, _ in pairs)
    _free(synced.directory, other.directory)
    with_syncs, without = (tuple(update.seconds for update in column) for column in zip(*pairs, strict=True))
    text = f"update of {batch:,} rows / the same without a sync"
    return [ratio(_NAME, text, Sample("update", "s", with_syncs), Sample("without", "s", without))]


def _update(bench: Bench, project: Project, *, syncs: bool) -> _Update:
    landed = project.land(project.slot + 1)
    os.sync()  # what others left to be written is not this update's
    seen: list[str] = []
    left_out = nullcontext() if syncs else patch.object(local_disk, "_force", lambda *_: None)
    with left_out, local_disk.watching(lambda call, _: seen.append(call)):
        _, passed = project.update(bench.spark)
    shutil.rmtree(landed)
    return _Update(passed["whole"], seen.count("sync"))


def _free(*directories: Path) -> None:
    for directory in directories:
        shutil.rmtree(directory)
