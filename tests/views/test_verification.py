"""Each view proves itself: a first build that is not its query stands still; one that went wrong later is named until mended."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from tests.cli.conftest import invoke  # noqa: F401 - the fixture
from tests.operations.projects import Project, row, stream
from warehouse import Warehouse
from warehouse.epochs.points import Moment, Point
from warehouse.epochs.view_findings import last_verified, open_findings
from warehouse.errors import UnknownNameError, ViewFailedError
from warehouse.operations.verification import verdicts_of
from warehouse.storage.session import jobs_run
from warehouse.views.algebra import Filter, Scan
from warehouse.views.maintenance import pipelines
from warehouse.views.verification import judgement
from warehouse.views.verification.comparison import Comparison
from warehouse.views.verification.verifying_query import Unverifiable, VerifyingQuery, verifying_query

from .warehouses import land, view

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.cli.conftest import Ended
    from warehouse.views.algebra import Operator

COLUMNS = {"k": "string", "b": "timestamp", "e": "timestamp", "n": "int", "f": "double"}
STREAMS = {"a": stream(columns=COLUMNS, landing="landing/a"), "c": stream(columns=COLUMNS, landing="landing/c")}
VIEWS = {
    "large": view("SELECT k, n FROM a WHERE n > 1"),
    "above": view("SELECT DISTINCT k FROM large"),
    "summed": view("SELECT k, sum(f) AS s, avg(f) AS m, count(*) AS n FROM a GROUP BY k"),
    "recent": view("SELECT w.k, c.n FROM time_window(a, INTERVAL 1 HOUR) w JOIN c ON c.k = w.k"),
    "newest": view("SELECT k, n FROM row_window(a, 2, k)"),
    "tied": view("SELECT k, n FROM a ORDER BY n LIMIT 1"),
    "inner": view("WITH a AS (SELECT k, n + 1 AS n FROM a) SELECT k, n FROM a"),
    "kept": view("SELECT k, n FROM a", output_window="2h"),
}

_AROUND = (Point.STEP_COMMITTED, Point.STEPS_DONE)


def _land(project: Project, hour: int) -> None:
    lines = [
        f"{row(key, hour - 0.1 * number - 0.05, hour + 2)},{number},{number / 7 + hour / 3}"
        for number, key in enumerate(["x", "x", "y", "z", "y"])
    ]
    land(project, hour, {"a": lines, "c": lines[:3]}, ",".join(COLUMNS))


def _filtering_nothing(patch: pytest.MonkeyPatch) -> None:
    """A fault: conditions over what was read are forgotten."""
    right = pipelines.over

    def wrong(operator: Operator, below: Operator, rows: DataFrame) -> DataFrame:
        return rows if isinstance(operator, Filter) and isinstance(operator.input, Scan) else right(operator, below, rows)

    patch.setattr(pipelines, "over", wrong)


def test_a_first_build_that_differs_stands_still(
    tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    """Its readers stand still, too; other views move. Differing rows are logged; a correct rebuild serves the view."""
    views = {name: VIEWS[name] for name in ("large", "above", "summed")}
    project = Project(tmp_path / "project", spark, STREAMS, views=views)
    _land(project, 1)
    with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.WARNING, "warehouse"):
        _filtering_nothing(patch)
        failed = dict(project.update(1).failed_views)
    assert sorted(failed) == ["above", "large"]
    assert failed["large"] == (
        "it differs from its query: 2 row(s) only in its table, 0 only in Spark's answer to its query"
    )
    assert failed["above"].startswith("it reads large")
    assert "view \"large\", only in its table: k = 'x', n = 0" in caplog.text
    with Warehouse.open(project.directory) as warehouse:
        assert warehouse.scan("summed").all()
        with pytest.raises(ViewFailedError):
            warehouse.scan("large")
        assert [finding.view for finding in warehouse.view_findings()] == ["large"]
        assert [finding.code for finding in warehouse.check(rows=False).faults] == ["view_differs"]
    _land(project, 2)
    assert project.update(2).failed_views == ()  # a view that failed is rebuilt, and compared again
    with Warehouse.open(project.directory) as warehouse:
        assert len(warehouse.scan("large").all()) == 6
        assert warehouse.view_findings() == ()


def test_views_that_are_their_queries_are_compared_by_one_job(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No view is compared alone, unless the common job fails, for example because one query fails on a row."""
    looked_at: list[str] = []
    right = judgement.judged

    def watched(*arguments: Any) -> object:  # noqa: ANN401 - passed on
        looked_at.append(arguments[1].sql)
        return right(*arguments)

    monkeypatch.setattr("warehouse.steps.view_proof.judged", watched)
    views = {name: VIEWS[name] for name in ("large", "above", "summed", "inner")}
    project = Project(tmp_path, spark, STREAMS, views=views)
    _land(project, 1)
    jobs: list[int] = []
    project.update(1, observer=lambda moment: jobs.append(jobs_run()) if moment.point in _AROUND else None)
    assert not looked_at
    assert jobs[-1] - jobs[-2] == 1, "between the last step's commit and the end of all steps"

    monkeypatch.setattr(Comparison, "differing", _fails)
    project.views = {**views, "more": view("SELECT k, f FROM a"), "fewer": view("SELECT k, f FROM a WHERE n > 1")}
    project.declare()
    _land(project, 2)
    project.update(2)
    assert sorted(looked_at) == sorted(str(project.views[name]["sql"]) for name in ("more", "fewer"))
    with Warehouse.open(tmp_path) as warehouse:
        assert warehouse.scan("more").arrow().num_rows > warehouse.scan("fewer").arrow().num_rows > 0


def _fails(*_: object) -> DataFrame:
    raise PySparkException("a query fails on a row")


def test_a_view_that_went_wrong_is_named_until_it_is_rebuilt(
    tmp_path: Path,
    spark: SparkSession,
    invoke: Callable[..., Ended],  # noqa: F811 - the fixture
) -> None:
    """``check --views``, ``check`` and ``status --check`` name it while updates go on; one command mends it."""
    project = Project(tmp_path / "project", spark, STREAMS, views=VIEWS)
    in_project = ("-C", str(project.directory))
    _land(project, 1)
    assert project.update(1).failed_views == ()
    outcomes = {verdict.view: verdict.outcome for verdict in verdicts_of(project.root, project.epoch, spark)}
    assert outcomes.pop("tied") in {"same", "not comparable"}
    assert outcomes.pop("kept") == "not verifiable"
    assert set(outcomes.values()) == {"same"}
    _land(project, 2)
    with pytest.MonkeyPatch.context() as patch:
        _filtering_nothing(patch)
        assert project.update(2).failed_views == ()
    checked = invoke(*in_project, "check", "--views", "-o", "json")
    assert checked.code == 4
    findings = {finding["table"]: finding for finding in checked.json()}  # type: ignore[attr-defined]
    assert findings["large"]["code"] == "view_differs"
    assert "only in its table: k = 'x', n = 0" in findings["large"]["message"]
    assert findings["kept"]["code"] == "view_not_verifiable"
    assert "summed" not in findings
    project.update(3)
    status = invoke(*in_project, "status", "--check")
    assert status.code == 4
    assert "large: differed from its query: " in status.err
    assert "stream-wh rebuild large" in status.err
    assert invoke(*in_project, "check", "--quick").code == 4
    assert invoke(*in_project, "check", "--views", "--epoch", "0").code == 0
    assert [finding.view for finding in open_findings(project.root, project.epoch)] == ["large"]
    rebuilt = invoke(*in_project, "rebuild", "large")
    assert (rebuilt.code, project.epoch.cause) == (0, "rebuild"), rebuilt.err
    assert "differed from its query" not in invoke(*in_project, "status", "--check").err
    assert invoke(*in_project, "check", "--views").code == 0
    with Warehouse.open(project.directory) as warehouse:
        assert warehouse.sql("SELECT DISTINCT k FROM large EXCEPT SELECT k FROM above").all() == []
        assert warehouse.sql("SELECT count(*) FROM large WHERE n <= 1").all() == [(0,)]
        with pytest.raises(UnknownNameError):
            warehouse.rebuild("lage", spark=spark)


def test_updates_verify_views_now_and_then(tmp_path: Path, spark: SparkSession) -> None:
    """An update verifies views every ``verify_views`` by the clock, since it has the lock anyway."""
    views = {name: VIEWS[name] for name in ("large", "summed")}
    project = Project(tmp_path / "project", spark, STREAMS, views=views, warehouse={"verify_views": "1d"})
    _land(project, 1)
    assert project.update(1).warnings == ()
    _land(project, 2)
    with pytest.MonkeyPatch.context() as patch:
        _filtering_nothing(patch)
        assert project.update(2).warnings == ()  # not due yet
    project.clock += 25 * 3600 * 10**6
    warnings = project.update(3).warnings
    assert len(warnings) == 1
    assert warnings[0].startswith('view "large" differs from its query: ')
    assert [finding.view for finding in open_findings(project.root, project.epoch)] == ["large"]
    project.clock -= 400 * 24 * 3600 * 10**6  # it had been ahead, and is right again
    project.update(4)
    assert last_verified(project.root) == project.clock


def test_a_proof_interrupted_is_made_again(tmp_path: Path, spark: SparkSession) -> None:
    """An update that is killed after its steps has proven nothing: whoever completes it does."""

    class KilledError(Exception):
        pass

    def stop(moment: Moment) -> None:
        if moment.point == Point.STEPS_DONE:
            raise KilledError

    project = Project(tmp_path / "project", spark, STREAMS, views={"large": VIEWS["large"]})
    _land(project, 1)
    with pytest.MonkeyPatch.context() as patch:
        _filtering_nothing(patch)
        with pytest.raises(KilledError):
            project.update(1, observer=stop)
    report = project.update(1)
    (finished,) = report.finished
    state = finished.table("large")
    assert state is not None
    assert state.view is not None
    assert (state.view.failed or "").startswith("it differs from its query")
    assert report.failed_views == ()  # the same update has rebuilt it


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        ("SELECT k FROM a -- time_window(a, 1)", "SELECT k FROM a -- time_window(a, 1)"),
        (
            "SELECT w.k FROM time_window( a , INTERVAL 1 HOUR ) AS w JOIN row_window(c, 2, k) ON c.k = w.k",
            "SELECT w.k FROM `stream_wh_window_1` AS w JOIN `stream_wh_window_2` AS `c` ON c.k = w.k",
        ),
        *(
            (f"SELECT {word}.k FROM time_window(a, INTERVAL 1 HOUR) {word} JOIN c ON c.k = {word}.k",
             f"SELECT {word}.k FROM `stream_wh_window_1` {word} JOIN c ON c.k = {word}.k")
            for word in ("date", "current", "rows", "first", "`left`")
        ),
        *(
            (f"SELECT k FROM time_window(a, INTERVAL 1 HOUR) {rest}", f"SELECT k FROM `stream_wh_window_1` AS `a` {rest}")
            for rest in ("LEFT ANTI JOIN c USING (k)", "GROUP BY k", "-- w", "WHERE k = ' w'", "ORDER BY k LIMIT 1")
        ),
        ("SELECT k FROM `time_window`(`a`, INTERVAL 1 HOUR);", "SELECT k FROM `stream_wh_window_1` AS `a`;"),
        ("WITH a AS (SELECT k FROM a) SELECT k FROM a", "WITH a AS (SELECT k FROM a) SELECT k FROM a"),
        ("SELECT `time_window`.k FROM c AS `time_window`", "SELECT `time_window`.k FROM c AS `time_window`"),
        ("SELECT 'ü', k FROM a, TIME_WINDOW(c, INTERVAL 1 HOUR) x WHERE 1 = 1", None),
    ],
)  # fmt: skip
def test_spark_is_asked_the_text_as_it_was_written(sql: str, asked: str | None) -> None:
    """But for the calls of ours, wherever they stand."""
    expected = asked or sql.replace("TIME_WINDOW(c, INTERVAL 1 HOUR)", "`stream_wh_window_1`")
    query = verifying_query(sql, [])
    assert isinstance(query, VerifyingQuery)
    assert query.sql == expected


def test_windows_over_queries_are_not_verifiable() -> None:
    """Spark knows no time at which a row of a query came."""
    for sql in (
        "SELECT k FROM time_window((SELECT k FROM a), INTERVAL 1 HOUR) w",
        "WITH s AS (SELECT k FROM a) SELECT k FROM time_window(s, INTERVAL 1 HOUR) w",
    ):
        assert isinstance(verifying_query(sql, []), Unverifiable)
