"""Paths in an object store: names alone, without a store."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warehouse.objects.path import ObjectPath, is_uri, path_of

ROOT = ObjectPath("s3://bucket/some/where")


def test_a_place_is_joined_and_taken_apart_as_a_path() -> None:
    """Names below, parents and relative names equal pathlib's, and the text of a path is its address."""
    file = ROOT / "tables" / "a/_delta_log" / f"{7:020d}.json"
    assert str(file) == "s3://bucket/some/where/tables/a/_delta_log/00000000000000000007.json"
    assert (file.name, file.suffix, file.parent.parent.name) == ("00000000000000000007.json", ".json", "a")
    assert file.relative_to(ROOT).as_posix() == "tables/a/_delta_log/00000000000000000007.json"
    assert file.key == "some/where/tables/a/_delta_log/00000000000000000007.json"
    assert file.with_name("x.json") == file.parent / "x.json"
    assert isinstance(file.parent, ObjectPath)
    assert (ROOT.absolute(), ROOT.resolve(), ROOT.is_absolute()) == (ROOT, ROOT, True)


def test_nothing_of_the_operating_system_takes_it_for_a_file() -> None:
    """Functions of the local disk refuse the path, so nothing is read or written there by mistake."""
    for use in (os.stat, os.scandir, os.fspath, open, os.mkdir, os.unlink):
        with pytest.raises(TypeError, match="no path of the file system"):
            use(ROOT)
    assert not Path("s3:").exists()


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("s3://b", True), ("gs://b/c", True), ("s3:/b", False), ("s3://", False), ("data", False), ("/s3://b", False)],
)
def test_an_address_is_told_from_a_path(text: str, is_one: bool) -> None:
    """A store has one of the known schemes; everything else is a local path."""
    assert is_uri(text) is is_one
    assert isinstance(path_of(text), ObjectPath) is is_one


def test_a_path_stays_what_it_is() -> None:
    """No function turns a path in a store into a local path."""
    assert path_of(ROOT) is ROOT
    assert path_of(Path("data")) == Path("data").absolute()
