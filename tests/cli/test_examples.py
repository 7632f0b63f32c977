"""The examples ``dns`` and ``sessions``: what ``init`` suggests to run shows the rows that are live by plain Python."""

from __future__ import annotations

import csv
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from warehouse import Warehouse
from warehouse.sample_data import make_dns, make_sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.cli.conftest import Ended

    Lives = Iterator[tuple[str, float, float]]


def _answers() -> Lives:
    for text in make_dns.logs().values():
        for row in (line.split("\t") for line in text.splitlines() if not line.startswith("#")):
            ttls = [float(ttl) for ttl in row[-1].split(",")] if row[-1] != "-" else [0.0]
            yield row[2], float(row[0]), float(row[0]) + min(ttls)


def _sessions() -> Lives:
    def read(text: str) -> datetime:
        return datetime.strptime(f"{text} +0000", "%d.%m.%Y %H:%M:%S %z")

    for text in make_sessions.exports().values():
        for row in csv.DictReader(text.splitlines(), delimiter=";"):
            start = read(row["Start (UTC)"])
            end = read(row["End (UTC)"]) if row["End (UTC)"] else start + timedelta(minutes=30)
            yield row["User"], start.timestamp(), end.timestamp()


@pytest.mark.parametrize(("example", "rows"), [("dns", _answers), ("sessions", _sessions)])
def test_what_init_suggests_shows_the_live_rows(
    invoke: Callable[..., Ended], tmp_path: Path, spark: SparkSession, example: str, rows: Callable[[], Lives]
) -> None:
    """The first command moves the window, the second finds a key's rows, the third asks a view that counts all."""
    record = invoke("init", str(tmp_path / "w"), "--example", example, "-o", "json").json()
    assert isinstance(record, dict)
    _, _, update, probe, query = record["next"]
    at, key = update.rpartition(" ")[2], probe.rpartition(" ")[2]
    moment = datetime.fromisoformat(at).timestamp()
    live = [name for name, begins, ends in rows() if begins <= moment < ends]
    with Warehouse.open(tmp_path / "w") as warehouse:
        warehouse.update(at=at, spark=spark)
        assert 0 < len(warehouse.probe(example, [key])) == live.count(key)
        assert len(warehouse.scan(example)) == len(live)
        view = re.findall(r"FROM (\w+)", query)[0]
        assert sum(row[-1] for row in warehouse.scan(view)) == len(live)
    assert invoke("-C", str(tmp_path / "w"), "sql", re.findall(r'"(.+)"', query)[0]).code == 0
