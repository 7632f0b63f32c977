"""A million loaded landing files, ``python -m benchmarks.landing``: the time of an update for them besides listing.

The ledger is a real one, written to a temporary directory; the listing is made up, so no file needs to be there. Measured is what
an update does with them: it reads the newest ledger and the records above it, compares the listing, and looks whether another
ledger is due. Walking the listing alone is measured in turn, and subtracted. Seconds are processor time, not clock
time.
"""

from __future__ import annotations

import statistics
import time
import tracemalloc
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from warehouse.epochs.journal import record_path, write_record
from warehouse.epochs.known import keep_ledger, known_files, write_ledger
from warehouse.epochs.records import Epoch, Loaded
from warehouse.ingest.files import LandingFile
from warehouse.ingest.landing import LandingStatus, landing_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from warehouse.ingest.files import ListedFile

__all__ = ["Spent", "listing", "measure"]

_DIRECTORY = 1000
"""Files of one directory."""
_STREAM = "s"
_UPDATES = 15


@dataclass(frozen=True)
class Spent:
    """Seconds of a processor in each update, besides listing, and what walking the listing takes; ``peak`` is in bytes."""

    besides: tuple[float, ...]
    walking: tuple[float, ...]
    peak: int
    found: LandingStatus


def listing(files: int) -> Iterator[ListedFile]:
    """Yield made-up files as a listing does, in its order."""
    for number in range(files):
        day, hour = divmod(number, _DIRECTORY)
        yield f"2024/{day:06d}/events-{hour:06d}.csv.gz", 1000 + hour, (1_700_000_000 + number) * 1_000_000_000


def measure(root: Path, files: int, updates: int) -> Spent:
    """Make a ledger of files below a root, and measure updates that find them all as they were."""
    epoch = Epoch(1, 0, 0, 0, 0, 1, 0, "", (), (Loaded(_STREAM, tuple(LandingFile(*entry) for entry in listing(files))),))
    write_record(record_path(root, 0, "epoch"), replace(epoch, number=0, files=()))
    write_record(record_path(root, 1, "epoch"), epoch)
    write_ledger(root, epoch)
    besides, walking = [], []
    last = replace(epoch, files=())
    for number in range(2, 2 + updates):
        walking.append(_processor_time(lambda: sum(1 for _ in listing(files))))
        compared = _processor_time(partial(_compared, root, last, files))
        summed = _processor_time(partial(keep_ledger, root, last, 0))
        besides.append(compared + summed - walking[-1])
        last = replace(last, number=number, files=(Loaded(_STREAM, (LandingFile(f"3000/{number}.csv", 1, number),)),))
        write_record(record_path(root, number, "epoch"), last)
    tracemalloc.start()
    result = _compared(root, last, files)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Spent(tuple(besides), tuple(walking), peak, result)


def _compared(root: Path, last: Epoch, files: int) -> LandingStatus:
    return landing_status(listing(files), known_files(root, last)[_STREAM], settle=0, clock=0)


def _processor_time(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


@click.command()
@click.option("--files", default=1_000_000, show_default=True)
@click.option("--updates", default=_UPDATES, show_default=True)
def main(files: int, updates: int) -> None:
    """Print what updates spend on landing files that are all known."""
    with TemporaryDirectory(prefix="stream-wh-") as scratch:
        spent = measure(Path(scratch), files, updates)
    for name, seconds in (("besides listing", spent.besides), ("walking the made-up listing", spent.walking)):
        click.echo(f"{name}: {statistics.median(seconds):.3f} s of a processor ({min(seconds):.3f} to {max(seconds):.3f})")
    click.echo(f"memory at most: {spent.peak / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
