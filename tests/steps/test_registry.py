"""Every kind of step is registered and describes itself."""

from __future__ import annotations

import typing

import msgspec
import pytest

from warehouse.planning.steps import Step
from warehouse.steps.kind import Incoming
from warehouse.steps.registry import KINDS, kind_of

STEPS: tuple[type[msgspec.Struct], ...] = typing.get_args(Step)
_EXAMPLES: dict[str, object] = {
    "stream": "s", "path": "tables/s", "table_id": "t", "base_version": 3, "role": "rows", "to_version": 2, "expired_below": 0,
    "expired": (), "dead": (), "seals": (), "cells": (1, 2), "rows": 7, "columns": (), "renamed": (), "taken": (),
    "history": None, "keyed": True, "through": 2,
}  # fmt: skip


def _example(kind: type[msgspec.Struct]) -> Step:
    fields = msgspec.structs.fields(kind)
    return kind(**{field.name: _EXAMPLES[field.name] for field in fields if field.required})  # type: ignore[return-value]


def test_each_step_that_a_plan_may_hold_has_one_kind() -> None:
    """The registry has exactly one entry for every kind of step."""
    assert sorted(kind.step.__name__ for kind in KINDS) == sorted(step.__name__ for step in STEPS)


@pytest.mark.parametrize("step", STEPS)
def test_each_kind_tells_what_it_does_and_where(step: type[msgspec.Struct]) -> None:
    """It gives words for progress, and numbers for `plan`, about the given step."""
    example = _example(step)
    kind = kind_of(example)
    explanation = kind.explain(5, example, Incoming((), "3 files"))
    assert kind.step is step
    assert example.stream in kind.describe(example)
    assert (explanation.step, explanation.table) == (5, "tables/s")
    assert explanation.action
    assert explanation.detail


def test_a_plan_has_one_step_that_writes_the_rows_of_a_table() -> None:
    """An epoch counts these steps: moving, rewriting or migrating; it does not count steps of side tables."""
    writing = {kind.step.__name__ for kind in KINDS if kind.writes_rows}
    assert writing == {"MoveWindow", "RewriteCells", "MigrateTable", "MoveRelation", "RewriteBuckets"}
    assert {kind.step.__name__ for kind in KINDS if kind.reports_batch} == {"MoveDeferred", "StoreRejected"}
