"""Makes text from data safe on a terminal: control characters and bidirectional overrides are shown as escapes."""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["is_terminal", "json_visible", "lines_visible", "styled", "terminal_width", "visible", "wrapped"]

_UNSAFE = "\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
_ANY = re.compile(f"[{_UNSAFE}]")
_ANY_BUT_LINES = re.compile(f"(?!\t|\r?\n)[{_UNSAFE}]")
_COMMAND = re.compile("`[^`]*`")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_COLORS = {"red": "31", "yellow": "33", "green": "32", "dim": "2", "bold": "1"}


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    number = ord(character)
    return _SHORT.get(character) or (f"\\x{number:02x}" if number <= 0xFF else f"\\u{number:04x}")  # noqa: PLR2004


def _escape_json(match: re.Match[str]) -> str:
    return f"\\u{ord(match.group()):04x}"


def visible(text: str) -> str:
    r"""Return the text as one line without control characters that act on a terminal.

    >>> print(visible("a\x1b[31mb\nc"))
    a\x1b[31mb\nc
    """
    return _ANY.sub(_escape, text)


def lines_visible(text: str) -> str:
    """Return the text without control characters that act on a terminal, except line breaks and tabs."""
    return _ANY_BUT_LINES.sub(_escape, text)


def json_visible(text: str) -> str:
    """Return JSON text of the same value without control characters that act on a terminal."""
    return _ANY_BUT_LINES.sub(_escape_json, text)


def terminal_width() -> int:
    """Return how many letters fit a line of the terminal."""
    return shutil.get_terminal_size().columns


def wrapped(line: str, width: int) -> str:
    """Return a line wrapped at a width, with later lines indented; a command in backticks is not split.

    >>> print(wrapped("  flights: 26% were rejected; see `stream-wh rejected flights`", 40))
      flights: 26% were rejected; see
        `stream-wh rejected flights`
    """
    if len(line) <= width:
        return line
    margin = line[: len(line) - len(line.lstrip())]
    unsplit = _COMMAND.sub(lambda match: match[0].replace(" ", "\0"), line)
    wrapper = textwrap.TextWrapper(
        width, initial_indent=margin, subsequent_indent=f"{margin}  ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(wrapper.wrap(unsplit.strip())).replace("\0", " ")


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal, which a person reads."""
    ask: Callable[[], bool] | None = getattr(stream, "isatty", None)
    try:
        return bool(ask and ask())
    except ValueError:  # a closed stream
        return False


def styled(text: str, style: str, stream: TextIO) -> str:
    """Return the text in a style if the stream is a terminal and ``NO_COLOR`` is not set."""
    if not is_terminal(stream) or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_COLORS[style]}m{text}\x1b[0m"
