"""Decompresses text files in pieces of bounded size: gzip, bzip2 and Zstandard, recognised by the ending of the name."""

from __future__ import annotations

import bz2
import gzip
import io
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["CODECS", "decompress_beginning", "expansion_bound", "is_compressed", "open_decompressed"]

CODECS = (".gz", ".bz2", ".zst")
"""The endings of files that are decompressed."""
_EXPANSION_BOUNDS = {".gz": 1032, ".bz2": 2_000_000, ".zst": 1 << 16}
"""Upper bound of the bytes to which one byte expands: bzip2 packs runs of 255 twice, Zstandard has blocks of one byte."""
_BEGINNING_BYTES = 64 << 20


def is_compressed(name: str) -> bool:
    """Whether a file of that name is decompressed when it is read.

    >>> is_compressed("a.csv.zst"), is_compressed("a.csv")
    (True, False)
    """
    return name.endswith(CODECS)


def expansion_bound(name: str) -> int:
    """Return an upper bound of the bytes to which each byte of a file of that name expands."""
    return next((bound for ending, bound in _EXPANSION_BOUNDS.items() if name.endswith(ending)), 1)


def open_decompressed(raw: IO[bytes], name: str) -> IO[bytes]:
    """Return a stream of the content of an open file of that name, decompressed.

    Reading from it raises `OSError`, `EOFError` or `zlib.error` if the file is damaged.
    """
    stream: Any = raw
    if name.endswith(".gz"):
        stream = gzip.GzipFile(fileobj=raw)
    elif name.endswith(".bz2"):
        stream = bz2.BZ2File(raw)
    elif name.endswith(".zst"):
        import pyarrow as pa  # noqa: PLC0415 - only such files need it

        stream = io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd"))
    content: IO[bytes] = stream
    return content


def decompress_beginning(source: Path, target: Path) -> Path:
    """Decompress the beginning of a file, whole lines of at most 64 MB, into another file, and return its path."""
    with source.open("rb") as raw:
        content = open_decompressed(raw, source.name).read(_BEGINNING_BYTES)
    target.write_bytes(content[: content.rfind(b"\n") + 1] if len(content) == _BEGINNING_BYTES else content)
    return target
