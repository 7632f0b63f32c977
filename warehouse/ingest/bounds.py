"""The bounds of a landing file: no line longer than ``max_record`` bytes, and at most ``max_expansion`` times its size.

Spark reads a line into memory as a whole, and writes the expanded contents of a compressed file to the disk: one line of 4 GB, or
a file made to expand, would fail the job in every update. So files are checked before Spark reads them, and a file beyond the
bounds is left out with its reason. Small files need no check: each codec has a greatest expansion.
"""

from __future__ import annotations

import codecs
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING

from warehouse.catalog.codecs import expansion_bound, is_compressed, open_decompressed
from warehouse.catalog.encodings import is_wide
from warehouse.catalog.model import COLUMNAR
from warehouse.errors import FileProblem
from warehouse.ingest.dialect import is_multiline, text_encoding
from warehouse.ingest.landing import open_regular
from warehouse.ingest.multiline import check_multiline
from warehouse.ingest.whole_json import is_read_whole, whole_file_problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from typing import Any

    from warehouse.catalog.model import Stream
    from warehouse.ingest.files import LandingFile

__all__ = ["HARMLESS", "bounds_problems", "expands_too_much"]

_CHUNK = 1 << 20
HARMLESS = 64 << 20
"""Bytes that any file may expand to."""
_HARMLESS_ROWS = 1_000_000
_GZIP_WINDOW_BITS = 31
"""zlib's window bits for a stream with gzip's header."""
_CACHED_FILES = 50_000


def bounds_problems(stream: Stream, files: Sequence[LandingFile]) -> list[FileProblem]:
    """Return a problem for each CSV or JSON file that exceeds a bound of its stream; :mod:`.columnar` checks other formats."""
    if stream.format in COLUMNAR:
        return []
    whole_files = {file.path: whole_file_problem(stream, file) for file in files if is_read_whole(stream, file)}
    broken = [FileProblem(path, *problem) for path, problem in whole_files.items() if problem]
    suspects = [
        file for file in files if file.size and file.path not in whole_files and not _is_surely_within(file, stream.max_record)
    ]
    if suspects:
        broken += _line_problems(stream, suspects)
    if stream.format == "csv" and is_multiline(stream.options):
        within_bounds = {file.path for file in files} - {problem.path for problem in broken}
        pairs = ((file.path, check_multiline(stream, file).problem) for file in files if file.size and file.path in within_bounds)
        broken += [FileProblem(path, *problem) for path, problem in pairs if problem]
    return broken


def _line_problems(stream: Stream, suspects: Sequence[LandingFile]) -> list[FileProblem]:
    encoding = text_encoding(dict(stream.options)) if stream.format == "csv" else "utf-8"

    def problem_of(file: LandingFile) -> tuple[str, str] | None:
        utf_16 = encoding if is_wide(encoding) else None
        return _bounds_problem(
            stream.landing / file.path, file.size, file.mtime_ns, stream.max_record, stream.max_expansion, utf_16
        )

    with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:  # zlib lets other threads work
        problems = list(pool.map(problem_of, suspects))
    return [FileProblem(file.path, *problem) for file, problem in zip(suspects, problems, strict=True) if problem]


def expands_too_much(size: int, content: int, rows: int, most: int) -> str | None:
    """Return a message if a file of ``size`` bytes expands to too many bytes (``content``) or rows; None if it is read."""
    for count, unit, harmless in ((content, "bytes", HARMLESS), (rows, "rows", _HARMLESS_ROWS)):
        if count > harmless and count > most * size:
            return (
                f"its {size} bytes hold {count} {unit} or more, over max_expansion ({most}) times its size; "
                f"if it is meant, raise max_expansion"
            )
    return None


def _is_surely_within(file: LandingFile, longest: int) -> bool:
    return file.size * expansion_bound(file.path) <= min(longest, HARMLESS)


@lru_cache(maxsize=_CACHED_FILES)
def _bounds_problem(
    path: Path, size: int, mtime_ns: int, longest: int, most: int, utf_16: str | None  # noqa: ARG001 - the file's identity
) -> tuple[str, str] | None:
    """Return (reason, message) if a file has a line that is too long, else None; an unchanged file is checked once.

    ``utf_16`` is an encoding with two bytes for a character.
    """
    lines, total = _Lines(longest // 2 if utf_16 else longest), 0
    to_single_bytes = _one_byte_decoder(utf_16) if utf_16 else None
    try:
        for chunk in _chunks(path):
            total += len(chunk)
            if is_compressed(path.name) and (problem := expands_too_much(size, total, 0, most)):
                return "expands_too_much", problem
            if number := lines.too_long(to_single_bytes(chunk) if to_single_bytes else chunk):
                return "record_too_long", _too_long(number, longest)
    except (OSError, EOFError, zlib.error):
        return None  # the reader of the file reports the fault
    return None


def _one_byte_decoder(encoding: str) -> Callable[[bytes], bytes]:
    """Return a function that encodes each character as one byte; in UTF-16 Spark ends lines only at line feeds."""
    decode = codecs.getincrementaldecoder(encoding)("replace").decode
    return lambda chunk: decode(chunk).replace("\r", " ").encode("latin-1", "replace")


class _Lines:
    """The lines of a file that is read in pieces: the length of the current line so far, and its number."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._length_so_far = 0
        self._number = 1

    def too_long(self, chunk: bytes) -> int | None:
        """Return the number of the first line that is too long, if the next piece shows one; either line break ends a line."""
        text = chunk.replace(b"\r", b"\n") if b"\r" in chunk else chunk
        position = 0
        while (window := position + self._longest - self._length_so_far + 1) <= len(text):
            end = text.rfind(b"\n", position, window)
            if end < 0:
                return self._number + _line_end_count(chunk[:position])
            position, self._length_so_far = end + 1, 0
        last = text.rfind(b"\n", position)
        self._length_so_far = len(text) - 1 - last if last >= 0 else self._length_so_far + len(text) - position
        self._number += _line_end_count(chunk)
        return None


def _line_end_count(chunk: bytes) -> int:
    return chunk.count(b"\n") or chunk.count(b"\r")


def _too_long(record: int, longest: int) -> str:
    return f"line {record} is longer than max_record ({longest} bytes); cut it, or raise max_record"


def _chunks(path: Path) -> Iterator[bytes]:
    with open_regular(path) as stream:
        if path.name.endswith(".gz"):  # faster than the readers of other formats
            yield from _inflated(stream)
        else:
            content = open_decompressed(stream, path.name)
            yield from iter(lambda: content.read(_CHUNK), b"")


def _inflated(stream: Any) -> Iterator[bytes]:  # noqa: ANN401 - a binary stream
    """Yield the decompressed bytes of a gzip stream with any number of members, in pieces of bounded size."""
    rest = b""
    while rest or (rest := stream.read(_CHUNK)):
        member = zlib.decompressobj(_GZIP_WINDOW_BITS)
        while not member.eof:
            piece = member.decompress(rest, _CHUNK)
            rest = member.unconsumed_tail or (b"" if member.eof else stream.read(_CHUNK))
            if piece:
                yield piece
            if not rest and not member.eof and not piece:
                raise EOFError("the file ends inside a gzip member")
        rest = (member.unused_data or b"").lstrip(b"\0")
