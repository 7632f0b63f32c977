"""Which errors are the machine's: the kind of an error decides, never a value that somebody wrote."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JNetworkError

from warehouse.errors import LandingError, NotSharedError, SparkLostError, StorageFailedError
from warehouse.storage.failures import passing_failure

if TYPE_CHECKING:
    from pathlib import Path


class Java:
    """Stands for a Java exception as Py4J represents it."""

    def __init__(self, kind: str, message: str | None, cause: Java | None = None) -> None:
        self._kind, self._message, self._cause = kind, message, cause

    def getClass(self) -> Java:  # noqa: N802 - Java's name
        """Return an object that knows the name."""
        return self

    def getName(self) -> str:  # noqa: N802 - Java's name
        """Return the class."""
        return self._kind

    def getMessage(self) -> str | None:  # noqa: N802 - Java's name
        """Return the message."""
        return self._message

    def getCause(self) -> Java | None:  # noqa: N802 - Java's name
        """Return the cause."""
        return self._cause


class CapturedError(Exception):
    """Stands for a translated exception of PySpark."""

    def __init__(self, origin: Java) -> None:
        super().__init__(origin.getMessage())
        self._origin = origin


def aborted(cause: Java | None, message: str = "Task failed") -> CapturedError:
    """Return the failure of a job with a cause."""
    return CapturedError(Java("org.apache.spark.SparkException", f"Job aborted due to stage failure: {message}", cause))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO])
def test_the_disk(number: int) -> None:
    """A full or read-only disk is recognised by its error number, and by the last words of Java's file errors."""
    failure = passing_failure(OSError(number, os.strerror(number), "/x/y"))
    assert isinstance(failure, StorageFailedError)
    assert f"/x/y: {os.strerror(number)}" in str(failure)
    for java in (
        Java("java.io.IOException", os.strerror(number)),
        Java("java.io.FileNotFoundException", f"/x/y ({os.strerror(number)})"),
        Java("java.nio.file.FileSystemException", f"/x/y: {os.strerror(number)}"),
    ):
        written = Java("org.apache.spark.SparkException", "[TASK_WRITE_FAILED]", java)
        assert isinstance(passing_failure(aborted(written)), StorageFailedError)


def test_spark() -> None:
    """A dead JVM, cancelled jobs and lost executors are worth retrying."""
    attempt = "Lost task 3.3 in stage 5.0 (TID 9) (h executor 1): ExecutorLostFailure ("
    message = f"Task 3 in stage 5.0 failed 4 times, most recent failure: {attempt}"
    for error in (
        Py4JNetworkError("gone"),
        ConnectionRefusedError(111, "Connection refused"),
        aborted(None, message),
        aborted(None, "ResultStage 1 (collect at batch.py:148) has failed the maximum allowable number of times: 4. Most recent"),
        CapturedError(Java("org.apache.spark.SparkException", "[SPARK_JOB_CANCELLED] Job 4 cancelled as part of all")),
        CapturedError(Java("java.lang.IllegalStateException", "Cannot call methods on a stopped SparkContext.")),
    ):
        failure = passing_failure(error)
        assert isinstance(failure, SparkLostError), error
        assert failure.exit_code == 3


def test_a_file_that_only_the_driver_finds(tmp_path: Path) -> None:
    """A file that an executor does not find is a fault of the cluster if the driver finds it, else it is missing."""
    file = tmp_path / "part-0.parquet"
    absent = Java("java.io.FileNotFoundException", f"File file:{file} does not exist")
    assert passing_failure(aborted(absent)) is None
    file.touch()
    assert isinstance(passing_failure(aborted(absent)), NotSharedError)


@pytest.mark.parametrize(
    "value", ["No space left on device", "x (Permission denied)", "ExecutorLostFailure", "[SPARK_JOB_CANCELLED] Job 1 cancelled"]
)
def test_what_rows_say_is_not_believed(value: str) -> None:
    """Errors of values and expressions contain values; so may the message of the job that they end."""
    cause = Java("org.apache.spark.SparkNumberFormatException", f"[CAST_INVALID_INPUT] The value '{value}'")
    message = f"Lost task 0.0 in stage 0.0 (TID 0) (h executor driver): {cause.getMessage()}"
    assert passing_failure(aborted(cause, message)) is None
    assert passing_failure(CapturedError(cause)) is None
    assert passing_failure(CapturedError(Java("org.apache.spark.SparkRuntimeException", value))) is None
    assert passing_failure(aborted(Java("java.io.IOException", f"{value}.csv is not a Parquet file"))) is None


def test_other_errors_are_left_alone() -> None:
    """Also this library's errors, and missing files."""
    for error in (ValueError("No space left on device"), LandingError("Permission denied"), FileNotFoundError(2, "no", "x")):
        assert passing_failure(error) is None
