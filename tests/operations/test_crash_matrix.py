"""Every named moment of an update, and every failure that can happen there.

After each failure readers have epoch n or n+1, and the next update completes what was begun, with the rows of the model. So
that an attempt costs one update, they follow each other in one warehouse: each update finishes what the one before left::

    update 1 fails at moment A, update 2 completes it and fails at moment B, update 3 completes that and fails at C, ...

Kills and Ctrl-C at the same moments are in :mod:`tests.operations.test_processes` and :mod:`tests.operations.test_crash_points`.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from tests.soak.arrivals import soaked
from tests.soak.witness import Witness
from warehouse.epochs.journal import epoch_path, plan_path
from warehouse.epochs.points import Moment, Point
from warehouse.errors import RecordDamagedError, SparkLostError, StorageFailedError, TornRecordError, WarehouseError
from warehouse.operations.damaged_epoch import set_aside_damaged
from warehouse.operations.unneeded_files import GRACE
from warehouse.publishing.database import DATABASE
from warehouse.publishing.difference import database_difference
from warehouse.publishing.live.log import newest_state
from warehouse.storage.entries import entry_path

from .projects import StoppedError, at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.operations.projects import Project
    from warehouse.epochs.records import Epoch

EACH_STEP = (Point.STEP_STARTED, Point.STEP_READY, Point.STEP_COMMITTED)
MOMENTS = [
    (Point.LOCKED, 1),
    (Point.PLANNED, 1),
    (Point.PLAN_WRITTEN, 1),
    *((point, nth) for nth in (1, 2, 3) for point in EACH_STEP),
    (Point.STEPS_DONE, 1),
    (Point.DURABLE, 1),
    (Point.EPOCH_WRITTEN, 1),
    (Point.DATABASE_READY, 1),
    (Point.DATABASE_REPLACED, 1),
    (Point.LIVE_READY, 1),
    (Point.LIVE_MOVED, 1),
    (Point.RETIRED, 1),
]
"""The points, and which time of an update they are reached; it has a step for rows, deferred and rejected ones."""
OF_VIEW = [(Point.STEP_READY, 1), *((point, nth) for nth in (4, 5) for point in EACH_STEP)]
"""Where an archive and a view are declared, their steps are the fourth and the fifth."""


@dataclass
class Attack:
    """Calls a function when a point is reached for the nth time, once."""

    moment: tuple[Point, int]
    act: Callable[[Moment], None]
    seen: dict[Point, int] = field(default_factory=dict)
    done: bool = False

    def __call__(self, moment: Moment) -> None:
        """See a moment."""
        self.seen[moment.point] = self.seen.get(moment.point, 0) + 1
        if not self.done and self.moment == (moment.point, self.seen[moment.point]):
            self.done = True
            self.act(moment)


@pytest.fixture(scope="module")
def witness(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Witness:
    """Return a warehouse after its first updates, with its model."""
    return begun(Witness(soaked(tmp_path_factory.mktemp("matrix") / "project", spark, viewed=False)))


@pytest.fixture(scope="module")
def viewed(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Witness:
    """Return the same with an archive and a view."""
    return begun(Witness(soaked(tmp_path_factory.mktemp("viewed") / "project", spark, archived=True)), 2)


def begun(witness: Witness, updates: int = 5) -> Witness:
    """Return the witness after some updates; after five, epochs fall out of `retain`."""
    for _ in range(updates):
        moved(witness)
        assert witness.check() is not None
    return witness


def moved(witness: Witness, attack: Attack | None = None) -> None:
    """Land rows and update; the clock moves on, so that epochs fall out of `retain`."""
    slot = witness.land()
    witness.project.clock = at(slot)
    witness.project.update(slot, **({} if attack is None else {"observer": attack}))


def completed(witness: Witness) -> None:
    """An undisturbed update completes what was begun, and makes its own epoch."""
    moved(witness)
    epoch = witness.check()
    assert epoch is not None
    assert (epoch.slot, witness.model.begun) == (witness.slot, None)
    assert database_difference(witness.project.root, epoch) is None
    for name in ("rows", *witness.project.views):
        state = newest_state(witness.project.root / "live" / name)
        assert state is not None
        assert state.epoch == epoch.number


def attacked(witness: Witness, moment: tuple[Point, int], act: Callable[[Moment], None]) -> tuple[bool, WarehouseError | None]:
    """Update under attack, check the result, and return whether the moment was reached, and the update's error."""
    attack, failure = Attack(moment, act), None
    try:
        moved(witness, attack)
    except WarehouseError as error:
        failure = error
    except StoppedError:
        pass
    witness.check()
    return attack.done, failure


def jvm(spark: SparkSession) -> int:
    """Return the process of Spark."""
    return int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


@pytest.fixture
def full_disk(spark: SparkSession) -> Iterator[Callable[[], None]]:
    """Return a function that fills the disk: files of this process and Spark cannot grow beyond 64 bytes afterwards."""
    pids = (os.getpid(), jvm(spark))
    before = {pid: resource.prlimit(pid, resource.RLIMIT_FSIZE) for pid in pids}

    def fill() -> None:
        for pid in pids:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (64, before[pid][1]))

    def free() -> None:
        for pid in pids:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before[pid])

    fill.free = free  # type: ignore[attr-defined]
    yield fill
    free()


@pytest.mark.parametrize(
    ("name", "moments"),
    [("witness", MOMENTS), pytest.param("viewed", OF_VIEW, marks=pytest.mark.long)],
    ids=["rows", "view"],
)
def test_a_full_disk_at_every_moment(
    request: pytest.FixtureRequest, full_disk: Callable[[], None], name: str, moments: list[tuple[Point, int]]
) -> None:
    """The update fails with an error; once there is space the next update completes it."""
    witness: Witness = request.getfixturevalue(name)
    failures = 0
    for moment in moments:
        slot = witness.land()
        witness.project.clock = at(slot)
        attack = Attack(moment, lambda _: full_disk())
        try:
            witness.project.update(slot, observer=attack)
        except StorageFailedError:
            failures += 1
        finally:
            full_disk.free()  # type: ignore[attr-defined]
        assert attack.done, moment
        witness.check()
    assert failures >= len(moments) - 3, "after the epoch there is little left to write"
    completed(witness)


def test_a_place_that_cannot_be_written_at_every_moment(witness: Witness) -> None:
    """A directory blocks the next file to write, since root is not stopped by missing permissions."""
    root = witness.project.root
    failures = 0
    for moment in MOMENTS[::2]:
        blocks: list[Path] = []

        def block(_: Moment, blocks: list[Path] = blocks) -> None:
            numbers = (len(witness.model.states), len(witness.model.states) + 1)
            logs = list(root.glob("*/*/_delta_log"))
            newest = [max(int(path.stem) for path in log.glob("0*.json")) for log in logs]
            paths = [record(root, number) for number in numbers for record in (plan_path, epoch_path)]
            paths += [entry_path(log.parent, version + 1) for log, version in zip(logs, newest, strict=True)]
            blocks += [path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in paths]
            blocks.append(root / f".{DATABASE}.tmp")
            for directory in blocks:
                directory.mkdir()

        slot = witness.land()
        witness.project.clock = at(slot)
        try:
            witness.project.update(slot, observer=Attack(moment, block))
        except StorageFailedError:
            failures += 1
        finally:
            for directory in blocks:
                directory.rmdir()
        witness.check()
    assert failures >= len(MOMENTS[::2]) - 2
    completed(witness)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_directories_without_permission_at_every_moment(witness: Witness) -> None:
    """The same with real permissions."""
    root = witness.project.root
    for moment in MOMENTS:
        changed = [path for path in (root / "epochs", *root.glob("*/*/_delta_log"), *root.glob("tables/*")) if path.is_dir()]

        def close(_: Moment, changed: list[Path] = changed) -> None:
            for path in changed:
                path.chmod(0o555)

        slot = witness.land()
        witness.project.clock = at(slot)
        try:
            with suppress(StorageFailedError):
                witness.project.update(slot, observer=Attack(moment, close))
        finally:
            for path in changed:
                path.chmod(0o755)
        witness.check()
    completed(witness)


def test_spark_loses_its_work(viewed: Witness, spark: SparkSession) -> None:
    """Jobs are cancelled while they run, as if a task had failed for good: worth retrying, no file or view is blamed.

    Between a commit and the next step there are none.
    """
    failures = 0
    of_view = [moment for moment in OF_VIEW if moment[0] != Point.STEP_COMMITTED]
    for moment in ((Point.PLAN_WRITTEN, 1), (Point.STEP_STARTED, 2), *of_view):
        stop = threading.Event()

        def cancel(_: Moment, stop: threading.Event = stop) -> None:
            def again_and_again() -> None:
                while not stop.wait(0.01):
                    spark.sparkContext.cancelAllJobs()

            threading.Thread(target=again_and_again, daemon=True).start()

        try:
            _, failure = attacked(viewed, moment, cancel)
        finally:
            stop.set()
        if failure is not None:
            failures += 1
            assert isinstance(failure, SparkLostError), failure
            assert failure.exit_code == 3
    assert failures >= 4
    completed(viewed)
    assert all(state.view is None or state.view.failed is None for state in viewed.project.epoch.tables)


def truncated(path: Path, share: float) -> None:
    """Cut a file to a share of its bytes."""
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


@pytest.mark.parametrize("share", [0, 0.999])
def test_a_plan_cut_short_before_anything_was_done(witness: Witness, share: float) -> None:
    """The plan is made again; the rows that it would have loaded are loaded."""

    def cut(moment: Moment) -> None:
        truncated(plan_path(witness.project.root, moment.epoch), share)
        raise StoppedError

    moved_by = Attack((Point.PLAN_WRITTEN, 1), cut)
    with pytest.raises(StoppedError):
        moved(witness, moved_by)
    completed(witness)


def test_a_plan_cut_short_while_tables_depend_on_it(witness: Witness) -> None:
    """The update names the file and changes nothing; readers have the last epoch; with the file back, it is completed."""
    contents: dict[Path, bytes] = {}

    def cut(moment: Moment) -> None:
        path = plan_path(witness.project.root, moment.epoch)
        contents[path] = path.read_bytes()
        truncated(path, 0.5)
        raise StoppedError

    with pytest.raises(StoppedError):
        moved(witness, Attack((Point.STEP_COMMITTED, 1), cut))
    (path,) = contents
    witness.check()
    with pytest.raises(RecordDamagedError, match=path.name):
        moved(witness)
    witness.check()
    path.write_bytes(contents[path])
    completed(witness)


@pytest.mark.parametrize("share", [0, 0.999])
@pytest.mark.parametrize("moment", [(Point.EPOCH_WRITTEN, 1), (Point.RETIRED, 1)], ids=["written", "retired"])
def test_an_epoch_cut_short(witness: Witness, moment: tuple[Point, int], share: float) -> None:
    """Readers have the epoch before, and the next update makes the epoch again from its plan and the tables' logs."""
    root = witness.project.root
    before = witness.check()
    assert before is not None

    def cut(reached: Moment) -> None:
        truncated(epoch_path(root, reached.epoch), share)
        raise StoppedError

    with pytest.raises(StoppedError):
        moved(witness, Attack(moment, cut))
    newest = witness.check()
    assert newest is not None
    assert newest.number == before.number
    completed(witness)
    assert list((root / "epochs").glob("*.damaged"))
    for path in (root / "epochs").glob("*.damaged"):
        path.unlink()


def test_an_epoch_cut_short_that_nothing_can_make_anew(witness: Witness) -> None:
    """Without its plan, or without an epoch before it, the record must come from a copy; the error names it."""
    root = witness.project.root
    newest = witness.check()
    assert newest is not None
    path, plan = epoch_path(root, newest.number), plan_path(root, newest.number)
    whole, recorded = path.read_bytes(), plan.read_bytes()
    truncated(path, 0.5)
    plan.unlink()
    with pytest.raises(TornRecordError, match=path.name):
        set_aside_damaged(root)
    plan.write_bytes(recorded[:50])
    with pytest.raises(TornRecordError, match=plan.name):
        set_aside_damaged(root)
    plan.write_bytes(recorded)
    path.write_bytes(whole)
    assert set_aside_damaged(root) is None
    completed(witness)


@pytest.mark.parametrize(("nth", "share"), [(1, 0), (1, 0.999), (2, 0.4), (3, 0)])
def test_a_commit_half_written(witness: Witness, nth: int, share: float) -> None:
    """It counts for nothing, in any table: it is undone, and its step is done again."""
    root = witness.project.root

    def cut(_: Moment) -> None:
        commits = [path for path in root.glob("*/*/_delta_log/0*.json") if path.stem.isdigit()]
        truncated(max(commits, key=lambda path: path.stat().st_mtime_ns), share)
        raise StoppedError

    with pytest.raises(StoppedError):
        moved(witness, Attack((Point.STEP_COMMITTED, nth), cut))
    witness.check()
    completed(witness)


@pytest.mark.parametrize("damage", ["empty", "cut", "pointer", "gone"])
def test_a_checkpoint_half_written(witness: Witness, damage: str) -> None:
    """The log's sums are not the log: one that is above the epochs, as an older build or another writer makes them before the
    epoch, and that a power loss damaged, stops neither readers nor updates.
    """  # noqa: D205 - one sentence
    named = {witness.project.root / state.path: state.version for state in witness.project.epoch.tables}

    def cut(_: Moment) -> None:
        for table, version in named.items():
            newest = DeltaTable(str(table))
            newest.create_checkpoint()
            made = table / "_delta_log" / f"{newest.version():020d}.checkpoint.parquet"
            pointer = made.with_name("_last_checkpoint")
            if damage == "gone":
                pointer.unlink()
            elif damage == "pointer":
                truncated(pointer, 0.5)
            elif newest.version() > version:
                truncated(made, 0 if damage == "empty" else 0.5)
        raise StoppedError

    with pytest.raises(StoppedError):
        moved(witness, Attack((Point.STEPS_DONE, 1), cut))
    witness.check()
    completed(witness)


def test_a_small_disk_that_fills_up(tmp_path: Path, spark: SparkSession) -> None:
    """A file system of 4 MB, filled to the last block at several moments."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if shutil.which("mount") is None or subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], capture_output=True, check=False
    ).returncode:
        pytest.skip("mounting a file system is not permitted here; the limit on file sizes is tested")
    try:
        witness = Witness(soaked(disk / "project", spark, viewed=False))
        moved(witness)
        witness.check()
        for moment in ((Point.PLANNED, 1), (Point.STEP_STARTED, 1), (Point.STEP_READY, 2), (Point.DURABLE, 1)):

            def fill(_: Moment) -> None:
                with suppress(OSError), (disk / "ballast").open("wb", buffering=0) as ballast:
                    while True:
                        ballast.write(b"x" * 512)

            slot = witness.land()
            witness.project.clock = at(slot)
            with pytest.raises(StorageFailedError, match="No space left"):
                witness.project.update(slot, observer=Attack(moment, fill))
            (disk / "ballast").unlink()
            witness.check()
        completed(witness)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_nothing_is_left_behind(witness: Witness) -> None:
    """Afterwards a vacuum deletes what the failures left, and every epoch is unchanged."""
    completed(witness)
    project: Project = witness.project
    before: Epoch = project.epoch
    project.clock = time.time_ns() // 1000 + 2 * GRACE
    swept = project.updater().vacuum()
    assert swept.files > 0
    project.clock = at(witness.slot)
    assert project.epoch == before
    witness.check()
    named = {str(path) for path in project.root.rglob("*") if "_staged" in path.parts or path.suffix == ".tmp"}
    assert {path for path in named if "epochs" not in path} == set()
