"""The messages that give advice: a command, an option, or a line of TOML, found in the source; what is filled in is one sign."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["HOLE", "messages"]

HOLE = "○"
_ROOT = Path(__file__).parents[2]
_COMMAND = re.compile(
    r"`stream-wh |^stream-wh \w|`python -c|`pip install|--allow-\w|--since \S|(?:give|or|suppose \w+ \w+:|a) --[a-z]"
)
_SETTING = re.compile(r"""\b(?:set|with|declare|under|names) [a-z_]+ = ["{]|[:;] (?:[a-z_]+ = )["{]|`[a-z_]+ = [^`]+` in \[""")
_SQL = re.compile(r"\b(SELECT|FROM|CASE WHEN)\b")
_DESCRIBED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def messages() -> dict[str, str]:
    """Return each text that gives advice, with its file; help texts and their examples are left out."""
    texts: dict[str, str] = {}
    for room in ("warehouse", "cli"):
        for path in sorted((_ROOT / room).rglob("*.py")):
            name = path.relative_to(_ROOT).as_posix()
            if name.startswith(("warehouse/cli/", "warehouse/jobs/", "warehouse/sample_data/", "cli/commands/", "cli/options")):
                continue  # links to other folders, and help
            for text in _texts(ast.parse(path.read_text(encoding="utf-8"))):
                if not _SQL.search(text) and (_COMMAND.search(text) or _SETTING.search(text)):
                    texts.setdefault(text, name)
    return texts


def _texts(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings, each whole."""
    nodes = list(ast.walk(tree))
    inner = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node) if part is not node}
    described = {id(node.body[0].value) for node in nodes
                 if isinstance(node, _DESCRIBED) and node.body and isinstance(node.body[0], ast.Expr)}  # fmt: skip
    for node in nodes:
        if id(node) in inner or id(node) in described:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
