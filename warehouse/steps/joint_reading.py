"""Reads and classifies the arrived rows of several streams by one Spark job, if there are few rows.

A job costs some hundredths of a second before it reads a row; one job reads files of several streams in parallel.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from warehouse.errors import UnreadableFilesError
from warehouse.ingest.unreadable_files import SPARK_FAILURES
from warehouse.limits import limits
from warehouse.storage.collecting import collected_as_before

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from warehouse.steps.stream_source import StreamSource

__all__ = ["read_together"]

_MOST_STREAMS = 16
"""Streams of a job: each more makes its plan longer."""


def read_together(sources: Iterable[StreamSource]) -> None:
    """Read the batches of sources: one job for all sources with the same settings, if they have few rows together.

    A source with unreadable files is left out, and so are all sources of a job that fails: each then reads its own files when its
    step needs them, and names the damaged files.
    """
    by_settings: dict[object, list[StreamSource]] = defaultdict(list)
    for source in sources:
        if source.is_few:
            by_settings[source.reading_settings].append(source)
    for similar in by_settings.values():
        for job_sources in _jobs(similar):
            if len(job_sources) > 1:
                _read(job_sources)


def _jobs(sources: Sequence[StreamSource]) -> Iterator[list[StreamSource]]:
    """Return the sources in groups, each with few rows."""
    part: list[StreamSource] = []
    size = 0
    for source in sources:
        own = sum(file.size for _, files in source.groups() for file in files)
        if part and (size + own > limits().driver_bytes or len(part) == _MOST_STREAMS):
            yield part
            part, size = [], 0
        part.append(source)
        size += own
    yield part


def _read(sources: Sequence[StreamSource]) -> None:
    frames = {}
    for source in sources:
        with suppress(UnreadableFilesError, *SPARK_FAILURES):
            rows = source.few_rows()
            if rows is not None:
                frames[source] = rows
    if len(frames) < 2:  # noqa: PLR2004 - one stream needs no other
        return
    try:
        collected = collected_as_before(list(frames.values()))
    except (*SPARK_FAILURES, pa.ArrowException):
        return
    for source, batch_rows in zip(frames, collected, strict=True):
        with suppress(UnreadableFilesError):
            source.take_collected(batch_rows)
