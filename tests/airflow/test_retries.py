"""The retry policy for tasks of other providers: what the command's end means, as their exceptions tell it."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG, RetryAction

from airflow_stream_wh import StreamWarehouseRetryPolicy
from airflow_stream_wh.retries import exit_code_in

from .conftest import known

if TYPE_CHECKING:
    from pathlib import Path

POD = """Pod update-flights-x1 returned a failure.
remote_pod: {{'status': {{'container_statuses': [{{'name': 'istio-proxy', 'state': {{'terminated': {{'exit_code': 0}}}}}},
 {{'name': 'base', 'state': {{'terminated': {{'container_id': 'x',
 'exit_code': {code},
 'reason': 'Error'}}}}}}]}}}}"""


@pytest.mark.parametrize(
    ("code", "action"), [(1, "FAIL"), (2, "FAIL"), (4, "FAIL"), (3, "DEFAULT"), (130, "DEFAULT"), (137, "DEFAULT")]
)
def test_a_pod(code: int, action: str) -> None:
    """By the state of its container, as the operator's exception shows it; those beside it ended well."""
    decision = StreamWarehouseRetryPolicy().evaluate(Exception(POD.format(code=code)), 1, 5)
    assert decision.action is RetryAction[action]


def test_no_exit_code_is_no_verdict() -> None:
    """A pod that never began, a driver in a cluster, a lost connection: Airflow decides as it would without a policy."""
    policy = StreamWarehouseRetryPolicy()
    for text in ("Pod took longer than 120 seconds to start", "Driver driver-1 exited with status FAILED", ""):
        assert exit_code_in(text) is None
        assert policy.evaluate(Exception(text), 1, 5).action is RetryAction.DEFAULT


@pytest.mark.usefixtures("metadata_database")
@pytest.mark.parametrize(("codes", "state", "tries"), [([2, 0], "failed", 1), ([3, 130, 0], "success", 3)])
def test_spark_submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codes: list[int], state: str, tries: int) -> None:
    """The policy judges the exception of Spark's own hook: a configuration error ends the retries, a held lock does not."""
    program = tmp_path / "spark-submit"
    counted = f"echo x >> {tmp_path}/calls\nn=$(wc -l < {tmp_path}/calls)"
    program.write_text(f"#!/bin/sh\n{counted}\nset -- {' '.join(map(str, codes))}\nshift $((n - 1))\nexit $1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", "spark://local")
    with DAG(f"by_spark_submit_{state}", schedule=None, start_date=datetime(2024, 1, 1, tzinfo=UTC)) as dag:
        SparkSubmitOperator(
            task_id="update",
            application="/srv/stream-wh/jobs/update.py",
            retries=5,
            retry_delay=timedelta(0),
            retry_policy=StreamWarehouseRetryPolicy(),
        )
    dag_run = known(dag).test(logical_date=datetime(2024, 1, 1, len(codes), tzinfo=UTC))
    assert [str(task_instance.state) for task_instance in dag_run.get_task_instances()] == [state]
    assert len((tmp_path / "calls").read_text().splitlines()) == tries
