"""The results of an update on a disk that loses power at each moment, fails each sync, or damages each file.

    python -m tests.soak.faults DIRECTORY

After a loss of power or a failed sync the next update makes what was begun, with the rows of an update that nothing disturbed.
Of damage to a file that the update made, `check` says which file, or it changes nothing: readers, which do not verify, may give
other rows only while `check` says so, and a way back leads to all rows.

The updates are some by which rows expire, which need no Spark once the warehouse is made; with ``--loads`` there is one that
loads rows, too.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from tests.conftest import SMALL_AND_SHORT
from tests.operations.disk import FailingDisk
from tests.operations.expiring import expiring_of
from tests.operations.outsiders import empty_commit
from tests.operations.projects import row
from tests.views.warehouses import land
from warehouse import Warehouse
from warehouse.checking.check import check
from warehouse.errors import NotDurableError, WarehouseError
from warehouse.storage.local_disk import watching
from warehouse.storage.session import spark_session

from .broken_disk import DAMAGES, LOSSES, LosingDisk, Moment, change_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from tests.operations.projects import Project

__all__ = ["Trial", "main", "with_checkpoints"]

_BEFORE_A_CHECKPOINT = 9
_SYSTEM = ("sub_index", "exp_block")

Rows = dict[str, list[str]]


def rows_of(project: Project) -> Rows:
    """Return the live rows of every table, with the user's columns, and the waiting and rejected rows."""
    rows: Rows = {}
    for state in project.epoch.tables:
        for role, read in (("live", project.live), ("waiting", project.deferred), ("rejected", project.rejected)):
            rows[f"{role} {state.name}"] = sorted(str(_of_user(record)) for record in read(state.name))
    return rows


def _of_user(row: dict[str, object]) -> dict[str, object]:
    """Omit the system columns, which another update may fill with other values."""
    return {name: value for name, value in row.items() if name[0] != "_" and name not in _SYSTEM}


def served(project: Project) -> Rows:
    """Return the rows of every table as readers see them."""
    names = [*project.streams, *project.relations, *project.views]
    with Warehouse.open(project.directory) as warehouse:
        return {name: sorted(map(repr, warehouse.scan(name).all())) for name in names}


def faults_of(project: Project) -> list[str]:
    """Return the faults that `check` finds, or the error that ends the check."""
    try:
        return [f"{fault.code}: {fault.message}" for fault in check(project.root).faults]
    except WarehouseError as error:
        return [f"{type(error).__name__}: {error}"]


def _contents(project: Project) -> dict[Path, bytes]:
    return {path.relative_to(project.directory): path.read_bytes() for path in project.root.rglob("*") if path.is_file()}


@dataclass
class Trial:
    """An update of a project to an hour, and its results under each fault.

    ``begun`` is the project before the update, ``scratch`` a directory for copies. ``counts`` says how often what came of which
    fault; ``wrong`` has what must not be: rows lost, or others without a word.
    """

    begun: Project
    hour: float
    scratch: Path
    chance: random.Random = field(default_factory=lambda: random.Random(17))  # noqa: S311 - nothing is secret here
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the update on a disk that does what it should."""
        self.before = served(self.begun)
        self.moved = self.begun.copy(self.scratch / "moved")
        disk, counting = LosingDisk(self.moved.directory, self.scratch / "moments"), FailingDisk()
        with watching(disk), watching(counting):
            self.moved.update(self.hour)
        assert not disk.faults
        assert not faults_of(self.moved)
        self.moments, self.syncs = disk.moments, counting.syncs
        self.rows, self.served = rows_of(self.moved), served(self.moved)
        old = _contents(self.begun)
        self.made = {path: content for path, content in _contents(self.moved).items() if content and old.get(path) != content}

    @property
    def files(self) -> list[Path]:
        """The files that the update made or changed."""
        return sorted(self.made)

    @contextmanager
    def _copied(self, directory: Path) -> Iterator[Project]:
        copy = self.scratch / "copy"
        shutil.copytree(directory, copy)
        try:
            yield self.begun.declared_in(copy)
        finally:
            shutil.rmtree(copy)

    # --- losses of power, failed syncs ---

    def lose_power(self, moments: Iterable[Moment], losses: Iterable[str] = LOSSES) -> None:
        """Lose what was not synced at each of these moments, in each of these ways; equal remains are tried once."""
        seen: list[dict[Path, bytes]] = []
        for moment in moments:
            for name in losses:
                with self._copied(moment.copy) as project:
                    change = LOSSES[name](moment, self.chance)
                    change_files(project.directory, change)
                    if (contents := _contents(project)) not in seen:
                        seen.append(contents)
                        self._go_on(project, "power lost", f"{name} before {moment.event} of {sorted(map(str, change))}")

    def fail_syncs(self, places: Iterable[int]) -> None:
        """Let the disk fail each of these syncs: the update stops with an error, or continues without a checkpoint."""
        for number in places:
            with self._copied(self.begun.directory) as project:
                disk = FailingDisk(number)
                try:
                    with watching(disk):
                        project.update(self.hour)
                except NotDurableError:
                    self._go_on(project, "sync failed", f"sync {number} of {disk.syncs[number]}")
                else:
                    self._go_on(project, "sync of a checkpoint failed", f"sync {number} of {disk.syncs[number]}")

    def _go_on(self, project: Project, fault: str, where: str) -> None:
        """Run the update again; the result must equal an undisturbed update."""
        try:
            project.update(self.hour)
        except WarehouseError as error:
            self.wrong.append(f"{fault}: {where}: the next update ended with {type(error).__name__}: {error}")
            return
        if (faults := faults_of(project)) or rows_of(project) != self.rows:
            self.wrong.append(f"{fault}: {where}: {faults or 'other rows'}")
            return
        self.counts[f"{fault}: the next update completed"] += 1

    # --- damage ---

    def damage(self, files: Iterable[Path], kinds: Iterable[str] = DAMAGES) -> None:
        """Damage each of these files of the update in each of these ways."""
        for file in files:
            for kind in kinds:
                with self._copied(self.moved.directory) as project:
                    change_files(project.directory, {file: DAMAGES[kind](self.made[file], self.chance)})
                    self._judge(project, file, f"{file} {kind}")

    def _judge(self, project: Project, file: Path, where: str) -> None:
        read, faults = self._read(project), faults_of(project)
        self.counts[f"damaged: {'named by check' if faults else 'nothing to name'}, reads {read}"] += 1
        if not faults and read == "gave other rows":
            self.wrong.append(f"{where}: reads {read}, and check finds nothing")
            return
        for name, way in self._ways(file).items():
            with self._copied_again(project) as again:
                if self._leads_back(again, way):
                    self.counts[f"damaged: all rows are back by {name}"] += 1
                    return
        self.wrong.append(f"{where}: no way leads back, of {faults}")

    def _read(self, project: Project) -> str:
        try:
            rows = served(project)
        except WarehouseError:
            return "ended with an error"
        return "were right" if rows == self.served else "gave the epoch before" if rows == self.before else "gave other rows"

    @contextmanager
    def _copied_again(self, project: Project) -> Iterator[Project]:
        copy = self.scratch / "again"
        shutil.copytree(project.directory, copy)
        try:
            yield self.begun.declared_in(copy)
        finally:
            shutil.rmtree(copy)

    def _ways(self, file: Path) -> dict[str, Callable[[Project], object]]:
        before = self.moved.epoch.number - 1
        return {
            "the next update": lambda _: None,
            "`check --repair`": lambda project: project.updater().repair(),
            "`rollback`": lambda project: project.updater().rollback(before),
            "a copy of the file": lambda project: change_files(project.directory, {file: self.made[file]}),
        }

    def _leads_back(self, project: Project, way: Callable[[Project], object]) -> bool:
        try:
            way(project)
            project.update(self.hour)
            return not faults_of(project) and rows_of(project) == self.rows
        except WarehouseError:
            return False


def with_checkpoints(project: Project) -> Project:
    """Let the next commit of each stream make a checkpoint."""
    for name in project.streams:
        table = project.root / "tables" / name
        while DeltaTable(str(table)).version() < _BEFORE_A_CHECKPOINT:
            empty_commit(table)
    project.updater().repair()
    return project


def _begun(project: Project, directory: Path, spark: Callable[[], SparkSession] | None) -> Iterator[tuple[float, Project]]:
    """Yield the hours to try, each with a project before its update: rows expire, checkpoints are due, rows arrive."""
    yield 3, project
    project = project.copy(directory / "second")
    project.update(3)
    yield 4, with_checkpoints(project)
    if spark is not None:
        project = project.copy(directory / "third")
        project.spark = spark()
        land(project, 4, {"a": [row("n", 3.2, 6) + ",7", row("no", 3.2, "?") + ",8"], "b": [row("n", 3.5, 5) + ",9"]}, "k,b,e,v")
        yield 4, project


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the module says."""
    parser = argparse.ArgumentParser(description="Let a disk fail an update at each moment.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--every", type=int, default=1, help="of the moments, syncs and files, one in so many")
    parser.add_argument("--loads", action="store_true", help="try an update that loads rows, too: far longer")
    options = parser.parse_args(arguments)
    part = slice(None, None, options.every)
    session = cache(lambda: spark_session(SMALL_AND_SHORT))
    run = options.directory / "run"
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    project = expiring_of(run / "first", options.directory / "made", session)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    for number, (hour, begun) in enumerate(_begun(project, run, session if options.loads else None)):
        trial = Trial(begun, hour, run / f"trial-{number}", counts=counts, wrong=wrong)
        counts.update(updates=1, moments=len(trial.moments[part]), syncs=len(trial.syncs[part]), files=len(trial.files[part]))
        trial.lose_power(trial.moments[part])
        trial.fail_syncs(range(len(trial.syncs))[part])
        trial.damage(trial.files[part])
    for line in wrong:
        sys.stderr.write(f"{line}\n")
    sys.stdout.write(json.dumps({**counts, "wrong": len(wrong)}, indent=2) + "\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
