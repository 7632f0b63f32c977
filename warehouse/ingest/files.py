"""What is known of a landing file: persisted in plans and epochs, so plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LandingFile", "LeftOut"]


@dataclass(frozen=True)
class LandingFile:
    """A landing file's identity: relative path, size in bytes, modification time in nanoseconds."""

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class LeftOut:
    """A landing file that an update did not load, and why."""

    file: LandingFile
    reason: str
    message: str
