"""Tests of the Airflow provider: those that import Airflow are collected where it is installed (README)."""

from __future__ import annotations

import os
import tempfile
import time
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from .fake import Fake

if TYPE_CHECKING:
    from pathlib import Path

    from airflow.sdk import DAG

INSTALLED = find_spec("airflow") is not None
NEED_AIRFLOW = [
    "test_dags.py", "test_operators.py", "test_provider.py", "test_retries.py", "test_sensor.py", "test_real_updates.py",
]  # fmt: skip
collect_ignore = [] if INSTALLED else NEED_AIRFLOW

if INSTALLED:  # Airflow reads them when it is imported
    _home = tempfile.TemporaryDirectory(prefix="airflow-home-")
    os.environ["AIRFLOW_HOME"] = _home.name
    os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"
    os.environ["AIRFLOW__CORE__DAGS_FOLDER"] = os.path.join(_home.name, "dags")  # noqa: PTH118
    os.environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] = f"sqlite:///{_home.name}/airflow.db"
    os.makedirs(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])  # noqa: PTH103


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    """Return a project with a command that pretends to serve it."""
    return Fake(tmp_path)


@pytest.fixture(scope="session")
def metadata_database() -> None:
    """Make Airflow's database, in SQLite."""
    from airflow.utils.db import initdb  # noqa: PLC0415 - only where Airflow is

    initdb()


def known(dag: DAG) -> DAG:
    """Make a DAG known to Airflow's database, as its reader of DAG files does."""
    from airflow.dag_processing.bundles.manager import DagBundlesManager  # noqa: PLC0415 - only where Airflow is
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db  # noqa: PLC0415

    DagBundlesManager().sync_bundles_to_db()
    bag = DagBag(dag_folder=os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    bag.bag_dag(dag)
    sync_bag_to_db(bag, "dags-folder", None)
    return dag


# --- the budget of the step ---

BUDGET = float(os.environ.get("STREAM_WH_AIRFLOW_BUDGET", "inf"))
"""Seconds after which no further test is started; the closing lines say how many were not."""
_SPENT = "the budget is used up"
_STARTED = time.monotonic()


@pytest.fixture(autouse=True)
def _within_budget() -> None:
    if time.monotonic() - _STARTED > BUDGET:
        pytest.skip(_SPENT)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was not run, in whichever process it would have been."""
    cut = [report.nodeid for report in terminalreporter.stats.get("skipped", ()) if _SPENT in str(report.longrepr)]
    if cut:
        terminalreporter.write_line(f"CUT SHORT after {BUDGET:.0f} s (STREAM_WH_AIRFLOW_BUDGET): not run: {', '.join(cut)}")
