"""DISTINCT as delta*: one shown row for each live value and at most one spare (update-patterns sheet, 5.2).

State of a value: the shown row ``[gen, exp)`` in the view's table, and beside it the row with the latest ``exp`` of all
that arrived since, if that outlives the shown one. When the shown row dies, the spare is promoted at that instant. So
the input is never scanned, and promoted rows come with ``gen`` = the predecessor's ``exp``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.ingest.reading import quoted
from warehouse.views.keys import among

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from warehouse.views.feeds import Move

__all__ = ["moved"]

# Events of one value in order: an arrival (of 1) comes after two expirations (of 0), for a shown row and for its spare.
_EVENT = "named_struct('kind', {kind}, 'at', {at}, 'exp', {exp})"
_STATE = (
    "named_struct('shown', {shown}, 'spare', {spare}, 'begun', {begun}, 'emitted', {emitted}, 'lost', {lost})"
)
_NO_LONG = "CAST(NULL AS bigint)"
_NO_PAIRS = "CAST(array() AS array<struct<gen: bigint, exp: bigint>>)"


def moved(arrived: DataFrame, shown: DataFrame, spares: DataFrame, columns: Sequence[str], move: Move) -> DataFrame:
    """Return what becomes of each touched value: columns, ``emitted``, ``lost``, ``spare`` and ``kept``.

    Parameters
    ----------
    arrived
        Rows of the input that came, with ``_ts`` and ``_exp``.
    shown, spares
        The view's rows and the spare rows that were live at the last epoch, with ``_exp``.
    columns
        The value: all columns of the view.
    move
        From when to when.

    Returns
    -------
    DataFrame
        ``emitted`` (array of ``gen``, ``exp``): rows that entered the answer; ``lost``: appearances of the value that
        began and ended since the last epoch; ``spare``: the ``exp`` of its spare row, or null; ``had_spare``: whether
        there was one before.

    """
    value = [quoted(name) for name in columns]
    expired = shown.where(f"unix_micros(_exp) <= {move.now}L")
    touched = arrived.select(*value).unionByName(expired.select(*value)).distinct()
    times = ("unix_micros(_ts) AS _at", "unix_micros(_exp) AS _end")
    entered = (f"greatest(unix_micros(_ts), {_floor(move)}L) AS _at", times[1])
    parts = [
        arrived.selectExpr(*value, "1 AS _kind", *entered),
        among(shown, touched, columns).selectExpr(*value, "2 AS _kind", *times),
        among(spares, touched, columns).selectExpr(*value, "3 AS _kind", *times),
    ]
    every = parts[0].unionByName(parts[1]).unionByName(parts[2])
    grouped = every.groupBy(*[F.col(name) for name in value]).agg(
        F.expr("array_sort(collect_list(CASE WHEN _kind = 1 THEN named_struct('at', _at, 'exp', _end) END)) AS _arrivals"),
        F.expr("max(CASE WHEN _kind = 2 THEN _end END) AS _shown"),
        F.expr("max(CASE WHEN _kind = 3 THEN _end END) AS _spare"),
    )
    steps = grouped.selectExpr(*value, f"{_fold(move.now)} AS _state", "_spare IS NOT NULL AS had_spare")
    return steps.selectExpr(
        *value, "_state.emitted AS emitted", "_state.lost AS lost", "_state.spare AS spare", "had_spare"
    )


def _floor(move: Move) -> int:
    """A late row enters the answer now, not in the past: the earliest instant that something can happen at."""
    from warehouse.ingest.classify import FIRST_INSTANT  # noqa: PLC0415 - one use

    return FIRST_INSTANT if move.first else move.before


def _fold(now: int) -> str:
    """The state machine as one expression over the events of a value."""
    die = _EVENT.format(kind=0, at="r.at", exp="r.at")
    arrive = _EVENT.format(kind=1, at="r.at", exp="r.exp")
    end = _EVENT.format(kind=0, at=f"{now}L", exp=f"{now}L")
    events = f"concat(flatten(transform(_arrivals, r -> array({die}, {die}, {arrive}))), array({end}, {end}))"
    start = _STATE.format(shown="_shown", spare="_spare", begun=_NO_LONG, emitted=_NO_PAIRS, lost=_NO_PAIRS)
    pair = "array(named_struct('gen', {gen}, 'exp', {exp}))"
    promoted = _STATE.format(
        shown="a.spare", spare=_NO_LONG, begun="a.begun", lost="a.lost",
        emitted=f"concat(a.emitted, {pair.format(gen='a.shown', exp='a.spare')})",
    )  # fmt: skip
    gone = _STATE.format(
        shown=_NO_LONG, spare=_NO_LONG, begun=_NO_LONG, emitted="a.emitted",
        lost=f"CASE WHEN a.begun IS NULL THEN a.lost ELSE concat(a.lost, {pair.format(gen='a.begun', exp='a.shown')}) END",
    )  # fmt: skip
    appears = _STATE.format(
        shown="e.exp", spare=_NO_LONG, begun="e.at", lost="a.lost",
        emitted=f"concat(a.emitted, {pair.format(gen='e.at', exp='e.exp')})",
    )  # fmt: skip
    waits = _STATE.format(shown="a.shown", spare="e.exp", begun="a.begun", emitted="a.emitted", lost="a.lost")
    step = (
        f"CASE WHEN e.kind = 0 AND a.shown <= e.at AND a.spare > a.shown THEN {promoted} "
        f"WHEN e.kind = 0 AND a.shown <= e.at THEN {gone} "
        "WHEN e.kind = 0 THEN a "
        f"WHEN a.shown IS NULL AND e.exp > e.at THEN {appears} "
        f"WHEN e.exp > a.shown AND e.exp >= coalesce(a.spare, e.exp) THEN {waits} "
        "ELSE a END"
    )
    return f"aggregate({events}, {start}, (a, e) -> {step})"
