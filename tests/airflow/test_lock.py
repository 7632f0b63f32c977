"""The versions that the Airflow environment is tested with."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def _pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.lstrip().startswith("#"))


def test_the_warehouse_is_the_same_under_airflow() -> None:
    """What requirements.lock pins has the same version there; the head of the file says how to correct it."""
    plain, other = _pins("requirements.lock"), _pins("requirements-airflow.lock")
    assert {name: (version, other.get(name)) for name, version in plain.items() if other.get(name) != version} == {}
    assert other["apache-airflow"].startswith("3.3.")
