#!/usr/bin/env python3
"""Makes the commit and the tag of a version: ``python .ci/release.py 0.2.0``.

It writes the version into ``pyproject.toml``, gives the changes under "Unreleased" in ``CHANGELOG.md`` that version and today's
date, commits both files and tags the commit. It pushes and uploads nothing. It refuses, and changes nothing, if the work tree has
changes, if nothing is listed under "Unreleased", or if the version does not follow the present one.
"""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

VERSION = re.compile(r"^version = \"(\d+)\.(\d+)\.(\d+)\"$", re.MULTILINE)
UNRELEASED = re.compile(r"^## Unreleased\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def followers(present: tuple[int, int, int]) -> tuple[str, str, str]:
    """Return the versions that may follow: the next patch, the next minor and the next major version."""
    major, minor, patch = present
    return f"{major}.{minor}.{patch + 1}", f"{major}.{minor + 1}.0", f"{major + 1}.0.0"


def dated(changes: str, version: str, day: str) -> str | None:
    """Return the changelog with the unreleased changes under a version; ``None`` if there are none."""
    found = UNRELEASED.search(changes)
    if found is None or not re.search(r"^- ", found[1], re.MULTILINE):
        return None
    return changes.replace("## Unreleased\n", f"## Unreleased\n\n## {version} ({day})\n", 1)


def release(root: Path, version: str, day: str) -> str | None:
    """Make the commit and the tag; return why not, or ``None``."""
    settings, changes = root / "pyproject.toml", root / "CHANGELOG.md"
    before = settings.read_text(encoding="utf-8")
    present = VERSION.search(before)
    if present is None:
        return 'pyproject.toml has no line version = "X.Y.Z"; write one'
    allowed = followers((int(present[1]), int(present[2]), int(present[3])))
    if version not in allowed:
        return f"{version} does not follow {'.'.join(present.groups())}; use one of {', '.join(allowed)}"
    if _git(root, "status", "--porcelain"):
        return "the work tree has changes; commit them, or run `git stash -u`"
    text = dated(changes.read_text(encoding="utf-8"), version, day)
    if text is None:
        return 'CHANGELOG.md lists no change under "## Unreleased"; add what users will notice'
    if _git(root, "tag", "--list", f"v{version}"):
        return f"the tag v{version} exists; `git show v{version}` says what it names"
    changes.write_text(text, encoding="utf-8")
    settings.write_text(VERSION.sub(f'version = "{version}"', before), encoding="utf-8")
    _git(root, "commit", "-q", "-m", f"Version {version}", "pyproject.toml", "CHANGELOG.md")
    _git(root, "tag", "-a", f"v{version}", "-m", f"Version {version}")
    return None


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    match sys.argv[1:]:
        case [version]:
            refused = release(Path(__file__).parent.parent, version, datetime.now(tz=UTC).date().isoformat())
        case _:
            refused = "name one version: python .ci/release.py X.Y.Z"
    if refused:
        sys.exit(f"error: {refused}")
    sys.stdout.write(f"Version {version} is committed and tagged. Next: `python -m build`, then push the commit and the tag.\n")
