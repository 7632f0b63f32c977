"""The proof of a first build: before the epoch is written, each view built by its plan is compared with its query.

A view that differs stands still like one that fails, with those that read it; the others go on. It costs one Spark job for each
view that is built, over the rows that it was built from.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from warehouse.epochs.view_findings import ViewFinding, forget_finding, record_finding
from warehouse.ingest.unreadable import SPARK_FAILURES
from warehouse.steps.node_source import node_tables
from warehouse.storage.failures import passing_failure
from warehouse.views.algebra import tables_read
from warehouse.views.verification.judgement import Doubt, judged, misses_only
from warehouse.views.verification.question import Unverifiable, question_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from warehouse.epochs.records import Epoch
    from warehouse.planning.steps import NodePlan, Plan
    from warehouse.steps.sources import Sources
    from warehouse.views.algebra import Node
    from warehouse.views.verification.comparison import Difference

__all__ = ["prove_first_builds"]


def prove_first_builds(sources: Sources, now: int) -> None:
    """Let each view that a plan has built stand still if it is not its query; ``now`` is the clock's microseconds."""
    plan, root = sources.plan, sources.root
    if plan.erasure is not None:
        return
    for planned in plan.nodes:
        if not planned.first or planned.node.hidden or planned.name != planned.view or sources.is_given_up(planned.name):
            continue
        found = _difference(sources, planned)
        if found is None or misses_only(found, sources.ledger(planned)):
            forget_finding(root, planned.view)
            continue
        record_finding(root, ViewFinding(planned.view, plan.epoch, now, found.summary))
        logger = logging.getLogger("warehouse")
        for line in found.messages():
            logger.warning('view "%s", %s', planned.view, line)
        for each in plan.nodes:
            if each.view == planned.view:
                sources.given_up.setdefault(each.name, f"it differs from its query: {found.summary}")
    for planned in plan.nodes:
        sources.is_given_up(planned.name)  # those that read such a view


def _difference(sources: Sources, planned: NodePlan) -> Difference | None:
    plan, last = sources.plan, sources.last
    nodes = list(_nodes(plan, last, planned.view))
    try:
        question = question_of(planned.sql, [node.operator for node in nodes])
    except Exception as error:  # noqa: BLE001 - one view never takes the others down
        logging.getLogger("warehouse").warning('view "%s" was not compared with its query: %s', planned.view, error)
        return None
    if isinstance(question, Unverifiable):
        return None
    every = [each.name for each in plan.streams] + [each.name for each in plan.nodes]
    names = {name.lower(): name for name in (*(each.name for each in (last.tables if last else ())), *every)}
    try:
        inputs = sources.node(planned.name).inputs
        read = {names[table] for table in question.tables if table in names}
        read.update(node.table for node in nodes)
        read.update(*(tables_read(node.operator) for node in nodes))
        tables = node_tables(read, plan, sources.root, last, inputs.move, inputs.opened, sources.files, {})

        def live(name: str) -> DataFrame:
            return tables[name].now()

        found = judged(inputs.session, question, nodes, live, plan.window_time, names)
    except SPARK_FAILURES as error:
        passing = passing_failure(error)
        if passing is not None:
            raise passing from error
        # The query fails on a row that the view has no need to compute: there is no answer to compare with.
        logging.getLogger("warehouse").info('view "%s" was not compared with its query, which fails: %s', planned.view, error)
        return None
    if isinstance(found, Doubt):
        logging.getLogger("warehouse").info('view "%s" differs from its query, and may be right: %s', planned.view, found.reason)
        return None
    return found


def _nodes(plan: Plan, last: Epoch | None, view: str) -> Iterator[Node]:
    """The tables that keep a view, those that the plan leaves as they are too."""
    planned = {each.name for each in plan.nodes}
    yield from (each.node for each in plan.nodes if each.view == view)
    for state in last.tables if last else ():
        if state.view is not None and state.view.view == view and state.name not in planned:
            yield state.view.node
