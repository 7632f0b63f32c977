"""A warehouse under attack, and its model: whatever happened, readers see the rows of the model."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from warehouse import Warehouse
from warehouse.epochs.journal import epoch_numbers, epoch_path, newest_epoch, plan_path, read_epoch
from warehouse.errors import Transient
from warehouse.publishing.live.log import newest_state
from warehouse.storage.snapshot import read_snapshot
from warehouse.testing import Model, bag
from warehouse.time import NEVER, to_micros

from .arrivals import RULES, STREAMS, VIEWS, arrivals, land

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from tests.operations.projects import Project
    from warehouse.epochs.records import Epoch
    from warehouse.testing import State, Stored

__all__ = ["Following", "Witness", "counted", "expected", "require_reads"]


def expected(rows: Iterable[Stored]) -> Counter[tuple[Any, ...]]:
    """Return rows of the model as a bag of (key, value, ts, exp)."""
    return bag(rows)


def counted(rows: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Return rows of a scan of the columns k, v, _ts, _exp as a bag of (key, value, ts, exp)."""
    return Counter((k, v, to_micros(ts), NEVER if exp is None else to_micros(exp)) for k, v, ts, exp in rows)


@dataclass
class Witness:
    """A project, its model, and the last slot with landed rows; ``log`` records what happened, for a later run."""

    project: Project
    seed: int = 1
    slot: int = 0
    model: Model = field(default_factory=lambda: Model(RULES))

    def note(self, event: str, slot: int) -> None:
        """Record what happened to the model."""

    def land(self) -> int:
        """Let the rows of the next slot arrive, and return the slot."""
        self.slot += 1
        self.note("landed", self.slot)
        self.arrived(self.slot)
        return self.slot

    def arrived(self, slot: int) -> None:
        """Put the rows of a slot into the landing directory, and into the model."""
        rows = arrivals(slot, self.seed)
        self.model.arrive(*rows)
        land(self.project, slot, rows)

    def check(self) -> Epoch | None:
        """Compare all that readers see with the model, and return the newest epoch.

        The newest epoch is the former newest, or an epoch that a begun update added, which the model then adds. Each table of
        the newest and of the oldest readable epoch has the model's rows.
        """
        root = self.project.root
        before, newest = len(self.model.states), newest_epoch(root)
        count = 0 if newest is None else newest.number + 1
        assert before <= count <= before + 2, f"epoch {count - 1} after epoch {before - 1}"
        for number in range(before, count):
            epoch = read_epoch(root, number)
            if self.model.begun is None:
                self.begin(epoch.slot)
            assert self.model.begun is not None
            assert self.model.begun[0] == epoch.slot
            self.model.finish()
            self.note("finished", epoch.slot)
        if plan_path(root, count).exists() and self.model.begun is None:
            self.begin(self.slot)
        if newest is None:
            return None
        self._same(newest, self.model.states[-1])
        older = epoch_numbers(root)[0]
        self._same(read_epoch(root, older), self.model.states[older], side_tables=False)
        self._same_live_tables(newest)
        return newest

    def _same_live_tables(self, newest: Epoch) -> None:
        """Each live table, read raw, has the rows of its epoch, which is never ahead of the newest.

        An exception is an epoch whose record was damaged after the write: it counts as not written until it is made again.
        """
        for name in STREAMS:
            path = self.project.root / "live" / name
            state = newest_state(path)
            if state is None:
                assert newest.number == 0, f"{path} is gone"
                continue
            if state.epoch == newest.number + 1 and epoch_path(self.project.root, state.epoch).exists():
                continue
            assert 0 <= state.epoch <= newest.number
            rows = DeltaTable(str(path)).to_pyarrow_table().select(["k", "v", "_ts", "_exp"]).to_pylist()
            actual, modelled = counted(tuple(row.values()) for row in rows), expected(self.model.states[state.epoch].live)
            assert actual == modelled, f"live/{name}: lost {modelled - actual}, doubled {actual - modelled}"

    def begin(self, slot: int) -> None:
        """Record that an update has a plan."""
        self.model.begin(slot)
        self.note("planned", slot)

    def _same(self, epoch: Epoch, state: State, *, side_tables: bool = True) -> None:
        assert epoch.slot == state.slot
        moment = {"as_of": epoch.window_time}
        with Warehouse.open(self.project.directory) as warehouse:
            for name in STREAMS:
                actual = counted(warehouse.scan(name, columns=["k", "v", "_ts", "_exp"], **moment).all())
                modelled = expected(state.live)
                assert actual == modelled, f"{name}: lost {modelled - actual}, doubled {actual - modelled}"
                if side_tables:
                    self._same_side_tables(epoch, name, state)
                if self.project.streams[name].get("on_expiry") == "archive":
                    actual = counted(warehouse.scan(f"{name}_archive", columns=["k", "v", "_ts", "expired_at"], **moment).all())
                    modelled = self._expired(epoch.number)
                    assert actual == modelled, f"{name}_archive: lost {modelled - actual}, doubled {actual - modelled}"
            for name in self.project.views:
                query = VIEWS[name]
                assert Counter(warehouse.scan(name, **moment).all()) == Counter(warehouse.sql(query, **moment).all()), name

    def _expired(self, number: int) -> Counter[tuple[Any, ...]]:
        """Return the rows that expired up to an epoch."""
        rows: Counter[tuple[Any, ...]] = Counter()
        for state in self.model.states[: number + 1]:
            rows += expected(state.expired)
        return rows

    def _same_side_tables(self, epoch: Epoch, name: str, state: State) -> None:
        table = epoch.table(name)
        assert table is not None
        waiting = sum(entry.rows for entry in table.deferred.waiting) if table.deferred else 0
        rejected = table.rejected.rows if table.rejected else 0
        assert (waiting, rejected) == (len(state.waiting), len(state.rejected)), name
        for side in filter(None, (table.deferred, table.rejected)):
            files = read_snapshot(self.project.root, side.path, side.version, ()).files
            assert sum(file.rows for file in files) == side.rows, side.path


class Following:
    """A reader that goes to the newest epoch before each read, and never back."""

    def __init__(self, project: Project, hot: Sequence[str] = ()) -> None:
        self._reader = Warehouse.open(project.directory).reader(hot=hot)
        self.epoch = self._reader.epoch.number

    def read(self, *, refresh: bool = True) -> tuple[int, Counter[tuple[Any, ...]]]:
        """Return the epoch of a read and its rows; without ``refresh`` the reader stays at its epoch while it can."""
        for _ in range(3):
            try:
                if refresh:
                    self._reader.refresh()
                answer = self._reader.scan("rows", columns=["k", "v", "_ts", "_exp"])
                rows = counted(answer.all())
            except Transient:  # its files went between the plan of the read and the read: worth the same call again
                refresh = True
                continue
            assert answer.epoch >= self.epoch, f"epoch {answer.epoch} after epoch {self.epoch}"
            self.epoch = answer.epoch
            return answer.epoch, rows
        raise AssertionError("three epochs in a row went while they were read")

    def close(self) -> None:
        """Release the epoch."""
        self._reader.close()


def require_reads(witness: Witness, follower: Following, stayed: Following, newest: int, moment: object) -> int:
    """Read by a following, a staying and a new reader: each gives the rows of its epoch.

    Returns the number of reads. The first and the last must be of the epoch ``newest``.
    """
    states = witness.model.states
    number, rows = follower.read()
    assert number == newest, f"{moment}: epoch {number} instead of {newest}"
    assert rows == expected(states[number].live), moment
    number, rows = stayed.read(refresh=False)
    assert rows == expected(states[number].live), moment
    with Warehouse.open(witness.project.directory) as warehouse:
        answer = warehouse.probe("rows", ["k3"], columns=["k", "v", "_ts", "_exp"])
        probed = counted(answer.all())
    assert answer.epoch == newest, moment
    assert probed == expected(stored for stored in states[answer.epoch].live if stored.row.key == "k3"), moment
    return 3
