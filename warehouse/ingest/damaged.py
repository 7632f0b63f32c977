"""What is wrong with the bytes of a landing file, looked for when a read has failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.catalog.codecs import decompressed
from warehouse.errors import FileProblem
from warehouse.ingest.orc import orc_batches

if TYPE_CHECKING:
    from pathlib import Path

    from warehouse.ingest.files import LandingFile

__all__ = ["file_problem"]

_CHUNK = 1 << 20


def file_problem(path: Path, file: LandingFile, form: str) -> FileProblem | None:
    """Return what is wrong with the bytes of a file: a truncated or damaged compressed, Parquet or ORC file, or nothing."""
    try:
        if form == "orc":
            for _ in orc_batches(path):
                pass
        elif form == "parquet":
            import pyarrow.parquet  # noqa: PLC0415 - only when an input has failed

            with pyarrow.parquet.ParquetFile(path) as parquet:
                for _ in parquet.iter_batches():
                    pass
        else:
            with path.open("rb") as stream:
                content = decompressed(stream, path.name)
                while content.read(_CHUNK):
                    pass
    except Exception as error:  # noqa: BLE001 - whatever a damaged file makes its reader raise is the finding
        return FileProblem(file.path, "unreadable", f"{type(error).__name__}: {error}")
    return None
