"""Finds data in a bucket of S3 that listings do not show: former versions of objects, and parts of unfinished uploads.

The requests go through the client of Spark's file system for S3, with its credentials, endpoint and retries. Credentials may
forbid them (``s3:GetBucketVersioning``, ``s3:ListBucketMultipartUploads``, ``s3:AbortMultipartUpload``): then the answer is
unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from py4j.protocol import Py4JJavaError

from warehouse.errors import StoreBusyError
from warehouse.objects.path import object_path

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession



__all__ = ["Versions", "abort_uploads", "former_versions"]

Versions = Literal["none", "kept", "unknown"]
_DENIED = 403
_MODEL = "software.amazon.awssdk.services.s3.model"


def former_versions(session: SparkSession, root: Path) -> Versions:
    """Return whether a bucket keeps former versions of objects.

    A bucket with suspended versioning counts, too: it still has earlier versions.

    Raises
    ------
    StoreBusyError
        When the store does not answer.

    """
    try:
        request = _request(session, "GetBucketVersioning").bucket(root.parts[1]).build()
        status = _client(session, root).getBucketVersioning(request).statusAsString()
    except Py4JJavaError as error:
        _unless_denied(root, error)
        return "unknown"
    return "none" if status is None else "kept"


def abort_uploads(session: SparkSession, root: Path) -> int | None:
    """Abort the uploads under a root that were begun and never completed, and return how many; None if that is not permitted.

    The caller is the root's only writer.

    Raises
    ------
    StoreBusyError
        When the store does not answer.

    """
    key = object_path(root).key
    bucket, prefix = root.parts[1], f"{key}/" if key else ""
    try:
        client = _client(session, root)
        request = _request(session, "ListMultipartUploads").bucket(bucket).prefix(prefix).build()
        uploads = list(client.listMultipartUploadsPaginator(request).uploads().iterator())
        for upload in uploads:
            abort = _request(session, "AbortMultipartUpload").bucket(bucket).key(upload.key()).uploadId(upload.uploadId())
            client.abortMultipartUpload(abort.build())
    except Py4JJavaError as error:
        _unless_denied(root, error)
        return None
    return len(uploads)


def _client(session: SparkSession, root: Path) -> Any:  # noqa: ANN401 - Java's S3Client
    inner: Any = session  # the gateway is the only way to Hadoop's file system
    files = inner._jvm.org.apache.hadoop.fs.Path(str(root)).getFileSystem(inner._jsc.hadoopConfiguration())  # noqa: SLF001
    return files.getS3AInternals().getAmazonS3Client("stream-wh")


def _request(session: SparkSession, name: str) -> Any:  # noqa: ANN401 - Java's builder
    kind: Any = session._jvm  # noqa: SLF001 - as above
    for part in (*_MODEL.split("."), f"{name}Request"):
        kind = getattr(kind, part)
    return kind.builder()


def _unless_denied(root: Path, error: Py4JJavaError) -> None:
    cause = error.java_exception
    if not hasattr(cause, "statusCode") or cause.statusCode() != _DENIED:
        raise StoreBusyError(f"{root}: {cause.toString()[:300]}") from error
