"""The commits of a plan that took rows of a batch: what the batch held, and which files it was read without.

A step that is executed after a crash reads from them what the steps before the crash had read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.ingest.files import LeftOut
from warehouse.steps.registry import kind_of
from warehouse.storage.deltalog import commits_after

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from warehouse.planning.plan_record import Plan, StreamPlan
    from warehouse.planning.steps import Step
    from warehouse.storage.deltalog import Commit
    from warehouse.storage.own_commits import TableProgress

__all__ = ["first_batch_commit", "left_out_of", "logged_batch_commit", "unfinished_tables"]


def first_batch_commit(plan: Plan, done: Mapping[str, TableProgress], name: str) -> Commit | None:
    """Return the first commit that took rows of a table's batch, of the commits ``done``; None before there is one."""
    for number, step in _batch_steps(plan, name):
        commit = done[step.path].commits.get(number)
        if commit is not None:
            return commit
    return None


def logged_batch_commit(plan: Plan, root: Path, name: str) -> Commit | None:
    """Return the same commit from the logs as they are now, which also have the commits of this process."""
    for number, step in _batch_steps(plan, name):
        for commit in commits_after(root / step.path, getattr(step, "base_version", -1)):
            if (commit.metadata.get("epoch"), commit.metadata.get("step")) == (plan.epoch, number):
                return commit
    return None


def _batch_steps(plan: Plan, name: str) -> Iterator[tuple[int, Step]]:
    for number, step in enumerate(plan.steps):
        if step.stream == name and (kind_of(step).writes_rows or kind_of(step).reports_batch):
            yield number, step


def left_out_of(commit: Commit, planned: StreamPlan) -> tuple[LeftOut, ...]:
    """Return the files that a commit's batch was read without."""
    files = {file.path: file for group in planned.inputs for file in group.files}
    return tuple(LeftOut(files[path], reason, message) for path, reason, message in commit.metadata.get("left_out", ()))


def unfinished_tables(plan: Plan, done: Mapping[str, TableProgress]) -> set[str]:
    """Return the streams and views with a step that has no commit in ``done``."""
    return {step.stream for number, step in enumerate(plan.steps) if number not in done[step.path].commits}
