"""How tests open ``warehouse.duckdb`` as somebody else does: with DuckDB alone, or in an environment of other tools."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from warehouse.publishing.database import DATABASE
from warehouse.time import to_micros

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["attached", "comparable", "other_tools", "with_duckdb_alone"]

_COUNTS = """
import duckdb, json, os, sys
for line in sys.stdin:
    with duckdb.connect() as connection:
        connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
        connection.execute("ATTACH '" + sys.argv[1] + "' AS w (READ_ONLY)")
        answers = [connection.execute(query).fetchall() for query in json.loads(line)]
    print(json.dumps(answers), flush=True)
"""
"""Answers each line of queries over the file, which it attaches again each time, with a line of rows."""


def attached(root: Path, name: str = "w") -> duckdb.DuckDBPyConnection:
    """Return a connection of its own with the file attached: it keeps its epoch."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute(f"ATTACH '{str(root / DATABASE).replace(chr(39), chr(39) * 2)}' AS {name} (READ_ONLY)")
    return connection


def comparable(rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """Return rows in an order, instants as microseconds."""
    return sorted(repr([to_micros(part) if hasattr(part, "tzinfo") else part for part in row]) for row in rows)


class DuckdbAlone:
    """A process that has DuckDB and nothing else that is not Python's own, started in another directory."""

    def __init__(self, root: Path, modules: Path) -> None:
        for name in ("duckdb", "_duckdb"):
            spec = importlib.util.find_spec(name)
            assert spec is not None
            assert spec.origin is not None
            origin = Path(spec.origin)
            package = origin.parent if origin.name == "__init__.py" else origin
            (modules / package.name).symlink_to(package)
        facts = Path(str(importlib.metadata.distribution("duckdb").locate_file(""))) / f"duckdb-{duckdb.__version__}.dist-info"
        (modules / facts.name).symlink_to(facts)
        code = f"import sys; sys.path.append({str(modules)!r})\n{_COUNTS}"
        command = [sys.executable, "-S", "-I", "-c", code, str(root / DATABASE)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/", env={"PATH": os.environ["PATH"]}
        )

    def answers(self, *queries: str) -> list[list[list[Any]]]:
        """Return the rows of queries, all of one epoch; the database is ``w``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(queries), file=self._process.stdin, flush=True)
        return list(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End it."""
        self._process.communicate(timeout=30)


def with_duckdb_alone(root: Path, scratch: Path) -> Iterator[DuckdbAlone]:
    """Give such a process."""
    modules = scratch / "modules"
    modules.mkdir()
    alone = DuckdbAlone(root, modules)
    yield alone
    alone.close()


def other_tools() -> Path | None:
    """Return where the programs of an environment with dbt-duckdb and an older DuckDB are: ``$STREAM_WH_TOOLS``, or none."""
    named = os.environ.get("STREAM_WH_TOOLS")
    return Path(named) if named else None
