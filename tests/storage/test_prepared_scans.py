"""A cached plan reads other files as a new plan does."""

from __future__ import annotations

import gzip
from threading import Thread
from typing import TYPE_CHECKING, TypeAlias

import pytest
from pyspark.errors import AnalysisException

from warehouse.storage.prepared import planned, prepared
from warehouse.storage.prepared_scans import FileScan, scanned
from warehouse.storage.session import table_session

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from warehouse.storage.prepared import PlannedRows

Change: TypeAlias = "Callable[[DataFrame], DataFrame]"
NAMES = ["plain.txt", "with space.txt", "50%25 [a].txt", "{x,y}*.txt", "ümlaut.txt"]


class Reader:
    """Reads lines of files, and counts how often that was planned."""

    def __init__(self, session: SparkSession, key: str) -> None:
        self.session, self.key = session, key
        self.planned: list[list[str]] = []

    def lines(self, paths: list[str]) -> DataFrame:
        """Return the lines with their file and number."""
        self.planned.append(paths)
        texts = self.session.read.option("recursiveFileLookup", "true").option("__globPaths__", "false").text(paths)
        return texts.where("value != ''").selectExpr(
            "value", "_metadata.file_path AS file", "monotonically_increasing_id() AS number"
        )

    def scan(self, files: Sequence[Path], numbers: tuple[int, ...], change: Change = lambda lines: lines) -> PlannedRows:
        """Return what the scan of files gives, after a change of the lines."""
        paths = [str(file) for file in files]

        def read() -> DataFrame:
            return change(self.lines(paths)).selectExpr("*", f"array({', '.join(f'{number}L' for number in numbers)}) AS moved")

        return scanned(FileScan(self.session, paths, read, self.key, "moved", numbers))

    def rows(self, files: Sequence[Path], numbers: tuple[int, ...]) -> list[tuple[str, list[int]]]:
        """Return the lines, and the numbers that each row has."""
        frame = prepared((self.key, "rows"), [self.scan(files, numbers)], lambda sources: sources[0].select("value", "moved"))
        return sorted((row.value, list(row.moved)) for row in frame.collect())


@pytest.fixture
def reader(spark: SparkSession, request: pytest.FixtureRequest) -> Reader:
    """A reader with plans of its own."""
    return Reader(table_session(spark, {}), request.node.name)


def test_other_files_are_read_by_the_plan_of_the_first(reader: Reader, tmp_path: Path) -> None:
    """Whatever their names are, with the numbers of each call; it is planned once."""
    for place, name in enumerate(NAMES):
        file = tmp_path / name
        file.write_text(f"line {place}\n\nlast {place}\n")
        assert reader.rows([file], (place, -place)) == [
            (f"last {place}", [place, -place]), (f"line {place}", [place, -place])
        ]  # fmt: skip
    files = [tmp_path / name for name in NAMES]
    assert [line for line, _ in reader.rows(files, (2**62, -(2**62)))] == sorted(
        f"{word} {place}" for place in range(len(NAMES)) for word in ("line", "last")
    )
    assert len(reader.planned) == 1


def test_packed_and_empty_files_are_read(reader: Reader, tmp_path: Path) -> None:
    """A file without a line is no missing file."""
    packed, empty = tmp_path / "a.gz", tmp_path / "b.txt"
    packed.write_bytes(gzip.compress(b"packed\n"))
    empty.touch()
    assert reader.rows([empty], (1,)) == []
    assert reader.rows([packed, empty], (2,)) == [("packed", [2])]
    assert len(reader.planned) == 1


def test_a_file_that_is_not_there_is_an_error(reader: Reader, tmp_path: Path) -> None:
    """With a cached plan as without one; the plan reads on."""
    here, gone = tmp_path / "here.txt", tmp_path / "gone.txt"
    here.write_text("x\n")
    with pytest.raises(AnalysisException, match=r"gone\.txt"):
        reader.rows([here, gone], (1,))
    assert reader.rows([here], (1,)) == [("x", [1])]
    with pytest.raises(AnalysisException, match=r"gone\.txt"):
        reader.rows([here, gone], (1,))
    assert reader.rows([here], (3,)) == [("x", [3])]


def test_any_thread_runs_the_plan(reader: Reader, tmp_path: Path) -> None:
    """Also one that has used no session yet."""
    file = tmp_path / "x.txt"
    file.write_text("x\n")
    assert reader.rows([file], (1,)) == [("x", [1])]
    found: list[object] = []
    thread = Thread(target=lambda: found.append(reader.rows([file], (2,))))
    thread.start()
    thread.join()
    assert found == [[("x", [2])]]
    assert len(reader.planned) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda lines: lines.union(lines),  # two scans
        lambda lines: lines.groupBy("value").count(),  # a shuffle above the scan
        lambda lines: lines.limit(5),
    ],
    ids=["union", "groups", "limit"],
)
def test_other_plans_are_made_again(reader: Reader, tmp_path: Path, change: Change) -> None:
    """A plan whose files cannot be replaced gives the rows of the files of each call, as other plans do."""
    for number in range(3):
        file = tmp_path / f"{number}.txt"
        file.write_text(f"{number}\n")
        rows = reader.scan([file], (number,), change)
        frame = prepared((reader.key, "other"), [rows], lambda sources: sources[0].select("value", "moved"))
        assert {(row.value, tuple(row.moved)) for row in frame.collect()} == {(str(number), (number,))}


def test_rows_of_a_cached_plan_need_no_plan_of_their_own(reader: Reader, tmp_path: Path) -> None:
    """The frame of a cached plan is known with its rows."""
    file = tmp_path / "x.txt"
    file.write_text("x\n")
    frame = prepared((reader.key, "known"), [reader.scan([file], (1,))], lambda sources: sources[0].select("value"))
    again = prepared((reader.key, "known"), [reader.scan([file], (1,))], lambda sources: sources[0].select("value"))
    for known in (frame, again):
        assert planned(known) is planned(known)
    assert [row.value for row in again.collect()] == ["x"]
