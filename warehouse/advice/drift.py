"""Whether a table's layout still fits: four signs, each with its remedy, reported by ``status``."""

from __future__ import annotations

from contextlib import suppress
from math import gcd, sqrt
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from warehouse.advice.advise import plain
from warehouse.advice.measured import MIN_UPDATES, measured, workers_of
from warehouse.advice.past import RecentEpochs, past_of
from warehouse.advice.suitable import unsuitable
from warehouse.errors import UsageError
from warehouse.layout.advice import candidates, evaluate, footprint
from warehouse.layout.advice.footprint import noise
from warehouse.layout.advice.work import task_work

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from warehouse.advice.measured import Measured
    from warehouse.advice.past import Past
    from warehouse.epochs.records import TableState
    from warehouse.layout import Layout
    from warehouse.serving.reader import Reader

__all__ = ["drift_signs", "rate_period", "shared_period"]

_COST = 2.0
_OVER_LIFETIME = 0.01
_SPREAD = 1.25
"""How far above the oracle's largest spread the cells' may be, as a factor; chance comes on top."""
_ROWS_PER_CELL = 100
"""Below this number of live rows a cell, their distribution over the cells says nothing."""
_ALIKE = 0.6
"""Autocorrelation from which a rate has a period."""
_BY_CHANCE = 2.6
"""Noise of n values is correlated by less than this over the root of n, ninety-nine times of a hundred."""
_UNEVEN = 0.2
"""Spread of a rate below which its period does not matter."""
_CYCLES = 3
_MOST_PERIODS = 200
"""Longer windows are compared by ``advise`` only: it takes seconds."""


def drift_signs(
    reader: Reader,
    *,
    spark: Mapping[str, str],
    retain: int,
    now: int,
    target_file_size: int | None = None,
    recent: RecentEpochs | None = None,
) -> tuple[tuple[str, str], ...]:
    """Return each table whose layout no longer fits, with a text about the sign and the remedy; see :func:`advise`.

    ``recent`` has the reader's epochs, if some are read already.
    """
    states = [state for state in reader.epoch.tables if state.declared and unsuitable(state) is None]
    states = [state for state in states if state.view is None or state.view.failed is None]
    if not states:
        return ()
    epochs = (recent or RecentEpochs(reader.root, reader.epoch)).all()
    workers = workers_of(spark)
    found: list[tuple[str, str]] = []
    for state in states:
        past = past_of(epochs, state.name, workers, target_file_size)
        signs = [*_too_long_lived(state, past), *_periodic(state, past)]
        if len(past.updates) >= MIN_UPDATES and state.layout.periods <= _MOST_PERIODS:
            with suppress(UsageError):  # no live row
                known = measured(
                    reader, state, epochs, workers=workers, retain=retain, now=now, keys=False, target_file_size=target_file_size
                )
                signs += [*_uneven(state, known), *_too_expensive(state, known)]
        found += [(state.name, f"its layout no longer fits: {sign}") for sign in signs]
    return tuple(found)


def _too_long_lived(state: TableState, past: Past) -> Iterator[str]:
    if past.over_lifetime > _OVER_LIFETIME:
        yield (
            f"{past.over_lifetime:.1%} of its rows live for longer than max_lifetime, and lie apart; raise max_lifetime "
            f"and move the table: `stream-wh migrate {state.name}`"
        )


def _periodic(state: TableState, past: Past) -> Iterator[str]:
    layout = state.layout
    period = rate_period(past.arrivals)
    if period is None or not shared_period(layout, period):
        return
    yield (
        f"rows arrive with a period of {period} updates, which shares a factor with its {layout.rows} insertion rows, so some "
        f'of them get all the bursts; `stream-wh migrate {state.name}` to insertion = "permuted", or to a G that shares none'
    )


def shared_period(layout: Layout, period: int) -> bool:
    """Whether bursts of a period always meet the same rows of the grid, doubly-partitioned-index sheet, section 7.

    Round-robin assigns single slots to rows. Staggered rows take F consecutive slots, which evens out changes within them.
    Permuted assignments visit the rows in another order in each cycle.
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
    count = len(arrivals)
    mean = fmean(arrivals) if arrivals else 0.0
    if not mean or pstdev(arrivals, mean) / mean < _UNEVEN:
        return None
    alike = {lag: _correlation(arrivals[:-lag], arrivals[lag:]) for lag in range(1, count // _CYCLES + 1)}
    unlike: dict[int, float] = {}  # the least correlation at a shorter lag: a series that only grows correlates at every lag
    for lag, value in alike.items():
        unlike[lag] = min(unlike.get(lag - 1, value), value)
    rising = {
        lag: value
        for lag, value in alike.items()
        if value - unlike[lag] >= _ALIKE and value >= max(_ALIKE, _BY_CHANCE / sqrt(count - lag))
    }
    best = max(rising.values(), default=0.0)
    return next((lag for lag, value in rising.items() if value >= 0.9 * best), None)


def _correlation(one: Sequence[float], other: Sequence[float]) -> float:
    first, second = fmean(one), fmean(other)
    product = sum((a - first) * (b - second) for a, b in zip(one, other, strict=True))
    scale = sum((a - first) ** 2 for a in one) * sum((b - second) ** 2 for b in other)
    return product / scale**0.5 if scale > 0 else 0.0


def _uneven(state: TableState, known: Measured) -> Iterator[str]:
    """Compare the spread of the sub-indices with the largest that the measured lifetimes make at a constant rate."""
    layout = plain(state.layout)
    cells = dict.fromkeys(range(state.layout.first_cell, state.layout.last_cell + 1), 0)
    for part in state.partitions:
        if part.sub_index in cells:
            cells[part.sub_index] += part.rows
    total = sum(cells.values())
    slots = sum(update.slots for update in known.past.updates)
    if len(cells) < 2 or total < _ROWS_PER_CELL * len(cells) or slots < layout.periods:  # noqa: PLR2004
        return
    mean = total / len(cells)
    spread = pstdev(cells.values(), mean) / mean
    expected = footprint(layout, known.load).spread
    if spread > expected * _SPREAD + 2 * noise(len(cells), total):
        yield (
            f"rows differ between sub-indices by {spread:.2f} of their mean, where their lifetimes at a constant rate make "
            f"{expected:.2f} at the most; see `stream-wh advise {state.name}`, then `stream-wh migrate {state.name}`"
        )


def _too_expensive(state: TableState, known: Measured) -> Iterator[str]:
    """Compare the costs of an update interval with the least predicted costs of any layout."""
    cost = _measured_cost(known)
    if cost is None or cost <= _COST * _least(known):
        return
    layouts = candidates(state.layout.periods, few=True)
    best = min((evaluate(layout, known.load, known.pricing) for layout in layouts), key=lambda each: each.interval)
    if cost > _COST * best.interval:
        yield (
            f"an update interval costs {cost:.3g} s of updating and probing, where {best.interval:.3g} s are predicted for the "
            f"best layout; see `stream-wh advise {state.name}`, then `stream-wh migrate {state.name}`"
        )


def _measured_cost(known: Measured) -> float | None:
    if known.update_seconds is None:
        return None
    return known.update_seconds + known.load.probes * (known.probe_seconds or 0.0)


def _least(known: Measured) -> float:
    """A lower bound of the costs of all layouts: one run for each task, of equal size, and one file with the key."""
    load = known.load
    runs = [load.rate / load.workers] * load.workers
    work = task_work(
        runs=runs, files=1, read=0, workers=load.workers, sub_indices=1,
        arriving=load.arriving, landing_files=load.landing_files, target_rows=load.target_rows,
    )  # fmt: skip
    return known.pricing.update.cost(work.vector()).value
