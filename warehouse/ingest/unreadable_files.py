"""Finds the landing files that made a read fail: by checking their bytes, else by reading halves of the list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from warehouse.catalog.avro_files import avro_batches
from warehouse.catalog.codecs import open_decompressed
from warehouse.errors import FileProblem, NotSharedError
from warehouse.ingest.landing import changed_file_problems
from warehouse.ingest.orc import orc_batches
from warehouse.ingest.reading import read_files
from warehouse.storage.failures import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Stream
    from warehouse.ingest.files import LandingFile

__all__ = ["SPARK_FAILURES", "unreadable_files"]

SPARK_FAILURES = (PySparkException, Py4JJavaError)
"""The errors of a failed Spark job: PySpark translates some of Java's exceptions, and hands on the others."""
_CHUNK = 1 << 20


def unreadable_files(
    session: SparkSession, stream: Stream, groups: Sequence[tuple[tuple[str, ...], Sequence[LandingFile]]]
) -> list[FileProblem]:
    """Return the files that make a read fail: the files with damaged bytes, and files found by reading halves of the list."""
    files = [file for _, members in groups for file in members]
    return changed_file_problems(stream.landing, files) or list(_culprits(session, stream, groups))


def _culprits(
    session: SparkSession, stream: Stream, groups: Sequence[tuple[tuple[str, ...], Sequence[LandingFile]]]
) -> Iterator[FileProblem]:
    suspects = []
    for header, files in groups:
        for file in files:
            problem = _file_problem(stream.landing / file.path, file, stream.format) if file.size else None
            if problem:
                yield problem
            elif file.size:
                suspects.append((header, file))
    yield from _bisect(session, stream, suspects)


def _bisect(
    session: SparkSession, stream: Stream, suspects: list[tuple[tuple[str, ...], LandingFile]]
) -> Iterator[FileProblem]:
    message = _failure(session, stream, suspects) if suspects else None
    if message is None:
        return
    if len(suspects) == 1:
        yield FileProblem(suspects[0][1].path, "unreadable", message)
        return
    middle = len(suspects) // 2
    yield from _bisect(session, stream, suspects[:middle])
    yield from _bisect(session, stream, suspects[middle:])


def _failure(
    session: SparkSession, stream: Stream, suspects: list[tuple[tuple[str, ...], LandingFile]]
) -> str | None:
    try:
        read_files(session, stream, [(header, [file]) for header, file in suspects]).write.format("noop").mode(
            "overwrite"
        ).save()
    except SPARK_FAILURES as error:
        if _is_of_no_file(error):  # the driver has just looked at it
            paths = ", ".join(str(stream.landing / file.path) for _, file in suspects[:3])
            raise NotSharedError(f"an executor does not find what the driver does, one of {len(suspects)}: {paths}") from error
        return first_line(error)
    return None


def _is_of_no_file(error: BaseException) -> bool:
    """Whether a job failed because an executor did not find a file."""
    java: Any = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    while java is not None:
        if java.getClass().getName() == "java.io.FileNotFoundException" and str(java.getMessage()).endswith(" does not exist"):
            return True
        java = java.getCause()
    return False


def _file_problem(path: Path, file: LandingFile, form: str) -> FileProblem | None:
    """Return the damage of a compressed, Parquet, ORC or Avro file (truncated or changed bytes); None if it is undamaged."""
    try:
        if form in ("orc", "avro"):
            for _ in orc_batches(path) if form == "orc" else avro_batches(path):
                pass
        elif form == "parquet":
            import pyarrow.parquet  # noqa: PLC0415 - only when an input has failed

            with pyarrow.parquet.ParquetFile(path) as parquet:
                for _ in parquet.iter_batches():
                    pass
        else:
            with path.open("rb") as stream:
                content = open_decompressed(stream, path.name)
                while content.read(_CHUNK):
                    pass
    except Exception as error:  # noqa: BLE001 - whatever a damaged file makes its reader raise is the finding
        return FileProblem(file.path, "unreadable", f"{type(error).__name__}: {error}")
    return None
