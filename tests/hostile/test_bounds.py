"""Whether a file breaks a bound, against a model that reads it whole."""

from __future__ import annotations

import bz2
import gzip
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from warehouse.catalog.codecs import expansion_bound
from warehouse.ingest import bounds
from warehouse.ingest.bounds import bounds_problems, expands_too_much
from warehouse.ingest.files import LandingFile
from warehouse.ingest.parquet_bounds import parquet_bounds_problem

from .fuzzing import fuzzed
from .streams import stream_at

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

pieces = st.one_of(st.sampled_from([b"\n", b"\r", b"\r\n", b""]), st.integers(0, 60).map(lambda length: b"x" * length))


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda content: pa.compress(content, "zstd", asbytes=True),
}


def problems(directory: Path, content: bytes, *, longest: int, name: str = "a.csv", most: int = 200) -> list[tuple[str, str]]:
    """Return the problems of a file with that content."""
    path = directory / name
    path.write_bytes(content)
    facts = path.stat()
    stream = stream_at(directory, max_record=longest, max_expansion=most)
    bound_problems = bounds_problems(stream, [LandingFile(name, facts.st_size, facts.st_mtime_ns)])
    return [(problem.reason, problem.message) for problem in bound_problems]


def first_long(content: bytes, longest: int) -> int | None:
    """Return the number of the first line that is too long; a line ends with either sign, or both."""
    for number, line in enumerate(content.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), 1):
        if len(line) > longest:
            return number
    return None


@fuzzed(200)
@given(
    parts=st.lists(pieces, max_size=12),
    longest=st.integers(1, 70),
    chunk=st.sampled_from([7, 16, 33, 4096]),
    packed=st.sampled_from(["", ".gz", ".bz2", ".zst"]),
)
@example(parts=[b"x" * 60, b"\n", b"x"], longest=60, chunk=16, packed=".gz")
@example(parts=[b"\n", b"x" * 17], longest=16, chunk=16, packed="")
def test_the_longest_line(
    tmp_path_factory: pytest.TempPathFactory, parts: list[bytes], longest: int, chunk: int, packed: str
) -> None:
    """A file is left out if one of its lines is longer than the bound, whatever chunks it is read in."""
    content = b"".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "_CHUNK", chunk)
        patch.setattr(bounds, "expansion_bound", lambda _: 10**6)
        bounds._bounds_problem.cache_clear()
        compress = COMPRESS[packed]
        written = compress(content[:9]) + compress(content[9:])
        reported = problems(tmp_path_factory.getbasetemp(), written, longest=longest, name=f"a.csv{packed}")
    long = first_long(content, longest)
    assert bool(reported) == (long is not None)
    if reported:
        assert reported[0][0] == "record_too_long"
        if b"\r" not in content:
            assert f"line {long} is longer than max_record ({longest} bytes)" in reported[0][1]


def test_no_file_expands_by_more_than_is_known(tmp_path: Path) -> None:
    """What each codec makes of the same sign is within the bound that lets small files pass; bombs of few bytes are found."""
    for ending in (".gz", ".bz2", ".zst"):
        packed = COMPRESS[ending](b"\n" * 7 * 10**7)
        assert 7 * 10**7 / len(packed) <= expansion_bound(ending)
        ((reason, _),) = problems(tmp_path, packed, longest=10**6, name=f"a.csv{ending}", most=20)
        assert reason == "expands_too_much", ending


def test_lines_of_utf_16(tmp_path: Path) -> None:
    """Only a line feed ends a line: neither a carriage return nor the same byte inside another character does."""
    for encoding, mark in (("UTF-16LE", ""), ("UTF-16BE", ""), ("UTF-16", "\ufeff")):
        for number, (text, is_long) in enumerate([("\u0a0a\r" * 50, True), ("\u0a0a\r\n" * 50, False), ("x" * 50 + "\n", False)]):
            path = tmp_path / f"{encoding}{number}.csv"
            path.write_bytes((mark + text).encode("utf-16-le" if mark else encoding))
            facts = path.stat()
            stream = replace(stream_at(tmp_path, max_record=110), options=(("encoding", encoding),))
            reported = bounds_problems(stream, [LandingFile(path.name, facts.st_size, facts.st_mtime_ns)])
            assert [problem.reason for problem in reported] == (["record_too_long"] if is_long else []), (encoding, text)


def test_a_line_longer_than_memory_should_hold_is_never_held(tmp_path: Path) -> None:
    """A sparse line of 6 GB is found without being read into memory at once."""
    path = tmp_path / "a.json"
    with path.open("wb") as stream:
        stream.truncate(6 * 10**9)
    facts = path.stat()
    file = LandingFile("a.json", facts.st_size, facts.st_mtime_ns)
    (problem,) = bounds_problems(stream_at(tmp_path, max_record=16 * 10**6, form="json"), [file])
    assert problem.reason == "record_too_long"
    assert int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) < 4_000_000  # noqa: PTH123, SIM115 - kB


def test_what_small_files_hold_is_harmless(tmp_path: Path) -> None:
    """A small file may expand by any factor; a larger one by as much as declared."""
    small = gzip.compress(b"x\n" * 10**6)
    assert problems(tmp_path, small, longest=10**6, name="a.csv.gz", most=1) == []
    large = gzip.compress(b"x\n" * 4 * 10**7)
    ((reason, message),) = problems(tmp_path, large, longest=10**6, name="b.csv.gz", most=20)
    assert reason == "expands_too_much"
    assert message.endswith("raise max_expansion")
    assert problems(tmp_path, large, longest=10**6, name="c.csv.gz", most=2000) == []
    assert expands_too_much(100, 0, 1_000_001, 200) is not None
    assert expands_too_much(100_000, 0, 1_000_001, 200) is None


@pytest.mark.parametrize("content", [b"\x1f\x8b", b"not gzip" * 100, gzip.compress(os.urandom(10**5))[:-100]])
def test_damage_is_left_to_the_reader(tmp_path: Path, content: bytes) -> None:
    """What cannot be looked through is reported by whoever reads it."""
    assert problems(tmp_path, content * (1 if content[:2] == b"\x1f\x8b" else 300), longest=10**4, name="a.csv.gz") == []


def parquet_problem(directory: Path, column: pa.Array, **options: Any) -> tuple[str, str] | None:  # noqa: ANN401 - those of pyarrow
    """Return what is wrong with a Parquet file of one column."""
    path = directory / "a.parquet"
    pq.write_table(pa.table({"k": column}), path, **options)
    facts = path.stat()
    return parquet_bounds_problem(path, facts.st_size, facts.st_mtime_ns, 10**6, 200)


def repeated(value: object, count: int) -> pa.Array:
    """Return so many equal values, of which memory has one."""
    return pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([value]))


def test_one_long_value_of_many_rows(tmp_path: Path) -> None:
    """A footer tells the size of a dictionary, not how often its values occur; the same for nested values and shared prefixes."""
    offsets = pa.array([0, 100_000])
    listed = pa.ListArray.from_arrays(offsets, repeated("x" * 10_000, 100_000))
    similar = pa.array(["x" * 900_000 + str(number) for number in range(100)])
    shared = {"use_dictionary": False, "column_encoding": {"k": "DELTA_BYTE_ARRAY"}}
    for column, options in ((repeated("x" * 10_000, 100_000), {}), (listed, {}), (similar, shared)):
        problem = parquet_problem(tmp_path, column, **options)
        assert problem is not None
        assert problem[0] == "expands_too_much"
    assert parquet_problem(tmp_path, repeated("x" * 100, 100_000)) is None


def test_one_row_of_a_million_values(tmp_path: Path) -> None:
    """The values of a list count as rows do."""
    problem = parquet_problem(tmp_path, pa.ListArray.from_arrays(pa.array([0, 2 * 10**6]), pa.array([1] * 2 * 10**6)))
    assert problem is not None
    assert problem[0] == "expands_too_much"
    assert "2000000 rows" in problem[1]


@pytest.mark.parametrize("nested", [False, True])
def test_a_value_longer_than_a_record_may_be(tmp_path: Path, *, nested: bool) -> None:
    """In Parquet ``max_record`` bounds each value, also the values inside lists and structs."""
    values = [os.urandom(10**6 + 1), b"short"]
    column = pa.array([[{"inner": value}] for value in values] if nested else values)
    problem = parquet_problem(tmp_path, column)
    assert problem is not None
    assert problem[0] == "record_too_long"
    assert "has 1000001 bytes, more than max_record (1000000)" in problem[1]
    assert parquet_problem(tmp_path, pa.array([os.urandom(10**6)])) is None


def test_honest_columns_are_within(tmp_path: Path) -> None:
    """Many short texts, a few long ones, none."""
    assert parquet_problem(tmp_path, pa.array([f"customer {number % 5000:09}" for number in range(200_000)])) is None
    assert parquet_problem(tmp_path, pa.array(["y" * 900_000] * 3)) is None
    assert parquet_problem(tmp_path, pa.nulls(100_000, pa.string())) is None
