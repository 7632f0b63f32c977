"""Whether a table's layout still fits: four signs, each with its remedy, reported by ``status``."""

from __future__ import annotations

from contextlib import suppress
from math import gcd, sqrt
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from warehouse.advice.advise import without_history
from warehouse.advice.measurements import MIN_UPDATES, measure_table, workers_of
from warehouse.advice.suitable import unsuitable_reason
from warehouse.advice.update_history import RecentEpochs, update_history
from warehouse.errors import UsageError
from warehouse.layout.advice import candidates, evaluate, footprint
from warehouse.layout.advice.footprint import chance_spread
from warehouse.layout.advice.work import task_work

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.advice.measurements import Measurements
    from warehouse.advice.update_history import UpdateHistory
    from warehouse.epochs.records import TableState
    from warehouse.layout import Layout
    from warehouse.serving.reader import Reader

__all__ = ["drift_signs", "rate_period", "shared_period"]

_MAX_COST_FACTOR = 2.0
_MAX_OVER_LIFETIME = 0.01
_MAX_SPREAD_FACTOR = 1.25
"""By what factor the spread of the cells may be above the largest expected one, in addition to chance."""
_MIN_ROWS_PER_CELL = 100
"""If a cell has fewer live rows on average, their distribution over the cells means nothing."""
_MIN_CORRELATION = 0.6
"""Autocorrelation from which a rate has a period."""
_CHANCE_CORRELATION = 2.6
"""The correlation of n random values is below this number over the root of n, ninety-nine times of a hundred."""
_MIN_RATE_SPREAD = 0.2
"""Spread of a rate below which its period does not matter."""
_MIN_CYCLES = 3
_MAX_PERIODS = 200
"""Longer windows are compared by ``advise`` only, since that takes seconds."""


def drift_signs(
    reader: Reader,
    *,
    spark: Mapping[str, str],
    retain: int,
    now: int,
    target_file_size: int | None = None,
    recent: RecentEpochs | None = None,
) -> tuple[tuple[str, str], ...]:
    """Return each table whose layout no longer fits, with a text about the sign and the remedy.

    Parameters are as for :func:`warehouse.advice.advise.advise`; ``recent`` has the reader's epochs, if some are read already.
    """
    states = [state for state in reader.epoch.tables if state.declared and unsuitable_reason(state) is None]
    states = [state for state in states if state.view is None or state.view.failed is None]
    if not states:
        return ()
    epochs = (recent or RecentEpochs(reader.root, reader.epoch)).all()
    workers = workers_of(spark)
    signs_of_tables: list[tuple[str, str]] = []
    for state in states:
        history = update_history(epochs, state.name, workers, target_file_size)
        signs = [*_too_long_lived(state, history), *_periodic(state, history)]
        if len(history.updates) >= MIN_UPDATES and state.layout.periods <= _MAX_PERIODS:
            with suppress(UsageError):  # the table has no live row
                measured = measure_table(
                    reader, state, epochs, workers=workers, retain=retain, now=now, keys=False, target_file_size=target_file_size
                )
                signs += [*_uneven(state, measured), *_too_expensive(state, measured)]
        signs_of_tables += [(state.name, f"its layout no longer fits: {sign}") for sign in signs]
    return tuple(signs_of_tables)


def _too_long_lived(state: TableState, history: UpdateHistory) -> Iterator[str]:
    if history.over_lifetime > _MAX_OVER_LIFETIME:
        yield (
            f"{history.over_lifetime:.1%} of its rows live for longer than max_lifetime, and lie apart; raise max_lifetime "
            f"and move the table: `stream-wh migrate {state.name}`"
        )


def _periodic(state: TableState, history: UpdateHistory) -> Iterator[str]:
    layout = state.layout
    period = rate_period(history.arrivals)
    if period is None or not shared_period(layout, period):
        return
    yield (
        f"rows arrive with a period of {period} updates, which shares a factor with its {layout.rows} insertion rows, so some "
        f'of them get all the bursts; `stream-wh migrate {state.name}` to insertion = "permuted", or to a G that shares none'
    )


def shared_period(layout: Layout, period: int) -> bool:
    """Return whether bursts of a period always arrive in the same rows of the grid: doubly-partitioned-index sheet, section 7.

    Round-robin assigns single slots to rows. Staggered rows take F consecutive slots, which evens out changes within them.
    Permuted assignments use another order of the rows in each cycle.
    """
    return layout.insertion == "round-robin" and layout.rows > 1 and gcd(period, layout.rows) > 1


def rate_period(arrivals: Sequence[int]) -> int | None:
    """Return the period of a rate, in updates: the shortest lag at which it repeats itself; None if it has no period.

    Parameters
    ----------
    arrivals
        Rows of successive updates; a period is found from three cycles on.

    Examples
    --------
    >>> rate_period([4, 1, 1, 1] * 6), rate_period([5, 4, 6, 5, 5, 4, 6, 5, 6, 5, 4, 4]), rate_period([7] * 12)
    (4, None, None)
    """
    number = len(arrivals)
    mean = fmean(arrivals) if arrivals else 0.0
    if not mean or pstdev(arrivals, mean) / mean < _MIN_RATE_SPREAD:
        return None
    correlations = {lag: _correlation(arrivals[:-lag], arrivals[lag:]) for lag in range(1, number // _MIN_CYCLES + 1)}
    least_so_far: dict[int, float] = {}  # a series that only grows correlates at every lag: only a rise above this counts
    for lag, value in correlations.items():
        least_so_far[lag] = min(least_so_far.get(lag - 1, value), value)
    repeating = {
        lag: value
        for lag, value in correlations.items()
        if value - least_so_far[lag] >= _MIN_CORRELATION
        and value >= max(_MIN_CORRELATION, _CHANCE_CORRELATION / sqrt(number - lag))
    }
    best = max(repeating.values(), default=0.0)
    return next((lag for lag, value in repeating.items() if value >= 0.9 * best), None)


def _correlation(first_values: Sequence[float], second_values: Sequence[float]) -> float:
    first, second = fmean(first_values), fmean(second_values)
    product = sum((a - first) * (b - second) for a, b in zip(first_values, second_values, strict=True))
    scale = sum((a - first) ** 2 for a in first_values) * sum((b - second) ** 2 for b in second_values)
    return product / scale**0.5 if scale > 0 else 0.0


def _uneven(state: TableState, measured: Measurements) -> Iterator[str]:
    """Yield a sign if the sub-indices differ more than the measured lifetimes explain at a constant rate."""
    layout = without_history(state.layout)
    cells = dict.fromkeys(range(state.layout.first_cell, state.layout.last_cell + 1), 0)
    for part in state.partitions:
        if part.sub_index in cells:
            cells[part.sub_index] += part.rows
    total = sum(cells.values())
    slots = sum(update.slots for update in measured.history.updates)
    if len(cells) < 2 or total < _MIN_ROWS_PER_CELL * len(cells) or slots < layout.periods:  # noqa: PLR2004
        return
    mean = total / len(cells)
    spread = pstdev(cells.values(), mean) / mean
    expected = footprint(layout, measured.load).spread
    if spread > expected * _MAX_SPREAD_FACTOR + 2 * chance_spread(len(cells), total):
        yield (
            f"rows differ between sub-indices by {spread:.2f} of their mean, where their lifetimes at a constant rate make "
            f"{expected:.2f} at the most; see `stream-wh advise {state.name}`, then `stream-wh migrate {state.name}`"
        )


def _too_expensive(state: TableState, measured: Measurements) -> Iterator[str]:
    """Yield a sign if an update interval costs more than twice the predicted costs of the best layout."""
    cost = _measured_cost(measured)
    if cost is None or cost <= _MAX_COST_FACTOR * _least_cost(measured):
        return
    layouts = candidates(state.layout.periods, few=True)
    best = min(
        (evaluate(layout, measured.load, measured.pricing) for layout in layouts), key=lambda evaluation: evaluation.interval
    )
    if cost > _MAX_COST_FACTOR * best.interval:
        yield (
            f"an update interval costs {cost:.3g} s of updating and probing, where {best.interval:.3g} s are predicted for the "
            f"best layout; see `stream-wh advise {state.name}`, then `stream-wh migrate {state.name}`"
        )


def _measured_cost(measured: Measurements) -> float | None:
    if measured.update_seconds is None:
        return None
    return measured.update_seconds + measured.load.probes * (measured.probe_seconds or 0.0)


def _least_cost(measured: Measurements) -> float:
    """Return a lower bound of the costs of all layouts: one run for each task, of equal size, and one file with the key."""
    load = measured.load
    runs = [load.rate / load.workers] * load.workers
    work = task_work(
        runs=runs, files=1, read=0, workers=load.workers, sub_indices=1,
        arriving=load.arriving, landing_files=load.landing_files, target_rows=load.target_rows,
    )  # fmt: skip
    return measured.pricing.update.cost(work.vector()).value
