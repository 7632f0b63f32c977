"""Prepared scans: Spark's physical plan that reads some files is cached, and run again over other files.

To read a few lines, Spark looks files up, analyses each step of the query, optimises and plans it: that takes longer than to read
them. From one update to the next only the files change, and the instants of the update. So the physical plan is cached, and the
next update puts its own files into the node that scans them, and its own instants into a literal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warehouse.storage.prepared import PlanCache, PlannedRows, active_session, jvm_names, planned

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FileScan", "scanned"]

_Java = Any
"""An object of the JVM."""
_SCAN = "org.apache.spark.sql.execution.FileSourceScanExec"
_PROJECTION = "org.apache.spark.sql.execution.ProjectExec"
_LITERAL = "org.apache.spark.sql.catalyst.expressions.Literal"


@dataclass(frozen=True, eq=False)
class FileScan:
    """Rows that are read from files, with a column of whole numbers.

    Parameters
    ----------
    session
        The session that reads.
    paths
        The files.
    read
        Returns the rows as a frame, which depends only on the paths, the numbers, ``key`` and settings of the session.
    key
        Everything else on which the frame depends.
    column, numbers
        The name of the column, and the array that it has in each row.

    """

    session: SparkSession
    paths: list[str]
    read: Callable[[], DataFrame]
    key: Hashable
    column: str
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class _Files:
    """What the node that scans files is made of, besides the files."""

    node: _Java
    others: tuple[_Java, ...]
    relation: _Java
    of_relation: tuple[_Java, ...]


@dataclass(frozen=True)
class _NodeAbove:
    """A node of a plan above the scan. The projection that makes the column of numbers has the columns, their place and alias."""

    node: _Java
    columns: _Java = None
    place: int = 0
    alias: _Java = None


@dataclass(frozen=True)
class _Classes:
    """Classes and objects of the JVM: to look one up takes a call for each part of its name."""

    source: _Java
    index: _Java
    no_cache: _Java
    none: _Java
    arrays: _Java
    literal: _Java
    array_type: _Java
    to_seq: _Java


@dataclass(frozen=True)
class _ScanPlan:
    """A plan, the nodes from the scan up, and its session, which lives as long: plans are found by its identity."""

    session: SparkSession
    files: _Files
    above: tuple[_NodeAbove, ...]
    schema: _Java
    schema_text: str
    classes: _Classes


_kept: PlanCache[_ScanPlan] = PlanCache()


def scanned(scan: FileScan) -> PlannedRows:
    """Return the rows of files, planned only if no plan is cached for a scan of the same kind.

    Raises
    ------
    pyspark.errors.AnalysisException
        When a file is not there.

    """
    key = (id(scan.session), scan.column, len(scan.numbers), scan.key)
    plan = _kept.get(key)
    if plan is not None:
        with active_session(scan.session):
            index = _index(scan, plan)
            if index is not None:
                rows = _over(plan, index, _numbers(scan, plan)).execute()
                return PlannedRows(scan.session, rows, plan.schema, plan.schema_text)
    frame = scan.read()
    planned_rows = planned(frame)
    if plan is None:
        physical = frame._jdf.queryExecution().executedPlan()  # noqa: SLF001 - PySpark has no plans
        files, above = _nodes(physical, scan.column)
        if files is not None and sum(node.alias is not None for node in above) == 1:
            schema, text = planned_rows.schema, planned_rows.schema_text
            _kept.put(key, _ScanPlan(scan.session, files, above, schema, text, _classes(scan.session)))
    return planned_rows


def _classes(session: SparkSession) -> _Classes:
    jvm: Any = session._jvm  # noqa: SLF001 - as above
    spark = jvm.org.apache.spark.sql
    datasources, expressions = spark.execution.datasources, spark.catalyst.expressions

    def single(package: _Java, name: str) -> _Java:
        return getattr(getattr(package, f"{name}$"), "MODULE$")

    return _Classes(
        single(datasources, "DataSource"),
        datasources.InMemoryFileIndex,
        single(datasources, "NoopCache"),
        single(jvm.scala, "None"),
        expressions.UnsafeArrayData,
        expressions.Literal,
        spark.types.DataTypes.createArrayType(spark.types.DataTypes.LongType, False),  # noqa: FBT003 - a call by position
        jvm.PythonUtils.toSeq,
    )


def _nodes(java: _Java, column: str) -> tuple[_Files | None, tuple[_NodeAbove, ...]]:
    """Return the scan of files below a node, and the nodes from it up to this one; None if the plan is no chain of nodes."""
    if java.getClass().getName() == _SCAN:
        relation = java.relation()
        others = (
            java.stream(), java.output(), java.requiredSchema(), java.partitionFilters(), java.optionalBucketSet(),
            java.optionalNumCoalescedBuckets(), java.dataFilters(), java.tableIdentifier(), java.disableBucketedScan(),
        )  # fmt: skip
        of_relation = (
            relation.partitionSchema(), relation.dataSchema(), relation.bucketSpec(), relation.fileFormat(), relation.options(),
            relation.sparkSession(),
        )  # fmt: skip
        return _Files(java, others, relation, of_relation), ()
    children = java.children()
    if children.size() != 1:
        return None, ()
    files, below = _nodes(children.apply(0), column)
    return files, (*below, _node_above(java, column))


def _node_above(java: _Java, column: str) -> _NodeAbove:
    if java.getClass().getName() == _PROJECTION:
        columns = java.projectList()
        for place in range(columns.size()):
            alias = columns.apply(place)
            if alias.name() == column and alias.children().size() == 1 and alias.child().getClass().getName() == _LITERAL:
                return _NodeAbove(java, columns, place, alias)
    return _NodeAbove(java)


def _index(scan: FileScan, plan: _ScanPlan) -> _Java | None:
    """Return Spark's list of the files; None if it lacks some, so that Spark says what is the matter."""
    classes, options = plan.classes, plan.files.relation.options()
    java: Any = scan.session._jsparkSession  # noqa: SLF001 - as above
    configuration = java.sessionState().newHadoopConf()
    check_empty, check_exists, globs, threads = False, False, False, 1  # the list shows what is missing
    paths = classes.source.checkAndGlobPathIfNecessary(
        classes.to_seq(scan.paths), configuration, check_empty, check_exists, threads, globs
    )
    index = classes.index(java, paths, options, classes.none, classes.no_cache, classes.none, classes.none)
    return index if index.allFiles().size() == len(scan.paths) else None


def _numbers(scan: FileScan, plan: _ScanPlan) -> _Java:
    """Return the literal with the numbers."""
    gateway: Any = scan.session.sparkContext._gateway  # noqa: SLF001 - as above
    values = gateway.new_array(gateway.jvm.long, len(scan.numbers))
    for place, number in enumerate(scan.numbers):
        values[place] = number
    return plan.classes.literal(plan.classes.arrays.fromPrimitiveArray(values), plan.classes.array_type)


def _over(plan: _ScanPlan, index: _Java, numbers: _Java) -> _Java:
    """Return the plan over other files, with other numbers."""
    files, names = plan.files, jvm_names(plan.session)
    java = files.node.copy(files.relation.copy(index, *files.of_relation), *files.others)
    for above in plan.above:
        if above.alias is None:
            java = above.node.withNewChildren(names.listed(java))
        else:
            alias = above.alias.withNewChildren(names.listed(numbers))
            java = above.node.copy(above.columns.updated(above.place, alias), java)
    return java
