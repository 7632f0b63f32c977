"""From a plan to its epoch: record it, execute it, publish the epoch; and finish what an earlier process began."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from warehouse.epochs.journal import epoch_path, newest_epoch, numbers, plan_path, read_record, write_record
from warehouse.epochs.lock import jvm_lock_path, keep_jvm_lock
from warehouse.epochs.points import Moment, Observer, Point, nobody
from warehouse.epochs.records import Epoch, Loaded
from warehouse.errors import ForeignChangeError, LockHeldError, RecordDamagedError, UsageError, WarehouseError
from warehouse.objects.path import ObjectPath, directories_in
from warehouse.operations.giving_up import give_up
from warehouse.operations.mend import set_aside_torn
from warehouse.operations.standing import stopped_of
from warehouse.planning.inputs import stream_inputs
from warehouse.planning.steps import CreateTable, MoveDeferred, MoveRelation, MoveWindow, Plan, RewriteCells
from warehouse.steps.foreign import settle
from warehouse.steps.pinned import with_entries
from warehouse.storage.deltalog import commits_after
from warehouse.storage.failures import passing_failure
from warehouse.storage.session import release_lock
from warehouse.storage.tables import FOLDERS
from warehouse.time import format_instant
from warehouse.views.algebra import tables_read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from warehouse.catalog.model import Catalog
    from warehouse.operations.erasure.receipt import Receipt
    from warehouse.planning.inputs import Excluded, LandingFacts
    from warehouse.planning.plan import StreamInput
    from warehouse.steps.foreign import StoppedTable

__all__ = ["PlanExecutor", "released"]

_at_work: set[Path] = set()
"""Roots whose lock the JVM of this process holds."""


@contextmanager
def released(root: Path) -> Iterator[None]:
    """Give back the lock of the JVM, unless Ctrl-C came: then it may be at work still, and keeps the lock until it ends."""
    interrupted = False
    try:
        yield
    except WarehouseError:
        raise
    except Exception as error:
        if isinstance(error, FileExistsError) and isinstance(root, ObjectPath):
            raise LockHeldError(f"another process, which wrote {error.filename} first") from error
        told = passing_failure(error)
        if told is None:
            raise
        raise told from error
    except (KeyboardInterrupt, SystemExit):
        interrupted = True
        raise
    finally:
        if not interrupted:
            release_lock(jvm_lock_path(root))
            _at_work.discard(root)
        elif root in _at_work:
            keep_jvm_lock(root)


@dataclass(frozen=True)
class PlanExecutor:
    """Records plans of one warehouse, carries them out, and finishes those that were begun; the caller holds the lock.

    Parameters
    ----------
    catalog
        The declarations in force.
    spark
        Gives the Spark session for about so many bytes of work; called only when there is some.
    clock
        Gives the wall-clock instant in microseconds.
    observer
        Called at every point of an update.
    stopped
        The directories that outsiders changed, as was seen when what was begun was finished; ``notices`` what else to tell.
    waiting
        How many bytes waited in the landing directories when they were listed last; nothing before that.

    """

    catalog: Catalog
    spark: Callable[[int], SparkSession]
    clock: Callable[[], int]
    observer: Observer = nobody
    stopped: dict[str, StoppedTable] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)

    @property
    def root(self) -> Path:
        """The warehouse's directory."""
        return self.catalog.root

    # --- one plan ---

    def _begun(self, plan: Plan, last: Epoch | None) -> Epoch:
        """Record a plan, then execute it."""
        self._require_untouched(plan, last)
        self._check_plan(plan)
        self.observer(Moment(Point.PLANNED, plan.epoch, text=f"window time {format_instant(plan.window_time)}"))
        write_record(plan_path(self.root, plan.epoch), plan)
        self.observer(Moment(Point.PLAN_WRITTEN, plan.epoch))
        return self._execute(plan, last)

    def _require_untouched(self, plan: Plan, last: Epoch | None) -> None:
        """Never write to a table that outsiders changed; but for updates, nor build on one that is of an earlier slot."""
        for step in plan.steps:
            changed = self.stopped.get(step.path)
            if changed is not None:
                raise changed.error
        if plan.cause == "update" and plan.erasure is None:
            return
        reads = {table for node in plan.nodes for table in tables_read(node.node.operator)}
        for name, reason in (stopped_of(last) if last else {}).items():
            if name in reads or any(step.stream == name for step in plan.steps):
                raise UsageError(f'table "{name}" stands still: {reason}')

    def _check_plan(self, plan: Plan) -> None:
        """Find before anything is written what would stop the plan for good, since a recorded plan is always finished."""
        for step in plan.steps:
            if isinstance(step, CreateTable) and (self.root / step.path / "_delta_log").exists():
                raise UsageError(
                    f'a table "{step.stream}" was dropped, and epochs that are still readable have its files in '
                    f"{self.root / step.path}; lower `retain` and run `stream-wh vacuum`, or choose another name"
                )
        from warehouse.ingest.checked import (  # noqa: PLC0415 - planning alone needs no Spark
            check_condition,
            check_expressions,
            needs_no_check,
        )

        reads = {step.stream for step in plan.steps if isinstance(step, MoveWindow | RewriteCells | MoveRelation | MoveDeferred)}
        for stream in self.catalog.sources:
            if stream.name in reads and not needs_no_check(stream):
                check_expressions(self._guarded_spark(), stream)
        followed = {step.stream for step in plan.steps} if self.catalog.aggregates else set()
        for aggregate in self.catalog.aggregates:
            asked = aggregate.definition
            source = self.catalog.stream(asked.source)
            if asked.where is not None and source is not None and aggregate.name in followed:
                check_condition(self._guarded_spark(), source, f"aggregates.{aggregate.name}.where", asked.where)

    def _execute(self, plan: Plan, last: Epoch | None) -> Epoch:
        from warehouse.steps.execute import execute  # noqa: PLC0415 - planning alone needs no Spark

        epoch = execute(plan, self.root, last, spark=self._guarded_spark, clock=self.clock, observer=self.observer)
        self._publish(epoch)
        return epoch

    def _publish(self, epoch: Epoch, *, rebuild: bool = False) -> None:
        """Replace the file that other tools open by that of an epoch just committed."""
        from warehouse.publishing.database import replace as replace_database  # noqa: PLC0415 - it takes the engine

        replace_database(self.root, epoch, observer=self.observer, rebuild=rebuild)
        self._publish_live(epoch, rebuild=rebuild)

    def _publish_live(self, epoch: Epoch, *, rebuild: bool = False) -> tuple[str, ...]:
        """Bring the Delta tables of exactly the live rows to the newest epoch, and return those that were not there."""
        from warehouse.publishing.live.publish import publish  # noqa: PLC0415 - as above
        from warehouse.publishing.live.rules import live_rules  # noqa: PLC0415 - as above

        return publish(self.root, epoch, live_rules(self.catalog), now=self.clock(), observer=self.observer, rebuild=rebuild)

    def _publish_again(self, newest: Epoch | None) -> None:
        """Make that file again where it is missing or of another epoch or place, and move live tables that are behind."""
        from warehouse.publishing.database import replace_if_needed  # noqa: PLC0415 - as above

        replace_if_needed(self.root, newest, observer=self.observer)
        if newest is not None:
            self._publish_live(newest)

    def _inputs(self, last: Epoch | None, excluded: Excluded) -> tuple[list[StreamInput], tuple[LandingFacts, ...]]:
        """List the landing directories; see :func:`warehouse.planning.inputs.stream_inputs`."""
        inputs, facts = stream_inputs(self.catalog, last, excluded, self.clock())
        self.waiting[:] = [sum(file.size for given in inputs for group in given.groups for file in group.files)]
        return inputs, facts

    def _some_spark(self) -> SparkSession:
        """Return Spark for what waits in the landing directories and what one update may read of the tables."""
        last = newest_epoch(self.root)
        if not self.waiting:
            self._inputs(last, {})
        stored = sum(part.bytes for state in (last.tables if last else ()) for part in state.partitions)
        return self.spark(self.waiting[0] + stored // 4)

    def _guarded_spark(self) -> SparkSession:
        from warehouse.storage.session import hold_lock  # noqa: PLC0415 - only with Spark

        if self.root in _at_work:  # it runs: how much work there is starts it no other way
            return self.spark(0)
        session = self._some_spark()
        hold_lock(session, jvm_lock_path(self.root))
        _at_work.add(self.root)
        return session

    def _finish(self) -> tuple[Epoch | None, tuple[Epoch, ...]]:
        """Finish an unfinished plan and return the newest epoch."""
        set_aside_torn(self.root)
        last = newest_epoch(self.root)
        plan = self._unfinished(last)
        finished: tuple[Epoch, ...] = ()
        if plan is not None:
            try:
                last = self._execute(plan, last)
                finished = (last,)
            except ForeignChangeError:
                if not give_up(self.root, plan, last, at=self.clock()):
                    raise
        self._carry_out(last)
        adopted = self._settle(last)
        return (adopted or last), (*finished, *([] if adopted is None else [adopted]))

    def _settle(self, last: Epoch | None) -> Epoch | None:
        """Judge what outsiders committed since: what changed no row comes into an epoch of its own, all else stops its table."""
        self.stopped.clear()
        if last is None:
            return None
        found = settle(self.root, last, at=self.clock())
        self.stopped.update({stopped.path: stopped for stopped in found.stopped})
        if found.tables is None:
            self.notices.extend(found.warnings)
            return None
        changes = {"tables": found.tables, "foreign": found.foreign, "removed": found.removed, "warnings": found.warnings}
        return self._record(last, (), cause="adopt", **changes)

    def _carry_out(self, newest: Epoch | None) -> Receipt | None:
        """Do what is left of an erasure that made the newest epoch."""
        if newest is None or newest.erased is None:
            return None
        from warehouse.operations.erasure.erase import complete, is_open  # noqa: PLC0415 - now and then

        if not is_open(self.root, newest):
            return None
        self._publish_again(newest)
        return complete(self.catalog, newest, now=self.clock(), observer=self.observer, spark=self._guarded_spark)

    def _unfinished(self, last: Epoch | None) -> Plan | None:
        try:
            return self._recorded_plan(last)
        except RecordDamagedError:
            if any(self._moved(last)):
                raise
            plan_path(self.root, 0 if last is None else last.number + 1).unlink()
            return None

    def _recorded_plan(self, last: Epoch | None) -> Plan | None:
        number = 0 if last is None else last.number + 1
        return read_record(plan_path(self.root, number), Plan) if number in numbers(self.root, "plan") else None

    def _moved(self, last: Epoch | None) -> Iterator[bool]:
        """Whether some table is above the last epoch: then a damaged plan cannot be made again."""
        versions = {}
        for state in last.tables if last else ():
            versions[state.path] = state.version
            versions.update({side.path: side.version for side in state.sides})
        for kind in FOLDERS:
            for table in directories_in(self.root / kind):
                yield any(True for _ in commits_after(table, versions.get(f"{kind}/{table.name}", -1)))

    def _record(self, last: Epoch, files: Sequence[Loaded], **changes: object) -> Epoch:
        """Write an epoch at the same window time; files that the last one left for another stay left."""
        left = [Loaded(entry.stream, more=entry.more, k0=entry.k0, first=entry.first) for entry in last.files if entry.more]
        blank = {
            "counts": (), "seconds": (), "removed": (), "warnings": (), "foreign": (),
            "starts_from": None, "planned_at": 0, "erased": None,
        }  # fmt: skip
        numbered = {"number": last.number + 1, "committed_at": self.clock(), "files": (*files, *left)}
        epoch = with_entries(self.root, replace(last, **{**blank, **numbered, **changes}), last, {})  # type: ignore[arg-type]
        write_record(epoch_path(self.root, epoch.number), epoch)
        self._publish(epoch)
        return epoch
