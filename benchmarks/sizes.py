"""Bytes: updates beside plain writes of the same rows, and the share of Bloom filters in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from benchmarks.ratio import Ratio, Sample, ratio, value
from benchmarks.settings import PERIODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.bench import Bench
    from benchmarks.rounds import Round

__all__ = ["measure"]

_NAME = "bytes"
TARGET = 1.05
TARGET_SEALED = 2.0
TARGET_SPACE = 1.25
TARGET_FILTERS = 0.05


def measure(bench: Bench) -> list[Ratio]:
    """Return the ratios of bytes."""
    rounds = bench.rounds
    plainly = [played for played in rounds if not played.sealed]
    lines = []
    if plainly:
        system, user = _plain(plainly)
        data = Sample("data files of an update", "bytes", tuple(played.written for played in plainly))
        everything = Sample("all files", "bytes", tuple(played.written + played.records for played in plainly))
        lines += [
            ratio(_NAME, "update / plain write of the same columns", data, system, target=TARGET),
            ratio(_NAME, "update with its log, plan and epoch / plain write of the same columns", everything, system),
            ratio(_NAME, "update / plain write of the user's columns", data, user),
        ]
    lines += _over_all(rounds)
    lines += _newest(rounds)
    lines.append(_filters(bench.project.files()))
    return lines


def _newest(rounds: Sequence[Round]) -> list[Ratio]:
    """What dead rows, runs and filters take, with the columns that the format has; and with the system's columns, too."""
    weighed = [(played.held, *played.live_alone) for played in rounds if played.live_alone is not None]
    stored, system, user = (sum(values) / len(weighed) for values in zip(*weighed, strict=True))
    files = Sample("files of the newest epoch", "bytes", (stored,))
    of = "newest epoch / its live rows"
    return [
        ratio(_NAME, f"{of}, same columns, mean", files, Sample("live rows alone", "bytes", (system,)), target=TARGET_SPACE),
        ratio(_NAME, f"{of}, user's columns, mean", files, Sample("their user's columns", "bytes", (user,))),
    ]


def _plain(rounds: Sequence[Round]) -> tuple[Sample, Sample]:
    return (
        Sample("plain write, system columns too", "bytes", tuple(played.with_system for played in rounds)),
        Sample("plain write of the user's columns", "bytes", tuple(played.user_only for played in rounds)),
    )


def _over_all(rounds: Sequence[Round]) -> list[Ratio]:
    written = sum(played.written for played in rounds)
    inserted = sum(played.inserted for played in rounds)
    span = "p updates" if len(rounds) == PERIODS else f"{len(rounds)} updates (p = {PERIODS})"
    data = Sample(f"data files of {len(rounds)} updates", "bytes", (written,))
    system, user = (
        Sample(sample.what, sample.unit, (sum(sample.values),)) for sample in _plain(rounds)
    )
    rows = (inserted + sum(played.rewritten for played in rounds)) / inserted
    return [
        ratio(_NAME, f"{span} with sealing / plain writes of the same columns", data, system, target=TARGET_SEALED),
        ratio(_NAME, f"{span} with sealing / plain writes of the user's columns", data, user),
        value(_NAME, f"times that a row is written, {span}", [rows]),
    ]


def _filters(files: list[str]) -> Ratio:
    query = "SELECT coalesce(sum(bloom_filter_length), 0) FROM parquet_metadata(?) WHERE path_in_schema = 'k'"
    with duckdb.connect() as connection:
        (filters,) = connection.execute(query, [files]).fetchall()[0]
        (whole,) = connection.execute("SELECT sum(size) FROM read_blob(?)", [files]).fetchall()[0]
    return ratio(
        _NAME,
        "Bloom filters / data files",
        Sample("Bloom filters", "bytes", (float(filters),)),
        Sample("live data files", "bytes", (float(whole),)),
        target=TARGET_FILTERS,
    )
