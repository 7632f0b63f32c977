"""Advice: a table's measured workload, prices fitted on this storage, every candidate evaluated, the few worth showing."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from math import exp, log
from typing import TYPE_CHECKING

from warehouse.advice.past import past_of, recent_epochs
from warehouse.advice.reasons import reason_for
from warehouse.advice.stored import stored_rows
from warehouse.advice.what_if import MOST_PERIODS, changed, parse_what_if, workload_of
from warehouse.errors import UsageError
from warehouse.layout.advice import (
    DEFAULT_PRICES,
    WORTH_IT,
    Evaluation,
    Pricing,
    ProbeWork,
    Workload,
    candidates,
    choose,
    decision,
    evaluate,
)
from warehouse.serving.read_log import reads_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from warehouse.advice.past import Past
    from warehouse.catalog.model import Catalog
    from warehouse.layout import Layout
    from warehouse.layout.advice import Prices, TableAnswer
    from warehouse.serving.pin import Pin
    from warehouse.serving.read_log import Read
    from warehouse.serving.reader import Reader
    from warehouse.updates.records import Epoch, TableState

__all__ = ["MIN_PROBES", "MIN_UPDATES", "Advice", "Measured", "advise", "advise_load", "measured", "suppose", "workers_of"]

MIN_UPDATES = 5
"""Updates from which prices are fitted: fewer tell too little of this storage."""
MIN_PROBES = 10
_DEFAULT_MEMORY = 2**30
_UNKNOWN_PROBES = 1.0
"""Probes for each update where no read log tells: the source's experiments probe once after each."""


@dataclass(frozen=True)
class Measured:
    """What is known of a table: its workload, the prices, and how both came to be known.

    ``update_seconds`` (of updates of one slot) and ``probe_seconds`` are means; none where nothing was measured.
    """

    load: Workload
    pricing: Pricing
    past: Past
    probes: int
    update_seconds: float | None
    probe_seconds: float | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Advice:
    """What to do about a table's layout.

    Parameters
    ----------
    table
        Its name; none for one that does not exist yet.
    load, pricing
        What it copes with, and what work costs here.
    best, current
        The recommended layout, and the one that the table has; none where there is no table.
    front
        The few layouts that no other one beats in update time, probe time and space, by update time.
    decision, decided
        The source's decision table, and what its answer is predicted to cost.
    compared
        How many layouts were evaluated.
    reason
        One sentence.
    notes
        What was not measured, and what was assumed instead.
    """

    table: str | None
    load: Workload
    pricing: Pricing
    best: Evaluation
    current: Evaluation | None
    front: tuple[Evaluation, ...]
    decision: TableAnswer
    decided: Evaluation
    compared: int
    reason: str
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether the table has the recommended layout already."""
        return self.current is not None and plain(self.current.layout) == plain(self.best.layout)


def advise(
    reader: Reader,
    table: str,
    *,
    spark: Mapping[str, str],
    retain: int,
    now: int,
    widest: int | None = None,
    what_if: str | None = None,
) -> Advice:
    """Return advice on a table of the newest epoch.

    Parameters
    ----------
    reader
        The newest epoch.
    table
        A stream, or a view cut on a grid.
    spark
        The settings of `[spark]`: how many tasks run side by side, and in how much memory.
    retain, now
        For how long superseded files stay, and the wall-clock instant; microseconds.
    widest
        The widest expiry block that `erase_within` allows.
    what_if
        What to suppose in place of what was measured.

    Raises
    ------
    UnknownNameError
        When there is no such table.
    UsageError
        When its layout is no choice, it holds no row to judge by, or what is supposed cannot be.
    """
    supposed = None if what_if is None else parse_what_if(what_if)

    def build(pin: Pin) -> tuple[Measured, Layout]:
        state = pin.state(table)
        refuse_unsuitable(state)
        epochs = recent_epochs(pin.root, pin.epoch)
        return measured(reader, state, epochs, workers=workers_of(spark), retain=retain, now=now), state.layout

    found, layout = reader.retrying(build)
    load = found.load if supposed is None else changed(found.load, supposed, reader.epoch.update_interval)
    return advise_load(load, found.pricing, spark=spark, table=table, current=layout, widest=widest, notes=found.notes)


def suppose(what_if: str, catalog: Catalog | None) -> Advice:
    """Return advice on a table that does not exist yet.

    Parameters
    ----------
    what_if
        Its workload.
    catalog
        The project that it would be in; its update interval, `retain` and `[spark]` hold where nothing else is supposed.

    Raises
    ------
    UsageError
        When too little is supposed, or what cannot be.
    """
    given = parse_what_if(what_if)
    spark = dict(catalog.spark) if catalog else {}
    interval, retain = (catalog.update_interval, catalog.retain) if catalog else (None, 0)
    load = workload_of(given, interval=interval, retain=retain, workers=workers_of(spark))
    notes = ["nothing was measured: prices are those of the benchmarks' machine, and may be off by half"]
    if given.probes is None:
        notes.append("one probe for each update is assumed; say probes= if there are more")
    return advise_load(load, DEFAULT_PRICES, spark=spark, notes=notes)


def advise_load(
    load: Workload,
    pricing: Pricing,
    *,
    spark: Mapping[str, str],
    table: str | None = None,
    current: Layout | None = None,
    widest: int | None = None,
    notes: Sequence[str] = (),
) -> Advice:
    """Return advice for a workload at given prices."""
    layouts = candidates(load.periods, widest=widest, seed=current.seed if current else 0)
    found = [evaluate(layout, load, pricing) for layout in layouts]
    own = None
    if current is not None:
        own = evaluate(plain(current), load, pricing)
        found.append(own)
    choice = choose(found)
    best = choice.best
    if own is not None and own.interval <= best.interval * WORTH_IT:
        best = own  # moving costs more than it brings
    live = load.live * load.row_bytes
    middle = own or best
    answer = decision(
        periods=load.periods,
        live_bytes=live,
        memory=_memory(spark),
        query_cost=middle.interval - middle.update.value,
        update_cost=middle.update.value,
    )
    decided = evaluate(answer.layout, load, pricing)
    front = tuple(each for each in choice.front if each is not own)
    if all(each is not best for each in (*front, own)):
        front = (*front, best)
    return Advice(
        table=table,
        load=load,
        pricing=pricing,
        best=best,
        current=own,
        front=tuple(sorted((*front, *([own] if own else [])), key=lambda each: each.update.value)),
        decision=answer,
        decided=decided,
        compared=len(found),
        reason=reason_for(best, own, choice.front, load),
        notes=tuple(notes),
    )


def refuse_unsuitable(state: TableState) -> None:
    """Raise for a table whose layout is no choice."""
    why = unsuitable(state)
    if why is not None:
        raise UsageError(f'"{state.name}" {why}; advise takes streams and views whose rows expire at their own time')
    if state.layout.periods > MOST_PERIODS:
        raise UsageError(
            f'"{state.name}" has a window of p = {state.layout.periods} update intervals, and up to {MOST_PERIODS} are '
            "compared; --what-if with a longer interval= tells what fits then"
        )


def unsuitable(state: TableState) -> str | None:
    """Return why a table is not cut on a grid of lifetimes; none when it is."""
    if state.kind == "relation":
        return "is a relation, which is cut by its key"
    if state.kind == "state":
        return "keeps the state of a view's operator"
    match state.declaration.label:
        case "STR":
            return "is a view whose rows can leave before their own end, so it is cut by its search key"
        case "MON":
            return "has rows that never expire"
        case _:
            return None


def measured(
    reader: Reader, state: TableState, epochs: Sequence[Epoch], *, workers: int, retain: int, now: int, keys: bool = True
) -> Measured:
    """Return what the epochs, the read log and the table's files tell.

    Raises
    ------
    UsageError
        When the table holds no live row.
    """
    past = past_of(epochs, state.name, workers)
    reads = tuple(read for read in reads_of(reader.root) if read.table == state.name)
    probes = tuple(read for read in reads if read.kind == "probe" and read.keys == 1)
    stored = stored_rows(reader, state, keys=keys and not probes)
    if not stored.looked_at:
        raise UsageError(
            f'"{state.name}" holds no live row that expires within max_lifetime; update first, or suppose a load with --what-if'
        )
    periods, notes = state.layout.periods, []
    mean = sum(distance * share for distance, share in enumerate(stored.shares, start=1))
    if past.updates:
        rate, arriving, files = past.per_slot("inserted"), past.per_slot("rows"), past.per_slot("files")
    else:
        rate = sum(part.rows for part in state.partitions) / mean
        arriving, files = rate, 1.0
        notes.append("no update since the first build: what arrives is taken from the live rows and their lifetimes")
    pricing, works = DEFAULT_PRICES, [_probe_work(read) for read in probes]
    if len(past.updates) >= MIN_UPDATES:
        pricing = replace(pricing, update=_fitted(pricing.update, *_works(past)))
    else:
        notes.append(
            f"{len(past.updates)} updates of this layout are too few to fit prices of updates ({MIN_UPDATES} or more): "
            "those of the benchmarks' machine are used, and may be off by half"
        )
    if len(works) >= MIN_PROBES:
        seconds = [read.seconds for read in probes]
        pricing = replace(pricing, probe=_fitted(pricing.probe, [work.vector() for work in works], seconds))
    else:
        notes.append(
            f"{len(works)} probes in the read log are too few to fit prices of probes ({MIN_PROBES} or more): "
            "those of the benchmarks' machine are used, and may be off by half"
        )
    asked = _reads_per_interval(reads, epochs, now)
    if asked is None:
        notes.append("no probe was logged on this machine: one for each update is assumed")
    rows, size = (sum(getattr(part, name) for part in state.partitions) for name in ("rows", "bytes"))
    interval = reader.epoch.update_interval
    load = Workload(
        periods=periods,
        rate=rate,
        shares=stored.shares,
        arriving=max(arriving, rate),
        landing_files=files,
        row_bytes=size / rows if rows else 100.0,
        rows_per_key=max(1.0, sum(read.rows for read in probes) / len(probes)) if probes else max(1.0, stored.rows_per_key),
        probes=_UNKNOWN_PROBES if asked is None else asked[0],
        scans=0.0 if asked is None else asked[1],
        cold_probes=sum(read.first for read in probes) / len(probes) if probes else 0.0,
        retained=retain / interval,
        workers=workers,
    )
    return Measured(
        load=load,
        pricing=pricing,
        past=past,
        probes=len(probes),
        update_seconds=_robust_mean([update.seconds for update in past.updates if update.slots == 1]),
        probe_seconds=_robust_mean([read.seconds for read in probes]),
        notes=tuple(notes),
    )


def _fitted(brought: Prices, work: list[tuple[float, ...]], seconds: list[float]) -> Prices:
    from warehouse.advice.fitting import fitted  # noqa: PLC0415 - numpy takes its time, and few commands fit

    return fitted(brought, work, seconds)


def _works(past: Past) -> tuple[list[tuple[float, ...]], list[float]]:
    return [update.work.vector() for update in past.updates], [update.seconds for update in past.updates]


def _probe_work(read: Read) -> ProbeWork:
    """The work of a logged probe; the first of a process opens files that may not hold the key: how many, rows tell.

    Rows thrown into files at random lie in n(1 - (1 - 1/n)^rows) of n files.
    """
    holding = float(read.opened)
    if read.first and read.opened:
        holding = read.opened * (1 - (1 - 1 / read.opened) ** read.rows) if read.opened > 1 else float(read.rows > 0)
    return ProbeWork(
        first=float(read.first),
        passed_file=float(max(0, read.files - read.opened)),
        opened_file=read.opened - holding,
        key_file=holding,
        row=float(read.rows),
    )


def _reads_per_interval(reads: Sequence[Read], epochs: Sequence[Epoch], now: int) -> tuple[float, float] | None:
    """Probes and scans for each slot that the windows moved meanwhile, or where they did not, for each update interval."""
    if not reads:
        return None
    since = max(reads[0].at, epochs[0].committed_at)
    counted = [read.kind == "scan" for read in reads if read.at >= since]
    before = [epoch.slot for epoch in epochs if epoch.committed_at <= since]
    slots = epochs[-1].slot - (max(before) if before else epochs[0].slot)
    intervals = max(1.0, slots, 0.0 if slots else (now - since) / epochs[-1].update_interval)
    return counted.count(False) / intervals, counted.count(True) / intervals


def _robust_mean(values: Sequence[float]) -> float | None:
    """The mean without what is far above the others, as the prices are fitted; geometric distances, since times are skewed."""
    if not values:
        return None
    logs = sorted(log(value) for value in values)
    middle = logs[len(logs) // 2]
    kept = [value for value in values if abs(log(value) - middle) <= log(_FAR)]
    return sum(kept) / len(kept) if kept else exp(middle)


_FAR = 5.0


def plain(layout: Layout) -> Layout:
    """The layout without its number in the table's history."""
    return replace(layout, base=0, version=0)


def workers_of(spark: Mapping[str, str]) -> int:
    """Return how many tasks of an update run side by side, by `spark.master` and this machine's processors."""
    found = re.fullmatch(r"local\[(\d+)(?:,\d+)?\]", spark.get("spark.master", "local[*]"))
    return max(1, int(found[1])) if found else max(1, len(os.sched_getaffinity(0)))


def _memory(spark: Mapping[str, str]) -> float:
    found = re.fullmatch(r"(\d+)([kmgt])b?", spark.get("spark.driver.memory", "").lower())
    return int(found[1]) * 1024.0 ** ("kmgt".index(found[2]) + 1) if found else float(_DEFAULT_MEMORY)
