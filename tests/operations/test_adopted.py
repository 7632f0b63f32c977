"""Files that an outsider's OPTIMIZE wrote are taken over as they are; the seal of their row gives order and filters back.

::

    slot     1 .... 2 .... 3 .... 4 .... 5        one insertion row closes at 4
    rows     a run  a run | OPTIMIZE      sealed
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import duckdb
import pyarrow.parquet as pq
from deltalake import DeltaTable

from warehouse.checking.check import check

from .projects import Project, csv, row, stream

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

KEYS = "qzkbxm"


def _files(project: Project) -> dict[str, Path]:
    table = project.root / "tables" / "a"
    names = [uri.removeprefix(f"{table}/") for uri in DeltaTable(str(table)).file_uris()]
    return {name: table / name for name in names}


def _filtered(file: Path) -> bool:
    """Return whether a Bloom filter excludes a key between the file's bounds."""
    query = "SELECT bool_or(bloom_filter_excludes) FROM parquet_bloom_probe(?, 'k', 'c')"
    return duckdb.connect().execute(query, [str(file)]).fetchall() == [(True,)]


def _adopted(project: Project) -> tuple[str, ...]:
    state = project.epoch.table("a")
    assert state is not None
    return state.adopted


def test_the_next_seal_brings_filters_and_order_back(tmp_path: Path, spark: SparkSession) -> None:
    """Until then rows are right without filters; afterwards each file is ours, sorted, and has its filter."""
    layout = {"technique": "norebuild", "grid": [4, 1]}
    project = Project(tmp_path / "project", spark, {"a": stream(max_lifetime="16h", layout=layout)})
    for hour in range(1, 13):
        lines = [row(f"{key}{hour}", hour - 0.1 * number - 0.1, 15.5) for number, key in enumerate(KEYS)]
        project.land(f"{hour}.csv", csv(*lines))
    project.update(1)
    while max(Counter(file.parent for file in _files(project).values()).values()) < 2:
        project.update(project.epoch.slot + 1)
    before = project.live("a")
    DeltaTable(str(project.root / "tables" / "a")).optimize.compact()
    project.updater().repair()
    adopted = set(_adopted(project))
    assert adopted, "the OPTIMIZE put files together"
    assert project.live("a") == before
    assert not any(_filtered(_files(project)[name]) for name in adopted)
    assert not check(project.root).faults
    while _adopted(project):
        project.update(project.epoch.slot + 1)
        assert sorted(record["k"] for record in project.live("a")) == sorted(
            f"{key}{hour}" for key in KEYS for hour in range(1, project.epoch.slot + 1)
        )
    assert project.epoch.slot < 12, "they left by a seal, since no row has ended yet"
    files = _files(project)
    assert not adopted & files.keys()
    for file in files.values():
        keys = pq.ParquetFile(file).read(columns=["k"])["k"].to_pylist()
        assert keys == sorted(keys)
        assert _filtered(file)
    assert not check(project.root).faults
