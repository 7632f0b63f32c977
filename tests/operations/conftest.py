"""A small warehouse for each test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .projects import Project

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> Project:
    """A project with one stream of CSV files, four slots deep."""
    return Project(tmp_path / "project", spark)
