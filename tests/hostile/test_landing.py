"""A landing directory that others can write to: what is in it stays in it, and nothing in it makes an update wait."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from tests.operations.projects import Project, csv, row
from warehouse.errors import UsageError
from warehouse.ingest.files import LandingFile
from warehouse.ingest.headers import csv_header, headers
from warehouse.ingest.landing import changed_file_problems, list_landing, name_problem, open_regular

if TYPE_CHECKING:
    from pathlib import Path


def listed(landing: Path) -> set[str]:
    """Return the paths that would be loaded."""
    return {file.path for file in list_landing(landing, "*")}


def test_links_lead_nowhere_else(tmp_path: Path) -> None:
    """Links out of the directory, to files and directories, in circles and to nothing, are no files; those inside are."""
    outside, landing = tmp_path / "outside", tmp_path / "landing"
    for path in (outside / "secret.csv", tmp_path / "landing-too/secret.csv", landing / "sub/inside.csv"):
        path.parent.mkdir(parents=True)
        path.write_text("k,b,e\n")
    (landing / "file.csv").symlink_to(outside / "secret.csv")
    (landing / "relative.csv").symlink_to("../outside/secret.csv")
    (landing / "same-beginning.csv").symlink_to("../landing-too/secret.csv")
    (landing / "through.csv").symlink_to("sub/../../outside/secret.csv")
    (landing / "password.csv").symlink_to("/etc/passwd")
    (landing / "directory").symlink_to(outside)
    (landing / "self.csv").symlink_to("self.csv")
    (landing / "circle").symlink_to(".")
    (landing / "nothing.csv").symlink_to("gone.csv")
    (landing / "own.csv").symlink_to("sub/inside.csv")
    assert listed(landing) == {"sub/inside.csv", "own.csv"}
    shutil.move(landing, tmp_path / "moved")
    landing.symlink_to("moved")
    assert listed(landing) == {"sub/inside.csv", "own.csv"}, "the directory itself may be a link"


def test_only_files_are_files(tmp_path: Path) -> None:
    """Pipes, sockets, devices and directories are passed over, whatever they are called."""
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "directory.csv").mkdir()
    (tmp_path / "device.csv").symlink_to("/dev/zero")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(tmp_path / "socket.csv"))
        (tmp_path / "file.csv").write_text("k\n")
        assert listed(tmp_path) == {"file.csv"}


def test_what_has_become_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    """Between listing and opening a file can become anything: opening it fails at once."""
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    problems: list[str] = []

    def read() -> None:
        files = [LandingFile(name, 1, 1) for name in ("pipe.csv", "zero.csv", "gone.csv")]
        problems.extend(problem.message for problem in headers(tmp_path, files, {})[1])

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    reading.join(timeout=20)
    assert len(problems) == 3
    assert "no regular file" in problems[0]
    with pytest.raises(OSError, match="no regular file"):
        open_regular(tmp_path / "zero.csv")


@pytest.mark.parametrize("swap", ["file", "directory", "pipe"])
def test_a_file_swapped_for_a_link_after_it_was_planned(tmp_path: Path, swap: str) -> None:
    """The link may lead to a file outside with the same size and time; the planned file counts as gone all the same."""
    landing, outside = tmp_path / "landing", tmp_path / "outside"
    for directory in (landing / "sub", outside):
        directory.mkdir(parents=True)
        (directory / "a.csv").write_text("k,b,e\n")
        os.utime(directory / "a.csv", ns=(10**18, 10**18))
    planned = LandingFile("sub/a.csv", 6, 10**18)
    assert changed_file_problems(landing, [planned]) == []
    if swap == "directory":
        shutil.rmtree(landing / "sub")
        (landing / "sub").symlink_to(outside)
    else:
        (landing / "sub/a.csv").unlink()
        if swap == "file":
            (landing / "sub/a.csv").symlink_to(outside / "a.csv")
        else:
            os.mkfifo(landing / "sub/a.csv")
    (problem,) = changed_file_problems(landing, [planned])
    assert (problem.path, problem.reason) == ("sub/a.csv", "vanished")
    assert "out of the landing directory" in problem.message


@pytest.mark.parametrize("path", ["../../outside.csv", "/etc/passwd", "landing/a/../../warehouse.toml", "landing/a/link.csv", ""])
def test_reload_stays_in_the_landing_directories(tmp_path: Path, path: str) -> None:
    """A path that leads elsewhere is refused, whatever is there."""
    project = Project(tmp_path / "project", None)
    project.update(1)
    (tmp_path / "outside.csv").write_text("k\n")
    (project.directory / "landing/a/link.csv").symlink_to(tmp_path / "outside.csv")
    with pytest.raises(UsageError, match="in no landing directory"):
        project.updater().reload(path)


def test_names_that_spark_cannot_be_given() -> None:
    """All others can; a landing directory's own path may have what it likes."""
    assert all(name_problem(name) for name in ("a:b.csv", "x/a:b", "a\\b", "a\nb", "a\x7f", "a\u2028b", "b\\xff.csv"))
    assert not any(name_problem(name) for name in ("a b.csv", "C:/x.csv", "%41", "ü😀.csv", "-rf", "a'b\"c`d", "[a]*?{b}"))


def test_a_listing_takes_names_that_are_no_text(tmp_path: Path) -> None:
    """Their bytes are shown, so that a plan can hold them."""
    (tmp_path / b"\xff\xfe.csv".decode(errors="surrogateescape")).write_text("k\n")
    (tmp_path / b"\xff".decode(errors="surrogateescape")).mkdir()
    (tmp_path / b"\xff/in.csv".decode(errors="surrogateescape")).write_text("k\n")
    assert listed(tmp_path) == {"\\xff\\xfe.csv", "\\xff/in.csv"}
    assert all(name_problem(path) for path in listed(tmp_path))


def test_plans_and_epochs_hold_no_name_that_is_no_text(tmp_path: Path) -> None:
    """A project whose only files cannot be loaded makes its epoch, and says so once."""
    project = Project(tmp_path / "project", None)
    (project.directory / "landing/a" / b"\xff.csv".decode(errors="surrogateescape")).write_text(csv(row("k", 0.5, 3)))
    report = project.update(1)
    assert [(entry.file.path, entry.reason) for _, entry in report.left_out] == [("\\xff.csv", "name")]
    assert project.update(2).left_out == ()
    assert [entry.file.path for entry in project.update(3).landing[0].unreadable] == ["\\xff.csv"]


@pytest.mark.parametrize("options", [{"encoding": "nope"}, {"quote": "ab"}])
def test_a_header_that_no_option_can_read(tmp_path: Path, options: dict[str, str]) -> None:
    """Options that an earlier version let pass leave the file out, and end nothing."""
    (tmp_path / "a.csv").write_text("k,b,e\n")
    groups, problems = headers(tmp_path, [LandingFile("a.csv", 6, 1)], options)
    assert (groups, [problem.reason for problem in problems]) == ({}, ["unreadable"])
    assert csv_header(tmp_path / "a.csv", {}) == ("k", "b", "e")


@pytest.mark.parametrize("character", ["\x0b", "\x1e", "\x85", "\u2028", "\u2029"], ids=ascii)
def test_a_header_ends_at_the_end_of_a_line(tmp_path: Path, character: str) -> None:
    """Spark ends a line at a line feed or carriage return alone; in Python more characters end one."""
    for end in ("\n", "\r\n", "\r"):
        (tmp_path / "a.csv").write_bytes(f"k,b{character}b,e{end}1,2,3{end}".encode())
        assert csv_header(tmp_path / "a.csv", {}) == ("k", f"b{character}b", "e")
