"""Whether a warehouse is well: one judgement, shown by ``status``, ``report``, ``metrics`` and the Airflow provider."""

from warehouse.health.facts import KINDS, LEVELS, Arrivals, Facts, Kind, Level, Running, Shares, TableFacts, Thresholds
from warehouse.health.judgement import Concern, Health, judge

__all__ = [
    "KINDS",
    "LEVELS",
    "Arrivals",
    "Concern",
    "Facts",
    "Health",
    "Kind",
    "Level",
    "Running",
    "Shares",
    "TableFacts",
    "Thresholds",
    "judge",
]
