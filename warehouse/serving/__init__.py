"""Reading a warehouse without a JVM: probe, scan, SQL and the warehouse's metadata, at a pinned epoch."""

from warehouse.serving.answer import Answer, Explain, ReadPlan
from warehouse.serving.engine import Resources
from warehouse.serving.keys import KeyColumn, parse_composite, parse_key
from warehouse.serving.reader import Reader

__all__ = ["Answer", "Explain", "KeyColumn", "ReadPlan", "Reader", "Resources", "parse_composite", "parse_key"]
