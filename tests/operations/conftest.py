"""A small warehouse for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .projects import Project, csv, row

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> Project:
    """A project with one stream of CSV files, four slots deep."""
    return Project(tmp_path / "project", spark)


@pytest.fixture(scope="session")
def followed(history: Project, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The warehouse with a past after its next update (of 4.csv), without outside changes; tests only read it."""
    model = history.copy(tmp_path_factory.mktemp("followed") / "project")
    model.land("4.csv", csv(row("n", 3.5, 7)))
    model.update(4)
    return model
