"""A folder of files that ``init --from`` looks at: which of them are alike, and which one is the sample."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from warehouse.catalog.codecs import is_compressed
from warehouse.catalog.patterns import split_landing
from warehouse.errors import UsageError

__all__ = ["Folder", "folder_of"]

_MOST = 100_000


@dataclass(frozen=True)
class Folder:
    """Files in a folder and those below it, of which most end alike: the newest of these, how many, and how many others."""

    path: Path
    sample: Path
    alike: int
    others: int

    def in_words(self) -> str:
        """Return what was looked at as a sentence."""
        others = f"; {self.others} with other endings are left alone" if self.others else ""
        name = self.sample.relative_to(self.path).as_posix()
        return f"Looked at {name}, the newest of {self.alike} files that end alike in {self.path}{others}."


def folder_of(path: Path) -> Folder:
    """Return what a folder holds.

    Raises
    ------
    UsageError
        When there is no file with rows in it, or its name is a pattern.

    """
    groups: dict[str, list[Path]] = {}
    for place, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for name in names:
            file = Path(place, name)
            if not name.startswith((".", "_")) and not name.endswith(".tmp") and file.is_file() and file.stat().st_size:
                groups.setdefault("".join(file.suffixes[-2:] if is_compressed(name) else file.suffixes[-1:]), []).append(file)
        if sum(map(len, groups.values())) > _MOST:
            break
    if not groups:
        raise UsageError(f"{path} holds no file with rows; name a file, or the folder in which files land")
    if split_landing(str(path.absolute()))[1]:
        raise UsageError(f"{path.absolute()} has * or ? in its name, which `landing` takes for a pattern; rename the folder")
    largest = max(groups.values(), key=len)
    sample = max(largest, key=lambda file: (file.stat().st_mtime_ns, str(file)))
    return Folder(path.absolute(), sample.absolute(), len(largest), sum(map(len, groups.values())) - len(largest))
