"""What messages tell a person to run is a command that exists, with options that it has."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from warehouse.cli.main import COMMANDS, stream_wh

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
_ADVICE = re.compile(r"`stream-wh ([^`]+)`")
_SHORT = re.compile(rf"`(?:{'|'.join(COMMANDS)}) [^`]*--")
_HOLE = "\0"
_PLACEHOLDERS = {"EPOCH": "1", "DIR": ".", "NEW": "new", "FILE": __file__}
_VALUES = ("1", "2024-01-01T00:00:00Z", "X")
"""What is filled in: some options take a number or an instant."""


def _texts(path: Path) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings, what is filled in as one sign."""
    source = path.read_text(encoding="utf-8")
    if "stream-wh " not in source:
        return  # most modules name no command, and to parse all takes seconds
    tree = ast.parse(source)
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    described = {id(node.body[0].value) for node in ast.walk(tree)
                 if isinstance(node, kinds) and node.body and isinstance(node.body[0], ast.Expr)}  # fmt: skip
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else _HOLE for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described:
            yield node.value


def _advice() -> Iterator[tuple[str, str]]:
    for room in ("warehouse", "cli", "airflow_stream_wh"):
        for path in sorted((ROOT / room).rglob("*.py")):
            for text in _texts(path):
                for command in _ADVICE.findall(text):
                    yield f"{path.relative_to(ROOT)}", command


ADVICE = sorted(set(_advice()))


def test_messages_do_name_commands() -> None:
    """The search finds commands that messages are known to name."""
    commands = {text for _, text in ADVICE}
    assert {"history", "check", "rollback --to-epoch EPOCH"} <= commands
    assert len(commands) > 30


@pytest.mark.parametrize("text", sorted({text for _, text in ADVICE}))
def test_each_is_a_command_with_options_that_it_has(text: str) -> None:
    """The command exists, has each of the options, and takes as many arguments."""
    name, *words = text.replace(_HOLE, "X").split()
    where = [path for path, other in ADVICE if other == text]
    command = stream_wh.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None, (text, where)
    options = {spelled for parameter in command.params for spelled in (*parameter.opts, *parameter.secondary_opts)}
    named = [word.partition("=")[0].strip(",.;()[]'\"") for word in words if word.startswith("-") and word.strip("-")]
    assert [word for word in named if word not in options] == [], (text, where)


@pytest.mark.parametrize("text", sorted({text for _, text in ADVICE}))
def test_each_has_all_that_the_command_needs(text: str) -> None:
    """A user can type the command as it is printed: no argument and no option is missing."""
    refused = [_refused(text.replace(_HOLE, value)) for value in _VALUES]
    assert None in refused, ([path for path, other in ADVICE if other == text], refused)


def _refused(text: str) -> str | None:
    """Return why a command line cannot be typed; None if it can."""
    name, *words = [_PLACEHOLDERS.get(word, word) for word in shlex.split(text)]
    command = stream_wh.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    try:
        command.make_context(name, words)
    except click.ClickException as error:
        return error.format_message()
    return None


def test_no_command_is_named_without_the_program() -> None:
    """What is pasted into a shell begins with `stream-wh`."""
    for room in ("warehouse", "cli", "airflow_stream_wh"):
        for path in sorted((ROOT / room).rglob("*.py")):
            assert not [text for text in _texts(path) if _SHORT.search(text)], path
