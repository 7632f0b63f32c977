"""What others install is what stands here: the source archive, and the wheel built from it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parent.parent
PACKAGES = {"warehouse", "airflow_stream_wh"}
LOCAL = {".git", ".github", "build", "dist", "tests", "benchmarks", "__pycache__", "spark-warehouse"}

LIST = f"""
import importlib.util, json, os, pkgutil, sys

def modules(name, places):
    for found in pkgutil.iter_modules(places):
        whole = f"{{name}}.{{found.name}}"
        yield whole
        if found.ispkg:
            yield from modules(whole, importlib.util.find_spec(whole).submodule_search_locations)

listed, data = [], []
for name in {sorted(PACKAGES)!r}:
    places = importlib.util.find_spec(name).submodule_search_locations
    listed += [name, *modules(name, places)]
    for folder, _, files in os.walk(next(iter(places)), followlinks=True):
        data += [os.path.relpath(os.path.join(folder, file), next(iter(places))) for file in files
                 if file.endswith((".toml", ".gz", ".csv", ".properties", "py.typed"))]
print(json.dumps([sorted(listed), sorted(data), places[0]]))
"""
"""Prints the modules and the data files that an interpreter finds."""


def _run(*command: str, path: Path | None = None, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    process = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source archive from a copy of the repository, and the wheel from the archive."""
    directory = tmp_path_factory.mktemp("package")

    def left_out(_: str, names: list[str]) -> set[str]:
        return {name for name in names if name in LOCAL or name.endswith(".egg-info") or name.startswith(".")}

    shutil.copytree(ROOT, directory / "source", symlinks=True, ignore=left_out)
    _run(sys.executable, "-m", "build", "-o", str(directory / "dist"), str(directory / "source"), cwd=directory)
    return directory / "dist"


@pytest.fixture(scope="module")
def installed(built: Path) -> Path:
    """Install the wheel into a folder; its dependencies are those of the environment."""
    (wheel,) = built.glob("*.whl")
    target = built.parent / "site"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(target), str(wheel)]
    _run(*command, cwd=built.parent)
    return target


@pytest.fixture
def command(installed: Path, tmp_path: Path) -> Callable[..., str]:
    """Run the installed ``stream-wh``."""
    return lambda *arguments: _run(str(installed / "bin" / "stream-wh"), *arguments, path=installed, cwd=tmp_path)


def test_the_wheel_adds_two_packages(installed: Path) -> None:
    """No top-level name like ``cli`` or ``jobs``, which another distribution may have too."""
    assert {path.name for path in installed.iterdir() if path.suffix != ".dist-info"} == {*PACKAGES, "bin"}


def test_the_wheel_has_the_modules_of_the_clone(installed: Path, tmp_path: Path) -> None:
    """With the same names and the same data; an import that works in a clone works for users."""
    modules, data, location = json.loads(_run(sys.executable, "-c", LIST, cwd=tmp_path))
    wheel_modules, wheel_data, wheel_place = json.loads(_run(sys.executable, "-c", LIST, path=installed, cwd=tmp_path))
    assert Path(wheel_place).is_relative_to(installed)
    assert not Path(location).is_relative_to(installed)
    assert {"warehouse.cli.main", "warehouse.jobs.update", "warehouse.sample_data", "airflow_stream_wh.operators"} <= set(modules)
    assert wheel_modules == modules
    assert wheel_data == data


def test_the_installed_command_makes_a_project(command: Callable[..., str], tmp_path: Path) -> None:
    """It says its version, copies the bundled example and finds nothing wrong with it."""
    assert command("--version").startswith("stream-wh")
    command("init", "flights", "--example", "flights")
    command("-C", "flights", "validate")
    assert list((tmp_path / "flights" / "landing").rglob("*.csv*"))


def test_the_source_archive_builds_and_holds_no_tests(built: Path) -> None:
    """It has what a packager needs: the licence, the changes, the exact versions; the tests stay in the repository."""
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "requirements.lock", "pyproject.toml"} <= names
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "docs"))]


def test_the_metadata_names_the_licence_and_the_type_marker(installed: Path) -> None:
    """Tools read both."""
    (information,) = installed.glob("*.dist-info")
    metadata = (information / "METADATA").read_text()
    assert "License-Expression: Apache-2.0" in metadata
    assert "Classifier: Typing :: Typed" in metadata
    assert list(information.rglob("LICENSE"))
    assert (installed / "warehouse" / "py.typed").exists()
