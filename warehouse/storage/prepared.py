"""Prepared plans: Spark's physical plan for some rows is cached, and run again over other rows with the same columns.

Spark analyses, optimises and plans each frame again. For few rows that is most of the work: the classification of a stream has
some hundred expressions, and from one update to the next only the rows change. So its physical plan is cached, with a placeholder
for the rows of each source; the next update fills in its own rows.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from pyspark.sql import SparkSession

__all__ = ["prepared"]

_Java = Any
"""An object of the JVM."""
_KEPT = 64
"""Plans that are kept at most; each holds some hundred kilobytes of the JVM."""
_SOURCE = "org.apache.spark.sql.execution.RDDScanExec"


@dataclass(frozen=True)
class _Plan:
    """A physical plan and the schema of its rows, both objects of the JVM; and the session that it belongs to."""

    session: SparkSession
    physical: _Java
    schema: _Java


_kept: OrderedDict[Hashable, _Plan] = OrderedDict()
_keeping = Lock()


def prepared(key: Hashable, sources: Sequence[DataFrame], made: Callable[[Sequence[DataFrame]], DataFrame]) -> DataFrame:
    """Return ``made(sources)``, planned only if no plan is cached under the key.

    Parameters
    ----------
    key
        Everything on which ``made`` depends except the sources, with the settings of their session.
    sources
        Frames of one session, or of several sessions that differ only in settings of writers.
    made
        Makes a frame from the sources, row by row: each source is read once, and all values depend only on the key and the rows
        of the sources.

    """
    session = sources[0].sparkSession
    schemas = tuple(str(source._jdf.schema().json()) for source in sources)  # noqa: SLF001 - not parsed, unlike PySpark's
    full_key = (id(session), schemas, key)
    rows = [source._jdf.queryExecution().toRdd() for source in sources]  # noqa: SLF001 - rows as the plan has them
    with _keeping:
        plan = _kept.get(full_key)
        if plan is not None:
            _kept.move_to_end(full_key)
    if plan is None:
        frames = [
            _frame(session, rdd, source._jdf.schema())  # noqa: SLF001 - same
            for rdd, source in zip(rows, sources, strict=True)
        ]
        frame = made(frames)
        physical = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 - same
        if sum(1 for _ in _places(physical)) != len(sources):
            return frame
        plan = _Plan(session, physical, frame._jdf.schema())  # noqa: SLF001 - same
        with _keeping:
            _kept[full_key] = plan
            while len(_kept) > _KEPT:
                _kept.popitem(last=False)
    with _active(session):
        return _frame(session, _over(session, plan.physical, iter(rows)).execute(), plan.schema)


@contextmanager
def _active(session: SparkSession) -> Iterator[None]:
    """Make a session the active one of this thread for the length of a block.

    A node of a physical plan belongs to the session that is active when the node is made: a thread that has used no session yet
    has no active one, and other threads may have another one, with other settings.
    """
    jvm: Any = session._jvm  # noqa: SLF001 - PySpark sets the active session only where it makes one
    sessions = jvm.org.apache.spark.sql.classic.SparkSession
    before = sessions.getActiveSession()
    sessions.setActiveSession(session._jsparkSession)  # noqa: SLF001 - same
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def _frame(session: SparkSession, rows: _Java, schema: _Java) -> DataFrame:
    java: Any = session._jsparkSession  # noqa: SLF001 - PySpark makes frames of its own rows only
    return DataFrame(java.internalCreateDataFrame(rows, schema, False), session)  # noqa: FBT003 - a call by position


def _places(plan: _Java) -> Iterator[_Java]:
    """The nodes of a physical plan that hold the rows of sources, from left to right."""
    if plan.getClass().getName() == _SOURCE:
        yield plan
    for child in _children(plan):
        yield from _places(child)


def _children(plan: _Java) -> list[_Java]:
    children = plan.children()
    return [children.apply(number) for number in range(children.size())]


def _over(session: SparkSession, plan: _Java, rows: Iterator[_Java]) -> _Java:
    """A physical plan over other rows."""
    if plan.getClass().getName() == _SOURCE:
        return plan.copy(plan.output(), next(rows), plan.name(), plan.outputPartitioning(), plan.outputOrdering(), plan.stream())
    children = [_over(session, child, rows) for child in _children(plan)]
    if not children:
        return plan
    jvm: Any = session._jvm  # noqa: SLF001 - a sequence of Scala's
    return plan.withNewChildren(jvm.PythonUtils.toSeq(children))
