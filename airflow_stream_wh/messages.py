"""Turns the standard error of ``stream-wh`` into lines of a task's log; ``--log-format json`` writes one object a line."""

from __future__ import annotations

import json
import logging
from typing import NamedTuple

__all__ = ["AS_JSON", "Message", "message_of"]

AS_JSON = {"STREAM_WH_LOG_FORMAT": "json"}
"""The environment in which the command writes a message with a level for each step of an update, without a terminal too."""
_LEVELS = {"debug": logging.DEBUG, "warning": logging.WARNING, "error": logging.ERROR, "critical": logging.ERROR}


class Message(NamedTuple):
    """A message and its level, one of :mod:`logging`."""

    level: int
    text: str


def message_of(line: str) -> Message:
    """Return the message of a line; a line that is no JSON object of the command's log is the message itself.

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
