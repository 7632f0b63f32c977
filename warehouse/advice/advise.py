"""Advice on a table's layout: candidates are evaluated by the measured workload, at prices that are fitted to this storage."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from warehouse.advice.measurements import Measurements, measure_table, workers_of
from warehouse.advice.recommendation import reason_for
from warehouse.advice.suitable import refuse_unsuitable
from warehouse.advice.update_history import recent_epochs
from warehouse.advice.what_if import parse_what_if, with_assumptions, workload_of
from warehouse.layout.advice import (
    DEFAULT_PRICES,
    MAX_EXACT_PERIODS,
    WORTH_IT,
    Evaluation,
    Pricing,
    Workload,
    candidates,
    choose,
    decision,
    evaluate,
)
from warehouse.promise.allocation import densest_share
from warehouse.serving.owed_results import owed_of
from warehouse.serving.view_figures import keys_of_join
from warehouse.views.algebra import Join, stateful_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.catalog.model import Catalog
    from warehouse.epochs.records import TableState
    from warehouse.layout import Layout
    from warehouse.layout.advice import TableAnswer
    from warehouse.serving.pin import Pin
    from warehouse.serving.reader import Reader

__all__ = ["Advice", "advise", "advise_load", "advise_what_if", "join_notes", "without_history"]

_BUDGET_SHARE = 0.1
"""A budget of this share of a join's rows is evaluated in a note."""

_DEFAULT_MEMORY = 2**30
"""Heap of a JVM where `spark.driver.memory` says nothing."""


@dataclass(frozen=True)
class Advice:
    """A recommendation for a table's layout.

    Parameters
    ----------
    table
        Its name; None for a table that does not exist yet.
    load, pricing
        The workload of the table, and the prices of work on this storage.
    best, current
        The recommended layout, and the layout of the table; None if there is no table.
    front
        The few layouts that no other layout beats in update time, probe time and space, sorted by update time.
    decision, decided
        The answer of the source's decision table, and its predicted costs.
    compared
        How many layouts were evaluated.
    reason
        One sentence.
    notes
        Facts that were not measured, and the assumptions that replace them. For a view also the size of its join, and the results
        that it owes.
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
        return self.current is not None and without_history(self.current.layout) == without_history(self.best.layout)


def advise(
    reader: Reader,
    table: str,
    *,
    spark: Mapping[str, str],
    retain: int,
    now: int,
    widest: int | None = None,
    what_if: str | None = None,
    target_file_size: int | None = None,
) -> Advice:
    """Return advice on a table of the newest epoch.

    Parameters
    ----------
    reader
        The newest epoch.
    table
        A stream, or a view cut on a grid.
    spark
        The settings of `[spark]`: the number of parallel tasks, and their memory.
    retain, now
        How long superseded files stay, and the clock's instant; both in microseconds.
    widest
        The widest expiry block that `erase_within` allows.
    what_if
        Assumptions that replace measured values.
    target_file_size
        Bytes of a file; None: the default.

    Raises
    ------
    UnknownNameError
        When there is no such table.
    UsageError
        When its layout cannot be chosen, it has no rows to measure, or the assumptions are impossible.
    """
    assumed = None if what_if is None else parse_what_if(what_if)

    def build(pin: Pin) -> tuple[Measurements, Layout, tuple[str, ...]]:
        state = pin.state(table)
        refuse_unsuitable(state)
        epochs = recent_epochs(pin.root, pin.epoch)
        workers = workers_of(spark)
        measured = measure_table(
            reader, state, epochs, workers=workers, retain=retain, now=now, target_file_size=target_file_size
        )
        return measured, state.layout, tuple(join_notes(reader, state))

    measured, layout, view_notes = reader.retrying(build)
    load = measured.load
    if assumed is not None:
        load = with_assumptions(load, assumed, reader.epoch.update_interval, target_file_size)
    notes = (*measured.notes, *view_notes)
    return advise_load(load, measured.pricing, spark=spark, table=table, current=layout, widest=widest, notes=notes)


def advise_what_if(what_if: str, catalog: Catalog | None) -> Advice:
    """Return advice on a table that does not exist yet.

    Parameters
    ----------
    what_if
        Its workload.
    catalog
        The project of the table; its update interval, `retain` and `[spark]` are the defaults of the assumptions.

    Raises
    ------
    UsageError
        When there are too few assumptions, or they are impossible.
    """
    assumed = parse_what_if(what_if)
    spark = dict(catalog.spark) if catalog else {}
    interval, retain = (catalog.update_interval, catalog.retain) if catalog else (None, 0)
    target = catalog.target_file_size if catalog else None
    load = workload_of(assumed, interval=interval, retain=retain, workers=workers_of(spark), target_file_size=target)
    notes = ["nothing was measured: prices are those of the benchmarks' machine, and may be off by half"]
    if assumed.probes is None:
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
    if load.periods > MAX_EXACT_PERIODS:
        sampled = f"of the {load.periods:,} updates of a window some are simulated"
        notes = (*notes, f"{sampled}, so files are right within a tenth, costs within a twentieth")
    layouts = candidates(load.periods, widest=widest, seed=current.seed if current else 0)
    evaluations = [evaluate(layout, load, pricing) for layout in layouts]
    current_evaluation = None
    if current is not None:
        current_evaluation = evaluate(without_history(current), load, pricing)
        evaluations.append(current_evaluation)
    choice = choose(evaluations)
    best = choice.best
    if current_evaluation is not None and current_evaluation.interval <= best.interval * WORTH_IT:
        best = current_evaluation  # a migration would cost more than it saves
    live = load.live * load.row_bytes
    reference = current_evaluation or best
    answer = decision(
        periods=load.periods,
        live_bytes=live,
        memory=_driver_memory(spark),
        query_cost=reference.interval - reference.update.value,
        update_cost=reference.update.value,
    )
    decided = evaluate(answer.layout, load, pricing)
    front = tuple(evaluation for evaluation in choice.front if evaluation is not current_evaluation)
    if all(evaluation is not best for evaluation in (*front, current_evaluation)):
        front = (*front, best)
    return Advice(
        table=table,
        load=load,
        pricing=pricing,
        best=best,
        current=current_evaluation,
        front=tuple(
            sorted(
                (*front, *([current_evaluation] if current_evaluation else [])), key=lambda evaluation: evaluation.update.value
            )
        ),
        decision=answer,
        decided=decided,
        compared=len(evaluations),
        reason=reason_for(best, current_evaluation, choice.front, load),
        notes=tuple(notes),
    )


def without_history(layout: Layout) -> Layout:
    """Return the layout without its version and its first sub-index, which depend on earlier layouts of the table."""
    return replace(layout, base=0, version=0)


def _driver_memory(spark: Mapping[str, str]) -> float:
    match = re.fullmatch(r"(\d+)([kmgt])b?", spark.get("spark.driver.memory", "").lower())
    return int(match[1]) * 1024.0 ** ("kmgt".index(match[2]) + 1) if match else float(_DEFAULT_MEMORY)


def join_notes(reader: Reader, state: TableState) -> Iterator[str]:
    """Yield notes about the join of a view, from key summaries, and about the results that the view owes."""
    if state.view is None:
        return
    join = stateful_of(state.view.node.operator)
    keys = keys_of_join(reader, join) if isinstance(join, Join) else None
    if keys is not None:
        low, high = keys.pairs
        count = f"{high:,}" if low == high else f"{low:,} to {high:,}"
        yield f"its join has {count} pairs of live rows with equal keys, by key summaries"
        if keys.exact and high and state.view.budget is None:
            counts = [(rows, keys.right.counts.get(key, 0)) for key, rows in keys.left.counts.items() if None not in key]
            share = densest_share(counts, _BUDGET_SHARE)
            yield f"a budget of a tenth of the rows that it joins would make {share:.0%} of them, the densest keys first"
    owed = owed_of(state)
    if owed is not None and not owed.complete:
        yield owed.text
        if owed.units:
            yield owed.cost
