"""A run: every contender builds, then all make each update in turn and answer the same questions, checked by the oracle.

The order turns with each update, so that nobody always comes after the same other. A contender that fails, dies or answers
wrongly is recorded with the reason and takes no further part; the others go on. A contender that was stopped in the
middle of an update is rebuilt and makes its finished updates again, without being timed twice.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from benchmarks.field.contender import NotHereError
from benchmarks.field.hosts import DiedError
from benchmarks.field.oracle import Oracle, WrongAnswerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from benchmarks.field.digest import Digest
    from benchmarks.field.hosts import Host
    from benchmarks.field.job import Job
    from benchmarks.field.results import Results
    from benchmarks.field.roster import Entry

__all__ = ["Run"]

_REPEAT = 3
"""How often each key is probed; all times are kept."""


class _FailedError(Exception):
    """A contender cannot go on."""

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        super().__init__(reason)
        self.missing = missing


@dataclass(frozen=True)
class _Expected:
    """What is right after an update."""

    probes: dict[str, Digest]
    scan: Digest
    aggregate: tuple[int, float]


@dataclass
class Run:
    """One run over a job.

    ``work`` keeps what contenders store and what landed; ``host_for`` starts the process that an entry needs.
    """

    job: Job
    entries: Sequence[Entry]
    work: Path
    results: Results
    host_for: Callable[[Entry], Host]
    say: Callable[[str], None]
    _hosts: dict[str, Host] = field(default_factory=dict)
    _opened: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Remember what is right; questions cost the oracle time."""
        self._expected = cache(self._ask_oracle)

    def play(self) -> None:
        """Do what is not done yet."""
        self.work.mkdir(parents=True, exist_ok=True)
        try:
            for together in self._rounds():
                for entry in together:
                    self._attempt(entry, self.job.first_slot, self._bring_up)
                for number in self.job.unmeasured:
                    for entry in _turned(together, number):
                        if number not in self.results.of(entry.name).settled:
                            self._attempt(entry, number, self._settle)
                for number in self.job.slots:
                    for entry in _turned(together, number):
                        if number not in self.results.of(entry.name).done:
                            self._attempt(entry, number, self._update)
        finally:
            for host in self._hosts.values():
                host.close()

    def _rounds(self) -> Iterable[Sequence[Entry]]:
        """Those who take turns, then each who must be alone."""
        yield [entry for entry in self.entries if not entry.alone]
        for entry in self.entries:
            if entry.alone:
                yield [entry]

    def _attempt(self, entry: Entry, number: int, step: Callable[[Entry, int], None]) -> None:
        if self.results.of(entry.name).failed is not None:
            return
        try:
            step(entry, number)
        except (_FailedError, DiedError, WrongAnswerError, NotHereError) as error:
            missing = isinstance(error, NotHereError) or getattr(error, "missing", False)
            self.results.add("failed", entry.name, slot=number, reason=str(error), missing=missing)
            self.say(f"{entry.title}: {'not run' if missing else 'failed'}: {error}")
            if isinstance(error, DiedError):
                self._hosts.pop(entry.shared).close()
                self._opened -= {each.name for each in self.entries if each.shared == entry.shared}
            elif entry.name in self._opened:
                self._opened.discard(entry.name)
                with contextlib.suppress(DiedError):  # the next message to its worker finds that out
                    self._hosts[entry.shared].do({"do": "close", "contender": entry.name})

    # --- one contender ---

    def _bring_up(self, entry: Entry, number: int) -> None:
        """Build a contender, or open it where it stands; if that is nowhere certain, do all of it again."""
        standing = self.results.of(entry.name)
        if set(self.job.slots) <= set(standing.done):
            return
        certain = standing.built is not None and standing.begun is None and self._place(entry).exists() and not entry.alone
        if certain:
            return
        shutil.rmtree(self._place(entry), ignore_errors=True)
        self.say(f"{entry.title}: build")
        built = self._tell(entry, "build", files=[str(self._landed(each)) for each in self._past()], now=self.job.instant(number))
        if standing.built is None:
            self.results.add("built", entry.name, **built)
        for slot in sorted({*standing.settled, *standing.done}):
            self.say(f"{entry.title}: update {slot} again")
            self._tell(entry, "update", file=str(self._landed(slot)), now=self.job.instant(slot))

    def _settle(self, entry: Entry, number: int) -> None:
        self.results.add("begun", entry.name, slot=number)
        update = self._tell(entry, "update", file=str(self._landed(number)), now=self.job.instant(number))
        self.results.add("settled", entry.name, slot=number, **update)
        self.say(f"{entry.title}: update {number} settles: {update['load'] + update['expire']:.2f} s")

    def _update(self, entry: Entry, number: int) -> None:
        now = self.job.instant(number)
        expected = self._expected(number)
        self.results.add("begun", entry.name, slot=number)
        update = self._tell(entry, "update", file=str(self._landed(number)), now=now)
        kinds = self.job.probed(number)
        keys = [key for some in kinds.values() for key in some]
        found = self._tell(entry, "ask", keys=keys, repeat=_REPEAT, now=now)
        self._check(expected, found)
        by_key = {probe["key"]: probe["seconds"] for probe in found["probes"]}
        self.results.add(
            "done",
            entry.name,
            slot=number,
            **update,
            probes={kind: [by_key[key] for key in some] for kind, some in kinds.items()},
            **{name: found[name] for name in ("scan", "aggregate", "files", "bytes", "stored", "counted")},
            live=expected.scan[0],
            landed=self.job.rows_of(number),
        )
        self.say(f"{entry.title}: update {number}: {update['load'] + update['expire']:.2f} s, scan {found['scan']:.2f} s")

    @staticmethod
    def _check(expected: _Expected, found: dict[str, Any]) -> None:
        for probe in found["probes"]:
            _compare(f"probe of {probe['key']}", expected.probes[probe["key"]], tuple(probe["digest"]))
        _compare("scan", expected.scan, tuple(found["digest"]))
        _compare("aggregate", expected.aggregate, tuple(found["value"]))

    def _tell(self, entry: Entry, verb: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - what a message tells
        host = self._hosts.get(entry.shared)
        if host is None:
            host = self._hosts[entry.shared] = self.host_for(entry)
        if entry.name not in self._opened:
            place, job = str(self._place(entry)), {**asdict(self.job)}
            _right(host.do({"do": "open", "contender": entry.name, "spec": entry.spec, "place": place, "job": job}))
            self._opened.add(entry.name)
        return _right(host.do({"do": verb, "contender": entry.name, **more}))

    def _place(self, entry: Entry) -> Path:
        return self.work / entry.name

    # --- rows, and what is right ---

    def _past(self) -> range:
        """Return the slots whose rows may live at the first build."""
        return range(1, self.job.first_slot + 1)

    def _landed(self, number: int) -> Path:
        """Return a slot's landing file, which is made when it is first needed."""
        path = self.work / "landing" / f"{number:06d}.parquet"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".partial")
            pq.write_table(self.job.arriving(number), partial, compression="snappy")
            partial.replace(path)
        return path

    def _ask_oracle(self, number: int) -> _Expected:
        keys = [key for some in self.job.probed(number).values() for key in some]
        now = self.job.instant(number)
        first = number - self.job.periods + 1  # rows that arrived before it have all expired
        with Oracle([self._landed(each) for each in range(max(1, first), number + 1)]) as oracle:
            return _Expected(oracle.probe(keys, now), oracle.scan(now), oracle.aggregate(now))


def _right(reply: dict[str, Any]) -> dict[str, Any]:
    if "error" in reply:
        raise _FailedError(reply["error"], missing=reply["missing"])
    return reply


def _compare(what: str, expected: tuple[Any, ...], found: tuple[Any, ...]) -> None:
    if expected != found:
        raise WrongAnswerError(f"{what} answered {found}, right is {expected} (for rows: their number and a sum over them)")


def _turned(entries: Sequence[Entry], number: int) -> Sequence[Entry]:
    """Return the entries in an order that turns with each update."""
    if not entries:
        return entries
    start = number % len(entries)
    turned = [*entries[start:], *entries[:start]]
    return turned if number % 2 else turned[::-1]
