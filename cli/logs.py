"""The messages of a command on standard error: text for people, or one JSON object a line for machines.

Text has only the messages of the command. JSON also has every log record of the library, and the lines that Spark writes to its
standard error. Each object has ``time``, ``level``, ``logger`` and ``message``, and the fields of the record.
"""

from __future__ import annotations

import logging
import os
import sys
import traceback
from typing import TYPE_CHECKING

import click
import msgspec

from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FORMATS", "JsonFormatter", "configure", "in_json", "write_message"]

FORMATS = ("text", "json")
VARIABLE = "STREAM_WH_LOG_FORMAT"
_LOGGER = logging.getLogger("stream-wh")
_OPTION = "--log-format"


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON; ``fields`` of the record become members of the object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        entry: dict[str, object] = {
            "time": format_instant(int(record.created * 1_000_000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields: Mapping[str, object] = getattr(record, "fields", {})
        entry |= {name: value for name, value in fields.items() if name not in entry}
        if record.exc_info:
            entry["traceback"] = "".join(traceback.format_exception(*record.exc_info))
        return msgspec.json.encode(entry, enc_hook=str).decode()


class _Handler(logging.StreamHandler):  # type: ignore[type-arg] # the stream is looked up again: tests replace it
    """Writes to the current standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        self.stream = sys.stderr
        super().emit(record)


def configure(arguments: list[str]) -> None:
    """Set the log format by the arguments, which click may not be able to parse, or else by the environment."""
    chosen = os.environ.get(VARIABLE, "text")
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=False):
        if argument == _OPTION:
            chosen = following
        elif argument.startswith(_OPTION + "="):
            chosen = argument.removeprefix(_OPTION + "=")
    root = logging.getLogger()
    for former in [handler for handler in root.handlers if isinstance(handler, _Handler)]:
        root.removeHandler(former)
        root.setLevel(logging.WARNING)
        logging.captureWarnings(capture=False)
    if chosen == "json":
        handler = _Handler()
        handler.setFormatter(JsonFormatter())
        root.addHandler(handler)
        root.setLevel(logging.INFO)
        logging.captureWarnings(capture=True)


def in_json() -> bool:
    """Return whether standard error has JSON lines for programs."""
    return any(isinstance(handler, _Handler) for handler in logging.getLogger().handlers)


def write_message(text: str, level: int = logging.INFO, fields: Mapping[str, object] | None = None) -> None:
    """Write a message to standard error, as a line or as a JSON object; a closed standard error is ignored."""
    if in_json():
        _LOGGER.log(level, click.unstyle(text), extra={"fields": dict(fields or {})})
    else:
        click.echo(text, file=sys.stderr, color=True)
