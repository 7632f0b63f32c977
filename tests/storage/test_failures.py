"""Which errors are the machine's: by their kind, never by a value that somebody wrote."""

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
    """Stands for a Java exception, as Py4J shows one."""

    def __init__(self, kind: str, message: str | None, cause: Java | None = None) -> None:
        self._kind, self._message, self._cause = kind, message, cause

    def getClass(self) -> Java:  # noqa: N802 - Java's name
        """Return what knows the name."""
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
    """As PySpark raises what it has translated."""

    def __init__(self, origin: Java) -> None:
        super().__init__(origin.getMessage())
        self._origin = origin


def aborted(cause: Java | None, message: str = "Task failed") -> CapturedError:
    """Return the failure of a job for a cause."""
    return CapturedError(Java("org.apache.spark.SparkException", f"Job aborted due to stage failure: {message}", cause))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO])
def test_the_disk(number: int) -> None:
    """A full or closed disk is told by its error number, and by the last words of Java's errors of files."""
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
    """A JVM that is gone, cancelled jobs and lost executors are worth retrying."""
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
    """What an executor does not find is the cluster's fault where the driver has it, and missing where it has not."""
    file = tmp_path / "part-0.parquet"
    absent = Java("java.io.FileNotFoundException", f"File file:{file} does not exist")
    assert passing_failure(aborted(absent)) is None
    file.touch()
    assert isinstance(passing_failure(aborted(absent)), NotSharedError)


@pytest.mark.parametrize(
    "value", ["No space left on device", "x (Permission denied)", "ExecutorLostFailure", "[SPARK_JOB_CANCELLED] Job 1 cancelled"]
)
def test_what_rows_say_is_not_believed(value: str) -> None:
    """Errors of values and of expressions hold values; so may the message of the job that they end."""
    cause = Java("org.apache.spark.SparkNumberFormatException", f"[CAST_INVALID_INPUT] The value '{value}'")
    message = f"Lost task 0.0 in stage 0.0 (TID 0) (h executor driver): {cause.getMessage()}"
    assert passing_failure(aborted(cause, message)) is None
    assert passing_failure(CapturedError(cause)) is None
    assert passing_failure(CapturedError(Java("org.apache.spark.SparkRuntimeException", value))) is None
    assert passing_failure(aborted(Java("java.io.IOException", f"{value}.csv is not a Parquet file"))) is None


def test_other_errors_are_left_alone() -> None:
    """Also those of this library, and missing files."""
    for error in (ValueError("No space left on device"), LandingError("Permission denied"), FileNotFoundError(2, "no", "x")):
        assert passing_failure(error) is None
