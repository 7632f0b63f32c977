"""Connections that a thread keeps for its next small work."""

from __future__ import annotations

import duckdb
import pytest

from warehouse.serving.engine import Resources, kept_connection


def test_a_connection_is_used_again_until_something_fails() -> None:
    """One for each set of resources; at work inside itself there is a second one; a failed one is closed."""
    small, other = Resources(threads=1), Resources(threads=1, memory_limit="1GB")
    with kept_connection(small) as first, kept_connection(small) as second:
        assert second is not first
    with kept_connection(small) as again:
        assert again is second
    with kept_connection(other) as apart:
        assert apart is not second
    with pytest.raises(duckdb.Error), kept_connection(small) as failed:
        failed.execute("SELECT no_column")
    with kept_connection(small) as new:
        assert new is not failed
        assert new.execute("SELECT 1").fetchone() == (1,)
