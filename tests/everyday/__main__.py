"""From each file of every day to its first probe, by the command line: ``python -m tests.everyday`` prints what it took."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.field.page import markdown_table
from benchmarks.machine import load, machine, versions

from .hour import Walk, as_row, walked
from .test_everyday import ROADS, landed

_HEADS = ["file", "commands", "questions", "seconds", "in all", "rows", "verdict"]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _page(walks: dict[str, Walk], before: float) -> str:
    """Return the result as Markdown: what was measured, the machine, and the table."""
    host, facts = machine(), versions()
    reached = sum(walk.verdict == "reached" for walk in walks.values())
    slowest = max(sum(walk.seconds) for walk in walks.values())
    lines = [
        "# A stranger's first hour",
        "",
        "From a file to its first probe: `init --from`, then the update and the probe that it prints, each a process of its own",
        "(`python -m tests.everyday`). To be reached: at most 3 commands, 1 question and 180 seconds, what is right for the file",
        "declared, and rows of one key found.",
        "",
        f"{reached} of {len(walks)} files reached it; the slowest took {slowest:.1f} seconds.",
        "",
        f"{host['processor']}, {host['cores']} cores, {host['memory']}, {host['system']}.",
        f"Load average {before:.1f} before, {load():.1f} after.",
        f"{', '.join(f'{name} {version}' for name, version in facts.items())}.",
        "",
        markdown_table([_HEADS, *(as_row(name, walk) for name, walk in walks.items())], numbers=False),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Walk, print each walk at once and the page at the end; return 1 if a file did not reach the end."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m tests.everyday")
    parser.add_argument("--only", action="append", metavar="FILE", choices=list(ROADS), help="this file; again for others")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the page there, too")
    options = parser.parse_args()
    before, walks = load(), {}
    for name in options.only or ROADS:
        with tempfile.TemporaryDirectory(prefix="stream-wh-") as folder:
            directory = Path(folder) / "files"
            directory.mkdir()
            walks[name] = walked(landed(name, directory), ROADS[name], Path(folder) / "project")
        _say("  ".join(as_row(name, walks[name])))
    page = _page(walks, before)
    _say("\n" + page)
    if options.page:
        options.page.write_text(page)
    return int(any(walk.verdict != "reached" for walk in walks.values()))


if __name__ == "__main__":
    sys.exit(main())
