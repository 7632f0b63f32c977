"""Updates without rows, which need no Spark, killed at random times: only their records remain.

    python -m tests.soak.records DIRECTORY --kills 300

Each update is a fork that writes a plan and an epoch, retires old epochs and sums up what they knew; it takes milliseconds,
so hundreds of kills hit every one of its writes. After each kill the newest epoch is the one before or the one it makes,
every epoch that can be read is whole, and nothing between them is missing; the next update goes on from there.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from tests.operations.projects import Project, at
from warehouse.epochs.journal import epoch_numbers, newest_epoch, numbers, plan_path, read_epoch
from warehouse.epochs.known import known_files

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def updated(project: Project, slot: int) -> None:
    """Update, or end with the traceback."""
    project.clock = at(slot)
    project.update(slot)


def checked(project: Project, before: int, slot: int) -> str:
    """Check the records that a killed update left, and return how far it came."""
    newest = newest_epoch(project.root)
    number = -1 if newest is None else newest.number
    assert before <= number <= before + 2, f"epoch {number} after epoch {before}"
    readable = epoch_numbers(project.root)
    assert readable == list(range(readable[0], number + 1)) if readable else number == -1
    assert all(read_epoch(project.root, epoch).number == epoch for epoch in readable)
    known_files(project.root, newest)
    if newest is not None and newest.slot == slot:
        return "epoch"
    return "plan" if plan_path(project.root, number + 1).exists() else "nothing"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the module says."""
    parser = argparse.ArgumentParser(description="Kill updates without rows at random times.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    chance = random.Random(options.seed)  # noqa: S311 - times of a test
    project = Project(options.directory / "project", None, warehouse={"retain": "3h"})
    updated(project, 1)
    reached: Counter[str] = Counter()
    slot, typical, killed = 1, 0.02, 0
    while killed < options.kills or (len(reached) < 3 and killed < 10 * options.kills):  # longer until each state was seen
        slot += 1
        before = (newest_epoch(project.root) or read_epoch(project.root, 0)).number
        child = os.fork()
        if child == 0:
            updated(project, slot)
            os._exit(0)
        started = time.monotonic()
        time.sleep(chance.uniform(0, 1.1) * typical)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            assert status == 0, "the update failed"
            typical = 0.8 * typical + 0.2 * (time.monotonic() - started)
            continue
        typical *= 1.02  # a guess that is too short on a busy machine is soon long enough
        killed += 1
        reached[checked(project, before, slot)] += 1
    last = newest_epoch(project.root)
    updated(project, slot + 1)
    assert checked(project, -1 if last is None else last.number, slot + 1) == "epoch"
    summary = {"kills": killed, "updates": slot, "reached": reached, "ledgers": len(numbers(project.root, "ledger"))}
    sys.stdout.write(json.dumps(summary) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
