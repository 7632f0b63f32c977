"""Turns an exception into an exit code and one text, or with ``-o json`` one JSON object, on standard error."""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

import click
import msgspec

from warehouse.cli.logs import in_json, write_message
from warehouse.cli.output.visible import lines_visible, styled
from warehouse.errors import Transient, WarehouseError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CANCELLED", "Failure", "failure_of", "wants_json", "write_failure"]

CANCELLED = 130
_JSON_FORMATS = ("json", "jsonl")
_WRITING_COMMANDS = ("update", "reload", "drop", "rollback", "restate", "rebuild", "migrate", "vacuum", "erase", "demo", "run")


@dataclass(frozen=True)
class Failure:
    """Why a command ends: the exit code, a stable code name, the message, and the error's own fields.

    Each field may contain an argument that is not UTF-8; its bytes are printed as backslash escapes.
    """

    exit_code: int
    code: str
    message: str
    retry: bool = False
    fields: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", _as_utf8(self.message))
        object.__setattr__(self, "fields", {name: _as_utf8(value) for name, value in self.fields.items()})


def failure_of(error: BaseException, arguments: list[str]) -> Failure:
    """Return the failure that an exception means for the caller of a command."""
    match error:
        case WarehouseError():
            return Failure(error.exit_code, error.code, str(error), isinstance(error, Transient), vars(error))
        case click.Abort() | KeyboardInterrupt():
            return Failure(CANCELLED, "cancelled", _cancelled(arguments), retry=True)
        case click.UsageError():
            return Failure(error.exit_code, "usage", _usage(error))
        case click.ClickException():
            return Failure(error.exit_code, "failed", error.format_message())
        case OSError():
            return Failure(1, "system", _system(error), fields={"errno": error.errno, "file": error.filename})
        case _:
            return Failure(1, "internal", _internal(error))


def write_failure(failure: Failure, *, as_json: bool) -> None:
    """Write a failure to standard error."""
    facts = {"code": failure.code, "exit_code": failure.exit_code, "retry": failure.retry, **failure.fields}
    if in_json():
        write_message(failure.message, logging.ERROR, facts)
        return
    if as_json:
        record = {"code": failure.code, "message": failure.message, **facts}
        sys.stderr.write(msgspec.json.encode(record, enc_hook=str).decode() + "\n")
        return
    write_message(styled("error:", "red", sys.stderr) + " " + lines_visible(failure.message))


def wants_json(arguments: list[str]) -> bool:
    """Return whether the arguments ask for JSON; click may not be able to parse them."""
    for argument, following in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument == "--":
            return False
        if argument in ("-o", "--output") and following in _JSON_FORMATS:
            return True
        if argument.removeprefix("--output=").removeprefix("-o") in _JSON_FORMATS and argument.startswith("-"):
            return True
    return False


def _cancelled(arguments: list[str]) -> str:
    if any(name in arguments for name in _WRITING_COMMANDS):
        return "interrupted; the next `stream-wh update` completes what was begun"
    return "interrupted"


_SUGGESTION = re.compile(r"\. \(?Did you mean (.*)\?\)?$")


def _usage(error: click.UsageError) -> str:
    """Return click's message as one sentence, with the nearest valid word and the command for help."""
    text = _SUGGESTION.sub(r"; did you mean \1?", error.format_message().rstrip("."))
    if error.ctx is None:
        return text
    see = f"`{error.ctx.command_path} --help`"
    return f"{text} See {see}" if text.endswith("?") else f"{text}; see {see}"


def _system(error: OSError) -> str:
    name = f"{error.filename}: " if error.filename else ""
    return f"{name}{error.strerror or error}"


def _internal(error: BaseException) -> str:
    if os.environ.get("STREAM_WH_DEBUG"):
        return "".join(traceback.format_exception(error)).rstrip()
    first = next(iter(str(error).strip().splitlines()), "")
    kind = type(error).__name__ + (f": {first.rstrip('.')}" if first else "")
    return f"{kind}. This is a fault of stream-wh; run again with STREAM_WH_DEBUG=1 and report the traceback"


_Value = TypeVar("_Value")


def _as_utf8(value: _Value) -> _Value:
    r"""Return a text, or a tuple of texts, with bytes that are not UTF-8 as backslashes; other values as they are.

    >>> _as_utf8("a\udcff"), _as_utf8(("b", 1))
    ('a\\udcff', ('b', 1))
    """
    if isinstance(value, str):
        return cast("_Value", value.encode(errors="backslashreplace").decode())
    if isinstance(value, tuple) and type(value) is tuple:
        return cast("_Value", tuple(_as_utf8(part) for part in value))
    return value
