"""Values of columns in the names of folders on a landing file's path: ``day=2026-01-01``, or plain ``2026-01-01``.

If a path has a folder ``NAME=VALUE`` for one of the partitions, it has Hive's form: each partition is found by its name, wherever
its folder is. Else the first folder below the landing directory is the first partition, and so on. Further folders have no
meaning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["NULL_FOLDER", "folder_problem", "folder_values"]

NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""The folder name of Hive and Spark for null."""


def folder_values(path: str, partitions: Sequence[str]) -> tuple[str | None, ...] | None:
    """Return the text of each partition of a file's relative path; None if a folder is missing.

    >>> folder_values("day=2026-01-01/host=a%2Fb/x.csv", ["day", "host"])
    ('2026-01-01', 'a/b')
    >>> folder_values("2026-01-01/x.csv", ["day"]), folder_values("x.csv", ["day"])
    (('2026-01-01',), None)
    """
    folders = path.split("/")[:-1]
    if not any(folder.startswith(f"{name}=") for folder in folders for name in partitions):
        return tuple(folders[: len(partitions)]) if len(folders) >= len(partitions) else None
    matches = [[folder for folder in folders if folder.startswith(f"{name}=")] for name in partitions]
    if not all(matches):
        return None
    values = (unquote(folders[-1].partition("=")[2]) for folders in matches)
    return tuple(None if value == NULL_FOLDER else value for value in values)


def folder_problem(path: str, partitions: Sequence[str]) -> tuple[str, str] | None:
    """Return (reason, message) if a path lacks a folder for a partition; None otherwise."""
    if not partitions or folder_values(path, partitions) is not None:
        return None
    hive = "/".join(f"{name}=..." for name in partitions)
    listed = ", ".join(partitions)
    return "name", f"its path has no folder for each of partitions ({listed}); move it to {hive}/, or correct the key"
