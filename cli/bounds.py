"""The bounds of one query: the options, and the end of a process whose engine does not stop by itself."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from warehouse.catalog.sizes import SqlBounds, parse_size
from warehouse.cli.errors import failure_of, wants_json, write_failure
from warehouse.cli.options import DURATION

if TYPE_CHECKING:
    from collections.abc import Callable

    from warehouse.errors import WarehouseError
    from warehouse.serving.engine import Resources

__all__ = ["bounds_options", "single_query_resources", "with_options"]

_Function = TypeVar("_Function", bound="Callable[..., Any]")
_OWN_MEMORY = 10**9
"""Bytes that the process needs in addition to the engine: libraries, the rows that are being written."""


class _Size(click.ParamType[int]):
    """A size such as 2GB, in bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:  # noqa: ANN401
        """Return the bytes of the text."""
        try:
            return value if isinstance(value, int) else parse_size(value)
        except ValueError:
            self.fail(f'"{value}" is not a size from 1KB to 1TB, such as 2GB or 512MiB', param, ctx)


def bounds_options(function: _Function) -> _Function:
    """Add ``--memory`` and ``--timeout``."""
    memory = click.option("--memory", type=_Size(), help="Memory that the query may use [[sql] memory, 2GB].")
    timeout = click.option("--timeout", type=DURATION, help="Time that it may take; 0s: any [[sql] timeout, 10m].")
    return memory(timeout(function))


def with_options(bounds: SqlBounds, memory: int | None, timeout: int | None) -> SqlBounds:
    """Return the bounds of the project, with the values of the options that are given."""
    changed = replace(bounds, memory=bounds.memory if memory is None else memory)
    return changed if timeout is None else replace(changed, timeout=timeout)


def single_query_resources(resources: Resources, bounds: SqlBounds) -> Resources:
    """Return the resources of a process that runs only one query: if the query does not stop, the process ends."""
    return replace(resources, ceiling=2 * bounds.memory + _OWN_MEMORY, unstoppable=_end_process)


def _end_process(error: WarehouseError) -> None:
    """End this process, since the engine does not react to an interrupt."""
    from warehouse.serving.engine import spill_prefix  # noqa: PLC0415 - only at the end

    prefix = Path(spill_prefix())
    for directory in prefix.parent.glob(f"{prefix.name}*"):
        shutil.rmtree(directory, ignore_errors=True)
    failure = failure_of(error, sys.argv[1:])
    write_failure(failure, as_json=wants_json(sys.argv[1:]))
    sys.stderr.flush()
    os._exit(failure.exit_code)
