"""Verifies the bytes of data files: the name of each file has a checksum of them.

    name = <stem>.sum-<start>-<xxh3_128 of the bytes from start to the end>.parquet

The name is in the commit's ``add`` action, and stays there when logs are cut, merged into checkpoints or copied, so a file can be
verified in any place, without its log. The checksum covers the whole file (start 0) if this machine wrote it. If executors of a
cluster wrote it, the checksum covers the tail after the last page (Bloom filters, indexes, footer), since otherwise the driver
would read all files back over the network; the pages have their own checksums (CRC-32), but page headers have none. Files without
a checksum (of earlier builds, in an object store) are checked by their pages' checksums if they have them.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import xxhash

from warehouse.errors import DamagedFileError, MissingPartError
from warehouse.objects.path import parquet_source
from warehouse.storage.side_by_side import each
from warehouse.storage.store import store_of
from warehouse.storage.tables import FOLDERS, LIVE_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path, PurePath

    from typing_extensions import Buffer

__all__ = [
    "damage",
    "damaged_of",
    "fingerprint",
    "has_sum",
    "name_of",
    "naming_damage",
    "require_whole",
    "sum_of_name",
    "summed_name",
    "tail_start",
    "with_sums",
]

_SUM = re.compile(r"\.sum-(\d+)-([0-9a-f]{32})\.parquet$")
_PIECE = 1 << 20
_KINDS = frozenset((*FOLDERS, LIVE_FOLDER))
_READ_AGAIN = 4 << 30
"""Bytes that are read again after an error that names no file."""


def fingerprint(file: Path, start: int = 0) -> str:
    """Return the sum of a file's bytes from an offset to its end, in hexadecimal."""
    checksum = xxhash.xxh3_128()
    with file.open("rb") as stream:
        stream.seek(start)
        while piece := stream.read(_PIECE):
            checksum.update(piece)
    return checksum.hexdigest()


def tail_start(file: Path) -> int:
    """Return where the last page of a Parquet file ends."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import, and those who read never need it

    footer = pq.read_metadata(file)
    ends = [len("PAR1")]
    for group in range(footer.num_row_groups):
        for column in range(footer.num_columns):
            chunk = footer.row_group(group).column(column)
            begin = min(chunk.data_page_offset, chunk.dictionary_page_offset or chunk.data_page_offset)
            ends.append(begin + chunk.total_compressed_size)
    return max(ends)


def summed_name(file: Path, *, whole: bool) -> str:
    """Return a file's name with its sum, which replaces an earlier sum."""
    start = 0 if whole else tail_start(file)
    return f"{_SUM.sub('.parquet', file.name).removesuffix('.parquet')}.sum-{start}-{fingerprint(file, start)}.parquet"


def name_of(name: str, content: Buffer) -> str:
    """Return the name that a file of this content gets, which is written as a whole.

    >>> name_of("part-0.parquet", b"abc")
    'part-0.sum-0-06b05ab6733a618578af5f94892f3950.parquet'
    """
    return f"{name.removesuffix('.parquet')}.sum-0-{xxhash.xxh3_128_hexdigest(content)}.parquet"


def with_sums(directory: Path, files: Iterable[PurePath], *, whole: bool) -> None:
    """Rename files (relative to ``directory``) that were just written, so that their names have their sums."""

    def name(file: PurePath) -> None:
        path = directory / file
        path.rename(path.with_name(summed_name(path, whole=whole)))

    each(name, files)


def sum_of_name(name: str) -> str:
    """Return the part of a file's name with the sum of its bytes, for another name of the same bytes; empty: it has no sum.

    >>> sum_of_name("part-0.parquet"), sum_of_name("part-0.sum-0-" + "a" * 32 + ".parquet")
    ('', '.sum-0-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')
    """
    match = _SUM.search(name)
    return match[0].removesuffix(".parquet") if match else ""


def has_sum(name: str) -> bool:
    """Whether a file's name has the sum of its bytes.

    >>> has_sum("part-0.sum-0-" + "a" * 32 + ".parquet"), has_sum("part-0.parquet")
    (True, False)
    """
    return _SUM.search(name) is not None


def damage(file: Path, *, pages: bool = True) -> str | None:
    """Return the damage of a data file, or None.

    Parameters
    ----------
    file
        A data file.
    pages
        Whether to verify each page that has a checksum, in a file whose sum does not cover the pages.

    Raises
    ------
    FileNotFoundError
        When the file does not exist.

    """
    match = _SUM.search(file.name)
    if match is not None and store_of(file).cheap_requests:
        if file.stat().st_size <= int(match[1]):
            return "it is cut short"
        if fingerprint(file, int(match[1])) != match[2]:
            return "its bytes changed after it was written"
        if match[1] == "0":
            return None
    return _damaged_pages(file) if pages else None


def _damaged_pages(file: Path) -> str | None:
    import pyarrow as pa  # noqa: PLC0415 - as above
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    try:
        with pq.ParquetFile(parquet_source(file), page_checksum_verification=True) as parquet:
            for _ in parquet.iter_batches(batch_size=8192):
                pass
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        return next(iter(str(error).strip().splitlines()), type(error).__name__)
    return None


@contextmanager
def naming_damage(file: Path) -> Iterator[None]:
    """Turn PyArrow's error about a file that it cannot read into an error that names the file.

    Raises
    ------
    DamagedFileError
        When it cannot be read as it was written.

    """
    import pyarrow as pa  # noqa: PLC0415 - as above

    try:
        yield
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise DamagedFileError(str(file), reason, _table_of(file)) from error


def require_whole(files: Iterable[Path]) -> None:
    """Verify files before their rows are written to other files, so that damage does not get a new sum.

    Raises
    ------
    DamagedFileError
        When one of them is damaged.
    MissingPartError
        When one of them is missing.

    """
    local = [file for file in files if store_of(file).cheap_requests]
    if not local:
        return
    try:
        problems = each(damage, local)
    except FileNotFoundError as error:
        raise MissingPartError(f"{error.filename}: the file is not there; restore it from a copy, then try again") from error
    for file, problem in zip(local, problems, strict=True):
        if problem is not None:
            raise DamagedFileError(str(file), problem, _table_of(file))


def damaged_of(files: Iterable[Path], said: str, table: str | None = None) -> DamagedFileError | None:
    """Return the damaged file behind an engine's error: a file that the error names, else any of the files.

    Parameters
    ----------
    files
        The files that the engine read, on this machine.
    said
        The engine's message.
    table
        The table of the files, if they belong to one.

    """
    local = [file for file in files if store_of(file).cheap_requests]
    named = [file for file in local if file.name in said]
    for file in named or _few_enough(local):
        try:
            problem = damage(file)
        except FileNotFoundError:
            continue
        if problem is not None:
            return DamagedFileError(str(file), problem, table or _table_of(file))
    return None


def _few_enough(files: Iterable[Path]) -> list[Path]:
    """Return the first files that together have at most ``_READ_AGAIN`` bytes: the query itself may have caused the error."""
    chosen, size = [], 0
    for file in files:
        try:
            size += file.stat().st_size
        except FileNotFoundError:
            continue
        if size > _READ_AGAIN:
            break
        chosen.append(file)
    return chosen


def _table_of(file: Path) -> str | None:
    """The table of a file: the directory below `tables`, `deferred`, `rejected` or `restored`."""
    parts = file.parts
    return next((parts[number + 1] for number in range(len(parts) - 2, 0, -1) if parts[number] in _KINDS), None)
