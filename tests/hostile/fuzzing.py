"""How long input is fuzzed: the same cases each time in the tests, new ones and as many as one likes by hand.

    STREAM_WH_FUZZ=50 pytest -n 0 tests/hostile

tries fifty times as many cases, other ones at each run. What it finds is kept as an ``@example`` beside the test.
"""

from __future__ import annotations

import os

from hypothesis import settings

__all__ = ["fuzzed"]

_TIMES = int(os.environ.get("STREAM_WH_FUZZ", "1"))


def fuzzed(cases: int, **options: object) -> settings:
    """Return the settings of a test that tries so many cases."""
    return settings(max_examples=cases * _TIMES, deadline=None, derandomize=_TIMES == 1, **options)  # type: ignore[arg-type]
