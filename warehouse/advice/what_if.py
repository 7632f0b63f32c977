"""Assumptions about a workload as text, such as ``lifetimes=uniform:1d,rate=100000,rows=1000000``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast, get_args

from warehouse.catalog.sizes import parse_size
from warehouse.catalog.spelling import nearest
from warehouse.errors import UsageError
from warehouse.layout.advice import Lifetimes, Workload, shares
from warehouse.layout.advice.workload import Kind
from warehouse.layout.tasks import file_rows
from warehouse.time import HOUR, format_duration, parse_duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["KEYS", "MAX_PERIODS", "WhatIf", "parse_what_if", "with_assumptions", "workload_of"]

_DEFAULT_ROW_BYTES = 100.0
_CONTRADICTION_FACTOR = 2.0
"""A number of live rows that differs by more than this factor from rate times lifetime is a contradiction."""
MAX_PERIODS = 1_000_000
"""The greatest p for which layouts are compared: nearly two years of minutes."""
_KINDS = get_args(Kind)


@dataclass(frozen=True)
class WhatIf:
    """Assumptions about a workload; None where nothing is assumed. Durations are microseconds.

    Parameters
    ----------
    kind, lifetime
        The distribution of lifetimes and its size: the longest of `uniform`, the mean of `exponential`, all of `constant`.
    rate
        Rows that arrive in an update interval.
    rows
        Live rows.
    max_lifetime, interval
        S and the update interval.
    probes, scans
        Probes and scans in an update interval.
    row_bytes, rows_per_key
        Bytes of a stored row, and live rows in the answer to a probe.
    retain
        How long superseded files stay.
    """

    kind: Kind | None = None
    lifetime: int | None = None
    rate: float | None = None
    rows: float | None = None
    max_lifetime: int | None = None
    interval: int | None = None
    probes: float | None = None
    scans: float | None = None
    row_bytes: float | None = None
    rows_per_key: float | None = None
    retain: int | None = None


def parse_what_if(text: str) -> WhatIf:
    """Return the assumptions in ``key=value,key=value``.

    Raises
    ------
    UsageError
        For an unknown key, a wrong value, or a key given twice.

    Examples
    --------
    >>> found = parse_what_if("lifetimes=1d,rate=5000")
    >>> found.kind, found.lifetime, found.rate
    ('uniform', 86400000000, 5000.0)
    """
    assumptions: dict[str, object] = {}
    for part in filter(None, (term.strip() for term in text.split(","))):
        key, equals, value = (side.strip() for side in part.partition("="))
        if key not in KEYS or not equals:
            hint = nearest(key, KEYS)
            suggestion = f' (did you mean "{hint}"?)' if hint else ""
            raise UsageError(f"--what-if: {part!r} is none of {', '.join(f'{name}=' for name in KEYS)}{suggestion}")
        try:
            parsed = KEYS[key](value)
        except ValueError as error:
            raise UsageError(f"--what-if: {part}: {error}; {_ALLOWED[key]}") from error
        if parsed.keys() & assumptions.keys():
            raise UsageError(f"--what-if: {key} is given twice; give it once")
        assumptions |= parsed
    if not assumptions:
        raise UsageError(f"--what-if supposes nothing; give some of {', '.join(f'{name}=' for name in KEYS)}")
    return WhatIf(**assumptions)  # type: ignore[arg-type]


def workload_of(
    assumed: WhatIf, *, interval: int | None, retain: int, workers: int, target_file_size: int | None = None
) -> Workload:
    """Return the workload of a table that does not exist yet.

    At least two of rate, rows and lifetimes are needed; the third follows from them.

    Parameters
    ----------
    assumed
        The assumptions.
    interval, retain
        The values of the table's project, if there is one; microseconds.
    workers
        Tasks of an update that run at the same time.
    target_file_size
        Bytes of a file; None: the default.

    Raises
    ------
    UsageError
        When too few values are given, or they contradict each other.
    """
    update_interval = assumed.interval or interval or HOUR
    lifetimes = _assumed_lifetimes(assumed, update_interval)
    if lifetimes is None:
        raise UsageError("--what-if needs two of lifetimes=, rate= and rows=, from which the third follows; give two")
    longest = assumed.max_lifetime or max(update_interval, round(lifetimes.longest * update_interval))
    if longest < update_interval:
        short = f"max_lifetime {format_duration(longest)} is below the update interval {format_duration(update_interval)}"
        raise UsageError(f"--what-if: {short}; give a longer one, or a shorter interval=")
    periods = -(-longest // update_interval)
    if periods > MAX_PERIODS:
        raise UsageError(
            f"--what-if: p = {periods} update intervals of {format_duration(update_interval)} in {format_duration(longest)}; "
            f"up to {MAX_PERIODS} are compared, so give a longer interval="
        )
    share = shares(lifetimes, periods)
    mean = sum(distance * fraction for distance, fraction in enumerate(share, start=1))
    rate = assumed.rate if assumed.rate is not None else cast("float", assumed.rows) / mean
    live = rate * mean
    if assumed.rows is not None and not live / _CONTRADICTION_FACTOR <= assumed.rows <= live * _CONTRADICTION_FACTOR:
        raise UsageError(
            f"--what-if: rate={rate:g} and these lifetimes make {live:.0f} live rows, not rows={assumed.rows:g}; leave one out"
        )
    retained = assumed.retain if assumed.retain is not None else retain
    size = assumed.row_bytes or _DEFAULT_ROW_BYTES
    return Workload(
        periods=periods,
        rate=rate,
        shares=share,
        arriving=rate,
        row_bytes=size,
        rows_per_key=assumed.rows_per_key or 1.0,
        probes=1.0 if assumed.probes is None else assumed.probes,
        scans=assumed.scans or 0.0,
        retained=retained / update_interval,
        workers=workers,
        target_rows=file_rows(target_file_size, rows=live, size=live * size),
    )


def with_assumptions(load: Workload, assumed: WhatIf, interval: int, target_file_size: int | None = None) -> Workload:
    """Return a measured workload with some values replaced by assumptions.

    The number of arriving rows changes in proportion to the inserted rows. ``interval`` is the update interval in microseconds.

    Raises
    ------
    UsageError
        When p would change, or values contradict each other.
    """
    if assumed.max_lifetime is not None or assumed.interval is not None:
        raise UsageError("--what-if: max_lifetime= and interval= are those of the table; leave TABLE out to suppose others")
    share = load.shares
    if assumed.kind is not None and assumed.lifetime is not None:
        share = shares(Lifetimes(assumed.kind, assumed.lifetime / interval), load.periods)
    mean = sum(distance * fraction for distance, fraction in enumerate(share, start=1))
    if assumed.rate is not None and assumed.rows is not None:
        raise UsageError("--what-if: of a table that exists, suppose rate= or rows=, not both: one follows from the other")
    rate = load.rate
    if assumed.rate is not None or assumed.rows is not None:
        rate = assumed.rate if assumed.rate is not None else cast("float", assumed.rows) / mean
    factor = rate / load.rate if load.rate else 1.0
    live, size = rate * mean, assumed.row_bytes
    return replace(
        load,
        rate=rate,
        shares=share,
        arriving=load.arriving * factor if load.rate else rate,
        row_bytes=size or load.row_bytes,
        rows_per_key=assumed.rows_per_key or load.rows_per_key,
        probes=load.probes if assumed.probes is None else assumed.probes,
        scans=load.scans if assumed.scans is None else assumed.scans,
        retained=load.retained if assumed.retain is None else assumed.retain / interval,
        target_rows=load.target_rows if size is None else file_rows(target_file_size, rows=live, size=live * size),
    )


def _assumed_lifetimes(assumed: WhatIf, interval: int) -> Lifetimes | None:
    if assumed.lifetime is not None:
        if assumed.rate is None and assumed.rows is None:
            return None
        return Lifetimes(assumed.kind or "uniform", assumed.lifetime / interval)
    if not assumed.rate or assumed.rows is None:
        return None
    return Lifetimes("uniform", max(1.0, 2 * assumed.rows / assumed.rate))


def _read_lifetimes(text: str) -> dict[str, object]:
    kind, colon, size = text.rpartition(":")
    if colon and kind not in _KINDS:
        raise ValueError(f'"{kind}" is no distribution')
    length = parse_duration(size)
    if length <= 0:
        raise ValueError("a lifetime is longer than nothing")
    return {"kind": kind if colon else "uniform", "lifetime": length}


def _duration(name: str, *, zero: bool = False) -> Callable[[str], dict[str, object]]:
    def read(text: str) -> dict[str, object]:
        length = parse_duration(text)
        if length <= 0 and not zero:
            raise ValueError("a duration above 0 is needed")
        return {name: length}

    return read


def _number(name: str, *, zero: bool = False) -> Callable[[str], dict[str, object]]:
    def read(text: str) -> dict[str, object]:
        value = float(text.replace("_", ""))
        if not (0 <= value < float("inf")) or (value == 0 and not zero):
            raise ValueError("a finite number above 0 is needed")
        return {name: value}

    return read


def _row_bytes(text: str) -> dict[str, object]:
    return {"row_bytes": float(text) if text.isdigit() and int(text) else float(parse_size(text))}


KEYS: Mapping[str, Callable[[str], dict[str, object]]] = {
    "lifetimes": _read_lifetimes,
    "rate": _number("rate"),
    "rows": _number("rows"),
    "max_lifetime": _duration("max_lifetime"),
    "interval": _duration("interval"),
    "probes": _number("probes", zero=True),
    "scans": _number("scans", zero=True),
    "row_bytes": _row_bytes,
    "rows_per_key": _number("rows_per_key"),
    "retain": _duration("retain", zero=True),
}
"""The possible assumptions, and the parser of each."""

_DURATION = 'a duration such as "1h"'
_ALLOWED = {
    "lifetimes": "allowed: uniform:1d (the longest), exponential:2h (the mean), constant:1h (all), or a duration (uniform)",
    "rate": "allowed: rows for each update interval",
    "rows": "allowed: live rows",
    "max_lifetime": f"allowed: {_DURATION}",
    "interval": f"allowed: {_DURATION}",
    "probes": "allowed: probes for each update interval",
    "scans": "allowed: scans for each update interval",
    "row_bytes": "allowed: bytes of a row",
    "rows_per_key": "allowed: live rows of a key",
    "retain": f"allowed: {_DURATION}",
}
