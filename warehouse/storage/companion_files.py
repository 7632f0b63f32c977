"""What stands beside a data file and leaves with it: Hadoop's sum (``.NAME.crc``), the summary of its keys (``.NAME.keys``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pathlib import PurePath

    _Path = TypeVar("_Path", bound=PurePath)

__all__ = ["SUMMARY", "beside", "data_file_of"]

SUMMARY = ".keys"
_ENDINGS = (".crc", SUMMARY)


def beside(file: _Path) -> tuple[_Path, ...]:
    """Return the paths that may stand beside a data file.

    >>> from pathlib import PurePath
    >>> [path.as_posix() for path in beside(PurePath("sub_index=1/a.parquet"))]
    ['sub_index=1/.a.parquet.crc', 'sub_index=1/.a.parquet.keys']
    """
    return tuple(file.with_name(f".{file.name}{ending}") for ending in _ENDINGS)


def data_file_of(path: _Path) -> _Path | None:
    """Return the data file that a path stands beside; None: it is a file of its own.

    >>> from pathlib import PurePath
    >>> data_file_of(PurePath("sub_index=1/.a.parquet.keys")), data_file_of(PurePath("sub_index=1/a.parquet"))
    (PurePosixPath('sub_index=1/a.parquet'), None)
    """
    ending = next((each for each in _ENDINGS if path.name.startswith(".") and path.name.endswith(each)), None)
    return None if ending is None else path.with_name(path.name[1 : -len(ending)])
