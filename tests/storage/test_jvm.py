"""The archive of Java's classes: written once, then read; nothing of killed processes stays beside it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from warehouse.storage import jvm

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache directory, and a Java."""
    java = tmp_path / "java"
    java.write_bytes(b"")
    monkeypatch.setattr(jvm, "_java", lambda: java)
    monkeypatch.setenv("STREAM_WH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("STREAM_WH_CLASS_ARCHIVE", raising=False)
    return tmp_path / "cache" / "classes"


def test_the_first_useful_process_leaves_it(cache: Path) -> None:
    """A process without an update leaves no archive; the first useful process removes what killed processes left."""
    for useful, contents in ((False, []), (True, ["kept"])):
        archive = jvm.class_archive("")
        assert archive is not None
        assert archive.written is not None
        assert str(archive.written) in archive.options
        archive.written.write_text("kept")
        archive.written.with_name(f".{archive.path.stem}.1.jsa").write_text("of a process that was killed")
        archive.keep(useful=useful)
        assert [path.read_text() for path in cache.iterdir()] == contents
    reopened = jvm.class_archive("")
    assert reopened is not None
    assert (reopened.written, reopened.options) == (None, f"-XX:SharedArchiveFile={reopened.path} -Xlog:disable")
    assert jvm.class_archive("other.jar") != reopened


@pytest.mark.parametrize(("chosen", "read"), [("off", False), ("read", True)])
def test_who_does_not_write_it_may_read_it(cache: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, *, read: bool) -> None:
    """Processes that are to be killed, and processes whose classes nobody else needs."""
    archive = jvm.class_archive("")
    assert archive is not None
    monkeypatch.setenv("STREAM_WH_CLASS_ARCHIVE", chosen)
    assert jvm.class_archive("") is None
    cache.mkdir(exist_ok=True)
    archive.path.write_text("kept")
    assert (jvm.class_archive("") is not None) == read


def test_archives_of_killed_processes_go(cache: Path) -> None:
    """Also unfinished archives of other installations; an archive that may still be written stays."""
    cache.mkdir(parents=True)
    old, young = cache / ".0123456789abcdef.7.jsa", cache / ".0123456789abcdef.8.jsa"
    for path in (old, young):
        path.write_text("not whole")
    os.utime(old, (time.time() - 3600,) * 2)
    archive = jvm.class_archive("")
    assert archive is not None
    assert [path.name for path in cache.iterdir()] == [young.name]
