"""Whether a warehouse is well: one judgement, shown by ``status``, ``report``, ``metrics`` and the Airflow provider."""

from warehouse.health.facts import Arrivals, Facts, Running, TableFacts
from warehouse.health.judgement import Concern, Health, judge
from warehouse.health.thresholds import KINDS, LEVELS, Kind, Level, Thresholds

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
    "TableFacts",
    "Thresholds",
    "judge",
]
