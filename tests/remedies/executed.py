"""How a case executes advice: it brings a message about, finds the advice in what was printed, and types it."""

from __future__ import annotations

import functools
import re
import shlex
import sys
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from warehouse.cli.main import run

from .messages import HOLE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["EXECUTED", "advised", "executes", "typed"]

EXECUTED: dict[str, str] = {}
"""The parts of messages whose advice some case executes, with the case."""
_found: set[str] = set()


def executes(*parts: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Say of a case which parts of messages it finds and executes; what is filled in is written as in :mod:`.messages`."""

    def case(test: Callable[..., None]) -> Callable[..., None]:
        for part in parts:
            EXECUTED[part] = test.__name__

        @functools.wraps(test)
        def checked(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - fixtures
            _found.clear()
            test(*args, **kwargs)
            assert _found >= set(parts), f"never printed: {set(parts) - _found}"

        return checked

    return case


def advised(text: str, part: str) -> str:
    """Return the command in the part of a message that stands in a printed text; a part without one is itself the command."""
    pattern = r"([^`\n]*?)".join(re.escape(literal) for literal in part.split(HOLE))
    match = re.search(pattern + ("" if part.endswith(("`", ")")) else r"(?=[`;,)\n]|\. |$)"), text)
    assert match is not None, f"{part!r} is not in {text!r}"
    _found.add(part)
    commands = re.findall(r"`(stream-wh [^`]+)`", match[0])
    return str(commands[-1]) if commands else match[0]


def typed(directory: Path, command: str, *, code: int = 0, **words: str) -> str:
    """Type a command line in a project and return its whole output; ``words`` replace the words in capitals."""
    program, *arguments = shlex.split(command)
    assert program == "stream-wh", command
    arguments = [words.get(argument, argument) for argument in arguments]
    with CliRunner().isolation() as (out, err, _):
        ended = run(["-C", str(directory), *arguments])
        sys.stdout.flush()
        sys.stderr.flush()
        printed = out.getvalue().decode() + err.getvalue().decode()
    assert ended == code, (command, printed)
    return printed
