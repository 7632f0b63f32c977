"""The texts of errors that users see, found in the source where they are raised; what is filled in is one sign."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse import errors

from .messages import HOLE

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["raised"]

_ROOT = Path(__file__).parents[2]
_OURS = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, errors.WarehouseError)}
_OF_CLICK = {"BadParameter", "ClickException", "UsageError"}
_WHOLE = {
    "ConfigurationError", "ChangedDeclarationError", "CursorLostError", "DamagedFileError",
    "EmptyFirstRunError", "ForeignChangeError", "LockHeldError", "LowAccuracyError",
    "NewerFormatError", "NotDurableError", "NotSharedError", "QueryTimeoutError",
    "RollbackError", "RunHeldError", "StorageFailedError", "StoreBusyError",
    "UnknownNameError", "UnreadableFilesError", "ViewFailedError",
}  # fmt: skip
"""Classes that name what they are about and say the way on themselves, whatever the reason is that they are given."""


def raised() -> dict[str, str]:
    """Return the text of each raised error, with its file; for classes with fixed texts, the texts of the class."""
    texts: dict[str, str] = {}
    for room in ("warehouse", "cli", "airflow_stream_wh"):
        for path in sorted((_ROOT / room).rglob("*.py")):
            name = path.relative_to(_ROOT).as_posix()
            if name.startswith(("warehouse/cli/", "warehouse/jobs/", "warehouse/sample_data/")):
                continue  # links to other folders
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for text in _of_errors(tree) if name == "warehouse/errors.py" else _of_raises(tree):
                texts.setdefault(text, name)
    return texts


def _of_raises(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
            continue
        name = ast.unparse(node.exc.func).rpartition(".")[2]
        if name not in _OURS | _OF_CLICK or name in _WHOLE:
            continue
        reason = 1 if name in ("MigrationError", "RestateError") else 2 if name.endswith("RecordDamagedError") else 0
        for argument in node.exc.args[reason : reason + 1]:
            for text in _texts(argument):
                yield f"○ {text}" if reason else text


def _of_errors(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "__init__":
            for argument in node.args:
                yield from _texts(argument)


def _texts(node: ast.expr) -> Iterator[str]:
    """Yield the texts that an expression can be; nothing of one that is made elsewhere."""
    match node:
        case ast.JoinedStr():
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else HOLE for part in node.values)
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp():
            yield from _texts(node.body)
            yield from _texts(node.orelse)
        case ast.BinOp(op=ast.Add()):
            yield from (left + right for left in _texts(node.left) for right in _texts(node.right))
