"""What the commands show of views, relations and the state of operators."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.serving.house import VIEW_SQL, add_epoch, add_views, build, declare
from warehouse import Warehouse
from warehouse.cli.explanation import view_report
from warehouse.cli.options import complete_views
from warehouse.cli.reports import update_report
from warehouse.epochs.journal import newest_epoch
from warehouse.operations.update import UpdateReport
from warehouse.promise.units import ViewBudget
from warehouse.serving.explanation import JoinOrder, explained
from warehouse.serving.owed_results import Owed
from warehouse.serving.view_figures import InputFigures, JoinFigures, ShortLived
from warehouse.views.costs.negation_cost import Placement, PlanCost

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ended

    from warehouse.catalog.model import Catalog

def _stream(name: str, **more: str) -> dict[str, object]:
    columns = {"name": "string", "at": "timestamp", **more}
    return {"landing": f"landing/{name}", "format": "csv", "search_key": "name", "arrival": "at", "columns": columns}


STREAMS: dict[str, object] = {"names": _stream("names", value="int"), "odd": _stream("odd")}
EVEN = """
SELECT x.name, x.value FROM (
  SELECT name, value FROM time_window(names, INTERVAL 2 HOURS) n WHERE NOT EXISTS (SELECT * FROM odd o WHERE o.name = n.name)
) x JOIN time_window(names, INTERVAL 3 HOURS) y ON x.value = y.value
"""
VIEWS: dict[str, object] = {
    "results": {"search_key": "name", "sql": "SELECT name FROM names GROUP BY name"},
    "even": {"search_key": "name", "sql": EVEN},
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with a view that reports short-lived results, its state, and a relation; written without Spark."""
    directory = tmp_path_factory.mktemp("views")
    declare(directory, streams=STREAMS, views=VIEWS)
    add_views(build(directory / "data"))
    return directory


@pytest.fixture
def undeclared(project: Path) -> Path:
    """The same tables with none declared."""
    return declare(project / "undeclared", "../data")


@pytest.fixture
def rows(undeclared: Path, invoke: Callable[..., Ended]) -> Callable[..., list[dict[str, Any]]]:
    """Run a reading command and return its rows."""

    def read(*arguments: str) -> list[dict[str, Any]]:
        ended = invoke("-C", str(undeclared), *arguments, "-o", "jsonl")
        assert ended.code == 0, ended.err
        return [msgspec.json.decode(line) for line in ended.out.splitlines()]

    return read


def test_names_come_with_what_they_are(rows: Callable[..., list[dict[str, Any]]]) -> None:
    """The list has streams, relations and views, never the state of operators."""
    kind_of = {row["table"]: row["kind"] for row in rows("tables")}
    assert (kind_of["names"], kind_of["planes"], kind_of["results"]) == ("stream", "relation", "view")
    assert "results.1" not in kind_of


def test_descriptions_say_what_each_kind_needs(rows: Callable[..., list[dict[str, Any]]]) -> None:
    """A view its query and inputs and no arrival, a relation how it changes."""
    view = {row["name"]: row["value"] for row in rows("describe", "results") if row["of"] == "table"}
    assert (view["sql"], view["inputs"], view["short_lived"]) == (VIEW_SQL, "names, planes", "report")
    assert (view["restored_rows"], view["state_tables"], view["failed"]) == ("3", "results.1", None)
    assert "arrival" not in view
    relation = {row["name"]: row["value"] for row in rows("describe", "planes") if row["of"] == "table"}
    assert (relation["op"], relation["retroactive"], relation["current_versions"]) == ("op", "true", "2")
    assert "expires" not in relation
    assert rows("describe", "results.1")[0]["value"] == "state"


def test_status_shows_state_only_with_v(rows: Callable[..., list[dict[str, Any]]]) -> None:
    """A view has no landing files to count, and operators' tables are no lines of their own."""
    standing = {row["table"]: row for row in rows("status")}
    assert "results.1" not in standing
    assert (standing["results"]["kind"], standing["results"]["waiting_files"]) == ("view", None)
    assert {row["table"] for row in rows("status", "-v")} <= {"names", "results", "results.1", "planes"}


def test_a_view_that_failed_is_a_warning_of_status(project: Path, invoke: Callable[..., Ended], tmp_path: Path) -> None:
    """The reason is told where everything else stands."""
    del project
    house = build(tmp_path / "data")
    add_views(house)
    last = house.epochs[-1]
    failed = [
        replace(state, view=replace(state.view, failed="division by zero")) if state.view else state for state in last.tables
    ]
    add_epoch(house, 4, 6, tuple(failed))
    declare(tmp_path)
    ended = invoke("-C", str(tmp_path), "status")
    assert ended.code == 0
    assert "warning: results: stands still: division by zero" in ended.err
    refused = invoke("-C", str(tmp_path), "scan", "results", "-o", "json")
    assert (refused.code, refused.error()["code"]) == (1, "view_failed")


def test_short_lived_results_are_rows(rows: Callable[..., list[dict[str, Any]]]) -> None:
    """With the result's life and the epoch that told of it, in every format of a reading command."""
    (first,) = rows("restored", "results", "--limit", "1")
    assert first == {"name": "n0", "_ts": "2013-01-01T03:20:00Z", "_exp": "2013-01-01T03:21:00Z", "_epoch": 3}


def test_a_view_that_keeps_none_says_how_to_keep_them(invoke: Callable[..., Ended], tmp_path: Path) -> None:
    """No rows, exit code 0, and a hint on standard error."""
    house = build(tmp_path / "data")
    add_views(house)
    last = house.epochs[-1]
    dropped = [
        replace(state, view=replace(state.view, short_lived="drop"), restored=None) if state.view else state
        for state in last.tables
    ]
    add_epoch(house, 4, 6, tuple(dropped))
    declare(tmp_path)
    ended = invoke("-C", str(tmp_path), "restored", "results", "-o", "csv")
    assert (ended.code, ended.out) == (0, "name,_ts,_exp,_epoch\r\n")
    assert '`short_lived = "report"` in [views.results]' in ended.err
    refused = invoke("-C", str(tmp_path), "restored", "names", "-o", "json")
    assert (refused.code, refused.error()["code"]) == (2, "usage")


def test_dropping_a_view_drops_the_state_of_its_operators(invoke: Callable[..., Ended], tmp_path: Path) -> None:
    """One name is enough; what else there is stays."""
    add_views(build(tmp_path / "data"))
    declare(tmp_path)
    ended = invoke("-C", str(tmp_path), "drop", "results")
    assert ended.code == 0, ended.err
    epoch = newest_epoch(tmp_path / "data")
    assert epoch is not None
    assert {"names", "planes"} <= {state.name for state in epoch.tables}
    assert not {"results", "results.1"} & {state.name for state in epoch.tables}
    assert {removed.table for removed in epoch.removed if removed.whole} == {
        "tables/results",
        "tables/results.1",
        "restored/results",
    }


def test_history_counts_results_apart(rows: Callable[..., list[dict[str, Any]]]) -> None:
    """What arrived, and what came into views; state inflates neither."""
    newest = rows("history")[0]
    assert (newest["inserted"], newest["results"]) == (10, 5)


def test_an_update_tells_of_views_in_their_words(project: Path) -> None:
    """A line for each view: results that came, short-lived and expired ones; none for operators' state."""
    epoch = newest_epoch(project / "data")
    assert epoch is not None
    report = update_report(UpdateReport((epoch,)))
    assert report.lines[1:] == (
        "  names: 10 rows of 0 files; 10 inserted, 1 expired",
        "  results: 5 results came, 3 short-lived, 2 expired",
    )
    (record,) = report.record["epochs"]  # type: ignore[misc]
    assert [counts["stream"] for counts in record["counts"]] == ["names", "results"]


def test_validate_checks_the_queries(invoke: Callable[..., Ended], tmp_path: Path) -> None:
    """A query that cannot be maintained is a fault with its place; one that can may come with a warning."""
    (tmp_path / "landing").mkdir()
    pairs = "SELECT n.name FROM time_window(names, INTERVAL 2 HOURS) n JOIN odd o ON o.name = n.name"
    declare(tmp_path, streams=STREAMS, views={**VIEWS, "pairs": {"search_key": "name", "sql": pairs}})
    ended = invoke("-C", str(tmp_path), "validate")
    assert ended.code == 0, ended.err
    assert "2 streams: names, odd; 3 views: results, even, pairs" in ended.err
    assert "warning: views.*.short_lived: of pairs, results that come and go" in ended.err
    declare(tmp_path, streams=STREAMS, views={"results": {"search_key": "name", "sql": "SELECT nmae FROM names GROUP BY name"}})
    refused = invoke("-C", str(tmp_path), "validate")
    assert refused.code == 2
    assert "views.results.sql" in refused.err
    assert "nmae" in refused.err


@pytest.fixture
def catalog(project: Path) -> Catalog:
    """The declarations of the project."""
    from warehouse.catalog.load import load_catalog  # noqa: PLC0415 - one use

    return load_catalog(project)


def test_explain_needs_no_update(catalog: Catalog) -> None:
    """Plan and labels come from the declarations; that there are no figures is said."""
    report = view_report(explained(catalog, "results", None))
    assert report.data
    assert report.lines[0].startswith("distinct name  rows never expire; results: append-only")
    assert report.lines[-1] == "no figures: no update has built it yet"
    record = msgspec.json.decode(msgspec.json.encode(report.record))
    assert (record["view"], record["epoch"], record["join_orders"]) == ("results", None, [])
    assert record["tables"][-1]["table"] == "results"


def test_explain_shows_figures_and_equal_plans(catalog: Catalog) -> None:
    """Shares have their counts, orders their costs; a rewritten plan is shown if it pays, and a line if it would not."""
    explanation = explained(catalog, "even", None)
    left = InputFigures("x", Fraction(5, 2), 40, {"x.name": 4, "x.value": 7})
    right = InputFigures("y", Fraction(1), 8, {"y.name": 2})
    order = JoinOrder("even", JoinFigures((left, right), ("y", "x"), Fraction(25, 2), Fraction(30), 2))
    cheap = Placement(pull_up=PlanCost(1, 1, 1), push_down=PlanCost(4, 4, 4))
    explanation = replace(
        explanation, measured=ShortLived(3, 30, 10), joins=(order,), placement=cheap, predicted=Fraction(1, 8), epoch=7
    )
    lines = view_report(explanation).lines
    assert "short-lived results, lost: 12.5% predicted; 25.0% measured (10 of 40 in 3 epochs)" in lines
    position = lines.index(
        "join order in even: y, x; 12.5 intermediate rows and results an update, the dearest of 2 orders 30"
    )
    assert lines[position + 1 : position + 4] == (
        "  x: 2.5 rows an update, 40 live, 4 different x.name, 7 different x.value",
        "  y: 1 rows an update, 8 live, 2 different y.name",
        "  the values of the columns that are compared are taken to be independent",
    )
    pulled = next(line for line in lines if line.startswith("negation pull-up: "))
    assert pulled.endswith("; 3 a slot, as declared 12")
    assert lines[lines.index(pulled) + 1].startswith("  anti-join")
    dear = replace(explanation, placement=Placement(pull_up=cheap.push_down, push_down=cheap.pull_up))
    assert "negation pull-up would not pay; 12 a slot, as declared 3" in view_report(dear).lines
    assert not [line for line in view_report(dear).lines if line.startswith("  anti-join")]
    record = view_report(explanation).record
    assert [plan["costs"] for plan in record["equal_plans"]] == [{"declared": 12, "this": 3}]  # type: ignore[attr-defined]
    uncounted = replace(explanation, measured=ShortLived(3, 30, None), short_lived="report")
    assert any(line.startswith("short-lived results, kept beside the view: ") for line in view_report(uncounted).lines)
    assert not [line for line in view_report(uncounted).lines if "measured" in line]


def test_explain_says_what_a_budget_leaves_and_when_it_ranks_nothing(catalog: Catalog) -> None:
    """Explain shows the order, the share and the work left, and the lost units; the plain plan if all was within the budget."""
    explanation = explained(catalog, "results", None)
    budget = ViewBudget(pairs=200)
    left = {"least": 250, "most": 300, "share_least": 0.4, "share_most": 0.5, "units": 4, "rows": 80, "incomplete": 60}
    owed = Owed("results", budget, 200, 500, lapsed=3, given_up=0, later=0, ended=2, **left)
    lines = view_report(replace(explanation, budget=budget, owed=(owed,))).lines
    begin = lines.index("budget: at most 200 results an epoch, most pairs first; the rest is owed")
    assert lines[begin + 1 : begin + 6] == (
        "  rebuilds gave up what it owed of 2 rows that had ended",
        "  results owes 250 to 300 of 500 results: `stream-wh complete results` makes them",
        "  it has 40.0 to 50.0 % of its results, and 4 owed units",
        "  completing joins up to 80 rows of 4 units; 60 to 80 rows lack a partner",
        "  3 units ended before they were made",
    )
    whole = replace(owed, units=0, ended=0)
    plain = "  all 200 results of the last epoch were within it, so that nothing was ranked: the plain plan"
    assert plain in view_report(replace(explanation, budget=budget, owed=(whole,))).lines


def test_explain_is_a_command_and_a_method(invoke: Callable[..., Ended], tmp_path: Path) -> None:
    """Command and method give the same plan; an unknown view is exit code 2."""
    assert invoke("init", str(tmp_path / "w"), "--example", "flights").code == 0
    ended = invoke("-C", str(tmp_path / "w"), "explain", "with_weather")
    assert ended.code == 0, ended.err
    description = "rows expire at their own time; with_weather: grid by arrival and end"
    assert ended.out.startswith(f"join on f.origin = w.origin  {description}\n")
    with Warehouse.open(tmp_path / "w") as warehouse:
        assert warehouse.explain("with_weather").name == "with_weather"
    assert invoke("-C", str(tmp_path / "w"), "explain", "flights").code == 2


def test_the_shell_completes_declared_names(project: Path) -> None:
    """Views where only a view makes sense."""
    import click  # noqa: PLC0415 - one use

    from warehouse.cli.main import stream_wh  # noqa: PLC0415 - one use

    context = click.Context(stream_wh)
    context.params["directory"] = project
    assert [item.value for item in complete_views(context, click.Argument(["view"]), "")] == ["even", "results"]
    assert [item.value for item in complete_views(context, click.Argument(["view"]), "r")] == ["results"]
