"""A warehouse that an earlier build wrote into an object store is opened, checked and updated."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.frozen.story import answers, land_future
from tests.frozen.test_frozen import HERE, named, thawed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.objects.path import ObjectPath


@pytest.mark.parametrize("updates", [1, pytest.param(9, marks=pytest.mark.long)])
@pytest.mark.parametrize("path", sorted(path.with_suffix("").with_suffix("") for path in HERE.glob("*/store.tar.xz")), ids=named)
def test_it_lives_on(path: Path, updates: int, tmp_path: Path, bucket: ObjectPath, spark: SparkSession) -> None:
    """Every epoch gives its recorded answers, and updates continue with the rows that the earlier build would load."""
    frozen = thawed(path, tmp_path / "project", spark)
    root = bucket / "house"
    objects = frozen.directory / "objects"
    for file in objects.rglob("*"):
        if file.is_file():
            (root / file.relative_to(objects).as_posix()).put(file.read_bytes())
    shutil.rmtree(objects)
    declared = frozen.directory / "warehouse.toml"
    declared.write_text(declared.read_text().replace("s3://frozen/house", str(root)))
    assert answers(frozen.directory) == frozen.expected["now"]
    for window_time, expected in frozen.expected["as_of"].items():
        assert answers(frozen.directory, int(window_time)) == expected
    hour = frozen.expected["hour"] + 1
    for expected in frozen.expected["after"][:updates]:
        land_future(frozen.directory, hour)
        frozen.update(hour)
        assert answers(frozen.directory) == expected
        hour += 1
    assert frozen.faults() == []
