"""A process that reads in a loop, each time in one of several ways, and writes down the answers.

    python -m tests.soak.reads DIRECTORY --reads 5000

A line for each read: how, the epoch, and a digest of the rows. It goes on to the newest epoch as readers do: some reads by a
reader that is kept, some by one that has just come. It fails when a read is of an earlier epoch than the one before it.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warehouse import Warehouse
from warehouse.errors import Transient

from .witness import counted, expected

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from warehouse.serving import Answer
    from warehouse.testing import Stored

__all__ = ["digest", "main"]

COLUMNS = ["k", "v", "_ts", "_exp"]
_KEY = "k7"
_ATTEMPTS = 5


def digest(kind: str, rows: Iterable[Stored]) -> str:
    """Return the text that a read of this kind writes down if the table has these rows."""
    if kind == "probe":
        return _digest(expected(row for row in rows if row.row.key == _KEY))
    if kind == "sql":
        return _digest(_sums((row.row.key, row.row.value) for row in rows))
    return _digest(expected(rows))


def _sums(rows: Iterable[tuple[Any, Any]]) -> list[tuple[str, int, int]]:
    sums: dict[str, tuple[int, int]] = {}
    for key, value in rows:
        count, total = sums.get(str(key), (0, 0))
        sums[str(key)] = (count + 1, total + value)
    return sorted((key, *both) for key, both in sums.items())


def _digest(rows: Any) -> str:  # noqa: ANN401 - a bag or a list
    listed = sorted(rows.items(), key=repr) if isinstance(rows, dict) else rows
    return hashlib.sha256(repr(listed).encode()).hexdigest()[:16]


def _read(warehouse: Warehouse, kind: str) -> tuple[Answer, str]:
    if kind == "probe":
        answer = warehouse.probe("rows", [_KEY], columns=COLUMNS)
        return answer, _digest(counted(answer.all()))
    if kind == "sql":
        answer = warehouse.sql("SELECT coalesce(k, 'None'), count(*)::INT, sum(v)::BIGINT FROM rows GROUP BY ALL ORDER BY 1")
        return answer, _digest(sorted((str(key), count, int(total)) for key, count, total in answer.all()))
    answer = warehouse.scan("rows", columns=COLUMNS)
    return answer, _digest(counted(answer.all()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the module says."""
    parser = argparse.ArgumentParser(description="Read again and again.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--reads", type=int, default=5000)
    parser.add_argument("--until", type=int, default=0, help="the epoch that must be reached too")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    chance = random.Random(options.seed)  # noqa: S311 - which read comes next
    opened = Warehouse.open(options.directory)
    last, reads = -1, 0
    while reads < options.reads or last < options.until:
        reads += 1
        kind = chance.choices(("probe", "scan", "sql"), (16, 6, 1))[0]
        fresh = chance.random() < 0.1
        for attempt in range(_ATTEMPTS):
            warehouse = Warehouse.open(options.directory) if fresh else opened
            try:
                answer, answer_digest = _read(warehouse, kind)
            except Transient:
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            finally:
                if fresh:
                    warehouse.close()
            break
        if answer.epoch < last:
            sys.stderr.write(f"epoch {answer.epoch} after epoch {last}\n")
            return 1
        last = answer.epoch
        sys.stdout.write(f"{kind} {answer.epoch} {answer_digest}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
