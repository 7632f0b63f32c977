"""Landing files that hold a key are found in every format."""

from __future__ import annotations

import bz2
import gzip
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.catalog.project import loaded
from warehouse.catalog.declaration import ColumnRecord
from warehouse.operations.erasure.landing import files_with_keys
from warehouse.steps.erased_keys import erased_keys, key_columns

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "tailnum,departed_at,landed_at,ttl,weight\n"


def _found(tmp_path: Path, files: dict[str, bytes], /, key: object = "N1", **keys: Any) -> list[str]:  # noqa: ANN401 - TOML
    landing = tmp_path / "landing" / "flights"
    for name, content in files.items():
        path = landing / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    changed = {f"streams.flights.{name}": value for name, value in keys.items()}
    stream = loaded(tmp_path, changed).streams[0]
    columns = [ColumnRecord(column.name, column.type) for column in stream.columns]
    erased = erased_keys(key_columns(columns, stream.search_key), [key])
    return sorted(path.relative_to(landing).as_posix() for path in files_with_keys(stream, (landing, tmp_path / "no"), erased))


def test_csv_files_are_read_by_record(tmp_path: Path) -> None:
    """The key's column counts; a record of another shape counts if it shows the key anywhere."""
    files = {
        "plain.csv": f"{HEADER}N2,a,b,1,2\nN1,a,b,1,2\n",
        "quoted.csv": f'{HEADER}"N1",a,b,1,2\n',
        "deep/er.csv": f"{HEADER}N1,,,,\n",
        "turned.csv": "weight,TAILNUM\n1,N1\n",
        "short.csv": f"{HEADER}N1,x\n",
        "other_column.csv": f"{HEADER}N2,N1,b,1,2\n",
        "longer.csv": f"{HEADER}N12,a,b,1,2\n",
        "header.csv": HEADER.replace("tailnum", "N1") + "N3,a,b,1,2\n",
        "empty.csv": "",
    }
    paths = _found(tmp_path, {name: content.encode() for name, content in files.items()})
    assert paths == ["deep/er.csv", "plain.csv", "quoted.csv", "short.csv", "turned.csv"]


def test_put_away_files_that_got_a_number_are_read(tmp_path: Path) -> None:
    """Also if all files of the stream have one name."""
    files = {name: f"{HEADER}N1,a,b,1,2\n".encode() for name in ("data.csv", "data~1.csv", "data~1~2.csv", "other.csv")}
    assert _found(tmp_path, files, files="data.csv") == ["data.csv", "data~1.csv"]


def test_files_beyond_their_bounds_are_taken_to_hold_the_key(tmp_path: Path) -> None:
    """An endless line is not read into memory to search it."""
    files = {"long.csv": f"{HEADER}N2,{'x' * 3000},b,1,2\n", "short.csv": f"{HEADER}N2,{'x' * 100},b,1,2\n"}
    assert _found(tmp_path, {name: text.encode() for name, text in files.items()}, max_record="2KB") == ["long.csv"]


def test_files_that_cannot_be_read_are_taken_to_hold_the_key(tmp_path: Path) -> None:
    """A truncated gzip stream."""
    whole = gzip.compress(f"{HEADER}N2,a,b,1,2\n".encode() * 99)
    files = {"whole.csv.gz": whole, "cut.csv.gz": whole[:-12], "held.csv.gz": gzip.compress(f"{HEADER}N1,a,b,1,2\n".encode())}
    files |= {f"{key}.csv.bz2": bz2.compress(f"{HEADER}{key},a,b,1,2\n".encode()) for key in ("N1", "N2")}
    files |= {f"{key}.csv.zst": pa.compress(f"{HEADER}{key},a,b,1,2\n".encode(), "zstd", asbytes=True) for key in ("N1", "N2")}
    assert _found(tmp_path, files) == ["N1.csv.bz2", "N1.csv.zst", "cut.csv.gz", "held.csv.gz"]


def test_options_are_heeded(tmp_path: Path) -> None:
    """Delimiter, encoding, escape, null value."""
    header, record = HEADER.replace(",", ";"), "N1;a;b;1;2\n"
    files = {"a.csv": (header + record).encode("utf-16"), "b.csv": header.encode("utf-16")}
    assert _found(tmp_path, files, options={"delimiter": ";", "encoding": "utf-16"}) == ["a.csv"]
    directory = tmp_path / "null"
    directory.mkdir()
    files = {f"{key}.csv": f"{HEADER}{key},a,b,1,2\n".encode() for key in ("-", "N1")}
    assert _found(directory, files, (None,), options={"nullValue": "-"}) == ["-.csv"]


def test_json_and_parquet_files(tmp_path: Path) -> None:
    """Values are compared in the column's type; malformed lines as texts."""
    lines = {
        "number.json": '{"ttl": 7}',
        "text.json": '{"TTL": "7"}',
        "other.json": '{"ttl": 70}',
        "bad.json": '{"ttl": 7',
        "null.json": '{"ttl": null, "weight": 7}',
        "array.json": "[7]",
    }
    files = {name: line.encode() + b"\n" for name, line in lines.items()}
    key = {"search_key": "ttl", "format": "json"}
    assert _found(tmp_path, files, 7, **key) == ["array.json", "bad.json", "number.json", "text.json"]
    escaped = json.dumps({"tailnum": 'N"é'}).encode()
    assert _found(tmp_path / "escaped", {"x.json": escaped}, 'N"é', format="json") == ["x.json"]
    directory = tmp_path / "parquet"
    for name, values in {"yes": [1, 7], "no": [70]}.items():
        (directory / "landing" / "flights").mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"ttl": values}), directory / "landing" / "flights" / f"{name}.parquet")
    assert _found(directory, {}, 7, search_key="ttl", format="parquet") == ["yes.parquet"]


def test_instants_are_those_of_the_streams_time_zone(tmp_path: Path) -> None:
    """An instant without an offset is in the stream's time zone."""
    noon = datetime(2013, 1, 1, 12, tzinfo=UTC)
    records = {"local": "2013-01-01 13:00:00", "offset": "2013-01-01T12:00:00Z", "other": "2013-01-01 12:00:00"}
    files = {f"{name}.csv": f"{HEADER}x,{text},,,\n".encode() for name, text in records.items()}
    paths = _found(tmp_path, files, noon, search_key="departed_at", timezone="Europe/Berlin")
    assert paths == ["local.csv", "offset.csv"]


def test_a_damaged_parquet_file_is_taken_to_hold_the_key(tmp_path: Path) -> None:
    """Nobody can know its rows."""
    assert _found(tmp_path, {"x.parquet": b"PAR1 and no more"}, format="parquet") == ["x.parquet"]


@pytest.mark.parametrize("name", ["_hidden.csv", ".part.csv", "a.csv.tmp"])
def test_files_that_somebody_is_writing_are_left_alone(tmp_path: Path, name: str) -> None:
    """As in updates."""
    assert _found(tmp_path, {name: f"{HEADER}N1,a,b,1,2\n".encode()}) == []
