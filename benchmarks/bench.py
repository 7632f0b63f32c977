"""What measurements share: settings, a scratch directory, one Spark session, one warehouse; each made when first used."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from benchmarks.plain import PlainWrites
from benchmarks.project import Project
from benchmarks.rounds import play
from warehouse.storage.session import spark_session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from benchmarks.rounds import Round
    from benchmarks.settings import Settings

__all__ = ["Bench"]


@dataclass
class Bench:
    """One run.

    ``beside`` tells whether plain writes are wanted beside the updates; ``details`` collects what the JSON file has
    beside the ratios; ``say`` shows progress.
    """

    settings: Settings
    scratch: Path
    beside: bool
    say: Callable[[str], None]
    details: dict[str, object] = field(default_factory=dict)

    @cached_property
    def spark(self) -> SparkSession:
        """The session of all updates and plain writes."""
        self.say("starting Spark")
        return spark_session([("spark.driver.memory", self.settings.driver_memory)])

    @cached_property
    def plain(self) -> PlainWrites:
        """The plain writes of this run."""
        return PlainWrites(self.spark, self.scratch)

    @cached_property
    def rounds(self) -> list[Round]:
        """The updates after the first build."""
        project = Project(self.scratch / "warehouse", self.settings)
        self.say(f"building a warehouse of {self.settings.rows:,} live rows")
        project.build(self.settings.rows, self.spark)
        self.say(f"{self.settings.updates} updates of {self.settings.batch:,} rows")
        rounds = play(project, self.spark, self.plain, beside=self.beside)
        self._project = project
        self.details["rounds"] = rounds
        return rounds

    @property
    def project(self) -> Project:
        """The warehouse after its updates."""
        _ = self.rounds
        return self._project
