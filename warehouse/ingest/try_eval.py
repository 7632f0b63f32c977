"""Evaluates Spark SQL expressions of the user so that an error in a row gives null and does not fail the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import SparkSession

__all__ = ["try_eval"]


def try_eval(session: SparkSession, sql: str) -> SparkColumn:
    """Return the struct ``v`` of an expression's value: null where it fails, ``struct(null)`` where it gives null.

    Spark's own ``TryEval`` does it; it has no SQL name, so it is reached through the gateway.
    """
    from pyspark.sql.classic.column import Column  # noqa: PLC0415 - the classic column wraps a JVM expression

    jvm: Any = session._jvm  # noqa: SLF001 - the only way to TryEval
    parser = session._jsparkSession.sessionState().sqlParser()  # noqa: SLF001 - same
    parsed = parser.parseExpression(f"named_struct('v', ({sql}))")
    tried = getattr(jvm, "org.apache.spark.sql.catalyst.expressions.TryEval")(parsed)  # one call; by its parts, seven
    return Column(getattr(jvm, "org.apache.spark.sql.classic.ExpressionUtils").column(tried))
