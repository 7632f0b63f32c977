"""Compressed text files, recognised by the ending of their name: gzip, bzip2 and Zstandard, read in pieces of bounded size."""

from __future__ import annotations

import bz2
import gzip
import io
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CODECS", "decompressed", "is_compressed", "most_expansion", "plain_beginning"]

CODECS = (".gz", ".bz2", ".zst")
"""The endings of files that are decompressed."""
_MOST = {".gz": 1032, ".bz2": 2_000_000, ".zst": 1 << 16}
"""Bytes that a byte of a file can hold at the most: bzip2 packs runs of 255 twice, Zstandard has blocks of one byte."""
_COPIED = 64 << 20


def is_compressed(name: str) -> bool:
    """Whether a file of that name is decompressed when it is read.

    >>> is_compressed("a.csv.zst"), is_compressed("a.csv")
    (True, False)
    """
    return name.endswith(CODECS)


def most_expansion(name: str) -> int:
    """Return an upper bound on the bytes that each byte of a file of that name holds."""
    return next((most for ending, most in _MOST.items() if name.endswith(ending)), 1)


def decompressed(raw: IO[bytes], name: str) -> IO[bytes]:
    """Return the content of an open file of that name; damage raises an `OSError`, `EOFError` or `zlib.error` when it is read."""
    opened: Any = raw
    if name.endswith(".gz"):
        opened = gzip.GzipFile(fileobj=raw)
    elif name.endswith(".bz2"):
        opened = bz2.BZ2File(raw)
    elif name.endswith(".zst"):
        import pyarrow as pa  # noqa: PLC0415 - only such files need it

        opened = io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd"))
    content: IO[bytes] = opened
    return content


def plain_beginning(source: Path, target: Path) -> Path:
    """Decompress the beginning of a file, whole lines of at most 64 MB, into another file, and return its path."""
    with source.open("rb") as raw:
        content = decompressed(raw, source.name).read(_COPIED)
    target.write_bytes(content[: content.rfind(b"\n") + 1] if len(content) == _COPIED else content)
    return target
