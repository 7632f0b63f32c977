"""Erases data of a root in an object store that listings do not show: former versions, parts of uploads, and local copies.

A deleted object is gone only if its bucket keeps no former versions. Reading the remaining objects cannot prove this, so the
bucket's setting is read before anything is erased, and again for the receipt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from warehouse.errors import UsageError
from warehouse.storage.copies import forget_copies
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["StoreReceipt", "clear_store", "require_no_versions"]

_NOT_ASKED = (
    "the credentials do not permit to ask whether the bucket keeps former versions (s3:GetBucketVersioning): if it does, "
    "the rows are in them"
)
_NOT_LISTED = (
    "the credentials do not permit to abort uploads that never ended (s3:ListBucketMultipartUploads, s3:AbortMultipartUpload): "
    "parts of them may hold rows until a rule of the bucket aborts them"
)
_KEPT = "the bucket keeps former versions of its objects by now: the rows are in them until they are deleted"


@dataclass(frozen=True)
class StoreReceipt:
    """The results for former versions, uploads and copies; ``unproved`` is a text about the parts that cannot be proved.

    ``uploads_aborted`` is None if the credentials do not permit it. ``copies_removed`` are files in the cache of the user who
    erased; copies of other users and machines are theirs.
    """

    former_versions: Literal["none", "kept", "unknown"]
    uploads_aborted: int | None
    copies_removed: int
    unproved: tuple[str, ...] = ()


def require_no_versions(root: Path, spark: Callable[[], SparkSession]) -> None:
    """Refuse to erase if deleted objects are known to stay.

    Raises
    ------
    UsageError
        When the bucket keeps, or has kept, former versions of its objects, or it is no bucket of S3.

    """
    if not store_of(root).keeps_deleted:
        return
    if root.parts[0] != "s3:":
        raise UsageError(
            f"rows cannot be erased under {root}: what this kind of store keeps of deleted objects is not known here; copy the "
            f"warehouse to a disk or to S3, and erase there"
        )
    from warehouse.storage.bucket import former_versions  # noqa: PLC0415 - it takes Spark

    if former_versions(spark(), root) == "kept":
        raise UsageError(
            f"rows cannot be erased under {root}: the bucket keeps former versions of its objects, or has kept them until "
            f"versioning was suspended, so what is deleted stays; copy the warehouse to a bucket that never kept versions, erase "
            f"there, and delete the versions here"
        )


def clear_store(root: Path, spark: Callable[[], SparkSession]) -> StoreReceipt | None:
    """Remove hidden data of the store and local copies, and return the facts; None for a local root."""
    if not store_of(root).keeps_deleted:
        return None
    from warehouse.storage.bucket import abort_uploads, former_versions  # noqa: PLC0415 - they take Spark

    session = spark()
    versions, uploads = former_versions(session, root), abort_uploads(session, root)
    unproved = {"unknown": (_NOT_ASKED,), "kept": (_KEPT,), "none": ()}[versions]
    return StoreReceipt(versions, uploads, forget_copies(root), (*unproved, *((_NOT_LISTED,) if uploads is None else ())))
