"""What ``stream-wh`` writes to standard error, as lines of a task's log: with ``--log-format json`` one object a line."""

from __future__ import annotations

import json
import logging
from typing import NamedTuple

__all__ = ["AS_JSON", "Message", "message_of"]

AS_JSON = {"STREAM_WH_LOG_FORMAT": "json"}
"""Environment in which the command tells each step of an update, with its level, also where nobody watches a terminal."""
_LEVELS = {"debug": logging.DEBUG, "warning": logging.WARNING, "error": logging.ERROR, "critical": logging.ERROR}


class Message(NamedTuple):
    """A message and its level, one of :mod:`logging`."""

    level: int
    text: str


def message_of(line: str) -> Message:
    """Return a line's message; one that is no object of the command's log is its own message.

    >>> message_of('{"level": "warning", "message": "max_lifetime was raised"}')
    Message(level=30, text='max_lifetime was raised')
    >>> message_of("Killed")
    Message(level=20, text='Killed')
    """
    if line.startswith("{"):
        try:
            record = json.loads(line)
        except ValueError:
            return Message(logging.INFO, line)
        if isinstance(record, dict) and "message" in record:
            return Message(_LEVELS.get(str(record.get("level")), logging.INFO), str(record["message"]))
    return Message(logging.INFO, line)
