"""``migrate`` and the verdicts of ``plan`` on the command line; what is run here needs no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ended

    from tests.operations.projects import Project


@pytest.fixture
def copy(history: Project, tmp_path: Path) -> Project:
    """A project of the test's own: epochs of slots 1, 2 and 3."""
    return history.copy(tmp_path / "project")


def test_plan_tells_what_changed_keys_mean_and_migrate_follows(copy: Project, invoke: Callable[..., Ended]) -> None:
    """The error names the command, `plan` shows the verdicts, `migrate` what it did, `status` the rows in the old layout."""
    at = ("-C", str(copy.directory))
    copy.change(layout={"grid": [2, 2]}, max_ahead="2h")
    copy.warehouse["retain"] = "5d"
    copy.declare()
    refused = invoke(*at, "probe", "a", "x")
    assert (refused.code, "`stream-wh migrate a`" in refused.err) == (2, True)
    planned = invoke(*at, "plan", "--at", "2024-01-01T04:00:00Z")
    assert planned.code == 2
    assert "migrate: streams.a.layout.grid: [2, 4] -> [2, 2]: `stream-wh migrate a`" in planned.out
    plan: Any = invoke(*at, "plan", "-o", "json", "--at", "2024-01-01T04:00:00Z").json()
    assert {change["key"]: change["verdict"] for change in plan["changed_keys"]} == {
        "streams.a.layout.grid": "migrate",
        "streams.a.max_ahead": "from now on",
        "warehouse.retain": "free",
    }
    foreseen = invoke(*at, "migrate", "a", "--dry-run")
    assert (foreseen.code, "to be written again" in foreseen.out, copy.numbers) == (0, True, [0, 1, 2])
    ended = invoke(*at, "migrate", "a", "--side-by-side", "--move-below", "5%")
    assert (ended.code, copy.epoch.cause) == (0, "migrate"), ended.err
    assert "a: norebuild 2x4" in ended.err
    rows: Any = invoke(*at, "status", "-o", "json").json()
    shown = {row["table"]: (row["old_layout_rows"], row["old_layout_share"], row["old_layout_predicted"]) for row in rows}
    assert (shown["a"], shown["b"]) == ((4, 1.0, 1.0), (None, None, None))
    plan_after: Any = invoke(*at, "plan", "-o", "json", "--at", "2024-01-01T04:00:00Z").json()
    assert (plan_after["changed_keys"], len(plan_after["steps"])) == ([], len(plan_after["steps"]))
    assert any(step["action"] == "append" for step in plan_after["steps"])
    assert invoke(*at, "migrate", "a", "--side-by-side", "--move-below", "5%").err.strip().endswith("as they are declared")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("a", "--grid", "6"), "is no grid"),
        (("a", "--move-below", "10%"), "goes with --side-by-side"),
        (("a", "--side-by-side", "--move-below", "200%"), "is no share"),
        (("a", "--rename", "k"), "is no pair of names"),
        (("a", "--side-by-side", "--rename", "k=key"), "leave out --side-by-side"),
        (("a", "--grid", "9x9"), "window of p = 4 slots has 1 to p of them"),
        (("counts", "--grid", "2x2"), "it is a view"),
        (("nothing",), 'no stream or relation named "nothing"'),
    ],
)
def test_what_is_refused(copy: Project, invoke: Callable[..., Ended], arguments: tuple[str, ...], told: str) -> None:
    """Exit code 2 and what is wrong; nothing is written."""
    ended = invoke("-C", str(copy.directory), "migrate", *arguments)
    assert (ended.code, told in ended.err) == (2, True), ended.err
    assert copy.numbers == [0, 1, 2]
