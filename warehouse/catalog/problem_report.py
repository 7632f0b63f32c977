"""Collects the faults of one file, so that they are reported together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from warehouse.catalog.spelling import FaultError

__all__ = ["ProblemReport"]


class ProblemReport:
    """Problems of ``file`` in the order they are found."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []

    def add(self, key: str, fault: FaultError) -> None:
        """Add the fault of a dotted key."""
        self.problems.append(Problem(self.file, key, fault.found, fault.allowed, fault.suggestion))

    def add_each(self, prefix: str, faults: Iterable[tuple[str, FaultError]]) -> None:
        """Add the faults of keys within a section."""
        for key, fault in faults:
            self.add(f"{prefix}.{key}", fault)

    def add_section(self, prefix: str, faults: Mapping[str, FaultError]) -> None:
        """Add the faults of a section's keys."""
        for key, fault in faults.items():
            self.add(f"{prefix}.{key}", fault)
