"""Airflow finds the provider and its parts."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest
from airflow.providers_manager import ProvidersManager
from airflow.sdk._shared.module_loading import import_string

import airflow_stream_wh
from airflow_stream_wh.provider_info import get_provider_info


def test_airflow_lists_the_provider() -> None:
    """By its entry point, its description passing Airflow's schema."""
    provider = ProvidersManager().providers["stream-wh"]
    assert provider.data["name"] == "stream-wh"
    points = [point.value for point in entry_points(group="apache_airflow_provider") if point.value.startswith("airflow_stream")]
    assert points == ["airflow_stream_wh.provider_info:get_provider_info"]


def test_the_modules_it_names_exist() -> None:
    """Each can be imported, and has the classes that the package exports."""
    info = get_provider_info()
    for kind in ("operators", "sensors", "triggers"):
        for entry in info[kind]:  # type: ignore[attr-defined]
            for module in entry["python-modules"]:
                import_string(f"{module}.__all__")
    for name in info["extra-links"]:  # type: ignore[attr-defined]
        assert import_string(name)().name == "Report"
    assert all(hasattr(airflow_stream_wh, name) for name in airflow_stream_wh.__all__)


@pytest.mark.parametrize("module", ["airflow_stream_wh.provider_info", "airflow_stream_wh"])
def test_the_entry_point_imports_nothing_heavy(module: str) -> None:
    """Airflow calls it in every process that it starts."""
    heavy = "('airflow', 'pyspark', 'duckdb', 'deltalake', 'pyarrow', 'pydantic', 'sqlalchemy', 'warehouse.project')"
    program = f"import sys, {module}; print([name for name in {heavy} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
