"""Eager and lazy coalescing in memory, the source's experiments: ``python -m benchmarks.source.coalescing``.

The two updates of the source over drawn streams, measured (temporal-coalescing sheet, sections 4, 5 and 12); the costs and the
selection are those of ``warehouse.coalescing``. Besides, the gaps-and-islands query of DuckDB over stored points, against a read
of their coalesced rows. The sensor log of the source is not bundled: its probabilities are drawn.
"""

from __future__ import annotations

import tempfile
import time
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from statistics import median
from typing import TYPE_CHECKING

import click
import duckdb

from benchmarks.field.page import markdown_table
from benchmarks.machine import machine
from warehouse.coalescing.selection import cost_of, select

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["Eager", "Lazy", "Measured", "arrivals", "islands_query", "main", "measure"]

STEPS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Of cp and of oop."""
_STAMP, _LAZY = 8, 40
_LATEST = 50
"""Arrivals by which a late member is behind at most."""
_RESULTS = Path(__file__).parents[1] / "results" / "source"
_EXPERIMENTS = {"1a": (1, 1, 1), "1b": (1, 50, 1), "1c": (1, 100, 1), "1d": (0, 1, 1)}
"""Weights of memory, updates and scans."""
_EAGER_SIZES = (24, 24, 24, 32, 32, 40)
"""Bytes of a row of the six queries."""
_L, _E = False, True
_CASES: dict[str, tuple[tuple[int, int, int], tuple[float, ...], tuple[float, ...], tuple[bool, ...]]] = {
    "T5-1": ((1, 1, 2), (0.1,) * 6, (0.0,) * 6, (_L,) * 6),
    "T5-2": ((1, 1, 2), (0.8,) * 6, (0.0,) * 6, (_E,) * 6),
    "T5-3": ((1, 1, 2), (0.5,) * 3 + (0.1,) * 3, (0.0,) * 6, (_E,) * 3 + (_L,) * 3),
    "T5-4": ((1, 1, 2), (0.8,) * 3 + (0.1,) * 3, (0.0,) * 6, (_E,) * 3 + (_L,) * 3),
    "T6-1": ((0, 1, 1), (0.2,) * 6, (0.3,) * 6, (_L,) * 6),
    "T6-2": ((0, 1, 1), (0.7,) * 6, (0.6,) * 6, (_E,) * 6),
    "T6-3": ((0, 1, 1), (0.5,) * 6, (0.3,) * 6, (_E,) * 6),
    "T6-4": ((0, 1, 1), (0.5,) * 6, (0.7,) * 6, (_L,) * 6),
    "T6-5": ((0, 1, 1), (0.4,) * 3 + (0.2,) * 3, (0.6,) * 3 + (0.7,) * 3, (_E,) * 3 + (_L,) * 3),
    "T6-6": ((0, 1, 1), (0.4,) * 3 + (0.2,) * 3, (0.6, 0.8, 0.8, 0.7, 0.7, 0.7), (_E,) + (_L,) * 5),
}
"""Weights; cp and oop of the six queries; which the source finds eager."""


class Eager:
    """One group's rows ``[value, start, end, stamps after the first]``, coalesced as members arrive (section 5, case by case)."""

    def __init__(self) -> None:
        self.rows: list[list[object]] = []
        self._starts: list[int] = []

    def insert(self, stamp: int, value: object) -> None:
        """Take a member, in order or late."""
        rows, starts = self.rows, self._starts
        position = bisect_left(starts, stamp)
        before = rows[position - 1] if position else None
        after = rows[position] if position < len(rows) else None
        if before is not None and before[0] == value:
            insort(before[3], stamp)  # type: ignore[arg-type, type-var]
            if after is None:
                before[2] = max(before[2], stamp)  # type: ignore[call-overload]
            return
        if before is not None:
            stamps: list[int] = before[3]  # type: ignore[assignment]
            cut = bisect_left(stamps, stamp)
            if cut < len(stamps):
                tail = stamps[cut:]
                del stamps[cut:]
                rows[position:position] = [[value, stamp, tail[0], []], [before[0], tail[0], before[2], tail[1:]]]
                starts[position:position] = [stamp, tail[0]]
                before[2] = stamp
                return
            before[2] = stamp
        if after is not None and after[0] == value:
            after[3].insert(0, after[1])  # type: ignore[attr-defined]
            after[1] = starts[position] = stamp
            return
        rows.insert(position, [value, stamp, after[1] if after is not None else stamp, []])
        starts.insert(position, stamp)

    def drop_oldest(self) -> None:
        """Let the oldest member go."""
        stamps: list[int] = self.rows[0][3]  # type: ignore[assignment]
        if stamps:
            self.rows[0][1] = self._starts[0] = stamps.pop(0)
        else:
            del self.rows[0], self._starts[0]

    def scan(self) -> list[tuple[object, object, object]]:
        """Return the rows."""
        return [(value, start, end) for value, start, end, _ in self.rows]

    def read(self) -> None:
        """Pass over the rows."""
        deque(self.rows, maxlen=0)

    def bytes(self, row: int) -> int:
        """Return the bytes of the rows."""
        return sum(row + _STAMP * len(stamps) for *_, stamps in self.rows)  # type: ignore[arg-type]


class Lazy:
    """One group's members in order (section 4), coalesced by each scan (section 3)."""

    def __init__(self) -> None:
        self.members: list[tuple[int, object]] = []

    def insert(self, stamp: int, value: object) -> None:
        """Take a member, in order or late."""
        insort(self.members, (stamp, value))  # type: ignore[type-var]

    def drop_oldest(self) -> None:
        """Let the oldest member go."""
        del self.members[0]

    def scan(self) -> list[tuple[object, object, object]]:
        """Return the rows."""
        return list(self._rows())

    def read(self) -> None:
        """Pass over the rows."""
        deque(self._rows(), maxlen=0)

    def _rows(self) -> Iterator[tuple[object, object, object]]:
        start, last, previous = None, None, None
        for stamp, value in self.members:
            if start is None or value != previous:
                if start is not None:
                    yield previous, start, stamp
                start, previous = stamp, value
            last = stamp
        if start is not None:
            yield previous, start, last


@dataclass(frozen=True)
class Measured:
    """A window's costs: bytes of rows of 24 bytes, eager members and stamps; seconds of all updates and of one scan."""

    rows: int
    members: int
    update_eager: float
    update_lazy: float
    scan_eager: float
    scan_lazy: float

    def memory(self, row: int) -> float:
        """Bytes of the eager rows, for rows of that size."""
        return self.rows * row + (self.members - self.rows) * _STAMP


def arrivals(cp: float, oop: float, members: int, seed: int = 0) -> list[tuple[int, int]]:
    """Return drawn members (stamp, value) in the order they arrive; late members are up to 50 arrivals behind."""
    random = Random(seed)  # noqa: S311 - a benchmark draws its data
    value, placed = 0, []
    for stamp in range(members):
        value = value if random.random() < cp else (value + random.randint(1, 9)) % 10
        behind = random.randint(2, _LATEST) if random.random() < oop else 0
        placed.append((stamp + behind, stamp, value))
    return [(stamp, value) for _, stamp, value in sorted(placed)]


def _seconds(run: Callable[[], object]) -> float:
    """Processor time: other programs take their turns on the machine."""
    start = time.thread_time()
    run()
    return time.thread_time() - start


@cache
def measure(cp: float, oop: float, members: int, window: int) -> Measured:
    """Return the costs of both updates over the same stream, and check that they give the same rows.

    Raises
    ------
    ValueError
        If they do not.

    """
    steps = _steps(arrivals(cp, oop, members), window)
    spent, extents = {}, {}
    for kind in (Eager, Lazy):
        times = []
        for _ in range(3):
            extent = extents[kind] = kind()
            times.append(_seconds(lambda extent=extent: _play(extent, steps)))
        spent[kind] = min(times)
    eager, lazy = extents[Eager], extents[Lazy]
    if not isinstance(eager, Eager) or eager.scan() != lazy.scan():
        message = f"eager and lazy rows differ at cp {cp}, oop {oop}"
        raise ValueError(message)
    scans = {kind: min(_seconds(extent.read) for _ in range(9)) for kind, extent in extents.items()}
    return Measured(len(eager.rows), window, spent[Eager], spent[Lazy], scans[Eager], scans[Lazy])


def _steps(drawn: Sequence[tuple[int, int]], window: int) -> list[tuple[bool, int, int]]:
    """The members that enter a window of rows, each with whether the oldest member leaves before."""
    window_stamps: list[int] = []
    steps = []
    for stamp, value in drawn:
        full = len(window_stamps) == window
        if full and stamp < window_stamps[0]:
            continue
        del window_stamps[: int(full)]
        insort(window_stamps, stamp)
        steps.append((full, stamp, value))
    return steps


def _play(extent: Eager | Lazy, steps: Sequence[tuple[bool, int, int]]) -> None:
    for full, stamp, value in steps:
        if full:
            extent.drop_oldest()
        extent.insert(stamp, value)


def _top(members: int, window: int) -> tuple[float, float]:
    """The most that updates and a scan take of members in order, all coalesced or none; costs are divided by it."""
    ends = [measure(cp, 0.0, members, window) for cp in (0.0, 1.0)]
    return max(end.update_eager for end in ends), max(end.scan_lazy for end in ends)


def _prices(
    measured: Measured, top: tuple[float, float], weights: tuple[int, int, int], row: int = 24
) -> tuple[float, float, float]:
    """e, s and F of section 10."""
    memory, update, scan = weights
    most, (updates, scans) = measured.members * _LAZY, top
    eager = memory * measured.memory(row) / most + update * measured.update_eager / updates + scan * measured.scan_eager / scans
    return eager, scan * measured.scan_lazy / scans, memory + update * measured.update_lazy / updates


def experiment(weights: tuple[int, int, int], members: int, window: int) -> dict[tuple[float, float], tuple[float, float]]:
    """Return the costs of one query, eager and lazy, by cp and oop."""
    top = _top(members, window)
    costs = {}
    for cp in STEPS:
        for oop in STEPS:
            eager, scan, shared = _prices(measure(cp, oop, members, window), top, weights)
            costs[cp, oop] = (eager, scan + shared)
    return costs


def claims(members: int, window: int) -> list[tuple[str, str, bool, str]]:
    """Return each claim of the source: the experiment, its words, whether it holds here, and what was measured."""
    grids = {name: experiment(weights, members, window) for name, weights in _EXPERIMENTS.items()}
    cheaper = {name: sum(eager < lazy for eager, lazy in grid.values()) for name, grid in grids.items()}
    cells = len(STEPS) ** 2
    heavy = {cell: eager for cell, (eager, _) in grids["1c"].items()}
    near = [max(eager / lazy, lazy / eager) for eager, lazy in grids["1d"].values()]
    rising = sum(heavy[cp, 1.0] > heavy[cp, 0.0] for cp in STEPS)
    falling = sum(heavy[1.0, oop] < heavy[0.0, oop] for oop in STEPS[1:])
    judged = [
        ("1a", "eager is cheaper everywhere", cheaper["1a"] == cells, f"in {cheaper['1a']} of {cells} cells"),
        (
            "1b, 1c",
            "a line appears beyond which lazy is cheaper, and moves towards cp 1, oop 0",
            cells > cheaper["1b"] >= cheaper["1c"] > 0,
            f"eager is cheaper in {cheaper['1b']}, then in {cheaper['1c']} of {cells} cells",
        ),
        ("1c", "eager costs most at cp 0, oop 1", max(heavy, key=heavy.__getitem__) == (0.0, 1.0), _cell(heavy, max)),
        ("1c", "eager costs least at cp 1, oop 0", min(heavy, key=heavy.__getitem__) == (1.0, 0.0), _cell(heavy, min)),
        ("1c", "the cost of eager rises with oop", rising == len(STEPS), f"for {rising} of {len(STEPS)} values of cp"),
        ("1c", "it falls with cp where members are late", falling == len(STEPS) - 1, f"for {falling} of {len(STEPS) - 1} of oop"),
        ("1d", "without memory both cost about the same (within a half)", max(near) < 1.5, f"quotients up to {max(near):.2f}"),
    ]
    return judged + [_selected(name, members, window) for name in _CASES]


def _cell(costs: dict[tuple[float, float], float], choose: Callable[..., tuple[float, float]]) -> str:
    cp, oop = choose(costs, key=costs.__getitem__)
    return f"{costs[cp, oop]:.3g} at cp {cp}, oop {oop}"


def _selected(name: str, members: int, window: int) -> tuple[str, str, bool, str]:
    weights, cps, oops, expected = _CASES[name]
    top = _top(members, window)
    queries = [
        _prices(measure(cp, oop, members, window), top, weights, row)
        for cp, oop, row in zip(cps, oops, _EAGER_SIZES, strict=True)
    ]
    costs, scans = [costs_of_query[0] for costs_of_query in queries], [costs_of_query[1] for costs_of_query in queries]
    shared = max(costs_of_query[2] for costs_of_query in queries)
    chosen = select(costs, scans, shared)
    if chosen is None:
        raise ValueError(name)
    both = [cost_of((eager,) * 6, costs, scans, shared) for eager in (True, False)]
    measured = f"{_word(chosen.eager)}; {chosen.cost:.2f}, all eager {both[0]:.2f}, all lazy {both[1]:.2f}"
    return name, f"selected: {_word(expected)}", chosen.eager == expected, measured


def _word(eager: Sequence[bool]) -> str:
    if len(set(eager)) == 1:
        return "all eager" if eager[0] else "all lazy"
    return ", ".join(f"Q{number}" for number, is_eager in enumerate(eager, 1) if is_eager) + " eager"


_ISLANDS = """
WITH d AS (SELECT g, ts, v, lead(ts) OVER w AS nxt,
    CASE WHEN v IS NOT DISTINCT FROM lag(v) OVER w AND row_number() OVER w > 1 THEN 0 ELSE 1 END AS begins
  FROM {points} WINDOW w AS (PARTITION BY g ORDER BY ts)),
i AS (SELECT *, sum(begins) OVER (PARTITION BY g ORDER BY ts ROWS UNBOUNDED PRECEDING) AS run FROM d)
SELECT g, any_value(v) AS v, min(ts) AS valid_from, max(coalesce(nxt, ts)) AS valid_to{stamps}
FROM i GROUP BY g, run
"""
_CUT = """
SELECT g, v, list_min(left_) AS valid_from, valid_to FROM (
  SELECT g, v, valid_to, list_filter(stamps, lambda u : u >= {edge}) AS left_ FROM {rows} WHERE list_last(stamps) >= {edge})
"""


def islands_query(points: str, stamps: str = "") -> str:
    """Return gaps-and-islands over a relation of points ``(g, ts, v)``, which DuckDB and Spark run, with one more column."""
    return _ISLANDS.format(points=points, stamps=stamps)


def islands(points: int, groups: int = 1000) -> list[list[str]]:
    """Return milliseconds of gaps-and-islands over stored points, and of reads of their coalesced rows, whole and cut."""
    with tempfile.TemporaryDirectory() as directory:
        connection = duckdb.connect(config={"threads": 1})
        raw, rows = (f"'{directory}/{name}.parquet'" for name in ("points", "rows"))
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"""COPY (SELECT g, ts, sum(step) OVER (PARTITION BY g ORDER BY ts) % 10 AS v FROM (
                SELECT i % {groups} AS g, i AS ts, CASE WHEN random() < 0.9 THEN 0 ELSE 1 + floor(random() * 9) END AS step
                FROM range({points}) r (i))) TO {raw}"""
        )
        connection.execute(f"COPY ({islands_query(raw, ', list(ts ORDER BY ts) AS stamps')} ORDER BY g, valid_from) TO {rows}")
        queries = {
            "gaps and islands over the points": islands_query(raw),
            "the coalesced rows": f"SELECT g, v, valid_from, valid_to FROM {rows}",
            "the coalesced rows, cut at a tenth": _CUT.format(rows=rows, edge=points // 10),
        }
        return [[name, *_timed(connection, sql)] for name, sql in queries.items()]


def _timed(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    times, count = [], 0
    for _ in range(5):
        start = time.perf_counter()
        count = connection.sql(sql).to_arrow_table().num_rows
        times.append((time.perf_counter() - start) * 1000)
    return [f"{count:,}", f"{median(times):.1f}"]


@click.command(epilog="Example: python -m benchmarks.source.coalescing --members 20000")
@click.option("--members", type=click.IntRange(1_000), default=20_000, show_default=True, help="Of each drawn stream.")
@click.option("--window", type=click.IntRange(100), default=5_000, show_default=True, help="w, in members.")
@click.option("--points", type=click.IntRange(1_000), default=1_000_000, show_default=True, help="Stored points of the queries.")
@click.option("--results", type=click.Path(path_type=Path), default=_RESULTS, help="Where the page and its picture go.")
def main(members: int, window: int, points: int, results: Path) -> None:
    """Measure both updates for each cp and oop, select, and judge each claim of the source."""
    claimed = claims(members, window)
    head = ["", "claim", "verdict", "measured"]
    judged = [
        [name, words, "holds" if holds else f"does not hold here{_why(name)}", text] for name, words, holds, text in claimed
    ]
    holding = sum(holds for *_, holds, _ in claimed)
    setup = (
        f"{members:,} members of one group, a window of {window:,}, in Python, least of three times of the processor; "
        f"{holding} of {len(claimed)} claims hold. {machine()['processor']}."
    )
    parts = [
        "# Eager and lazy coalescing: the source's experiments",
        setup,
        markdown_table([head, *judged], numbers=False),
        f"## {points:,} stored points, cp 0.9, 1,000 groups, DuckDB, one thread",
        markdown_table([["", "rows", "ms"], *islands(points)]),
        "![costs](coalescing-costs.png)",
    ]
    results.mkdir(parents=True, exist_ok=True)
    page = "\n\n".join(parts) + "\n"
    (results / "coalescing.md").write_text(page)
    _draw(members, window, results)
    click.echo(page)


def _why(name: str) -> str:
    if name.startswith("T"):
        return ": operations have other costs in Python; a pass over stored rows costs far less than one that coalesces"
    return ": a late member is found by bisection here, so that it costs little more than one in order"


def _draw(members: int, window: int, results: Path) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415 - the extra `bench` has it

    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for axes, (name, weights) in zip(figure.subplots(1, len(_EXPERIMENTS)), _EXPERIMENTS.items(), strict=True):
        grid = experiment(weights, members, window)
        for oop in (STEPS[0], STEPS[-1]):
            for number, kind in enumerate(("eager", "lazy")):
                axes.plot(STEPS, [grid[cp, oop][number] for cp in STEPS], marker="o", label=f"{kind}, oop {oop:.0f}")
        axes.set(xlabel="cp", title=f"{name}: weights {weights}")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="x-small")
    figure.savefig(results / "coalescing-costs.png", dpi=110)


if __name__ == "__main__":
    main()
