"""What becomes of a block of each language: it is executed, and what it shows is compared with what came."""

from __future__ import annotations

import contextlib
import io
import re
from typing import TYPE_CHECKING, Any

import duckdb

from .shell import shell

if TYPE_CHECKING:
    from pathlib import Path

    from .blocks import Block

__all__ = ["console", "lines_of", "python", "script", "shows", "sql"]

_BETWEEN = "\x1e"


def script(block: Block, place: Path, text: str | None = None, *, codes: tuple[int, ...] = (0,)) -> None:
    """Run shell commands of a block, or all, in a directory up to the first that fails; the exit code must be one of some."""
    ended = shell(text or block.text, place)
    assert ended.code in codes, f"{block}: exit code {ended.code}\n{ended.out}\n{ended.told}"


def lines_of(text: str) -> list[str]:
    """Return the commands of a block that has one in each line."""
    return [line for line in text.splitlines() if line.strip()]


def python(block: Block, place: Path, names: dict[str, Any]) -> str:
    """Execute a block of Python in a directory, with the names of the blocks before, and return what it printed."""
    printed = io.StringIO()
    with contextlib.chdir(place), contextlib.redirect_stdout(printed):
        exec(compile(block.text, str(block), "exec"), names)  # noqa: S102 - that it can be executed is the point
    return printed.getvalue()


def sql(block: Block, connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Run statements of DuckDB."""
    for statement in filter(None, map(str.strip, text.split(";"))):
        try:
            connection.execute(statement).fetchall()
        except duckdb.Error as error:
            raise AssertionError(f"{block}: {error}") from error


def console(block: Block, place: Path) -> Path:
    """Type the commands of a session one after the other and compare their output; return the directory at the end.

    `$ ` begins a command and `> ` goes on with it. Below stands what is shown; a line `...` stands for any lines, and
    `...` in a line for any part of it.
    """
    commands, expected = [], []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            commands.append(line[2:])
            expected.append("")
        elif line.startswith("> ") and not expected[-1]:
            commands[-1] += "\n" + line[2:]
        else:
            expected[-1] += line + "\n"
    typed = "".join(f"{command}\nprintf '{_BETWEEN}'\n" for command in commands)
    ended = shell(typed + "pwd", place, terminal=True)
    *shown, last = ended.out.split(_BETWEEN)
    assert ended.code == 0, f"{block}: exit code {ended.code}\n{ended.out}"
    for command, expected_output, output in zip(commands, expected, shown, strict=True):
        assert shows(expected_output, output), f"{block}: $ {command}\nshows\n{output}\nnot\n{expected_output}"
    return place.joinpath(last.strip())


def shows(wanted: str, found: str) -> bool:
    """Tell whether something is shown as a block has it; blanks at the ends of lines do not count."""
    lines = [line.rstrip() for line in wanted.rstrip().splitlines()]
    pattern = ""
    for line in lines:
        pattern += r"(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r" *\n"
    return re.fullmatch(pattern, "".join(line.rstrip() + "\n" for line in found.rstrip().splitlines())) is not None
