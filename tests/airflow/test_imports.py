"""Who imports whom: the README's table of folders, as far as the provider is concerned."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
PROVIDER = ROOT / "airflow_stream_wh"
WITH_AIRFLOW = {"assets", "operators", "sensors", "triggers", "dags", "flights", "links", "retries"}
"""The modules that import Airflow; the others can be used and tested without."""


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("folder", ["warehouse", "cli", "jobs", "sample_data", "benchmarks"])
def test_the_core_never_imports_the_provider(folder: str) -> None:
    """The core does not import Airflow either: both are extras."""
    paths = list((ROOT / folder).rglob("*.py"))
    imports = [f"{path.relative_to(ROOT)}: {name}" for path in paths for name in _imports(path) if name.startswith("airflow")]
    assert paths
    assert imports == []


def test_the_provider_imports_of_the_core_what_needs_nothing() -> None:
    """The provider can be installed without the warehouse's dependencies."""
    names = {name for path in PROVIDER.rglob("*.py") for name in _imports(path) if name.startswith(("warehouse", "cli", "jobs"))}
    pure = {"errors", "time", "ingest.landing", "catalog.patterns", "objects.path"}
    assert names == {f"warehouse.{module}" for module in pure}


def test_what_needs_no_airflow_imports_none() -> None:
    """Nor anything else that is not Python's own."""
    plain = [path for path in PROVIDER.rglob("*.py") if path.stem not in WITH_AIRFLOW]
    outside = {
        name.partition(".")[0] for path in plain for name in _imports(path)
    } - sys.stdlib_module_names - {"warehouse", "airflow_stream_wh"}
    assert len(plain) > 5
    assert outside == set()
    modules = ", ".join(f"airflow_stream_wh.{path.stem}" for path in plain if path.stem != "__init__")
    heavy = ("airflow", "pyspark", "py4j", "duckdb", "deltalake", "pyarrow", "pydantic", "msgspec", "obstore", "sqlglot")
    program = f"import sys, {modules}; print([name for name in {heavy} if name in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
