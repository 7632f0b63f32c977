"""Where this user's copies, archives and jars are kept between commands."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cache_directory"]


def cache_directory() -> Path:
    """Return ``$STREAM_WH_CACHE``, or ``stream-wh`` in the user's cache directory."""
    chosen = os.environ.get("STREAM_WH_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "stream-wh"
