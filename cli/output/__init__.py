"""The one place that renders what commands return; see ``values`` for the rules and ``emit`` for the formats."""

from __future__ import annotations

from cli.output.emit import DATA_FORMATS, Destination, NothingWrittenError, emit
from cli.output.records import Records
from cli.output.sink import ClosedPipeError

__all__ = ["DATA_FORMATS", "ClosedPipeError", "Destination", "NothingWrittenError", "Records", "emit"]
