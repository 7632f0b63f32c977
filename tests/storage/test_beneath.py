"""Files are moved and deleted below a directory only, wherever links on the path lead."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import pytest

from warehouse.storage.beneath import facts_beneath, move_beneath, remove_beneath

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A directory with a file two levels deep, a link to a directory outside that has such a file too, and a link to a file."""
    for directory in ("top/a/b", "outside/b"):
        (tmp_path / directory).mkdir(parents=True)
        (tmp_path / directory / "file").write_text("text")
    (tmp_path / "top/link").symlink_to(tmp_path / "outside")
    (tmp_path / "top/a/name").symlink_to(tmp_path / "outside/b/file")
    return tmp_path / "top"


@pytest.mark.parametrize("path", ["link/b/file", "a/name", "a/none", "a/b", "a/b/file/x"])
def test_only_a_file_reached_without_links_has_facts(top: Path, path: str) -> None:
    """A link, a directory and a missing file have no facts."""
    assert facts_beneath(top, path) is None
    assert facts_beneath(top, "a/b/file") is not None


def test_nothing_outside_is_moved_or_deleted(top: Path) -> None:
    """A link on the path is an error, at either end; if the name itself is a link, the link is moved or deleted."""
    with pytest.raises(OSError, match="link"):
        remove_beneath(top, "link/b/file")
    with pytest.raises(OSError, match="link"):
        move_beneath(top, "link/b/file", top, "moved")
    with pytest.raises(OSError, match="link"):
        move_beneath(top, "a/b/file", top, "link/new")
    remove_beneath(top, "a/name")
    assert (top / "a/b/file").exists()
    assert [path.name for path in (top.parent / "outside").rglob("*")] == ["b", "file"]


@pytest.mark.parametrize("across", [False, True])
def test_a_file_moves_whole(top: Path, monkeypatch: pytest.MonkeyPatch, *, across: bool) -> None:
    """With its time and rights, into directories that are created, also to another file system."""

    def elsewhere(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "another file system")

    os.utime(top / "a/b/file", ns=(10**18, 10**18 + 1))
    (top / "a/b/file").chmod(0o640)
    if across:
        monkeypatch.setattr(os, "rename", elsewhere)
    move_beneath(top, "a/b/file", top.parent / "new", "x/y/other")
    facts = facts_beneath(top.parent / "new", "x/y/other")
    assert facts is not None
    assert (facts.st_mtime_ns, facts.st_mode & 0o777, facts.st_size) == (10**18 + 1, 0o640, 4)
    assert not (top / "a/b/file").exists()
    assert [path.name for path in (top.parent / "new/x/y").iterdir()] == ["other"]
