"""How many bytes a contender's processes have had written to the disk, as Linux counts them."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["bytes_written"]


def bytes_written() -> int:
    """Return ``write_bytes`` of this process and of all its children; reaped children are in it.

    The kernel counts pages when they become dirty, so what is written and soon deleted counts too, and what stays in
    memory does not (on a tmpfs everything is 0).
    """
    children: dict[int, list[int]] = {}
    for process_directory in Path("/proc").iterdir():
        if process_directory.name.isdigit() and (parent := _parent(process_directory)) is not None:
            children.setdefault(parent, []).append(int(process_directory.name))
    total, waiting, seen = 0, [os.getpid()], set[int]()
    while waiting:
        process = waiting.pop()
        if process not in seen:
            seen.add(process)
            total += _written(process)
            waiting += children.get(process, [])
    return total


def _parent(process_directory: Path) -> int | None:
    try:
        return int((process_directory / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it ended meanwhile
        return None


def _written(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/io").read_text().splitlines()
    except OSError:  # same
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes:"))
