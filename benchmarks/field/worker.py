"""A process that runs contenders: ``python -m benchmarks.field.worker`` reads messages from stdin, a line of JSON each.

What libraries print goes to stderr, so that stdout has replies only.
"""

from __future__ import annotations

import json
import os
import sys

from benchmarks.field.station import Station

__all__ = ["main"]


def main() -> None:
    """Answer messages until stdin ends."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    station = Station()
    try:
        for line in sys.stdin:
            reply = station.do(json.loads(line))
            replies.write(json.dumps(reply) + "\n")
            replies.flush()
    finally:
        station.close()


if __name__ == "__main__":
    main()
