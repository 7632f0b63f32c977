"""What Parquet's encodings save: the same rows written by Spark with its first and its second version of them.

``python -m benchmarks.encodings`` prints bytes a row, and the processor time of a write by the JVM and of a read by DuckDB.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import Shape, arriving, key
from warehouse.storage.session import COMPRESSION, spark_session
from warehouse.storage.writer import key_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 500_000
ROUNDS = 5
_HOUR = 3_600_000_000
_START = 480_000 * _HOUR
_BLOCK_HOURS = 4
_SECOND = {"parquet.writer.version": "PARQUET_2_0"}
_UNIQUE = ("at", "until", "_ts", "_exp", "a", "b", "v")
_PLAIN = {f"parquet.enable.dictionary#{name}": "false" for name in _UNIQUE}
WAYS = {
    "first version": {},
    "second version": _SECOND,
    "first version, no dictionaries": _PLAIN,
    "second version, no dictionaries": {**_SECOND, **_PLAIN},
}


def main() -> None:
    """Print a line for each way."""
    session = spark_session([("spark.master", "local[1]"), ("spark.driver.memory", "3g")])
    with tempfile.TemporaryDirectory() as directory:
        input_file = Path(directory) / "given.parquet"
        pq.write_table(_rows(), input_file)
        rows = session.read.parquet(str(input_file)).repartition(1).sortWithinPartitions("block", "k", "_exp").cache()
        rows.count()
        writes: dict[str, list[float]] = {name: [] for name in WAYS}
        reads: dict[str, list[float]] = {name: [] for name in WAYS}
        for round_ in range(ROUNDS + 1):
            for name, settings in WAYS.items():
                seconds = _written(session, rows, Path(directory) / name, settings)
                if round_:  # the first one compiles
                    writes[name].append(seconds)
                    reads[name].append(_read(Path(directory) / name))
        print(f"{ROWS} rows; seconds are of one processor, medians of {ROUNDS}")
        for name in WAYS:
            size = sum(file.stat().st_size for file in (Path(directory) / name).rglob("*.parquet")) / ROWS
            print(f"{name:32} {size:6.1f} bytes a row, write {median(writes[name]):.2f} s, read {median(reads[name]):.3f} s")


def _rows() -> pa.Table:
    """The benchmarks' rows of five hours, with the columns that a table adds and the block that its files are cut by."""
    rows = arriving(Shape(130, 200_000, 1), ROWS, part=(1,), after=_START, until=_START + 5 * _HOUR, lifetime=36 * _HOUR)
    arrived, ends = (rows[name].cast(pa.int64()).to_numpy() for name in ("at", "until"))
    added = {
        "_ts": rows["at"], "_exp": rows["until"], "_load_slot": pa.array(arrived // _HOUR), "_exp_slot": pa.array(ends // _HOUR),
        "block": pa.array(ends // (_BLOCK_HOURS * _HOUR)),
    }  # fmt: skip
    for name, values in added.items():
        rows = rows.append_column(name, values)
    return rows


def _written(session: SparkSession, rows: DataFrame, target: Path, settings: dict[str, str]) -> float:
    options = {**COMPRESSION, **key_settings([("k", "string")]), "parquet.page.write-checksum.enabled": "true", **settings}
    codec = options.pop("spark.sql.parquet.compression.codec")
    before = _processor_seconds(session)
    rows.write.partitionBy("block").mode("overwrite").options(**options, compression=codec).parquet(str(target))
    return _processor_seconds(session) - before


def _processor_seconds(session: SparkSession) -> float:
    """The processor time that the JVM has taken so far."""
    jvm = session._jvm  # noqa: SLF001 - the JVM's own account of its time
    return float(jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get().toMillis()) / 1000


def _read(directory: Path) -> float:
    """The processor time of a scan of all columns and of one probe."""
    with duckdb.connect(config={"threads": 1}) as engine:
        files = f"read_parquet('{directory}/*/*.parquet')"
        before = time.process_time()
        engine.sql(f"SELECT * FROM {files}").to_arrow_table()
        engine.sql(f"SELECT * FROM {files} WHERE k = '{key(21)}'").fetchall()
        return time.process_time() - before


if __name__ == "__main__":
    main()
