"""The clients of object stores, by scheme and bucket, and the meaning of a store's errors.

Credentials and endpoint come from environment variables with the names of the stores' own tools (``AWS_ACCESS_KEY_ID``,
``AWS_ENDPOINT_URL``, ...) or from the machine's role. The library ``object_store``, which obstore and deltalake use, finds them.
"""

from __future__ import annotations

import errno
import os
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warehouse.errors import PlatformError, StorageFailedError, StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["asking", "cache_directory", "client", "library"]


_DENIED = ("PermissionDeniedError", "UnauthenticatedError")
_TAKEN = ("AlreadyExistsError", "PreconditionError")


def library() -> Any:  # noqa: ANN401 - obstore is an extra: not installed where types are checked
    """Return the module ``obstore``.

    Raises
    ------
    PlatformError
        When obstore is not installed.

    """
    try:
        import obstore.store  # noqa: PLC0415 - local roots do without
    except ImportError as error:
        needs = "a `root` or `landing` in an object store needs more of Python"
        raise PlatformError(f"{needs}: pip install 'stream-wh[s3]'") from error
    return obstore


@lru_cache(maxsize=64)
def client(scheme: str, bucket: str) -> Any:  # noqa: ANN401 - as above
    """Return the client of a bucket.

    Raises
    ------
    PlatformError
        When the library is not installed, or the environment's settings do not lead to a store.

    """
    try:
        return library().store.from_url(f"{scheme}://{bucket}")
    except library().exceptions.BaseError as error:
        raise PlatformError(f"{scheme}://{bucket}: {_first_line(error)}; set what the store needs in the environment") from error


@contextmanager
def asking(place: object) -> Iterator[None]:
    """Turn a store's refusals into the errors of a file system, and its failures into errors of the warehouse.

    Raises
    ------
    FileNotFoundError, FileExistsError
        As for a file. FileExistsError also when a conditional put came too late.
    StorageFailedError
        When the store refuses the credentials.
    StoreBusyError
        When the store does not answer, or reports a failure.

    """
    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(errno.ENOENT, "no such object", str(place)) from None
    except library().exceptions.BaseError as error:
        kind = type(error).__name__
        if kind in _TAKEN:
            raise FileExistsError(errno.EEXIST, "the object exists, or is another than before", str(place)) from None
        if kind in _DENIED:
            raise StorageFailedError(f"{place}: {_first_line(error)}") from error
        raise StoreBusyError(f"{place}: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)[:300]


# --- where this user's copies, archives and jars are kept between commands ---


def cache_directory() -> Path:
    """Return ``$STREAM_WH_CACHE``, or ``stream-wh`` in the user's cache directory."""
    chosen = os.environ.get("STREAM_WH_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "stream-wh"
