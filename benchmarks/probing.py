"""Probe: a warm probe beside a bare DuckDB query that is told the files; absent keys; many keys at once."""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import duckdb

from benchmarks.data import MANY, SELECTED, absent_key, key
from benchmarks.project import TABLE, instant, shape_of
from benchmarks.ratio import Ratio, Sample, ratio, value
from benchmarks.turns import in_turn, timed
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.bench import Bench
    from warehouse import Warehouse

__all__ = ["measure"]

_NAME = "probe"
_AT_ONCE = 1_000
_ABSENT = 200
TARGET = 1.3
TARGET_ABSENT = 0.99
TARGET_AT_ONCE = 1 / 20


@dataclass(frozen=True)
class _Table:
    """The live files of a table, its window time, and a DuckDB connection that knows nothing of the warehouse."""

    files: list[str]
    tau: str
    bare: duckdb.DuckDBPyConnection

    def holders(self, keys: Sequence[str]) -> dict[str, list[str]]:
        """Return the files that hold live rows of keys."""
        query = f"""
            SELECT k, list(DISTINCT filename ORDER BY filename) FROM read_parquet(?, filename = true)
            WHERE k IN (SELECT unnest(?)) AND _exp > TIMESTAMPTZ '{self.tau}' GROUP BY k
        """
        return dict(self.bare.execute(query, [self.files, list(keys)]).fetchall())

    def ask(self, query: str, key: str) -> list[tuple[object, ...]]:
        """Return the answer of a query for one key."""
        return self.bare.execute(query, [key]).fetchall()

    def query(self, files: Sequence[str], *, ordered: bool) -> str:
        """Return the query for one key."""
        paths = ", ".join(f"'{path}'" for path in files)
        order = " ORDER BY k, _exp, _ts" if ordered else ""
        where = f"k = ? AND _exp > TIMESTAMPTZ '{self.tau}'"
        return f"SELECT {SELECTED} FROM read_parquet([{paths}]) WHERE {where}{order}"


def measure(bench: Bench) -> list[Ratio]:
    """Return the ratios of probe times and of files left alone."""
    project, settings = bench.project, bench.settings
    bench.say("probes")
    keys = shape_of(settings).keys
    step = keys // MANY
    rng = random.Random(settings.seed)  # noqa: S311 - which keys to ask for
    sampled = [index for index in rng.sample(range(keys), min(keys, 2 * _AT_ONCE)) if index % step]
    kinds = {
        "few": [key(index) for index in sampled[: settings.keys]],
        "many": [key(number * step) for number in rng.sample(range(MANY), settings.keys)],
    }
    with project.opened() as warehouse, duckdb.connect() as bare:
        bare.execute("SET TimeZone = 'UTC'; SET parquet_metadata_cache = true")
        table = _Table(project.files(), format_instant(instant(project.slot)), bare)
        lines = []
        for kind, chosen in kinds.items():
            lines += _beside_bare(bench, warehouse, table, kind, chosen)
        lines += _absent(warehouse, table, [absent_key(index) for index in rng.sample(range(keys - 1), _ABSENT)])
        lines.append(_at_once(bench, warehouse, [key(index) for index in sampled[:_AT_ONCE]]))
    return lines


def _ask(warehouse: Warehouse, *keys: str) -> list[tuple[object, ...]]:
    return warehouse.probe(TABLE, keys).all()


def _beside_bare(bench: Bench, warehouse: Warehouse, table: _Table, kind: str, keys: Sequence[str]) -> list[Ratio]:
    """Time each key in turn by the API and by the bare query, with and without the order of an answer."""
    holders = table.holders(keys)
    api: list[float] = []
    ordered: list[float] = []
    unordered: list[float] = []
    rows: list[int] = []
    for probed in keys:
        if probed not in holders:
            continue
        texts = [table.query(holders[probed], ordered=True), table.query(holders[probed], ordered=False)]
        answer = _ask(warehouse, probed)
        assert sorted(answer) == sorted(table.ask(texts[0], probed))
        rows.append(len(answer))
        works = [timed(partial(_ask, warehouse, probed)), *(timed(partial(table.ask, text, probed)) for text in texts)]
        for seconds, times in zip((api, ordered, unordered), in_turn(works, bench.settings.repeat), strict=True):
            seconds.append(statistics.median(times))
    if not api:
        return []
    bench.details[f"probes of keys with {kind} rows"] = {
        "rows": statistics.median(rows),
        "files that hold the key": statistics.median(len(files) for files in holders.values()),
        "files of the table": len(table.files),
    }
    ours, like, without = (
        Sample(label, "s", tuple(seconds))
        for label, seconds in (("probe", api), ("bare query", ordered), ("bare query, no order", unordered))
    )
    text = f"key with {kind} rows (median {statistics.median(rows):.0f})"
    return [
        ratio(_NAME, f"{text} / bare DuckDB over its files, same answer", ours, like, target=TARGET),
        ratio(_NAME, f"{text} / bare DuckDB over its files, no order", ours, without),
    ]


def _absent(warehouse: Warehouse, table: _Table, keys: Sequence[str]) -> list[Ratio]:
    """Return the share of files of which an absent key decodes no data page: as Parquet says, and as the reader does."""
    bounds = table.bare.execute(
        "SELECT file_name, row_group_id, stats_min_value, stats_max_value FROM parquet_metadata(?) "
        "WHERE path_in_schema = 'k'",
        [table.files],
    ).fetchall()
    by_file, by_reader = [], []
    for probed in keys:
        query = f"SELECT file_name, row_group_id FROM parquet_bloom_probe(?, 'k', '{probed}') WHERE bloom_filter_excludes"
        excluded = set(table.bare.execute(query, [table.files]).fetchall())
        decoded = {
            name for name, group, low, high in bounds if low <= probed <= high and (name, group) not in excluded
        }
        by_file.append(1 - len(decoded) / len(table.files))
        answer = warehouse.probe(TABLE, [probed])
        assert not answer.all()
        assert answer.explain
        by_reader.append(1 - answer.explain.plan.files_read / answer.explain.plan.files_considered)
    return [
        value(
            _NAME,
            "absent key: files left alone by row group bounds and Bloom filters / files",
            [statistics.mean(by_file)],
            target=TARGET_ABSENT,
            at_least=True,
        ),
        value(_NAME, "absent key: files that the reader does not open / files", [statistics.mean(by_reader)]),
    ]


def _at_once(bench: Bench, warehouse: Warehouse, keys: Sequence[str]) -> Ratio:
    """Time one call for all keys, and one call for each of a few keys."""
    singles = keys[:: max(1, len(keys) // 100)]

    def each() -> None:
        for probed in singles:
            _ask(warehouse, probed)

    together, apart = in_turn([timed(partial(_ask, warehouse, *keys)), timed(each)], bench.settings.repeat)
    return ratio(
        _NAME,
        f"{len(keys)} keys in one call / one call each, per key",
        Sample("all in one call, per key", "s", tuple(seconds / len(keys) for seconds in together)),
        Sample("one call each, per key", "s", tuple(seconds / len(singles) for seconds in apart)),
        target=TARGET_AT_ONCE,
    )
