"""The companions of a data file, deleted together with it: Hadoop's sum (``.NAME.crc``), a summary of keys (``.NAME.keys``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pathlib import PurePath

    _Path = TypeVar("_Path", bound=PurePath)

__all__ = ["SUMMARY", "companions", "data_file_of"]

SUMMARY = ".keys"
_ENDINGS = (".crc", SUMMARY)


def companions(file: _Path) -> tuple[_Path, ...]:
    """Return the paths that the companions of a data file have; not every data file has all of them.

    >>> from pathlib import PurePath
    >>> [path.as_posix() for path in companions(PurePath("sub_index=1/a.parquet"))]
    ['sub_index=1/.a.parquet.crc', 'sub_index=1/.a.parquet.keys']
    """
    return tuple(file.with_name(f".{file.name}{ending}") for ending in _ENDINGS)


def data_file_of(path: _Path) -> _Path | None:
    """Return the data file whose companion a path is; None if it is no companion.

    >>> from pathlib import PurePath
    >>> data_file_of(PurePath("sub_index=1/.a.parquet.keys")), data_file_of(PurePath("sub_index=1/a.parquet"))
    (PurePosixPath('sub_index=1/a.parquet'), None)
    """
    ending = next((suffix for suffix in _ENDINGS if path.name.startswith(".") and path.name.endswith(suffix)), None)
    return None if ending is None else path.with_name(path.name[1 : -len(ending)])
