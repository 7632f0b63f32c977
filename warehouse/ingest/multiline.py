"""CSV files whose records may have several lines (``options = { multiline = true }``), checked before Spark reads them.

One task reads such a file, from record to record. So the end of each record must be certain, and no record may be longer than
``max_record``: a stray quote would swallow the records after it. Spark also needs the characters that end a record: by default it
uses the first line break of the file, which may be within quotes. Lines that :mod:`.quotes` finds correct are skipped. From other
lines on, a record is parsed character by character, as Spark's parser does.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from warehouse.ingest.quotes import FieldSyntax, doubtful_lines, pieces, syntax_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from warehouse.catalog.model import Stream
    from warehouse.ingest.files import LandingFile

    _Text = NDArray[np.unsignedinteger[Any]]

__all__ = ["MultilineCheck", "check_multiline", "check_pieces"]

_CACHED_FILES = 50_000
_FEED, _RETURN = 10, 13
_BREAK = re.compile(r"[\r\n]")


@dataclass(frozen=True)
class MultilineCheck:
    """The result of checking a file: the line end of its records, and (reason, message) if it is not read."""

    line_end: str
    problem: tuple[str, str] | None = None


def check_multiline(stream: Stream, file: LandingFile) -> MultilineCheck:
    """Check a file; an unreadable file has no problem yet, since reading it reports the error."""
    path = stream.landing / file.path
    try:
        return _checked(path, file.size, file.mtime_ns, stream.max_record, syntax_of(stream, path))
    except (OSError, EOFError, zlib.error, ValueError):
        return MultilineCheck("\n")


@lru_cache(maxsize=_CACHED_FILES)
def _checked(path: Path, size: int, mtime_ns: int, longest: int, syntax: FieldSyntax) -> MultilineCheck:  # noqa: ARG001 - the file's identity
    return check_pieces(pieces(path, syntax), syntax, longest)


def check_pieces(texts: Iterator[_Text], syntax: FieldSyntax, longest: int) -> MultilineCheck:
    """Return the result of checking a file that is given in pieces; no record may have more than ``longest`` bytes."""
    parser = _RecordParser(syntax, longest // (2 if syntax.encoding.startswith("utf-16") else 1))
    try:
        for piece in texts:
            parser.take(piece)
        parser.finish()
    except _RefusedError as refused:
        return MultilineCheck("\n", (refused.reason, refused.message))
    return MultilineCheck(parser.line_ends.pop() if parser.line_ends else "\n")


class _RefusedError(Exception):
    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


class _RecordParser:
    """Parses the records of a file in pieces; it has the text after the last complete record, and the line ends so far."""

    def __init__(self, syntax: FieldSyntax, longest: int) -> None:
        self.line_ends: set[str] = set()
        self._syntax, self._longest = syntax, longest
        self._rest: _Text = np.empty(0, np.uint8)
        self._lines = 1

    def take(self, piece: _Text) -> None:
        """Parse the next piece.

        Raises
        ------
        _RefusedError
            When the file is not to be read.

        """
        if (piece == 0).any():
            raise _RefusedError("unreadable", "it has a byte 0, which no record over several lines may have; remove it")
        self._rest = np.concatenate((self._rest, piece)) if len(self._rest) else piece
        self._parse_records(last=False)
        if len(self._rest) > self._longest + 1:
            beginning = f"the record that begins in line {self._lines} is longer than max_record ({self._longest} bytes)"
            raise _RefusedError("record_too_long", f"{beginning}; close its quote, or raise max_record")

    def finish(self) -> None:
        """Check the end of the file; errors as of :meth:`take`."""
        self._parse_records(last=True)
        if len(self._rest):
            beginning = f"the quote of the record that begins in line {self._lines} is open until the end of the file"
            raise _RefusedError("unreadable", f"{beginning}; close it")

    def _parse_records(self, *, last: bool) -> None:
        text = self._rest
        breaks = np.flatnonzero((text == _FEED) | (text == _RETURN))
        if not last and len(text) and text[-1] == _RETURN:
            breaks = breaks[:-1]  # a line feed may follow the carriage return
        within, ended = np.zeros(len(breaks), bool), _line_ends(text)
        position = int(breaks[-1]) + 1 if len(breaks) else 0
        content, done = _RecordText(text, self._syntax, whole=last), 0
        for doubtful in doubtful_lines(text, self._syntax):
            if doubtful < done:
                continue
            before = int(np.searchsorted(breaks, doubtful))
            begin = int(breaks[before - 1]) + 1 if before else 0
            line = self._lines + int(np.searchsorted(ended, begin))
            end = content.end_of_record(begin, line)
            if end is None or (end >= position and not last):  # it is parsed again with the next piece
                position = begin
                break
            if end - begin > self._longest:
                beginning = f"the record that begins in line {line} is longer than max_record"
                raise _RefusedError("record_too_long", f"{beginning} ({self._longest} bytes); cut it, or raise max_record")
            within[before : np.searchsorted(breaks, end)] = True
            done = end
        else:
            position = len(text) if last else position
        outside = breaks[~within & (breaks < position)]
        self._note_line_ends(text, outside)
        self._lines += int(np.searchsorted(ended, position))
        self._rest = text[position:]

    def _note_line_ends(self, text: _Text, breaks: NDArray[np.int64]) -> None:
        """Note how lines end.

        Raises
        ------
        _RefusedError
            When they end in several ways.

        """
        feeds = breaks[text[breaks] == _FEED]
        returns = breaks[text[breaks] == _RETURN]
        paired = text[np.clip(returns + 1, 0, len(text) - 1)] == _FEED if len(returns) else np.zeros(0, bool)
        alone = len(feeds) - int(np.count_nonzero(paired))
        self.line_ends |= {"\r\n"} if paired.any() else set()
        self.line_ends |= {"\n"} if alone else set()
        self.line_ends |= {"\r"} if not paired.all() else set()
        if len(self.line_ends) > 1:
            ways = "its records end in several ways, with and without a carriage return"
            raise _RefusedError("unreadable", f"{ways}; end all alike")


class _RecordText:
    """A part of a file whose records are parsed character by character; ``whole``: the file ends with it."""

    def __init__(self, text: _Text, syntax: FieldSyntax, *, whole: bool) -> None:
        self._text, self._syntax, self._whole = text, syntax, whole
        self._content: str | None = None
        self._quotes = re.compile("|".join(re.escape(sign) for sign in {syntax.quote, syntax.escape} if sign) or "(?!)")
        self._field_end = re.compile(rf"[\r\n]|{re.escape(syntax.delimiter)}")

    def end_of_record(self, position: int, line: int) -> int | None:
        """Return the position of the line end that ends the record at ``position``; None if the record continues.

        Raises
        ------
        _RefusedError
            When the end is not certain.

        """
        if self._content is None:  # a character for each element of the array
            raw = self._text.tobytes()
            self._content = raw.decode("latin-1") if self._text.itemsize == 1 else raw.decode("utf-32-le", "surrogatepass")
        content, syntax = self._content, self._syntax
        if syntax.comment and content.startswith(syntax.comment, position):
            return self._line_end_at(_BREAK.search(content, position))
        while True:
            at = self._after_spaces(position) if syntax.skips_spaces else position
            if content.startswith(syntax.quote, at):
                after = self._after_quotes(at, line)
                if after is None:
                    return None
                at = after
            match = self._field_end.search(content, at)
            if match is None or match[0] in "\r\n":
                return self._line_end_at(match)
            position = match.end()

    def _line_end_at(self, match: re.Match[str] | None) -> int | None:
        if match is not None:
            return match.start()
        return len(self._text) if self._whole else None

    def _after_spaces(self, position: int) -> int:
        content = self._content or ""
        while position < len(content) and content[position] <= " " and not self._field_end.match(content, position):
            position += 1
        return position

    def _after_quotes(self, begin: int, line: int) -> int | None:
        """Return the position after the closing quote of a field and following spaces; None if the quote is open."""
        content, syntax, at = self._content or "", self._syntax, begin + 1
        while (match := self._quotes.search(content, at)) is not None:
            at = match.start()
            is_doubled = content[at + 1 : at + 2] == syntax.quote
            if content[at] == syntax.escape and (syntax.escape != syntax.quote or is_doubled):
                at += 2
                continue
            after = self._after_spaces(at + 1)
            if not self._whole and len(content) - after < len(syntax.delimiter):  # the delimiter may continue in the next piece
                return None
            if after == len(content):
                return after
            if not self._field_end.match(content, after) and _BREAK.search(content, begin, at):
                raise _RefusedError(
                    "unreadable",
                    f"the record that begins in line {line} has a text over several lines, and something stands behind its "
                    "quote: it is ambiguous where the text ends; write each quote inside it twice, or close the quote before",
                )
            return after
        return None


def _line_ends(text: _Text) -> NDArray[np.int64]:
    """Return the ends of lines, for counting: line feeds, or carriage returns if there is no line feed."""
    feeds: NDArray[np.int64] = np.flatnonzero(text == _FEED)
    return feeds if len(feeds) else np.flatnonzero(text == _RETURN)
