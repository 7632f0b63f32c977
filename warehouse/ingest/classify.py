"""Classifies each row of a batch: its times, its fate, its cell.

Fates (DESIGN 2, 3): ``live`` rows go into the table, ``deferred`` ones wait for the slot of their ``ts``, ``dead`` ones
are dead on arrival and only counted; every other fate is the reason code of a rejected row.

The rules are Spark SQL text in few projections, since Spark analyses each projection again at every update. Values that change
from one update to the next (slots, window time, clock) are read from an array, at a position that no optimiser can fold: a
literal would become part of the generated code, and Spark would compile the code again at every update. If the plan is cached
(few rows), the array is the column ``_zero`` of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from warehouse.catalog.identifiers import quoted
from warehouse.ingest.reading import SOURCE_COLUMNS
from warehouse.ingest.try_eval import try_eval
from warehouse.layout import exp_block_sql, slot_sql, sub_index_sql
from warehouse.time import FIRST_INSTANT, NEVER, at_slot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from warehouse.catalog.model import Stream
    from warehouse.layout import Layout

__all__ = ["ACCEPTED_FATES", "WindowMove", "classify"]

ACCEPTED_FATES = ("live", "deferred", "dead")
_TIMED = "_fate IN ('live', 'deferred', 'dead')"
_MAX_KEY_BYTES = 8 * 1024
_MAX_RAW_BYTES = 64 * 1024
_TAKEN = ("_taken", "_taken_file", "_taken_record")
_NEVER_LATE = -(2**62)
"""Before every slot."""


@dataclass(frozen=True)
class WindowMove:
    """Where an update moves a table's window: from slot ``k0`` to ``k``; instants and durations in microseconds.

    ``first``: it is the first build, in which no row is late. ``clock`` is the wall-clock instant of the plan. ``carried``: the
    rows have a column with the values that change from one update to the next.
    """

    k0: int
    k: int
    first: bool
    anchor: int
    interval: int
    clock: int
    carried: bool = False

    @property
    def numbers(self) -> tuple[int, ...]:
        """The values that change from one update to the next."""
        return self.k, self.k0, self.time, self.clock, _NEVER_LATE if self.first else self.k0

    @property
    def values(self) -> str:
        """These values as Spark SQL: an array."""
        return f"array({', '.join(f'{number}L' for number in self.numbers)})"

    @property
    def rules(self) -> tuple[int, int]:
        """The other values on which the rules depend."""
        return self.anchor, self.interval

    @property
    def time(self) -> int:
        """``T_k``, the window time that the move ends at."""
        return at_slot(self.k, self.anchor, self.interval)

    def value(self, name: Literal["k", "k0", "time", "clock", "late"]) -> str:
        """Return Spark SQL for one of this move's values, whose generated code is the same at every update.

        Rows that arrived in the slot ``late``, or before, are late.
        """
        position = ("k", "k0", "time", "clock", "late").index(name) + 1
        return f"element_at(_zero, {position})" if self.carried else f"element_at({self.values}, {position} + _zero)"


def classify(rows: DataFrame, stream: Stream, layout: Layout, move: WindowMove) -> DataFrame:
    """Return the rows with ``_ts``, ``_exp``, ``_fate``, ``_late``, ``_over``, both slots and both partition columns.

    ``rows`` has the declared columns, the source columns and the columns of rows from the deferred table. A deferred row waits
    for the slot ``_arrival_slot``; ``_message`` says why a row is rejected.

    :mod:`warehouse.ingest.expression_checks` has verified that the expressions give times.
    """
    carried = [quoted(column.name) for column in stream.columns] + list(SOURCE_COLUMNS) + list(_TAKEN)
    if stream.changes is not None:
        rows = rows.select("*", try_eval(rows.sparkSession, stream.changes.op).alias("_change"))
        rows = rows.selectExpr(*carried, "_change IS NULL AS _op_failed", "CAST(_change.v AS string) AS _op")
        carried += ["_op_failed", "_op"]
    timed = _with_times(rows, stream, carried)
    judged = timed.selectExpr(*carried, "_ts", f"{_clamped(stream)} AS _exp", "_over", f"{_fate(stream, move)} AS _fate")
    return _placed(judged, stream, layout, move, carried)


def _with_times(rows: DataFrame, stream: Stream, carried: list[str]) -> DataFrame:
    own_ts = any(column.name.lower() == "ts" for column in stream.columns)
    session = rows.sparkSession
    arrived = rows.select("*", try_eval(session, stream.arrival).alias("_arrival"))
    scope = arrived.selectExpr(*carried, "_arrival", "_arrival.v AS _ts", *([] if own_ts else ["_arrival.v AS ts"]))
    expires = f"timestamp_micros({NEVER})" if stream.expires is None else stream.expires
    expiring = scope.select("*", try_eval(session, expires).alias("_expiry"))
    exp = "_expiry.v"
    if stream.null_expiry == "never":
        exp = f"CASE WHEN _expiry IS NOT NULL THEN coalesce(_expiry.v, timestamp_micros({NEVER})) END"
    return expiring.selectExpr(*carried, "_arrival", "_expiry", "_ts", f"{exp} AS _exp", f"{_over(stream, exp)} AS _over")


def _over(stream: Stream, exp: str) -> str:
    if stream.max_lifetime is None:
        return "false"
    # A bigint cannot represent the time between the ends of Spark's calendar: such a row is out of range, whatever its lifetime.
    lifetime = f"try_subtract(unix_micros({exp}), unix_micros(_ts))"
    return f"coalesce({exp} != timestamp_micros({NEVER}) AND {lifetime} > {stream.max_lifetime}, false)"


def _clamped(stream: Stream) -> str:
    if stream.over_lifetime != "clamp" or stream.max_lifetime is None:
        return "_exp"
    return f"CASE WHEN _over THEN timestamp_micros(unix_micros(_ts) + {stream.max_lifetime}) ELSE _exp END"


def _fate(stream: Stream, move: WindowMove) -> str:
    now = move.value("time")
    cases = [*_rejections(stream, move)]
    cases.append((f"unix_micros(_ts) > {now}", "deferred"))
    cases.append((f"unix_micros({_clamped(stream)}) <= {now}", "dead"))
    tests = " ".join(f"WHEN {test} THEN '{fate}'" for test, fate in cases)
    return f"CASE WHEN _fault IS NOT NULL THEN _fault {tests} ELSE 'live' END"


def _rejections(stream: Stream, move: WindowMove) -> list[tuple[str, str]]:
    rules = [
        ("_arrival IS NULL", "arrival_failed"),
        ("_ts IS NULL", "null_arrival"),
        ("_expiry IS NULL", "expires_failed"),
        ("_exp IS NULL", "null_expiry"),
        (
            f"unix_micros(_ts) < {FIRST_INSTANT} OR unix_micros(_ts) >= {NEVER} OR unix_micros(_exp) > {NEVER}",
            "out_of_range",
        ),
        ("_exp < _ts", "expires_before_arrival"),
    ]
    rules += [
        (f"octet_length({quoted(column.name)}) > {_MAX_KEY_BYTES}", "key_too_long")
        for column in stream.columns
        if column.name in stream.search_key and column.type == "string"
    ]
    if stream.changes is not None:
        null_key = " OR ".join(f"{quoted(name)} IS NULL" for name in stream.search_key)
        rules += [
            ("_op_failed", "op_failed"),
            ("_op IS NULL OR _op NOT IN ('upsert', 'delete')", "unknown_op"),
            (null_key, "null_key"),
        ]
    if stream.over_lifetime == "reject":
        rules.append(("_over", "over_lifetime"))
    if stream.max_ahead is not None:
        rules.append((f"unix_micros(_ts) - {stream.max_ahead}L > {move.value('clock')}", "too_far_ahead"))
    return rules


def _placed(rows: DataFrame, stream: Stream, layout: Layout, move: WindowMove, carried: list[str]) -> DataFrame:
    columns = [*carried, "_ts", "_exp", "_over", "_fate"]
    slotted = rows.selectExpr(
        *columns,
        f"CASE WHEN {_TIMED} THEN {slot_sql('_ts', move.anchor, move.interval)} END AS _arrival_slot",
        f"CASE WHEN _fate = 'live' THEN {slot_sql('_exp', move.anchor, move.interval)} END AS _exp_slot",
        f"_exp = timestamp_micros({NEVER}) AS _never",
    )
    loaded = slotted.selectExpr(
        "*",
        f"CASE WHEN _fate = 'live' THEN greatest(least(_arrival_slot, {move.value('k')}), "
        f"{move.value('k0')} + 1L) END AS _load_slot",
        f"_arrival_slot <= {move.value('late')} AS _late",
    )
    sub_index = sub_index_sql(layout, "_load_slot", "_exp_slot", "_never")
    exp_block = exp_block_sql(layout, "_load_slot", "_exp_slot", "_never")
    row = ", ".join(quoted(column.name) for column in stream.columns)
    return loaded.selectExpr(
        *[name for name in columns if name != "_raw"],
        "_arrival_slot",
        "_load_slot",
        "_exp_slot",
        "_late",
        f"CASE WHEN _fate = 'live' THEN {sub_index} END AS sub_index",
        f"CASE WHEN _fate = 'live' THEN {exp_block} END AS exp_block",
        f"CASE WHEN NOT {_TIMED} THEN {_cut(f'coalesce(_raw, to_json(struct({row})))')} END AS _raw",
        f"CASE WHEN NOT {_TIMED} THEN coalesce(_fault_message, {_explanations(stream)}) END AS _message",
    )


def _cut(text: str) -> str:
    """Return text of at most 64 KiB: a replacement character of three bytes takes the place of a character that is cut."""
    start = f"substring(CAST(make_valid_utf8({text}) AS binary), 1, {_MAX_RAW_BYTES - 2})"
    return f"make_valid_utf8(CAST({start} AS string))"


def _explanations(stream: Stream) -> str:
    texts = {
        "arrival_failed": f"arrival ({stream.arrival}) fails on this row",
        "null_arrival": f"arrival ({stream.arrival}) is null",
        "expires_failed": f"expires ({stream.expires}) fails on this row",
        "null_expiry": f'expires ({stream.expires}) is null; null_expiry = "never" would keep such rows for ever',
        "out_of_range": "a time is outside the years 1 to 9999",
        "expires_before_arrival": "the row expires before it arrives",
        "key_too_long": f"a key is longer than {_MAX_KEY_BYTES} bytes",
        "op_failed": "op fails on this row",
        "unknown_op": "op is neither 'upsert' nor 'delete'",
        "null_key": "a key column of the relation is null",
        "over_lifetime": "the row lives longer than max_lifetime",
        "too_far_ahead": "the row arrives further ahead of the clock than max_ahead",
    }
    cases = " ".join(f"WHEN '{fate}' THEN {_text(text)}" for fate, text in texts.items())
    return f"CASE _fate {cases} END"


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
