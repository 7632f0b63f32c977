"""Prepared plans: Spark's physical plan for some rows is cached, and run again over other rows with the same columns.

Spark analyses, optimises and plans each frame again. For few rows that is most of the work: the classification of a stream has
some hundred expressions, and from one update to the next only the rows change. So its physical plan is cached, with a placeholder
for the rows of each source; the next update fills in its own rows.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
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
class _Node:
    """A node of a physical plan, an object of the JVM.

    A ``placeholder`` stands for the rows of a source. ``children`` are the node's children if a placeholder is below it, else
    empty: then the node stays as it is.
    """

    java: _Java
    children: tuple[_Node, ...] = ()
    placeholder: _Placeholder | None = None

    @property
    def varies(self) -> bool:
        """Whether it is a placeholder, or has one below."""
        return self.placeholder is not None or bool(self.children)


@dataclass(frozen=True)
class _Placeholder:
    """What a node that holds the rows of a source is made of, except the rows."""

    output: _Java
    others: tuple[_Java, ...]


@dataclass(frozen=True)
class _Plan:
    """A physical plan, the schema of its rows (an object of the JVM), and its session.

    ``empty_list`` is Scala's, and ``sessions`` is the class of sessions: to look them up takes a call of the JVM for each part of
    their names.
    """

    session: SparkSession
    root: _Node
    schema: _Java
    empty_list: _Java
    sessions: _Java


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
        root = _node(physical)
        if sum(1 for _ in _placeholders(root)) != len(sources):
            return frame
        plan = _Plan(session, root, frame._jdf.schema(), *_names(session))  # noqa: SLF001 - same
        with _keeping:
            _kept[full_key] = plan
            while len(_kept) > _KEPT:
                _kept.popitem(last=False)
    with _active(plan):
        return _frame(session, _over(plan, plan.root, iter(rows)).execute(), plan.schema)


@contextmanager
def _active(plan: _Plan) -> Iterator[None]:
    """Make the session of a plan the active one of this thread for the length of a block.

    A node of a physical plan belongs to the session that is active when the node is made: a thread that has used no session yet
    has no active one, and other threads may have another one, with other settings.
    """
    before = plan.sessions.getActiveSession()
    plan.sessions.setActiveSession(plan.session._jsparkSession)  # noqa: SLF001 - PySpark sets it only where it makes a session
    try:
        yield
    finally:
        if before.isDefined():
            plan.sessions.setActiveSession(before.get())
        else:
            plan.sessions.clearActiveSession()


def _names(session: SparkSession) -> tuple[_Java, _Java]:
    """Return Scala's empty list and the class of sessions."""
    jvm: Any = session._jvm  # noqa: SLF001 - PySpark has neither
    empty_list = getattr(getattr(jvm.scala.collection.immutable, "Nil$"), "MODULE$")
    return empty_list, jvm.org.apache.spark.sql.classic.SparkSession


def _frame(session: SparkSession, rows: _Java, schema: _Java) -> DataFrame:
    java: Any = session._jsparkSession  # noqa: SLF001 - PySpark makes frames of its own rows only
    return DataFrame(java.internalCreateDataFrame(rows, schema, False), session)  # noqa: FBT003 - a call by position


def _node(java: _Java) -> _Node:
    """Return a node of a physical plan with what is below it."""
    if java.getClass().getName() == _SOURCE:
        others = java.name(), java.outputPartitioning(), java.outputOrdering(), java.stream()
        return _Node(java, placeholder=_Placeholder(java.output(), others))
    children = java.children()
    nodes = tuple(_node(children.apply(number)) for number in range(children.size()))
    return _Node(java, nodes if any(node.varies for node in nodes) else ())


def _placeholders(node: _Node) -> Iterator[_Node]:
    """Yield the nodes that hold the rows of sources, from left to right."""
    if node.placeholder is not None:
        yield node
    for child in node.children:
        yield from _placeholders(child)


def _over(plan: _Plan, node: _Node, rows: Iterator[_Java]) -> _Java:
    """Return a node of a plan over other rows."""
    if node.placeholder is not None:
        return node.java.copy(node.placeholder.output, next(rows), *node.placeholder.others)
    if not node.children:
        return node.java
    children = [_over(plan, child, rows) for child in node.children]
    return node.java.withNewChildren(reduce(_prepended, reversed(children), plan.empty_list))


def _prepended(rest: _Java, first: _Java) -> _Java:
    """Return a list of Scala with one more element before it."""
    return getattr(rest, "$colon$colon")(first)
