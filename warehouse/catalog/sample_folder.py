"""A folder of files for ``init --from``: which files have the same ending, and which one is the sample."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from warehouse.catalog.codecs import is_compressed
from warehouse.catalog.folder_values import folder_values
from warehouse.catalog.patterns import split_landing
from warehouse.catalog.sniff import column_name
from warehouse.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Folder", "folder_of"]

_MOST_FILES = 100_000


@dataclass(frozen=True)
class Folder:
    """Files in a folder and below: the newest file with the most common ending, the number of these, and of the others.

    ``columns`` are the texts that folders called ``NAME=TEXT`` give for each name that is on the path of every such file, in the
    order of the path; the sample's text comes first, and None stands for null.
    """

    path: Path
    sample: Path
    alike: int
    others: int
    columns: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)

    def in_words(self) -> str:
        """Return a sentence about the folder's files and the newest one, which is the sample."""
        left_alone = f"; {self.others} with other endings are left alone" if self.others else ""
        name = self.sample.relative_to(self.path).as_posix()
        given = f"; folders give {' and '.join(self.columns)}" if self.columns else ""
        return f"Looked at {name}, the newest of {self.alike} files that end alike in {self.path}{left_alone}{given}."


def folder_of(path: Path) -> Folder:
    """Return the files of a folder.

    Raises
    ------
    UsageError
        When it has no file with rows, or its name is a pattern.

    """
    groups: dict[str, list[Path]] = {}
    for directory, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for name in names:
            file = Path(directory, name)
            if not name.startswith((".", "_")) and not name.endswith(".tmp") and file.is_file() and file.stat().st_size:
                groups.setdefault("".join(file.suffixes[-2:] if is_compressed(name) else file.suffixes[-1:]), []).append(file)
        if sum(map(len, groups.values())) > _MOST_FILES:
            break
    if not groups:
        raise UsageError(f"{path} holds no file with rows; name a file, or the folder in which files land")
    if split_landing(str(path.absolute()))[1]:
        raise UsageError(f"{path.absolute()} has * or ? in its name, which `landing` takes for a pattern; rename the folder")
    largest = max(groups.values(), key=len)
    sample = max(largest, key=lambda file: (file.stat().st_mtime_ns, str(file)))
    others = sum(map(len, groups.values())) - len(largest)
    return Folder(path.absolute(), sample.absolute(), len(largest), others, _columns(path, sample, largest))


def _columns(path: Path, sample: Path, files: Sequence[Path]) -> dict[str, tuple[str | None, ...]]:
    names = dict.fromkeys(part.partition("=")[0] for part in sample.relative_to(path).parts[:-1] if "=" in part)
    usable = [name for name in names if column_name(name, set(), time=True) == name != "ts"]
    folders = {file.parent.relative_to(path).as_posix() + "/" for file in (sample, *files)}
    common = [name for name in usable if all(f"/{name}=" in f"/{folder}" for folder in folders)]
    texts = dict.fromkeys(folder_values(folder, common) or () for folder in (f"{sample.parent.relative_to(path)}/", *folders))
    return {name: tuple(dict.fromkeys(column)) for name, column in zip(common, zip(*texts, strict=True), strict=True)}
