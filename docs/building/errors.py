"""Exit codes and error codes as Markdown, from the classes of errors."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

import warehouse
from warehouse.errors import Transient, WarehouseError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OF_THE_COMMAND_LINE", "errors_of_the_library", "errors_page"]

OF_THE_COMMAND_LINE = (
    ("cancelled", 130, True, "Ctrl-C, or a question that was answered with no."),
    ("failed", 1, False, "A file named on the command line cannot be opened or written."),
    ("internal", 1, False, "A fault of stream-wh itself; `STREAM_WH_DEBUG=1` shows where."),
    ("system", 1, False, "The operating system refused something; `errno` and `file` tell more."),
)
"""Codes that the command line has of its own (``cli/errors.py``): code, exit code, whether to try again, what happened."""


_BEGIN = """# Error codes

Made from the classes of errors. With `-o json` an error is a JSON object on standard error with `code`, `message`, `exit_code`,
`retry` and fields of its own; in Python it is raised as the class. What a scheduler should do about each exit code stands in
[running it](../operations.md#scheduling)."""
_ANSWER_OF_A_CHECK = 4
_CHECKS = """Without an error it is the answer of a check: `doctor`, `check` and `status --check` found something, a table is
less accurate than `status --minimum-accuracy` asks for, or landing files still hold a key that `erase` removed."""


def errors_page() -> str:
    """Return the page: a table of codes for each exit code."""
    rows = [
        (kind.code, kind.exit_code, issubclass(kind, Transient), f"`{kind.__name__}`", _first(kind))
        for kind in errors_of_the_library()
    ]
    rows += [(code, exit_code, retry, "", what) for code, exit_code, retry, what in OF_THE_COMMAND_LINE]
    parts = [_BEGIN]
    for exit_code in sorted({row[1] for row in rows}):
        own = sorted(row for row in rows if row[1] == exit_code)
        retried = "Worth another try." if all(row[2] for row in own) else ""
        parts.append(f"## Exit code {exit_code}\n\n{retried}".rstrip())
        lines = [f"| `{code}` | {name} | {what} |" for code, _, _, name, what in own]
        parts.append("\n".join(["| code | class | what happened |", "|---|---|---|", *lines]))
        parts += [_CHECKS] if exit_code == _ANSWER_OF_A_CHECK else []
    return "\n\n".join(parts) + "\n"


def errors_of_the_library() -> list[type[WarehouseError]]:
    """Return every class of error that has a code of its own, from whatever module."""
    for module in pkgutil.walk_packages(warehouse.__path__, "warehouse."):
        importlib.import_module(module.name)
    return [kind for kind in _below(WarehouseError) if "code" in vars(kind)]


def _below(kind: type[WarehouseError]) -> Iterator[type[WarehouseError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def _first(kind: type) -> str:
    return (kind.__doc__ or "").splitlines()[0].replace("``", "`")
