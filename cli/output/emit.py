"""Chooses the format and the destination of a result, and writes it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warehouse.cli.output.sink import open_sink
from warehouse.cli.output.text import write_csv, write_json, write_jsonl
from warehouse.cli.output.visible import lines_visible, terminal_width, wrapped
from warehouse.errors import EpochVacuumedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from warehouse.cli.output.records import Result
    from warehouse.cli.output.sink import Sink

__all__ = ["DATA_FORMATS", "Destination", "NothingWrittenError", "emit", "require_ending"]

DATA_FORMATS = ("table", "json", "jsonl", "csv", "parquet", "arrow")
_BINARY = ("parquet", "arrow")
_BY_SUFFIX = {
    ".csv": "csv",
    ".txt": "csv",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
}


class NothingWrittenError(EpochVacuumedError):
    """An epoch was vacuumed before a byte of the answer was written."""


@dataclass(frozen=True)
class Destination:
    """The values of ``-o`` and ``--output-file``."""

    format: str | None = None
    file: Path | None = None

    def chosen(self) -> str:
        """Return the format: that of ``-o``, else of the file's ending, else a table on a terminal, else csv.

        Raises
        ------
        UsageError
            When a binary format would go to a terminal, or the file's ending belongs to no format.

        """
        terminal = self.file is None and sys.stdout.isatty()
        if self.format in _BINARY and terminal:
            raise UsageError(f"{self.format} is binary and standard output is a terminal; add --output-file or a pipe")
        if self.format:
            return self.format
        if self.file is not None:
            return self._by_suffix(self.file)
        return "table" if terminal else "csv"

    @staticmethod
    def _by_suffix(file: Path) -> str:
        require_ending(file, tuple(_BY_SUFFIX), ", or -o FORMAT")
        return _BY_SUFFIX.get(file.suffix.lower(), "csv")


def require_ending(file: Path, allowed: Sequence[str], otherwise: str = "") -> None:
    """Raise an error if the ending of a file name belongs to another format; a name without an ending is allowed.

    Raises
    ------
    UsageError
        With the endings that are allowed.

    """
    suffix = file.suffix.lower()
    if suffix and suffix not in allowed:
        listed = f"one of {', '.join(allowed)}" if len(allowed) > 1 else allowed[0]
        raise UsageError(f'"{file.name}": the ending {suffix} is of no format; use {listed}{otherwise}')


def emit(
    result: Result, destination: Destination, notes: Mapping[str, str] | None = None, top: Sequence[str] = ()
) -> int:
    """Write a result, in bounded memory, and return the number of its rows.

    ``notes`` become metadata, in formats that have metadata; ``top`` is a list of lines above a table.

    Raises
    ------
    NothingWrittenError
        When files of the result's epoch are gone and nothing was written yet: the same command may read a newer epoch.

    """
    chosen = destination.chosen()
    with open_sink(destination.file) as sink:
        try:
            if top:
                lines = [lines_visible(line) for line in top]
                if sink.terminal:
                    lines = [wrapped(line, terminal_width()) for line in lines]
                sink.write("".join(f"{line}\n" for line in lines).encode(errors="backslashreplace"))
            return _write(result, chosen, sink, notes or {})
        except EpochVacuumedError as error:
            if sink.written and destination.file is None:
                raise
            raise NothingWrittenError(str(error)) from error


def _write(result: Result, chosen: str, sink: Sink, notes: Mapping[str, str]) -> int:
    match chosen:
        case "csv":
            return write_csv(result, sink)
        case "json":
            return write_json(result, sink)
        case "jsonl":
            return write_jsonl(result, sink)
        case "parquet":
            from warehouse.cli.output.columnar import write_parquet  # noqa: PLC0415 - pyarrow is slow to import

            return write_parquet(result, sink, notes)
        case "arrow":
            from warehouse.cli.output.columnar import write_arrow  # noqa: PLC0415 - pyarrow is slow to import

            return write_arrow(result, sink, notes)
        case _:
            from warehouse.cli.output.table import write_table  # noqa: PLC0415 - rich is slow to import

            return write_table(result, sink)
