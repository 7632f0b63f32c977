"""The context of every verb that writes: the declarations, the clock, Spark when it is needed, and the writer lock."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from warehouse.epochs.journal import newest_epoch
from warehouse.epochs.lock import announce, jvm_lock_path, keep_jvm_lock, writer_lock
from warehouse.epochs.points import Moment, Observer, Point, nobody
from warehouse.errors import LockHeldError, WarehouseError
from warehouse.operations.decided_catalog import decided_catalog
from warehouse.planning.inputs import stream_inputs
from warehouse.storage.failures import passing_failure
from warehouse.storage.session import release_lock
from warehouse.storage.store import store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import Epoch
    from warehouse.ingest.load_preview import ClassifiedRows
    from warehouse.planning.inputs import Excluded, LandingFacts
    from warehouse.planning.plan import StreamInput

__all__ = ["WriteContext", "announced", "locked", "log_event", "logged"]


_roots_of_the_jvm: set[Path] = set()
"""Roots whose lock the JVM of this process holds."""


@dataclass
class WriteContext:
    """The values shared by the verbs that write to one warehouse.

    Parameters
    ----------
    declared
        The declarations in force.
    start_spark
        Returns the Spark session for about a number of bytes of work; called only if there is work.
    clock
        Returns the wall-clock instant in microseconds.
    observer
        Called at every point of an update.
    waiting
        How many bytes waited in the landing directories when they were last listed; None before that.
    classified
        Waiting rows by stream that were classified before the plan that loads them; the plan takes them from here.

    """

    declared: Catalog
    start_spark: Callable[[int], SparkSession]
    clock: Callable[[], int]
    observer: Observer = nobody
    waiting: int | None = None
    classified: Mapping[str, ClassifiedRows] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        """The warehouse's directory."""
        return self.declared.root

    @property
    def catalog(self) -> Catalog:
        """The declarations in force; coalesced tables for which an epoch decided so are lazy."""
        return decided_catalog(self.declared, self.root)

    def observe(self, point: Point, epoch: int = -1, text: str = "") -> None:
        """Call the observer; ``epoch`` is -1 before a plan has a number."""
        self.observer(Moment(point, epoch, text=text))

    def inputs(self, last: Epoch | None, excluded: Excluded) -> tuple[list[StreamInput], tuple[LandingFacts, ...]]:
        """List the landing directories; see :func:`warehouse.planning.inputs.stream_inputs`."""
        inputs, facts = stream_inputs(self.catalog, last, excluded, self.clock())
        self.waiting = sum(file.size for stream_input in inputs for group in stream_input.groups for file in group.files)
        return inputs, facts

    def reading_spark(self) -> SparkSession:
        """Return Spark, configured for the waiting landing files and for the rows that one update may read."""
        last = newest_epoch(self.root)
        if self.waiting is None:
            self.inputs(last, {})
        stored_bytes = sum(part.bytes for state in (last.tables if last else ()) for part in state.partitions)
        return self.start_spark((self.waiting or 0) + stored_bytes // 4)

    def writing_spark(self) -> SparkSession:
        """Return Spark for writing: its JVM holds the warehouse's lock from now on, and cannot write after this process ends."""
        from warehouse.storage.session import hold_lock  # noqa: PLC0415 - only with Spark

        if self.root in _roots_of_the_jvm:  # it runs: how much work there is starts it no other way
            return self.start_spark(0)
        session = self.reading_spark()
        hold_lock(session, jvm_lock_path(self.root))
        _roots_of_the_jvm.add(self.root)
        return session


@contextmanager
def locked(context: WriteContext) -> Iterator[None]:
    """Hold the writer lock, and turn failures that pass by themselves into errors of this library.

    Raises
    ------
    LockHeldError
        When another process has the lock, or wrote first to an object store.

    """
    root = context.root
    with writer_lock(root, context.clock()):
        context.observe(Point.LOCKED)
        with _jvm_released(root):
            yield


@contextmanager
def _jvm_released(root: Path) -> Iterator[None]:
    """Release the lock of the JVM. After Ctrl-C the JVM may still run, so it keeps the lock until it ends."""
    interrupted = False
    try:
        yield
    except WarehouseError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and store_of(root).overtaken(error):
            raise LockHeldError(f"another process, which wrote {error.filename} first") from error
        passing = passing_failure(error)
        if passing is None:
            raise
        raise passing from error
    except (KeyboardInterrupt, SystemExit):
        interrupted = True
        raise
    finally:
        if not interrupted:
            release_lock(jvm_lock_path(root))
            _roots_of_the_jvm.discard(root)
        elif root in _roots_of_the_jvm:
            keep_jvm_lock(root)


# Logs the progress of an update by the standard library: logger ``warehouse.updates``, one record for each moment.
#
# A record's message is for people; its attribute ``fields`` has the same facts for machines. Neither has values of rows, keys or
# settings. The caller of the library configures the logger.

_LOGGER = logging.getLogger("warehouse.updates")
_TOLD = {
    Point.LOCKED: logging.INFO,
    Point.PLAN_WRITTEN: logging.INFO,
    Point.STEP_STARTED: logging.DEBUG,
    Point.STEP_COMMITTED: logging.INFO,
    Point.EPOCH_WRITTEN: logging.INFO,
    Point.RETIRED: logging.INFO,
}


def logged(observer: Observer) -> Observer:
    """Return an observer that logs each moment, then calls another observer."""

    def observe(moment: Moment) -> None:
        level = _TOLD.get(moment.point, logging.DEBUG)
        position = {"epoch": moment.epoch if moment.epoch >= 0 else None, "step": moment.step if moment.step >= 0 else None}
        fields = {"point": moment.point.value, **{name: value for name, value in position.items() if value is not None}}
        log_event(level, f"{moment.point.value}: {moment.text}" if moment.text else moment.point.value, fields)
        observer(moment)

    return observe


def announced(root: Path, observer: Observer) -> Observer:
    """Return an observer that records each step next to the writer lock, for ``status`` to show, then calls another."""
    words = {Point.PLANNED: "planned", Point.STEPS_DONE: "making it durable", Point.EPOCH_WRITTEN: "epoch written, tidying up"}

    def observe(moment: Moment) -> None:
        if moment.point is Point.STEP_STARTED:
            announce(root, f"epoch {moment.epoch}, step {moment.step + 1}: {moment.text}")
        elif moment.point in words:
            announce(root, f"epoch {moment.epoch}: {words[moment.point]}")
        observer(moment)

    return observe


def log_event(level: int, message: str, fields: Mapping[str, object]) -> None:
    """Log a message with its fields."""
    _LOGGER.log(level, message, extra={"fields": dict(fields)})
