"""A warm Spark, and an updating process beside it for each slot on standard input, to be killed from outside.

Run as ``python -m tests.soak.worker DIRECTORY``. It answers ``ready``, then for each line ``SLOT`` on standard input ``pid N``, a
line for each moment of the update that process N makes, and ``ended CODE`` when it has ended in whatever way and Spark
is at rest; a failed update's traceback goes to standard error. ``SLOT NTH POINT`` lets the process kill itself at a moment,
and ``SLOT:WAY`` in place of a slot makes a migration of :data:`MIGRATIONS` of the process, with the clock at that slot.

Starting a JVM and warming it takes many times as long as an update. So the updating process is forked from this one and
uses its JVM by a connection of its own. When it is killed its JVM would die with it: here its jobs are cancelled, and the
next process begins when none is left. Whoever wants the JVM killed too kills the group.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.conftest import SMALL_AND_SHORT
from tests.operations.projects import at
from warehouse.catalog.load import load_catalog
from warehouse.catalog.model import LayoutSpec
from warehouse.epochs.lock import jvm_lock_path, keep_jvm_lock
from warehouse.operations.context import WriteContext
from warehouse.operations.migrate import MigrationRequest, migrate
from warehouse.operations.update import UpdateOptions, update
from warehouse.storage.session import hold_lock, release_lock, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from warehouse.epochs.points import Moment

MIGRATIONS = {
    "rebuild": MigrationRequest(LayoutSpec(technique="rebuild")),
    "beside": MigrationRequest(LayoutSpec(technique="norebuild"), side_by_side=True, move_below=1.0),
}
"""Ways of giving the stream another layout; after the second the next update moves all that is left."""
_QUIET_SECONDS = 0.25
_PAUSE_SECONDS = 0.05


def say(line: str) -> None:
    """Write a whole line at once, whichever process writes."""
    os.write(1, f"{line}\n".encode())


@dataclass
class Telling:
    """Prints each moment, and ends the process at the fatal moment, if any: a point, and which time it is reached."""

    fatal: tuple[str, int] | None
    seen: Counter[str] = field(default_factory=Counter)

    def __call__(self, moment: Moment) -> None:
        """Print a moment."""
        say(f"moment {moment.epoch} {moment.step} {moment.point}")
        self.seen[moment.point] += 1
        if self.fatal == (moment.point, self.seen[moment.point]):
            os.kill(os.getpid(), signal.SIGKILL)


def updated(directory: Path, session: SparkSession, slot: int, way: str, fatal: tuple[str, int] | None) -> int:
    """Update or migrate, in a thread of its own: a thread's connection to the JVM is its own."""
    codes: list[int] = []

    def work() -> None:
        try:
            context = WriteContext(load_catalog(directory), lambda _: session, partial(at, slot), Telling(fatal))
            if way:
                migrate(context, "rows", MIGRATIONS[way])
            else:
                update(context, UpdateOptions(at=at(slot)))
            codes.append(0)
        except BaseException:  # noqa: BLE001 - whatever it is, the one who watches is told
            traceback.print_exc()
            codes.append(1)

    working = threading.Thread(target=work)
    working.start()
    working.join()
    return codes[0] if codes else 1


def rest(session: SparkSession, root: Path) -> None:
    """Bring Spark to rest, as the end of its process would, and release its lock."""
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < _QUIET_SECONDS:
        session.sparkContext.cancelAllJobs()
        if session.sparkContext.statusTracker().getActiveJobsIds():
            quiet_since = time.monotonic()
        time.sleep(_PAUSE_SECONDS)
    release_lock(jvm_lock_path(root))


def main(directory: Path) -> None:
    """Update until standard input ends."""
    root = load_catalog(directory).root
    root.mkdir(exist_ok=True)
    session = spark_session(SMALL_AND_SHORT, small=True)
    session.range(10).count()
    say("ready")
    for line in sys.stdin:
        hold_lock(session, jvm_lock_path(root))
        keep_jvm_lock(root)
        child = os.fork()
        if child == 0:
            target, *moment = line.rstrip("\n").split(" ", 2)
            slot, _, way = target.partition(":")
            os._exit(updated(directory, session, int(slot), way, (moment[1], int(moment[0])) if moment else None))
        say(f"pid {child}")
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            rest(session, root)
        else:
            release_lock(jvm_lock_path(root))
        say(f"ended {os.waitstatus_to_exitcode(status)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
