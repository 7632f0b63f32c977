"""Reads what a DAG needs of a project's ``warehouse.toml``: its tables, Δ, and where files land; it validates nothing else."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warehouse.catalog.patterns import split_landing
from warehouse.errors import UsageError
from warehouse.objects.path import is_uri, path_of
from warehouse.time import parse_duration, parse_instant

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LandingFolder", "ProjectFile", "read_project"]

FILE = "warehouse.toml"


@dataclass(frozen=True)
class LandingFolder:
    """Where the files of a stream or relation land: directory, glob, and the least age of a file in microseconds."""

    directory: Path
    files: str
    settle: int


@dataclass(frozen=True)
class ProjectFile:
    """The tables that a project declares, where their files land, and its grid of times (microseconds)."""

    tables: tuple[str, ...]
    landings: Mapping[str, LandingFolder]
    anchor: int
    update_interval: int


def read_project(project: str | Path) -> ProjectFile:
    """Read a project's declarations.

    Raises
    ------
    UsageError
        When the file cannot be read here, or is not what ``stream-wh validate`` accepts.

    """
    directory = Path(project)
    try:
        with (directory / FILE).open("rb") as stream:
            content = tomllib.load(stream)
    except OSError as error:
        raise UsageError(
            f"{directory / FILE} cannot be read here ({error.strerror}); name the tables (`tables`) where DAGs are parsed "
            f"on a machine that does not have the project"
        ) from error
    except ValueError as error:
        raise UsageError(f"{directory / FILE}: {error}; run `stream-wh validate`") from error
    try:
        return _project_of(directory, content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{directory / FILE}: {type(error).__name__}: {error}; run `stream-wh validate`") from error


def _project_of(directory: Path, content: Mapping[str, Any]) -> ProjectFile:
    sources = {**content.get("streams", {}), **content.get("relations", {})}
    return ProjectFile(
        tables=(*sources, *(name for key in ("views", "aggregates") for name in content.get(key, {}))),
        landings={name: _landing(directory, source) for name, source in sources.items()},
        anchor=parse_instant(str(content["warehouse"]["anchor"])),
        update_interval=parse_duration(content["warehouse"]["update_interval"]),
    )


def _landing(directory: Path, source: Mapping[str, Any]) -> LandingFolder:
    settle = parse_duration(source.get("landing_settle", "0s"))
    landing, pattern = split_landing(source["landing"])
    return LandingFolder(
        path_of(landing) if is_uri(landing) else directory / landing, pattern or source.get("files", "*"), settle
    )
