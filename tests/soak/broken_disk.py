"""Faults of a disk: it forgets what was not synced when power is lost, or damages what was written.

One update shows the losses of power at all of its moments: at each event its files are copied, and what was not synced then can
be lost in the copy.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tests.operations.disk import Disk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from random import Random

__all__ = ["DAMAGES", "LOSSES", "Change", "LosingDisk", "Moment", "change_files"]

_PAGE = 512

Change = dict["Path", bytes | None]
"""Other contents of files, by paths relative to the project; None: there is no such file."""

@dataclass(frozen=True)
class Moment:
    """An event of an update, a copy of its files before the event, and the possible effects of a loss of power.

    The bytes of ``unwritten`` files may be anything. ``unnamed`` files may have their former content (None: no file).
    ``removed`` files may exist again.
    """

    event: str
    copy: Path
    unwritten: Change
    unnamed: Change
    removed: Change


class LosingDisk(Disk):
    """A disk that copies the project at each event, with what would be lost."""

    def __init__(self, top: Path, copies: Path) -> None:
        super().__init__(top)
        self._copies = copies
        self._at_first = {path: (path.stat().st_ino, path.read_bytes()) for path in top.rglob("*") if path.is_file()}
        self.moments: list[Moment] = []

    def __call__(self, kind: Literal["sync", "name"], path: Path) -> None:
        """Copy the files before the event, and follow it."""
        if path.is_relative_to(self._top):
            with self._lock:
                self._copy(f"{kind} {path.relative_to(self._top)}")
        super().__call__(kind, path)

    def _copy(self, event: str) -> None:
        copy = self._copies / f"{len(self.moments):03d}"
        contents = {path: path.read_bytes() for path in self._top.rglob("*") if path.is_file()}
        unwritten = {path: content for path, content in contents.items() if self._bytes.get(path.stat().st_ino) != content}
        unnamed = {path: self._before(path) for path in contents if not self._is_named(path)}
        removed = {path: self._before(path) for path in self._at_first if path not in contents and path.parent.is_dir()}
        shutil.copytree(self._top, copy)
        self.moments.append(Moment(event, copy, *(self._relative(change) for change in (unwritten, unnamed, removed))))

    def _relative(self, change: Mapping[Path, bytes | None]) -> Change:
        return {path.relative_to(self._top): content for path, content in change.items()}

    def _is_named(self, path: Path) -> bool:
        at = self._top
        for name in path.relative_to(self._top).parts:
            if self._names.get(at.stat().st_ino, {}).get(name) != (at / name).stat().st_ino:
                return False
            at /= name
        return True

    def _before(self, path: Path) -> bytes | None:
        number, content = self._at_first.get(path, (0, b""))
        return content if number == self._names.get(path.parent.stat().st_ino, {}).get(path.name) else None  # as the disk has it


def _names_lost(moment: Moment, _: Random) -> Change:
    return {**moment.removed, **moment.unnamed}


def _zeros(moment: Moment, _: Random) -> Change:
    return {path: bytes(len(content or b"")) for path, content in moment.unwritten.items()}


def _empty(moment: Moment, _: Random) -> Change:
    return {**moment.removed, **dict.fromkeys(moment.unwritten, b"")}


def _torn(moment: Moment, chance: Random) -> Change:
    """Some pages of each file were written, or the first half of a small file."""
    return {path: _torn_pages(content or b"", chance) for path, content in moment.unwritten.items()}


def _any(moment: Moment, chance: Random) -> Change:
    """Any of these losses, drawn for each file."""
    losses = [loss(moment, chance) for loss in (_names_lost, _zeros, _empty, _torn)]
    paths = sorted({path for change in losses for path in change})
    return {path: chance.choice([change[path] for change in losses if path in change]) for path in paths if chance.random() < 0.7}


def _torn_pages(content: bytes, chance: Random) -> bytes:
    if len(content) < 2 * _PAGE:
        return content[: len(content) // 2]
    pages = [content[begin : begin + _PAGE] for begin in range(0, len(content), _PAGE)]
    torn = set(chance.sample(range(len(pages)), (len(pages) + 1) // 2))
    return b"".join(bytes(len(page)) if number in torn else page for number, page in enumerate(pages))


LOSSES: dict[str, Callable[[Moment, Random], Change]] = {
    "names lost": _names_lost, "zeros": _zeros, "empty": _empty, "torn": _torn, "any": _any,
}  # fmt: skip


def change_files(directory: Path, change: Change) -> None:
    """Write other contents below a directory."""
    for path, content in change.items():
        file = directory / path
        file.unlink(missing_ok=True)
        if content is not None:
            file.write_bytes(content)


def _flipped(content: bytes, chance: Random) -> bytes:
    offset = chance.randrange(len(content))
    return content[:offset] + bytes([content[offset] ^ 1 << chance.randrange(8)]) + content[offset + 1 :]


def _zeroed(content: bytes, chance: Random) -> bytes:
    offset = chance.randrange(len(content))
    page = content[offset : offset + _PAGE]
    return content[:offset] + bytes(len(page)) + content[offset + len(page) :]


DAMAGES: dict[str, Callable[[bytes, Random], bytes | None]] = {
    "flipped": _flipped,
    "zeroed": _zeroed,
    "cut": lambda content, chance: content[: chance.randrange(len(content))],
    "gone": lambda _, __: None,
}
