"""A folder of files for ``init --from``: which files have the same ending, and which one is the sample."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from warehouse.catalog.codecs import is_compressed
from warehouse.catalog.patterns import split_landing
from warehouse.errors import UsageError

__all__ = ["Folder", "folder_of"]

_MOST_FILES = 100_000


@dataclass(frozen=True)
class Folder:
    """Files in a folder and below: the newest file with the most common ending, the number of these, and of the others."""

    path: Path
    sample: Path
    alike: int
    others: int

    def in_words(self) -> str:
        """Return a sentence about the folder's files and the newest one, which is the sample."""
        left_alone = f"; {self.others} with other endings are left alone" if self.others else ""
        name = self.sample.relative_to(self.path).as_posix()
        return f"Looked at {name}, the newest of {self.alike} files that end alike in {self.path}{left_alone}."


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
    return Folder(path.absolute(), sample.absolute(), len(largest), sum(map(len, groups.values())) - len(largest))
