"""The table of what was tried names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_each_kind_of_input_has_its_test() -> None:
    """At least thirty kinds, each with a test file; a word behind it is in a test's name or code."""
    text = (ROOT / "docs/hostile-input.md").read_text().split("## What was tried")[1]
    rows = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) >= 30
    for kind, _, tests in rows:
        named = re.findall(r"`([a-z_]+/test_[a-z_]+\.py)`", tests)
        assert named, kind
        for name in named:
            assert (ROOT / "tests" / name).is_file(), f"{kind.strip()}: {name}"
        for word in re.findall(r"`: ([a-z]+)", tests):
            content = (ROOT / "tests" / named[0]).read_text()
            assert word in content or (word == "fuzzed" and "@given" in content), f"{kind.strip()}: {word}"
