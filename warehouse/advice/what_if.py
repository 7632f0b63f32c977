"""A workload by words: ``lifetimes=uniform:1d,rate=100000,rows=1000000``, for tables that do not exist yet."""

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

__all__ = ["KEYS", "MOST_PERIODS", "WhatIf", "changed", "parse_what_if", "workload_of"]

_DEFAULT_ROW_BYTES = 100.0
_FAR_OFF = 2.0
"""A number of live rows that differs by more than this factor from rate times lifetime is a contradiction."""
MOST_PERIODS = 1_000_000
"""p up to which layouts are compared: nearly two years of minutes."""
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
        Bytes of a stored row, and live rows that the answer to a probe has.
    retain
        For how long superseded files stay.
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
    found: dict[str, object] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        key, given, value = (each.strip() for each in part.partition("="))
        if key not in KEYS or not given:
            hint = nearest(key, KEYS)
            suggestion = f' (did you mean "{hint}"?)' if hint else ""
            raise UsageError(f"--what-if: {part!r} is none of {', '.join(f'{each}=' for each in KEYS)}{suggestion}")
        try:
            read = KEYS[key](value)
        except ValueError as error:
            raise UsageError(f"--what-if: {part}: {error}; {_ALLOWED[key]}") from error
        if read.keys() & found.keys():
            raise UsageError(f"--what-if: {key} is given twice; give it once")
        found |= read
    if not found:
        raise UsageError(f"--what-if supposes nothing; give some of {', '.join(f'{each}=' for each in KEYS)}")
    return WhatIf(**found)  # type: ignore[arg-type]


def workload_of(
    given: WhatIf, *, interval: int | None, retain: int, workers: int, target_file_size: int | None = None
) -> Workload:
    """Return the workload of a table that does not exist yet.

    At least two of rate, rows and lifetimes are needed; the third follows from them.

    Parameters
    ----------
    given
        The assumptions.
    interval, retain
        The values of the table's project, if there is one; microseconds.
    workers
        Tasks that run side by side.
    target_file_size
        Bytes of a file; None: the default.

    Raises
    ------
    UsageError
        When too few values are given, or they contradict each other.
    """
    own = given.interval or interval or HOUR
    lifetimes = _lifetimes(given, own)
    if lifetimes is None:
        raise UsageError("--what-if needs two of lifetimes=, rate= and rows=, from which the third follows; give two")
    longest = given.max_lifetime or max(own, round(lifetimes.longest * own))
    if longest < own:
        short = f"max_lifetime {format_duration(longest)} is below the update interval {format_duration(own)}"
        raise UsageError(f"--what-if: {short}; give a longer one, or a shorter interval=")
    periods = -(-longest // own)
    if periods > MOST_PERIODS:
        raise UsageError(
            f"--what-if: p = {periods} update intervals of {format_duration(own)} in {format_duration(longest)}; "
            f"up to {MOST_PERIODS} are compared, so give a longer interval="
        )
    share = shares(lifetimes, periods)
    mean = sum(distance * each for distance, each in enumerate(share, start=1))
    rate = given.rate if given.rate is not None else cast("float", given.rows) / mean
    live = rate * mean
    if given.rows is not None and not live / _FAR_OFF <= given.rows <= live * _FAR_OFF:
        raise UsageError(
            f"--what-if: rate={rate:g} and these lifetimes make {live:.0f} live rows, not rows={given.rows:g}; leave one out"
        )
    kept = given.retain if given.retain is not None else retain
    size = given.row_bytes or _DEFAULT_ROW_BYTES
    return Workload(
        periods=periods,
        rate=rate,
        shares=share,
        arriving=rate,
        row_bytes=size,
        rows_per_key=given.rows_per_key or 1.0,
        probes=1.0 if given.probes is None else given.probes,
        scans=given.scans or 0.0,
        retained=kept / own,
        workers=workers,
        target_rows=file_rows(target_file_size, rows=live, size=live * size),
    )


def changed(load: Workload, given: WhatIf, interval: int, target_file_size: int | None = None) -> Workload:
    """Return a measured workload with some values replaced by assumptions.

    All arriving rows change in proportion to the inserted ones.

    Raises
    ------
    UsageError
        When p would change, or values contradict each other.
    """
    if given.max_lifetime is not None or given.interval is not None:
        raise UsageError("--what-if: max_lifetime= and interval= are those of the table; leave TABLE out to suppose others")
    share = load.shares
    if given.kind is not None and given.lifetime is not None:
        share = shares(Lifetimes(given.kind, given.lifetime / interval), load.periods)
    mean = sum(distance * each for distance, each in enumerate(share, start=1))
    if given.rate is not None and given.rows is not None:
        raise UsageError("--what-if: of a table that exists, suppose rate= or rows=, not both: one follows from the other")
    rate = load.rate
    if given.rate is not None or given.rows is not None:
        rate = given.rate if given.rate is not None else cast("float", given.rows) / mean
    factor = rate / load.rate if load.rate else 1.0
    live, size = rate * mean, given.row_bytes
    return replace(
        load,
        rate=rate,
        shares=share,
        arriving=load.arriving * factor if load.rate else rate,
        row_bytes=size or load.row_bytes,
        rows_per_key=given.rows_per_key or load.rows_per_key,
        probes=load.probes if given.probes is None else given.probes,
        scans=load.scans if given.scans is None else given.scans,
        retained=load.retained if given.retain is None else given.retain / interval,
        target_rows=load.target_rows if size is None else file_rows(target_file_size, rows=live, size=live * size),
    )


def _lifetimes(given: WhatIf, interval: int) -> Lifetimes | None:
    if given.lifetime is not None:
        if given.rate is None and given.rows is None:
            return None
        return Lifetimes(given.kind or "uniform", given.lifetime / interval)
    if not given.rate or given.rows is None:
        return None
    return Lifetimes("uniform", max(1.0, 2 * given.rows / given.rate))


def _read_lifetimes(text: str) -> dict[str, object]:
    kind, given, size = text.rpartition(":")
    if given and kind not in _KINDS:
        raise ValueError(f'"{kind}" is no distribution')
    length = parse_duration(size)
    if length <= 0:
        raise ValueError("a lifetime is longer than nothing")
    return {"kind": kind if given else "uniform", "lifetime": length}


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
