"""A version is one commit and one tag, made by a command, with the changes that it brings."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
VERSION = re.compile(r"(\d+)\.(\d+)\.(\d+)(?: \(\d{4}-\d{2}-\d{2}\))?")
CHANGES = "# Changelog\n\n## Unreleased\n\n### Views\n\n- A view is kept.\n\n## 0.1.0\n\nThe first version.\n"


def _git(directory: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=directory, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a repository with the files that a release changes."""
    directory = tmp_path / "project"
    (directory / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "release.py", directory / ".ci" / "release.py")
    (directory / "pyproject.toml").write_text('[project]\nname = "x"\nversion = "0.1.0"\n')
    (directory / "CHANGELOG.md").write_text(CHANGES)
    _git(directory, "init", "-q")
    _git(directory, "config", "user.name", "a developer")
    _git(directory, "config", "user.email", "developer@example.com")
    _git(directory, "add", "-A")
    _git(directory, "commit", "-q", "-m", "begin")
    return directory


def _release(project: Path, version: str) -> tuple[int, str]:
    ended = subprocess.run([sys.executable, ".ci/release.py", version], cwd=project, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stderr.strip()


def test_a_release_is_a_commit_and_a_tag(project: Path) -> None:
    """The version is in both files, and the list of unreleased changes is empty again."""
    assert _release(project, "0.2.0") == (0, "")
    assert tomllib.loads((project / "pyproject.toml").read_text())["project"]["version"] == "0.2.0"
    headings = HEADING.findall((project / "CHANGELOG.md").read_text())
    assert headings[0] == "Unreleased"
    assert re.fullmatch(r"0\.2\.0 \(\d{4}-\d{2}-\d{2}\)", headings[1])
    assert headings[2:] == ["0.1.0"]
    assert _git(project, "rev-parse", "v0.2.0^{commit}") == _git(project, "rev-parse", "HEAD")
    assert _git(project, "status", "--porcelain") == ""
    code, message = _release(project, "0.2.1")
    assert (code, "lists no change" in message) == (1, True)


@pytest.mark.parametrize("version", ["0.1.0", "0.0.9", "0.1.2", "0.3.0", "1.0.1", "v0.2.0", "next"])
def test_a_version_follows_the_present_one(project: Path, version: str) -> None:
    """The next patch, minor or major version; others are refused with those that follow."""
    code, message = _release(project, version)
    assert (code, message) == (1, f"error: {version} does not follow 0.1.0; use one of 0.1.1, 0.2.0, 1.0.0")
    assert _git(project, "status", "--porcelain") == ""


def test_a_changed_work_tree_is_refused(project: Path) -> None:
    """The commit would not be what was tested."""
    (project / "new.py").write_text("")
    code, message = _release(project, "0.2.0")
    assert code == 1
    assert "git stash -u" in message
    assert _git(project, "tag") == ""
    _git(project, "stash", "-u")
    assert _release(project, "0.2.0") == (0, "")


def test_an_existing_tag_is_refused(project: Path) -> None:
    """Nothing is written."""
    _git(project, "tag", "v0.2.0")
    code, message = _release(project, "0.2.0")
    assert (code, "the tag v0.2.0 exists" in message) == (1, True)
    assert _git(project, "status", "--porcelain") == ""


def test_the_changelog_lists_versions_the_newest_first() -> None:
    """Unreleased changes stand above all versions; the newest version is the package's version."""
    first, *versions = HEADING.findall((ROOT / "CHANGELOG.md").read_text())
    assert first == "Unreleased"
    parsed = [VERSION.fullmatch(version) for version in versions]
    assert all(parsed)
    numbers = [tuple(map(int, match.groups())) for match in parsed if match]
    assert numbers == sorted(numbers, reverse=True)
    present = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert ".".join(map(str, numbers[0])) == present
