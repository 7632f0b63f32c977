"""Estimates from the sizes of landing files: about how many rows they have, and whether the driver can surely hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.catalog.codecs import expansion_bound, is_compressed
from warehouse.catalog.model import COLUMNAR
from warehouse.limits import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warehouse.ingest.files import LandingFile

__all__ = ["CODE_GENERATION_ROWS", "estimated_rows", "small_enough_for_driver"]

CODE_GENERATION_ROWS = 10_000
"""From this number of rows on Spark's code generation saves time: each row is classified by some hundred expressions."""
_BYTES_OF_A_LINE = 64
_COMPRESSED_TO = 8
"""About the bytes of a line after compression such as gzip, or of a row in Parquet."""
_PACKED = 4
"""Compressed files for the driver may expand to this multiple of the bound of plain files; they hardly ever do."""


def small_enough_for_driver(form: str, files: Sequence[LandingFile]) -> bool:
    """Whether landing files of a format certainly have few enough bytes for the driver, also when they are decompressed."""
    limit = limits().driver_bytes
    plain = sum(file.size for file in files if not is_compressed(file.path))
    packed = sum(file.size * expansion_bound(file.path) for file in files if is_compressed(file.path))
    return form not in COLUMNAR and plain <= limit and packed <= _PACKED * limit


def estimated_rows(form: str, files: Sequence[LandingFile]) -> int:
    """Return about how many rows landing files of a format have."""
    packed = form in COLUMNAR
    return sum(file.size // (_COMPRESSED_TO if packed or is_compressed(file.path) else _BYTES_OF_A_LINE) for file in files)
