"""Prints which test shows which behaviour: ``python -m tests.index erase`` lists the tests whose description has the word.

Without a word it lists every test. It reads the docstrings, so it is never older than the tests.
"""

from __future__ import annotations

import ast
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Behaviour", "behaviours", "listing"]

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Behaviour:
    """A test function, and the first line of its docstring."""

    file: str
    line: int
    name: str
    text: str


def behaviours(folder: Path = HERE) -> Iterator[Behaviour]:
    """Yield every test below a folder, by file and line; one without a docstring has an empty text."""
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                text = (ast.get_docstring(node) or "").partition("\n")[0]
                yield Behaviour(path.relative_to(folder.parent).as_posix(), node.lineno, node.name, text)


def listing(word: str = "") -> Iterator[str]:
    """Yield one line for each test whose name, file or description has the word."""
    for behaviour in behaviours():
        if word.lower() in f"{behaviour.file} {behaviour.name} {behaviour.text}".lower():
            yield f"{behaviour.file}:{behaviour.line}: {behaviour.name}: {behaviour.text}"


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it
    sys.stdout.writelines(f"{line}\n" for line in listing(" ".join(sys.argv[1:])))
