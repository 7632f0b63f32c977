"""All verbs in any order, with crashes, outsiders and copies in between, and after each verb the rows of a simple model.

    python -m tests.soak.verbs DIRECTORY --steps 200 --seed 1

A step is drawn: an update with new rows, a catch-up, ``rollback``, ``restate``, ``reload``, ``erase``, ``migrate``, ``rebuild``,
``vacuum``, a backup that is restored, a copy of the project that replaces it, a change of the declared views, an outsider's
commit to any table. One in four is stopped at a drawn moment and finished by what comes next. Then for each stream the live and
the waiting rows are the model's, at the newest epoch and at every other one that can be read; so are the live tables, read raw;
``check`` finds nothing, and each view is its query.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from tests.operations.outsiders import CHANGES, HARMLESS
from tests.operations.projects import Project, StoppedError, at, csv, row, stream
from warehouse.checking.check import check
from warehouse.cli.main import run
from warehouse.epochs.journal import read_epoch
from warehouse.errors import RestateError
from warehouse.operations.migrate import MigrationRequest
from warehouse.operations.verification import verdicts_of
from warehouse.time import HOUR, to_micros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from warehouse.epochs.points import Moment, Observer

__all__ = ["Walk", "main"]

STREAMS = ("a", "b")
_KEYS = "pqrstu"
_DEEP = 6
_RETAIN = 4
VIEWS: dict[str, dict[str, object]] = {
    "counts": {"sql": "SELECT k, count(*) AS n, max(e) AS last FROM a GROUP BY k", "search_key": "k"},
    "once": {"sql": "SELECT DISTINCT k FROM b", "search_key": "k"},
    "pairs": {"sql": "SELECT a.k, a.e, b.e AS until FROM a JOIN b ON a.k = b.k", "search_key": "k"},
    "alone": {"sql": "SELECT k, e FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", "search_key": "k"},
    "named": {"sql": "SELECT a.k, r.name, a.e FROM a LEFT JOIN r ON a.k = r.k", "search_key": "k"},
    "either": {"sql": "SELECT k, e FROM a UNION ALL SELECT k, e FROM b WHERE k <> 'p'", "search_key": "k"},
}
_LAYOUTS: tuple[dict[str, object], ...] = (
    {"technique": "norebuild", "grid": [1, 2]},
    {"technique": "rebuild", "grid": [2, 2]},
    {"technique": "norebuild", "grid": [3, 1]},
    {"technique": "rebuild", "grid": [1, 1]},
)
_RELATION: dict[str, object] = {
    "landing": "landing/r",
    "format": "csv",
    "search_key": "k",
    "changed_at": "c",
    "retroactive": True,
    "columns": {"k": "string", "c": "timestamp", "name": "string"},
}


@dataclass(frozen=True, order=True)
class Landed:
    """A row: key, arrival and end in microseconds, and its file."""

    key: str
    ts: int
    exp: int
    file: str


@dataclass(frozen=True)
class State:
    """A stream at an epoch: rows, possibly dead ones too, the files that gave them, and each file's epoch."""

    rows: tuple[Landed, ...] = ()
    loads: tuple[tuple[str, int], ...] = ()
    again: frozenset[str] = frozenset()

    @property
    def files(self) -> set[str]:
        """The files that are known."""
        return {file for file, _ in self.loads}


@dataclass
class Walk:
    """A project, its model, and how often each verb was done."""

    directory: Path
    spark: SparkSession
    seed: int
    done: Counter[str] = field(default_factory=Counter)
    dropped: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Begin with an update that makes every table."""
        self.chance = random.Random(self.seed)  # noqa: S311 - what happens in a test
        streams = {name: stream(landing=f"landing/{name}", max_lifetime=f"{_DEEP}h") for name in STREAMS}
        streams["b"]["layout"] = {"technique": "rebuild"}
        streams["a"]["on_expiry"] = "archive"
        head: dict[str, object] = {"retain": f"{_RETAIN}h", "publish": "delta"}
        self.project = Project(
            self.directory / "project-0", self.spark, streams, head,
            views={name: dict(VIEWS[name]) for name in ("counts", "pairs", "alone")}, relations={"r": dict(_RELATION)},
        )  # fmt: skip
        self.files: dict[str, dict[str, list[Landed]]] = {name: {} for name in STREAMS}
        self.states: dict[int, dict[str, State]] = {}
        self.layouts: dict[int, dict[str, object]] = {}
        self.slot, self.number, self.copies = 0, 0, 0
        self.now = {name: State() for name in STREAMS}
        self.move(1)

    # --- steps ---

    def step(self) -> str:
        """Run a verb that is drawn, check everything, and return a description of the verb."""
        verbs: list[tuple[int, Callable[[], object]]] = [
            (8, self.move), (2, self.catch_up), (2, self.go_back), (2, self.read_again), (1, self.reload), (1, self.erase),
            (1, self.migrate), (1, self.rebuild), (1, self.vacuum), (1, self.restore), (1, self.copy), (2, self.declare),
            (3, self.outsider),
        ]  # fmt: skip
        verb = self.chance.choices([verb for _, verb in verbs], [weight for weight, _ in verbs])[0]
        description = f"{verb.__name__} {verb() or ''}".strip()
        self.done[verb.__name__] += 1
        self.look()
        return description

    def land(self) -> None:
        """Land a file for each stream and the relation: early, late and dead rows, and a line that is no row."""
        self.number += 1
        name = f"{self.number:04}.csv"
        for stream_name in STREAMS:
            rows = []
            for _ in range(self.chance.randint(0, 5)):
                begins = self.slot + self.chance.choice((-1.6, -0.7, -0.4, 0.3, 0.5, 1.4))
                lives = self.chance.choice((0.2, 0.9, 1.7, 2.4, 5.8))
                rows.append(Landed(self.chance.choice(_KEYS), at(begins), at(begins + lives), name))
            lines = [row(landed.key, (landed.ts - at(0)) / HOUR, (landed.exp - at(0)) / HOUR) for landed in rows]
            self.project.land(name, csv(*lines, row("bad", 0, "?")), landing=f"landing/{stream_name}", mtime=at(self.slot))
            self.files[stream_name][name] = rows
        key = self.chance.choice(_KEYS)
        begins = row(key, self.slot - 0.5, "").rstrip(",")
        self.project.land(name, f"k,c,name\n{begins},{key}-{self.number}\n", landing="landing/r", mtime=at(self.slot))

    def move(self, slots: int = 1) -> str:
        """The next update; if it is stopped at a moment, the next update finishes it."""
        self.slot += slots
        self.land()
        self.project.clock = at(self.slot)
        stopped = self._stopped(lambda observer: self.project.update(self.slot, observer=observer, allow_dead=True))
        if stopped and self.chance.random() < 0.3:
            self._moved_to_copy()
        if stopped:
            self.project.update(self.slot, allow_dead=True)
        self.loaded()
        return f"to {self.slot}, {stopped}".rstrip(", ")

    def catch_up(self) -> str:
        """Several slots, at once or one by one."""
        if self.chance.random() < 0.5:
            return self.move(self.chance.randint(2, 4))
        self.slot += 2
        self.land()
        self.project.clock = at(self.slot)
        self.project.update(self.slot, each=True)
        self.loaded()
        return f"each slot to {self.slot}"

    def go_back(self) -> str:
        """A rollback to any readable epoch."""
        targets = [number for number in self.project.numbers[:-1] if number in self.states]
        if not targets:
            return "nowhere"
        target, before = self.chance.choice(targets), self.project.epoch.number
        declared = {name: self.project.streams[name].get("layout") for name in STREAMS}
        self._declare_layouts(self.layouts[target])
        stopped = self._stopped(lambda observer: self.project.updater(observer).rollback(target))
        if stopped:
            self.project.updater().repair()
        if self.project.epoch.number > before:
            self.now = dict(self.states[target])
        else:
            self._declare_layouts(declared)
        self.note()
        return f"to epoch {target}, {stopped}".rstrip(", ")

    def read_again(self) -> str:
        """A restatement of a stream: of all files, of the files since an epoch, or of the rejected rows."""
        name = self.chance.choice(STREAMS)
        since: int | str | None = self.chance.choice([None, "first", self.slot - 1, self.slot - 2])
        before = self.project.epoch.number
        options = {"since": at(since) if isinstance(since, int) else since}
        if self.chance.random() < 0.2:
            options, since = {"rejected": True}, "rejected"
        try:
            stopped = self._stopped(lambda observer: self.project.updater(observer).restate(name, **options))  # type: ignore[arg-type]
        except RestateError as error:
            return f"{name} since {since}: refused, {error}"
        if stopped:
            self.project.updater().repair()
        epoch = self.project.epoch
        if epoch.number > before and since != "rejected":
            entry = next(entry for entry in epoch.files if entry.stream == name)
            base = self.states[epoch.starts_from][name] if epoch.starts_from is not None and not entry.first else State()
            paths = [file.path for file in entry.loaded]
            rows = [landed for file in paths for landed in self.files[name][file]]
            loads = (*base.loads, *((file, epoch.number) for file in paths))
            self.now[name] = State((*base.rows, *rows), loads, self.now[name].again - set(paths))
        self.note()
        return f"{name} since {since}, {stopped}".rstrip(", ")

    def reload(self) -> str:
        """The next update loads a loaded file once more, besides the rows that the file gave before."""
        name = self.chance.choice(STREAMS)
        files = sorted(self.now[name].files)
        if not files:
            return "nothing"
        file = self.chance.choice(files)
        self.project.updater().reload(str(self.project.directory / "landing" / name / file))
        self.now[name] = State(self.now[name].rows, self.now[name].loads, self.now[name].again | {file})
        self.note()
        return f"{name} {file}"

    def erase(self) -> str:
        """A key of a stream is erased; landing files keep it, so a verb that reads them again loads it again."""
        name, key = self.chance.choice(STREAMS), self.chance.choice(_KEYS)
        stopped = self._stopped(lambda observer: self.project.updater(observer).erase(name, [key]))
        if stopped:
            self.project.updater().erase(name, [key])
        state = self.now[name]
        self.now[name] = State(tuple(landed for landed in state.rows if landed.key != key), state.loads, state.again)
        self.states.clear()
        self.note()
        return f"{key} from {name}, {stopped}".rstrip(", ")

    def migrate(self) -> str:
        """Another layout, written again or side by side."""
        name, layout = self.chance.choice(STREAMS), self.chance.choice(_LAYOUTS)
        beside = self.chance.random() < 0.4
        self.project.change(name, layout=layout)
        request = MigrationRequest(side_by_side=beside)
        stopped = self._stopped(lambda observer: self.project.updater(observer).migrate(name, request))
        if stopped:
            self.project.updater().migrate(name, request)
        self.note()
        return f"{name} to {layout}{' side by side' if beside else ''}, {stopped}".rstrip(", ")

    def rebuild(self) -> str:
        """A view over the live rows."""
        view = self.chance.choice(sorted(self.project.views))
        if self._stopped(lambda observer: self.project.updater(observer).rebuild(view)):
            self.project.updater().repair()
        self.note()
        return view

    def vacuum(self) -> None:
        """Files that no epoch names are deleted."""
        self.project.updater().vacuum()

    def restore(self) -> None:
        """A backup, restored in another directory with the landing files; only the newest epoch is in it."""
        target = self.directory / f"backup-{self.copies}"
        self._run("backup", str(target))
        before = self.project
        self.copies += 1
        directory = self.directory / f"project-{self.copies}"
        directory.mkdir()
        shutil.copytree(before.directory / "landing", directory / "landing")
        shutil.copy2(before.directory / "warehouse.toml", directory)
        self.project = self.project.declared_in(directory)
        self._run("restore", str(target))
        shutil.rmtree(before.directory)
        shutil.rmtree(target)
        self.states.clear()
        self.at_same_time()  # live tables are not in a backup

    def copy(self) -> None:
        """The whole directory is copied, and the copy goes on."""
        self._moved_to_copy()

    def declare(self) -> str:
        """A view is declared, or dropped for ever: its name stays in use while epochs have its files."""
        name = self.chance.choice(sorted(VIEWS.keys() - self.dropped))
        if name in self.project.views and len(self.project.views) > 1:
            del self.project.views[name]
            self.project.declare()
            with suppress(LookupError):
                self.project.updater().drop(name)
            self.dropped.add(name)
            self.note()
        else:
            self.project.views[name] = dict(VIEWS[name])
            self.project.declare()
            self.at_same_time()
        return name

    def outsider(self) -> str:
        """A commit from outside to some or all tables; it is adopted, or taken back before or after an update."""
        logs = sorted(log.parent for log in self.project.root.glob("*/*/_delta_log") if log.parent.parent.name != "live")
        table = self.chance.choice(logs)
        kinds = {**HARMLESS, **CHANGES}
        name = self.chance.choice(sorted(kinds))
        if name in ("restore", "columns", "properties") and DeltaTable(str(table)).version() < 1:
            return "nothing"
        where = f"{name} in {table.parent.name}/{table.name}"
        try:
            kinds[name](table)
        except Exception as error:  # noqa: BLE001 - delta-rs refuses some of it: a column that is not there, an empty table
            where += f" ({type(error).__name__})"
        if self.chance.random() < 0.6:
            self._run("repair", "--undo-foreign")
            self.project.updater().repair()
            self.note()
            return where
        self.slot += 1
        self.land()
        self.project.clock = at(self.slot)
        stopped = dict(self.project.update(self.slot).stopped)
        self.loaded(without=stopped)
        self._run("repair", "--undo-foreign")
        self.project.update(self.slot)
        self.loaded()
        return f"{where}, stood still: {', '.join(stopped) or 'nothing'}"

    # --- what it takes ---

    def _stopped(self, verb: Callable[[Observer], object]) -> str:
        """Run a verb; one time in four stop it at a moment, and return the moment."""
        if self.chance.random() > 0.25:
            verb(lambda _: None)
            return ""
        left = self.chance.randint(0, 45)

        def observe(moment: Moment) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise StoppedError(moment.point.value)

        try:
            verb(observe)
        except StoppedError as error:
            self.done["stopped"] += 1
            return f"stopped at {error}"
        return ""

    def _declare_layouts(self, layouts: Mapping[str, object]) -> None:
        for name, layout in layouts.items():
            self.project.change(name, layout=layout)

    def _moved_to_copy(self) -> None:
        before = self.project
        self.copies += 1
        shutil.copytree(before.directory, self.directory / f"project-{self.copies}", symlinks=True)
        self.project = self.project.declared_in(self.directory / f"project-{self.copies}")
        shutil.rmtree(before.directory)

    def _run(self, *arguments: str) -> None:
        code = run(["-C", str(self.project.directory), *arguments, "-o", "json"])
        assert code == 0, arguments

    # --- the model ---


    def loaded(self, without: Iterable[str] = ()) -> None:
        """All unknown files of the streams that move are loaded."""
        for name in STREAMS:
            if name in without:
                continue
            state = self.now[name]
            new = [file for file in self.files[name] if file not in state.files or file in state.again]
            rows = [landed for file in new for landed in self.files[name][file]]
            loads = (*state.loads, *((file, self.project.epoch.number) for file in new))
            self.now[name] = State((*state.rows, *rows), loads)
        self.note()

    def at_same_time(self) -> None:
        """An update that moves no window; then the model loads the files that the new epochs record."""
        for epoch in self.project.update(self.slot).epochs:
            for entry in epoch.files:
                if entry.stream in STREAMS and entry.loaded:
                    state, paths = self.now[entry.stream], [file.path for file in entry.loaded]
                    rows = [landed for file in paths for landed in self.files[entry.stream][file]]
                    loads = (*state.loads, *((file, epoch.number) for file in paths))
                    self.now[entry.stream] = State((*state.rows, *rows), loads, state.again - set(paths))
        self.note()

    def note(self) -> None:
        """The newest epoch has the current state."""
        self.states[self.project.epoch.number] = dict(self.now)
        self.layouts[self.project.epoch.number] = {name: self.project.streams[name].get("layout") for name in STREAMS}

    # --- what is looked at ---

    def look(self) -> None:
        """Compare everything with the model."""
        for number in self.project.numbers:
            if number not in self.states:
                continue
            epoch = read_epoch(self.project.root, number)
            for name in STREAMS:
                rows, time = self.states[number][name].rows, epoch.window_time
                table = epoch.table(name)
                arrived = at(table.stopped.slot) if table is not None and table.stopped else time  # the others wait for it
                live = Counter(
                    (landed.key, landed.ts, landed.exp) for landed in rows if landed.ts <= arrived and time < landed.exp
                )
                waits = Counter((landed.key, landed.ts, landed.exp) for landed in rows if arrived < landed.ts < landed.exp)
                where = f"{name} at epoch {number}"
                _same(f"live rows of {where}", _bag(self.project.live(name, number)), live)
                _same(f"waiting rows of {where}", _waiting(self.project.deferred(name, number)), waits)
        for name in STREAMS:
            raw = DeltaTable(str(self.project.root / "live" / name)).to_pyarrow_table().to_pylist()
            _same(f"the live table of {name}", _bag(raw), _bag(self.project.live(name)))
        faults = [f"{finding.code}: {finding.message}" for finding in check(self.project.root).faults]
        assert not faults, faults
        verdicts = verdicts_of(self.project.root, self.project.epoch, self.spark)
        wrong = [
            f"{verdict.view}: {verdict.outcome} {verdict.reason} {verdict.rows}"
            for verdict in verdicts
            if verdict.outcome != "same"
        ]
        assert not wrong, wrong


def _bag(rows: Iterable[dict[str, object]]) -> Counter[tuple[object, ...]]:
    return Counter((shown["k"], to_micros(shown["_ts"]), to_micros(shown["_exp"])) for shown in rows)  # type: ignore[arg-type]


def _waiting(rows: Iterable[dict[str, object]]) -> Counter[tuple[object, ...]]:
    return Counter((shown["k"], to_micros(shown["b"]), to_micros(shown["e"])) for shown in rows)  # type: ignore[arg-type]


def _same(name: str, actual: Counter[tuple[object, ...]], expected: Counter[tuple[object, ...]]) -> None:
    assert actual == expected, f"{name}: {dict(actual - expected)} too many, {dict(expected - actual)} missing"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as the module says; return 1 if a fault was found."""
    from tests.conftest import SMALL_AND_SHORT  # noqa: PLC0415 - only the command starts a session of its own
    from warehouse.storage.session import spark_session  # noqa: PLC0415 - same

    parser = argparse.ArgumentParser(description="Do all verbs in a drawn order, and compare with a model.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--walk", type=int, default=40, help="steps of one warehouse")
    options = parser.parse_args(arguments)
    spark = spark_session(SMALL_AND_SHORT)
    done: Counter[str] = Counter()
    for seed in range(options.seed, options.seed + max(1, options.steps // options.walk)):
        directory = options.directory / f"walk-{seed}"
        walk = Walk(directory, spark, seed)
        for number in range(options.walk):
            try:
                verb = walk.step()
            except Exception as error:
                sys.stdout.write(json.dumps({"walk": seed, "step": number, "error": str(error)}) + "\n")
                raise
            sys.stdout.write(json.dumps({"walk": seed, "step": number, "did": verb, "epoch": walk.project.epoch.number}) + "\n")
            sys.stdout.flush()
        done += walk.done
        shutil.rmtree(directory)
    sys.stdout.write(json.dumps(done) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
