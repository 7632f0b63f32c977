"""Connections that a thread keeps for its next small work."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse.serving.engine import Resources, kept_connection
from warehouse.storage.duckdb_sql import literal

if TYPE_CHECKING:
    from pathlib import Path


def test_a_connection_is_used_again_until_something_fails() -> None:
    """One for each set of resources; at work inside itself there is a second one; a failed one is closed."""
    small, other = Resources(threads=1), Resources(threads=1, memory_limit="1GB")
    with kept_connection(small) as first, kept_connection(small) as second:
        assert second is not first
    with kept_connection(small) as again:
        assert again is second
        again.register("rows", pa.table({"k": [1]}))  # which needs a connection without an unfinished result
        again.unregister("rows")
    with kept_connection(other) as apart:
        assert apart is not second
    with pytest.raises(duckdb.Error), kept_connection(small) as failed:
        failed.execute("SELECT no_column")
    with kept_connection(small) as new:
        assert new is not failed
        assert new.execute("SELECT 1").fetchone() == (1,)


def test_a_connection_that_refuses_everything_is_not_used_again() -> None:
    """A user may go on after a fatal error, as those that publish tables one by one do; the next one must not suffer for it."""
    apart = Resources(threads=1, memory_limit="501MB")
    with kept_connection(apart) as broken:
        broken.close()
    with kept_connection(apart) as new:
        assert new.execute("SELECT 1").fetchone() == (1,)


def test_footers_of_files_do_not_stay_in_memory(tmp_path: Path) -> None:
    """A process that publishes reads new files all the time: what is remembered of them would grow to the limit of memory."""
    query = "SELECT coalesce(sum(memory_usage_bytes), 0) FROM duckdb_memory() WHERE tag = 'OBJECT_CACHE'"
    rows = pa.table({f"c{number}": range(10) for number in range(50)})
    with kept_connection(Resources(threads=1, memory_limit="502MB")) as connection:
        ((before,),) = connection.execute(query).fetchall()
        for number in range(20):
            pq.write_table(rows, tmp_path / f"{number}.parquet")
            connection.execute(f"SELECT sum(c1) FROM read_parquet({literal(str(tmp_path / f'{number}.parquet'))})").fetchall()
        ((after,),) = connection.execute(query).fetchall()
    assert after - before < 20_000


_FORKED = """
import os, signal
from warehouse.serving.engine import Resources, kept_connection
with kept_connection(Resources(threads=2)) as connection:
    connection.execute("SELECT count(*) FROM range(3_000_000)").fetchall()
if os.fork() == 0:
    signal.alarm(30)
    with kept_connection(Resources(threads=2)) as connection:
        os._exit(connection.execute("SELECT 1").fetchone() != (1,))
os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_fork_leaves_the_connections_of_its_parent_alone() -> None:
    """To close one waits for threads that the fork does not have."""
    assert subprocess.run([sys.executable, "-c", _FORKED], check=False, timeout=60).returncode == 0
