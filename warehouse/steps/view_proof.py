"""The proof of a first build: before the epoch is written, each view built by its plan is compared with its query.

A view that differs is stopped like a failed one, with the views that read it; the others continue. One Spark job compares all
views, over the rows that they were built from; a view that differs there is checked again alone.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from warehouse.epochs.view_findings import ViewFinding, forget_finding, record_finding
from warehouse.ingest.unreadable_files import SPARK_FAILURES
from warehouse.steps.node_source import node_tables
from warehouse.storage.arrow_types import frame_of
from warehouse.storage.failures import passing_failure
from warehouse.views.algebra import tables_read
from warehouse.views.verification.comparison import Comparison, compared
from warehouse.views.verification.judgement import Doubt, judged, misses_only
from warehouse.views.verification.verifying_query import Unverifiable, verifying_query

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from warehouse.epochs.records import Epoch
    from warehouse.planning.plan_record import NodePlan, Plan
    from warehouse.steps.sources import Sources
    from warehouse.views.algebra import Node
    from warehouse.views.maintenance.inputs import NodeTable
    from warehouse.views.verification.comparison import Difference
    from warehouse.views.verification.verifying_query import VerifyingQuery

__all__ = ["prove_first_builds"]

_AT_ONCE = 20
"""Views that one job compares: its plan holds the plans of all of them."""


@dataclass(frozen=True, eq=False)
class _Proof:
    """A view to compare with its query: the query for Spark, its nodes, and the tables that both read.

    ``frames`` has the rows of small tables by session and name; views that read the same table share them.
    """

    view: str
    query: VerifyingQuery
    nodes: Sequence[Node]
    session: SparkSession
    tables: Mapping[str, NodeTable]
    names: Mapping[str, str]
    now: int
    frames: dict[tuple[SparkSession, str], DataFrame]

    def live(self, name: str) -> DataFrame:
        """Return the live rows of a table."""
        key = self.session, name
        if key not in self.frames:
            table = self.tables[name]
            rows = table.live_now_in_driver()
            self.frames[key] = table.live_now() if rows is None else frame_of(self.session, rows)
        return self.frames[key]

    def comparison(self) -> Comparison | Difference:
        """Return the view and its query, not computed yet."""
        live_rows = self.live(next(node.table for node in self.nodes if not node.hidden))
        return compared(self.session, self.query, self.live, live_rows, self.now, names=self.names)

    def judged(self) -> Difference | Doubt | None:
        """Return how the view differs, or why the comparison failed; None if it equals its query."""
        return judged(self.session, self.query, self.nodes, self.live, self.now, self.names)


def prove_first_builds(sources: Sources, now: int) -> None:
    """Compare each view that a plan has built with its query, and mark those that differ; ``now`` is in microseconds."""
    plan, root = sources.plan, sources.root
    if plan.erasure is not None:
        return
    built = [node for node in plan.nodes if node.first and not node.node.hidden and node.name == node.view]
    frames: dict[tuple[SparkSession, str], DataFrame] = {}
    proofs = {view.name: _proof(sources, view, frames) for view in built if not sources.failed.includes(view.name)}
    equal_views = _surely_equal([proof for proof in proofs.values() if proof is not None])
    for planned in built:
        if sources.failed.includes(planned.name):
            continue
        proof = proofs[planned.name]
        difference = None if proof is None or planned.name in equal_views else _difference(proof)
        if difference is None or misses_only(difference, sources.ledger(planned)):
            forget_finding(root, planned.view)
            continue
        record_finding(root, ViewFinding(planned.view, plan.epoch, now, difference.summary))
        logger = logging.getLogger("warehouse")
        for line in difference.messages():
            logger.warning('view "%s", %s', planned.view, line)
        for node_plan in plan.nodes:
            if node_plan.view == planned.view:
                sources.failed.reasons.setdefault(node_plan.name, f"it differs from its query: {difference.summary}")
    for planned in plan.nodes:
        sources.failed.includes(planned.name)  # also stops views that read such a view


def _proof(sources: Sources, planned: NodePlan, frames: dict[tuple[SparkSession, str], DataFrame]) -> _Proof | None:
    """Return the comparison of a view; None if the query of its text cannot be run."""
    plan, last = sources.plan, sources.last
    nodes = list(_nodes(plan, last, planned.view))
    try:
        query = verifying_query(planned.sql, [node.operator for node in nodes])
    except Exception as error:  # noqa: BLE001 - one view never takes the others down
        logging.getLogger("warehouse").warning('view "%s" was not compared with its query: %s', planned.view, error)
        return None
    if isinstance(query, Unverifiable):
        return None
    table_names = [table_plan.name for table_plan in plan.streams] + [table_plan.name for table_plan in plan.nodes]
    names = {name.lower(): name for name in (*(state.name for state in (last.tables if last else ())), *table_names)}
    inputs = sources.node(planned.name).inputs
    read = {names[table] for table in query.tables if table in names}
    read.update(node.table for node in nodes)
    read.update(*(tables_read(node.operator) for node in nodes))
    tables = node_tables(read, plan, sources.root, last, inputs.move, inputs.opened, sources.files, {})
    return _Proof(planned.view, query, nodes, inputs.session, tables, names, plan.window_time, frames)


def _surely_equal(proofs: Sequence[_Proof]) -> set[str]:
    """The views that surely equal their queries, found by one job; a view whose query fails is left out."""
    equal: set[str] = set()
    for job in _jobs(proofs):
        try:
            comparisons = {proof.view: proof.comparison() for proof in job}
            counts = [
                comparison.differing(view)
                for view, comparison in comparisons.items()
                if isinstance(comparison, Comparison)
            ]
            if len(counts) > 1:
                equal.update(view for view, rows in reduce(DataFrame.unionAll, counts).collect() if not rows)
        except SPARK_FAILURES as error:  # then each is compared alone, and the failure is reported for its view
            logging.getLogger("warehouse").info("views are compared with their queries one by one: %s", error)
    return equal


def _jobs(proofs: Sequence[_Proof]) -> Iterator[Sequence[_Proof]]:
    """Yield the proofs of each job: views of many rows, for which Spark generates code, apart from views of few rows."""
    by_setting: dict[str | None, list[_Proof]] = defaultdict(list)
    for proof in proofs:
        by_setting[proof.session.conf.get("spark.sql.codegen.wholeStage")].append(proof)
    for similar in by_setting.values():
        yield from (similar[start : start + _AT_ONCE] for start in range(0, len(similar), _AT_ONCE))


def _difference(proof: _Proof) -> Difference | None:
    try:
        verdict = proof.judged()
    except SPARK_FAILURES as error:
        passing = passing_failure(error)
        if passing is not None:
            raise passing from error
        # The query fails on a row that the view has no need to compute: there is no answer to compare with.
        logging.getLogger("warehouse").info('view "%s" was not compared with its query, which fails: %s', proof.view, error)
        return None
    if isinstance(verdict, Doubt):
        logging.getLogger("warehouse").info('view "%s" differs from its query, and may be right: %s', proof.view, verdict.reason)
        return None
    return verdict


def _nodes(plan: Plan, last: Epoch | None, view: str) -> Iterator[Node]:
    """Yield the nodes of a view, also those that the plan does not change."""
    planned = {node_plan.name for node_plan in plan.nodes}
    yield from (node_plan.node for node_plan in plan.nodes if node_plan.view == view)
    for state in last.tables if last else ():
        if state.view is not None and state.view.view == view and state.name not in planned:
            yield state.view.node
