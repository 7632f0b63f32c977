"""Every command and its options as Markdown, from the command line itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from warehouse.cli.main import COMMANDS, stream_wh
from warehouse.cli.options import ExampleCommand

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["commands_page"]


def commands_page() -> str:
    """Return the page: of the whole command line, then of each command its help, in the order of ``--help``."""
    whole = click.Context(stream_wh, info_name="stream-wh")
    parts = [
        "# Every command and option",
        "Made from the command line itself; what the commands are for stands in [commands](../commands.md).",
        _options(stream_wh, whole),
    ]
    for name in COMMANDS:
        if command := stream_wh.get_command(whole, name):
            parts += list(_command(name, command, whole))
    return "\n\n".join(part for part in parts if part) + "\n"


def _command(name: str, command: click.Command, whole: click.Context) -> Iterator[str]:
    own = click.Context(command, info_name=name, parent=whole)
    yield f"## `{name}`"
    usage = " ".join(["stream-wh", name, *command.collect_usage_pieces(own)])
    examples = command.examples if isinstance(command, ExampleCommand) else ()
    yield _fenced("text", [usage])
    yield "\n\n".join(" ".join(each.split()) for each in _escaped(command.help or "").split("\n\n"))
    if examples:
        yield _fenced("sh", examples)
    yield _options(command, own)


def _fenced(language: str, lines: Sequence[str]) -> str:
    return "\n".join([f"```{language}", *lines, "```"])


def _options(command: click.Command, context: click.Context) -> str:
    """Return a table of a command's options, those that it inherits from click left out."""
    rows = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            rows.append(_row(*record))
    return "\n".join(["| option | what it does |", "|---|---|", *rows]) if rows else ""


def _row(names: str, told: str) -> str:
    shown = names.replace("|", "\\|")
    return f"| `{shown}` | {_cell(told)} |"


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split())).replace("|", "\\|")


def _escaped(text: str) -> str:
    r"""Return text in which nothing is markup but what stands in backquotes; ``\b``, click's own mark, is left out."""
    marked = text.replace("\b\n", "").replace("\b", "").split("`")
    for place in range(0, len(marked), 2):
        for letter in "\\*_<>[]$":
            marked[place] = marked[place].replace(letter, "\\" + letter)
    return "`".join(marked)
