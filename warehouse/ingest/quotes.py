"""Finds lines of a delimited file that leave a quote open, by arrays of characters.

If a quote is open at the end of its line, Spark's reader uses the text after it as the value, in the last field without an error.
Most files have no such line, and most lines are quickly recognised as correct. A line is *plain* if no quote begins a field,
*strict* if its quotes open after a delimiter, close before one, and are doubled in between. For other lines :mod:`.delimited`
uses Spark's parser itself.
"""

from __future__ import annotations

import codecs
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from warehouse.catalog.codecs import open_decompressed
from warehouse.ingest.dialect import delimiter_of, reader_options, text_encoding
from warehouse.ingest.headers import file_encoding
from warehouse.ingest.landing import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from warehouse.catalog.model import Stream
    from warehouse.ingest.files import LandingFile

__all__ = ["FieldSyntax", "doubtful_lines", "has_doubtful_lines", "pieces", "syntax_of"]

_CHUNK = 4 << 20
_CACHED_FILES = 50_000
_FEED, _RETURN, _SPACE = 10, 13, 32
_OVERLAPPING = frozenset({"shift_jis", "cp932", "cp949", "gbk", "gb18030", "big5"})
"""Encodings in which a byte of ASCII may be the second half of another character."""


@dataclass(frozen=True)
class FieldSyntax:
    """The characters that separate and quote fields; an empty text means that there is none.

    ``skips_spaces``: spaces before a quote are skipped.
    """

    quote: str
    escape: str
    delimiter: str
    comment: str
    skips_spaces: bool
    encoding: str

    @property
    def is_decoded(self) -> bool:
        """Whether these characters can only be found in decoded text."""
        ascii_signs = (self.quote + self.escape + self.delimiter + self.comment).isascii()
        return self.encoding.startswith("utf-16") or self.encoding in _OVERLAPPING or not ascii_signs


def syntax_of(stream: Stream, path: Path) -> FieldSyntax:
    """Return the syntax of a file of a stream.

    Raises
    ------
    OSError, EOFError, zlib.error, ValueError
        When the encoding of the file cannot be determined.

    """
    options = {key.lower(): value for key, value in reader_options(stream).items()}
    quote = options.get("quote", '"')
    skips_spaces = options.get("ignoreleadingwhitespace", "false").lower() == "true"
    encoding = file_encoding(path, dict(stream.options)) or text_encoding(dict(stream.options))
    return FieldSyntax(
        quote, options.get("escape", quote), delimiter_of(options), options.get("comment", ""), skips_spaces, encoding
    )


def has_doubtful_lines(stream: Stream, file: LandingFile) -> bool:
    """Whether a file has a line that may leave a quote open; False for an unreadable file."""
    try:
        syntax = syntax_of(stream, stream.landing / file.path)
        return bool(syntax.quote) and _has_doubtful_lines(stream.landing / file.path, file.size, file.mtime_ns, syntax)
    except (OSError, EOFError, zlib.error, ValueError):
        return False  # the reader of the file reports the fault


@lru_cache(maxsize=_CACHED_FILES)
def _has_doubtful_lines(path: Path, size: int, mtime_ns: int, syntax: FieldSyntax) -> bool:  # noqa: ARG001 - the file's identity
    rest: NDArray[np.unsignedinteger[Any]] = np.empty(0, np.uint8)
    for piece in pieces(path, syntax):
        text = np.concatenate((rest, piece)) if len(rest) else piece
        ends = np.flatnonzero((text == _FEED) | (text == _RETURN))
        complete = int(ends[-1]) + 1 if len(ends) else 0
        if len(doubtful_lines(text[:complete], syntax)):
            return True
        rest = text[complete:]
    return len(doubtful_lines(rest, syntax)) > 0


def pieces(path: Path, syntax: FieldSyntax) -> Iterator[NDArray[np.unsignedinteger[Any]]]:
    """Yield a file in pieces of numbers: its bytes, or its code points if it must be decoded.

    A byte order mark is left out.
    """
    first = True
    with open_regular(path) as raw:
        content: IO[bytes] = open_decompressed(raw, path.name)
        decode = codecs.getincrementaldecoder(syntax.encoding)("replace").decode
        while chunk := content.read(_CHUNK):
            if syntax.is_decoded:
                text = decode(chunk)
                text = text.removeprefix("\ufeff") if first else text
                yield np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
            else:
                yield np.frombuffer(chunk.removeprefix(codecs.BOM_UTF8) if first else chunk, np.uint8)
            first = False


def doubtful_lines(text: NDArray[np.unsignedinteger[Any]], syntax: FieldSyntax) -> NDArray[np.int64]:
    r"""Return the position of the first quote of each line with quotes that is neither plain nor strict.

    >>> syntax = FieldSyntax('"', '"', ",", "", False, "utf-8")
    >>> lines = '1,"a,b"\n5" x,y\n1,"open\n'
    >>> [int(position) for position in doubtful_lines(np.frombuffer(lines.encode(), np.uint8), syntax)]
    [17]
    """
    positions = np.flatnonzero(text == ord(syntax.quote)) if len(text) else np.empty(0, np.int64)
    if not len(positions):
        return positions
    ends = np.flatnonzero((text == _FEED) | (text == _RETURN))
    lines = np.searchsorted(ends, positions)
    firsts = np.flatnonzero(np.concatenate(([True], lines[1:] != lines[:-1])))
    counts = np.diff(np.concatenate((firsts, [len(positions)])))
    opens = (np.arange(len(positions)) - np.repeat(firsts, counts)) % 2 == 0
    begins = _is_line_end(text, positions - 1) | _has_text_at(text, positions - len(syntax.delimiter), syntax.delimiter)
    closes = _is_line_end(text, positions + 1) | _has_text_at(text, positions + 1, syntax.delimiter)
    if syntax.escape == syntax.quote:
        doubled = np.diff(positions) == 1
        is_strict = np.where(
            opens,
            begins | np.concatenate(([False], doubled)),
            closes | np.concatenate((doubled, [False])),
        )
    else:
        escaped = (
            _has_text_at(text, positions - len(syntax.escape), syntax.escape) if syntax.escape else np.zeros(len(positions), bool)
        )
        is_strict = np.where(opens, begins, closes & ~escaped)
    if syntax.skips_spaces:
        begins |= text[np.maximum(positions - 1, 0)] <= _SPACE
    strict = np.logical_and.reduceat(is_strict, firsts) & (counts % 2 == 0)
    plain = ~np.logical_or.reduceat(begins, firsts)
    doubtful: NDArray[np.int64] = positions[firsts[~(strict | plain)]]
    return doubtful


def _is_line_end(text: NDArray[np.unsignedinteger[Any]], positions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each position whether a line ends there; every position outside the text is a line end."""
    inside = (positions >= 0) & (positions < len(text))
    characters = text[np.clip(positions, 0, len(text) - 1)]
    ends_line: NDArray[np.bool_] = ~inside | (characters == _FEED) | (characters == _RETURN)
    return ends_line


def _has_text_at(text: NDArray[np.unsignedinteger[Any]], positions: NDArray[np.int64], characters: str) -> NDArray[np.bool_]:
    """Return for each position whether the text has the characters there."""
    matches = (positions >= 0) & (positions + len(characters) <= len(text))
    for number, character in enumerate(characters):
        matches &= text[np.clip(positions + number, 0, len(text) - 1)] == ord(character)
    return matches
