"""The layout that ``init --from`` proposes: the recommendation of the cost model for a sample of rows, where it matters."""

from __future__ import annotations

from warehouse.layout import resolve
from warehouse.layout.advice import (
    DEFAULT_PRICES,
    WORTH_IT,
    Lifetimes,
    Workload,
    candidates,
    choose,
    evaluate,
    in_words,
    layout_keys,
    shares,
)
from warehouse.time import format_duration

__all__ = ["layout_lines"]

_ENOUGH = 10_000
"""A sample with fewer rows per update does not decide the layout: fixed costs dominate, and real files may be larger."""
_ALIKE = 0.9
"""Mean over longest lifetime from which all are taken to be equal."""
_UNIFORM = 0.4
"""The same from which they are taken to be uniform; below it they are exponential."""


def layout_lines(name: str, *, rows: int, span: int, interval: int, longest: int, mean: float) -> list[str]:
    """Return the lines about the layout of a proposed stream.

    Parameters
    ----------
    name
        The stream.
    rows, span
        Rows of the sample, and the time in which they arrived, in microseconds.
    interval
        The update interval, in microseconds.
    longest, mean
        `max_lifetime`, and the mean lifetime of the sample, in microseconds.
    """
    periods = -(-longest // interval)
    rate = rows / max(1.0, span / interval)
    default_layout = resolve(periods=periods, label="WK")
    sample = f"about {rate:,.0f} rows an update"
    if rate < _ENOUGH:
        return [
            "",
            f"# The layout is the default, {in_words(default_layout)}: a sample of {sample} does not show which fits. Ask",
            f"# `stream-wh advise {name}` once the stream has been updated, or with your own figures now, such as",
            f"# `stream-wh advise --what-if lifetimes={format_duration(longest)},rate=100000`.",
        ]
    share = shares(_distribution(mean, longest, interval), periods)
    load = Workload(periods=periods, rate=rate, shares=share, arriving=rate, probes=1.0)
    default = evaluate(default_layout, load, DEFAULT_PRICES)
    best = choose([default, *(evaluate(layout, load, DEFAULT_PRICES) for layout in candidates(periods))]).best
    if default.interval <= best.interval * WORTH_IT:
        return [
            "",
            f"# For {sample} the default layout ({in_words(default_layout)}) does as well as any: `stream-wh advise {name}`",
            "# compares it with others once the stream has been updated a few times.",
        ]
    saved = f"{1 - best.interval / default.interval:.0%}"
    return [
        "",
        f"# (?) What the cost model recommends for {sample} and one probe: it costs {saved} less than the default,",
        f"# {in_words(default_layout)}. Fixed once the table exists; `stream-wh advise {name}` measures later.",
        f"[streams.{name}.layout]",
        *layout_keys(best.layout),
    ]


def _distribution(mean: float, longest: int, interval: int) -> Lifetimes:
    if mean >= _ALIKE * longest:
        return Lifetimes("constant", mean / interval)
    if mean >= _UNIFORM * longest:
        return Lifetimes("uniform", longest / interval)
    return Lifetimes("exponential", max(mean, 1.0) / interval)
