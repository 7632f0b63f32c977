"""Renders the results of all commands; see ``values`` for the rules and ``emit`` for the formats."""

from __future__ import annotations

from warehouse.cli.output.emit import DATA_FORMATS, Destination, NothingWrittenError, emit
from warehouse.cli.output.records import Figure, Records
from warehouse.cli.output.sink import ClosedPipeError

__all__ = ["DATA_FORMATS", "ClosedPipeError", "Destination", "Figure", "NothingWrittenError", "Records", "emit"]
