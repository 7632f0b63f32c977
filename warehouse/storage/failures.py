"""Recognises failures that the data did not cause: a full or read-only disk, lost executors, a cancelled job.

They pass, or a person ends them. No file or view is the cause, so none is left out because of them. Messages may have values of
rows, which anybody may have written. So Java's exceptions are distinguished by their classes, and by messages only if no message
can have a value.
"""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError

from warehouse.errors import NotSharedError, SparkLostError, StorageFailedError, StoreBusyError, WarehouseError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["first_line", "passing_failure"]

_ERRORS = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ENOTDIR, errno.EISDIR)
)
_ENDS = tuple(end for number in sorted(_ERRORS) for end in (os.strerror(number), f"({os.strerror(number)})"))
_OF_FILES = re.compile(r"java\.io\.(IO|FileNotFound|UncheckedIO)Exception|java\.nio\.file\.\w+|org\.apache\.hadoop\.[\w.]+")
_OF_STORES = re.compile(r"(org\.apache\.hadoop\.fs\.s3a|software\.amazon\.awssdk)\.[\w.$]+")
_NOT_MADE = ("Mkdirs failed to create ", "mkdir of ", "Unable to create ", "Could not create ")
_ABSENT = re.compile(r"File (?:file:)?(/.*) does not exist")
_DEPTH = 20
_LOST = re.compile(
    r"(\[SPARK_JOB_CANCELLED\] )?Job \d+ (was )?cancelled|Cannot call methods on a stopped"
    r"|Job aborted due to stage failure: Task \d+ in stage [\d.]+ failed \d+ times?, most recent failure: "
    r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^)]*\): ExecutorLostFailure"
    r"|Job aborted due to stage failure: (ShuffleMap|Result)Stage \d+ \([^\n]*\) has failed the maximum allowable "
    r"number of times"
)
_OF_SPARK = re.compile(r"org\.apache\.spark\.Spark(SQL|IllegalState|)Exception|java\.lang\.IllegalStateException")
_STOPPED = frozenset(
    ("org.apache.spark.TaskKilledException", "java.lang.InterruptedException", "java.nio.channels.ClosedByInterruptException")
)


def first_line(error: BaseException) -> str:
    r"""Return the first line of an error that says something; Py4J's own comes before Java's.

    >>> first_line(ValueError("An error occurred while calling o1.collect.\n: no such column\n  at ..."))
    'no such column'
    """
    lines = [line for line in str(error).splitlines() if line.strip() and "An error occurred" not in line]
    return lines[0].strip(": ") if lines else type(error).__name__


def passing_failure(error: BaseException) -> WarehouseError | None:
    """Return the warehouse's error for a failure of the machine, or None for other errors."""
    if isinstance(error, OSError) and not isinstance(error, ConnectionError):
        if error.errno not in _ERRORS:
            return None
        prefix = f"{error.filename}: " if error.filename else ""
        return StorageFailedError(f"{prefix}{error.strerror}")
    if isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError):
        return SparkLostError(f"Spark ended while it was working ({error}); the next update completes what was begun")
    causes = list(_causes(error))
    for kind, message in causes:
        absent = _ABSENT.fullmatch(message) if kind == "java.io.FileNotFoundException" else None
        if absent and Path(absent[1]).exists():
            return NotSharedError(f"an executor does not find {absent[1]}, which the driver does")
        if _OF_FILES.fullmatch(kind) and (message.endswith(_ENDS) or message.startswith(_NOT_MADE)):
            return StorageFailedError(message)
        if _OF_STORES.fullmatch(kind):
            return StoreBusyError(message.partition("\n")[0][:300] or kind)
    if not causes:
        return None
    kind, message = causes[-1]
    if kind in _STOPPED or (_OF_SPARK.fullmatch(kind) and _LOST.match(message)):
        reason = message.partition("\n")[0][:300] or kind
        return SparkLostError(f"Spark lost a part of its work ({reason}); run again: it completes what was begun")
    return None


def _causes(error: BaseException) -> Iterator[tuple[str, str]]:
    """Yield (class, message) of the Java exception behind an error, and of its causes, down to the root."""
    java: Any = error.java_exception if isinstance(error, Py4JJavaError) else getattr(error, "_origin", None)
    try:
        for _ in range(_DEPTH):
            if java is None:
                return
            yield str(java.getClass().getName()), str(java.getMessage() or "")
            java = java.getCause()
    except (Py4JError, OSError):
        return  # the JVM has ended, so no more is known
