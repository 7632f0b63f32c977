"""Sizes as they are written in ``warehouse.toml``, in bytes, and the bounds of a query that holds text of the user's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from warehouse.time import MINUTE, parse_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LARGEST", "SqlBounds", "parse_size"]

LARGEST = "1TB"
_UNITS = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_WRITTEN = re.compile(r"([0-9]{1,15})([KMGT]i?B)")


def parse_size(text: object) -> int:
    """Return the bytes of ``64KiB``, ``16MB``, ``2GB``: decimal units, with an i binary ones.

    Raises
    ------
    ValueError
        When it is no such text, or less than 1 KB, or more than 1 TB.

    >>> parse_size("16MB"), parse_size("1KiB")
    (16000000, 1024)
    """
    match = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
    size = int(match[1]) * _UNITS[match[2]] if match else 0
    if not _UNITS["KB"] <= size <= _UNITS["TB"]:
        raise ValueError(f"{text!r} is no size")
    return size


@dataclass(frozen=True)
class SqlBounds:
    """The limits of one query of ``sql``, or of a scan with a condition; 0 microseconds: no time limit.

    ``memory`` bounds the bytes of main memory, ``spill`` the bytes of files in the temporary directory.
    """

    memory: int = 2 * 10**9
    spill: int = 10 * 10**9
    timeout: int = 10 * MINUTE

    @classmethod
    def of(cls, section: Mapping[str, object]) -> Self:
        """Return the bounds of a ``[sql]`` table that was checked when the newest epoch was made."""
        sizes = {key: parse_size(section[key]) for key in ("memory", "spill") if key in section}
        timeout = section.get("timeout")
        return cls(**sizes, **({"timeout": parse_duration(timeout)} if isinstance(timeout, str) else {}))
