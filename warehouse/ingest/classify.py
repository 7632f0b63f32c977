"""What becomes of each row of a batch: its times, its fate, its cell.

Fates (DESIGN 2, 3): ``live`` rows go into the table, ``deferred`` ones wait for the slot of their ``ts``, ``dead`` ones
are dead on arrival and only counted; every other fate is the reason code of a rejected row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from warehouse.errors import ConfigurationError, Problem
from warehouse.ingest.reading import quoted
from warehouse.layout import exp_block_sql, slot_sql, sub_index_sql
from warehouse.time import NEVER, at_slot

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from warehouse.catalog.model import Stream
    from warehouse.layout import Layout

__all__ = ["ACCEPTED_FATES", "WindowMove", "classify"]

ACCEPTED_FATES = ("live", "deferred", "dead")
_MAX_KEY_BYTES = 8 * 1024
_FIRST_INSTANT = -62_135_596_800_000_000


@dataclass(frozen=True)
class WindowMove:
    """Where an update moves a table's window: from slot ``k0`` to ``k``; instants and durations in microseconds.

    ``first`` builds have nothing late; ``clock`` is the wall-clock instant of the plan.
    """

    k0: int
    k: int
    first: bool
    anchor: int
    interval: int
    clock: int

    @property
    def time(self) -> int:
        """``T_k``, the window time that the move ends at."""
        return at_slot(self.k, self.anchor, self.interval)


def classify(rows: DataFrame, stream: Stream, layout: Layout, move: WindowMove) -> DataFrame:
    """Return the rows with ``_ts``, ``_exp``, ``_fate``, ``_late``, ``_over``, both slots and both partition columns.

    ``rows`` has the declared and the source columns; ``_arrival_slot`` is the slot a deferred row waits for.

    Raises
    ------
    ConfigurationError
        When ``arrival`` or ``expires`` gives no timestamp.

    """
    timed = _with_times(rows, stream)
    now = F.timestamp_micros(F.lit(move.time))
    ts, exp = F.col("_ts"), F.col("_exp")
    arrival_slot = F.expr(slot_sql("_ts", move.anchor, move.interval))
    fate = _rejections(stream, move)
    fate = fate.when((exp == ts) | ((ts <= now) & (exp <= now)), F.lit("dead"))
    fate = fate.when(ts > now, F.lit("deferred")).otherwise(F.lit("live"))
    never = exp == F.timestamp_micros(F.lit(NEVER))
    placed = (
        timed.withColumn("_over", _over_lifetime(stream))
        .withColumn("_exp", _clamped(stream))
        .withColumn("_fate", fate)
        .withColumn("_timed", F.col("_fate").isin(*ACCEPTED_FATES))
        .withColumn("_arrival_slot", F.when(F.col("_timed"), arrival_slot))
        .withColumn("_late", F.lit(False) if move.first else F.col("_arrival_slot") <= move.k0)
        .withColumn("_live", F.col("_fate") == "live")
        .withColumn(
            "_load_slot",
            F.when(F.col("_live"), F.greatest(F.least("_arrival_slot", F.lit(move.k)), F.lit(move.k0 + 1))),
        )
        .withColumn("_exp_slot", F.when(F.col("_live"), F.expr(slot_sql("_exp", move.anchor, move.interval))))
        .withColumn("_never", never)
    )
    cells = {
        "sub_index": sub_index_sql(layout, "_load_slot", "_exp_slot", "_never"),
        "exp_block": exp_block_sql(layout, "_load_slot", "_exp_slot", "_never"),
    }
    for name, formula in cells.items():
        placed = placed.withColumn(name, F.when(F.col("_live"), F.expr(formula)))
    message = F.when(~F.col("_timed"), F.coalesce("_fault_message", _explanations(stream)))
    return placed.withColumn("_message", message).withColumn(
        "_raw",
        F.when(~F.col("_timed"), F.coalesce("_raw", F.to_json(F.struct(*_user_columns(stream))))),
    )


def _user_columns(stream: Stream) -> list[str]:
    return [quoted(column.name) for column in stream.columns]


def _with_times(rows: DataFrame, stream: Stream) -> DataFrame:
    arrival = _guarded(rows, stream.arrival)
    timed = rows.withColumn("_arrival", arrival)
    _require_timestamp(timed, "_arrival", stream, "arrival", stream.arrival)
    timed = timed.withColumn("_ts", F.col("_arrival.v"))
    own_ts = any(column.name.lower() == "ts" for column in stream.columns)
    if stream.expires is None:
        expiry = timed.withColumn("_expiry", F.struct(F.timestamp_micros(F.lit(NEVER)).alias("v")))
    else:
        scope = timed if own_ts else timed.withColumn("ts", F.col("_ts"))
        expiry = scope.withColumn("_expiry", _guarded(scope, stream.expires))
        expiry = expiry if own_ts else expiry.drop("ts")
        _require_timestamp(expiry, "_expiry", stream, "expires", stream.expires)
    exp = F.col("_expiry.v")
    if stream.null_expiry == "never":
        exp = F.when(F.col("_expiry").isNotNull(), F.coalesce(exp, F.timestamp_micros(F.lit(NEVER))))
    return expiry.withColumn("_exp", exp)


def _guarded(rows: DataFrame, sql: str) -> SparkColumn:
    """Evaluate an expression so that a row it fails on gives null, not a failed job; a null result is ``struct(null)``.

    Spark's own ``TryEval`` does it; it has no SQL name, so it is reached through the gateway.
    """
    from pyspark.sql.classic.column import Column  # noqa: PLC0415 - the classic column wraps a JVM expression

    session = rows.sparkSession
    jvm: Any = session._jvm  # noqa: SLF001 - the only way to TryEval
    parser = session._jsparkSession.sessionState().sqlParser()  # noqa: SLF001 - same
    parsed = parser.parseExpression(f"named_struct('v', ({sql}))")
    tried = jvm.org.apache.spark.sql.catalyst.expressions.TryEval(parsed)
    return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(tried))


def _require_timestamp(rows: DataFrame, column: str, stream: Stream, key: str, sql: str) -> None:
    kind = rows.select(f"{column}.v").schema.fields[0].dataType.simpleString()
    if kind != "timestamp":
        raise ConfigurationError(
            [
                Problem(
                    "warehouse.toml",
                    f"streams.{stream.name}.{key}",
                    f'"{sql}", which gives {kind}',
                    "an expression that gives a timestamp, e.g. with CAST(... AS TIMESTAMP) or to_timestamp(...)",
                ),
            ],
        )


def _over_lifetime(stream: Stream) -> SparkColumn:
    if stream.max_lifetime is None:
        return F.lit(False)
    lifetime = F.unix_micros("_exp") - F.unix_micros("_ts")
    mortal = F.col("_exp") != F.timestamp_micros(F.lit(NEVER))
    return F.coalesce(mortal & (lifetime > stream.max_lifetime), F.lit(False))


def _clamped(stream: Stream) -> SparkColumn:
    if stream.over_lifetime != "clamp" or stream.max_lifetime is None:
        return F.col("_exp")
    bound = F.timestamp_micros(F.unix_micros("_ts") + stream.max_lifetime)
    return F.when(F.col("_over"), bound).otherwise(F.col("_exp"))


def _rejections(stream: Stream, move: WindowMove) -> SparkColumn:
    ts, exp = F.unix_micros("_ts"), F.unix_micros("_exp")
    fate = F.when(F.col("_fault").isNotNull(), F.col("_fault"))
    fate = fate.when(F.col("_arrival").isNull(), F.lit("arrival_failed"))
    fate = fate.when(F.col("_ts").isNull(), F.lit("null_arrival"))
    fate = fate.when(F.col("_expiry").isNull(), F.lit("expires_failed"))
    fate = fate.when(F.col("_exp").isNull(), F.lit("null_expiry"))
    fate = fate.when((ts < _FIRST_INSTANT) | (ts >= NEVER) | (exp > NEVER), F.lit("out_of_range"))
    fate = fate.when(exp < ts, F.lit("expires_before_arrival"))
    strings = [column.name for column in stream.columns if column.name in stream.search_key and column.type == "string"]
    for name in strings:
        fate = fate.when(F.octet_length(F.col(quoted(name))) > _MAX_KEY_BYTES, F.lit("key_too_long"))
    if stream.over_lifetime == "reject":
        fate = fate.when(F.col("_over"), F.lit("over_lifetime"))
    if stream.max_ahead is not None:
        fate = fate.when(ts > move.clock + stream.max_ahead, F.lit("too_far_ahead"))
    return fate


def _explanations(stream: Stream) -> SparkColumn:
    texts = {
        "arrival_failed": f"arrival ({stream.arrival}) fails on this row",
        "null_arrival": f"arrival ({stream.arrival}) is null",
        "expires_failed": f"expires ({stream.expires}) fails on this row",
        "null_expiry": f'expires ({stream.expires}) is null; null_expiry = "never" would keep such rows for ever',
        "out_of_range": "a time is outside the years 1 to 9999",
        "expires_before_arrival": "the row expires before it arrives",
        "key_too_long": f"a key is longer than {_MAX_KEY_BYTES} bytes",
        "over_lifetime": "the row lives longer than max_lifetime",
        "too_far_ahead": "the row arrives further ahead of the clock than max_ahead",
    }
    entries = [F.lit(text) for pair in texts.items() for text in pair]
    return F.create_map(*entries)[F.col("_fate")]
