"""The archive of a stream: its name, its columns, and the reasons why there cannot be one.

Invariant: ``NAME_archive`` holds the user's columns of the rows that expired from table ``NAME`` while ``on_expiry = "archive"``
was declared, with their expiration time as ``expired_at``. Its rows never expire.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from warehouse.catalog.spelling import FaultError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["EXPIRED_AT", "archive_name", "archive_name_faults"]

EXPIRED_AT = "expired_at"
"""The column that an archive has in addition to the columns of its stream: the time at which the row expired."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")


def archive_name(stream: str) -> str:
    """Return the name of a stream's archive.

    >>> archive_name("flights")
    'flights_archive'
    """
    return f"{stream}_archive"


def archive_name_faults(archived: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, FaultError]]:
    """Yield each stream whose archive cannot have its name: a declared table has this name, or it is too long."""
    for name in archived:
        archive = archive_name(name)
        if archive in names:
            yield name, FaultError(f'"archive", whose table "{archive}" is declared', "another name for one of them")
        elif not _NAME.fullmatch(archive):
            yield name, FaultError(f'"archive", whose table would be "{archive}"', "a stream's name of at most 55 letters")
