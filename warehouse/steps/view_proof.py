"""The proof of a first build: before the epoch is written, each view built by its plan is compared with its query.

A view that differs stands still like one that fails, with those that read it; the others go on. It costs one Spark job for each
view that is built, over the rows that it was built from.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from warehouse.epochs.view_findings import ViewFinding, forget_finding, record_finding
from warehouse.ingest.batch import SPARK_FAILURES
from warehouse.storage.failures import passing_failure
from warehouse.views.verification.comparison import difference
from warehouse.views.verification.question import Unverifiable, question_of
from warehouse.views.verification.ties import has_ties

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from warehouse.epochs.records import Epoch
    from warehouse.planning.steps import NodePlan, Plan
    from warehouse.steps.supply import Supply
    from warehouse.views.algebra import Operator
    from warehouse.views.verification.comparison import Difference

__all__ = ["prove_first_builds"]


def prove_first_builds(plan: Plan, root: Path, last: Epoch | None, supply: Supply, now: int) -> None:
    """Let each view that a plan has built stand still if it is not its query; ``now`` is the clock's microseconds."""
    if plan.erasure is not None:
        return
    for planned in plan.nodes:
        if not planned.first or planned.node.hidden or planned.name != planned.view or supply.is_given_up(planned.name):
            continue
        found = _difference(plan, last, supply, planned)
        if found is None:
            forget_finding(root, planned.view)
            continue
        record_finding(root, ViewFinding(planned.view, plan.epoch, now, found.summary))
        logger = logging.getLogger("warehouse")
        for line in found.told():
            logger.warning('view "%s", %s', planned.view, line)
        for each in plan.nodes:
            if each.view == planned.view:
                supply.given_up.setdefault(each.name, f"it differs from its query: {found.summary}")
    for planned in plan.nodes:
        supply.is_given_up(planned.name)  # those that read such a view


def _difference(plan: Plan, last: Epoch | None, supply: Supply, planned: NodePlan) -> Difference | None:
    operators = list(_operators(plan, last, planned.view))
    question = question_of(planned.sql, operators)
    if isinstance(question, Unverifiable):
        return None
    tables = supply.node(planned.name).tables
    every = [each.name for each in plan.streams] + [each.name for each in plan.nodes]
    names = {name.lower(): name for name in (*(each.name for each in (last.tables if last else ())), *every)}
    try:
        found = difference(
            tables.session, question, tables.now, tables.now(planned.name), plan.window_time, names=names
        )
        return None if found is not None and has_ties(operators, tables.now, plan.window_time) else found
    except SPARK_FAILURES as error:
        passing = passing_failure(error)
        if passing is not None:
            raise passing from error
        # The query fails on a row that the view has no need to compute: there is no answer to compare with.
        logging.getLogger("warehouse").info('view "%s" was not compared with its query, which fails: %s', planned.view, error)
        return None


def _operators(plan: Plan, last: Epoch | None, view: str) -> Iterator[Operator]:
    """What the nodes of a view do, those that the plan leaves as they are too."""
    planned = {each.name for each in plan.nodes}
    yield from (each.node.operator for each in plan.nodes if each.view == view)
    for state in last.tables if last else ():
        if state.view is not None and state.view.view == view and state.name not in planned:
            yield state.view.node.operator
