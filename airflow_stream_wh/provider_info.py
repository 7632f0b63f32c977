"""The description of the provider, which Airflow reads before any DAG; so this module imports nothing."""

from __future__ import annotations

__all__ = ["get_provider_info"]

_INTEGRATION = "stream-wh"


def get_provider_info() -> dict[str, object]:
    """Return the provider's description, the value of the entry point ``apache_airflow_provider``."""
    return {
        "package-name": "stream-wh",
        "name": "stream-wh",
        "description": "Stream warehouses with on-disk windows: rows that expire by themselves.",
        "integrations": [{"integration-name": _INTEGRATION, "tags": ["software"]}],
        "operators": [{"integration-name": _INTEGRATION, "python-modules": ["airflow_stream_wh.operators"]}],
        "sensors": [{"integration-name": _INTEGRATION, "python-modules": ["airflow_stream_wh.sensors"]}],
        "extra-links": ["airflow_stream_wh.links.ReportLink"],
        "triggers": [{"integration-name": _INTEGRATION, "python-modules": ["airflow_stream_wh.triggers"]}],
    }
