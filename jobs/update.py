"""``spark-submit jobs/update.py -C DIR [options of update]``: the update, started by Spark or a scheduler.

It runs the code of ``stream-wh update``: the same options, the same exit codes (3 is worth retrying), and ``-o json``
prints the record of the epochs on standard output. ``-C DIR`` comes first.
"""

from __future__ import annotations

import sys

from warehouse.cli.main import run

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Run an update with the options of ``stream-wh update`` and return its exit code."""
    before, rest = (arguments[:2], arguments[2:]) if arguments[:1] == ["-C"] else ([], arguments)
    return run([*before, "update", *rest])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
