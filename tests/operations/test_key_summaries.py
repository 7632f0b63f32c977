"""Key summaries are made with their data files, read before them, deleted with them, and never trusted blindly.

::

    hour     0.........1.........2.........3
    1.csv     a a a b b|         |
    2.csv              |a a c c c|         |
    3.csv              |         |d d d e e|
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from warehouse import Warehouse
from warehouse.advice.advise import join_notes
from warehouse.checking.check import check
from warehouse.cli.explanation import view_report
from warehouse.epochs.records import ViewRecord
from warehouse.limits import limited
from warehouse.operations.backup import back_up
from warehouse.operations.erasure.proof import prove
from warehouse.promise.presence import bits_of, hash_of, holds
from warehouse.promise.summaries import KeySummary
from warehouse.serving import Reader
from warehouse.steps.erased_keys import erased_keys
from warehouse.storage.companion_files import data_file_of
from warehouse.storage.key_summaries import FILTER_SHOWS, counts_of, read_filter, read_summary, summary_path, write_summary
from warehouse.storage.replay import replay
from warehouse.views.plans import judged_views

from .projects import LATER, Project, csv, row, stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

BATCHES = ("aaabb", "aaccc", "dddee")


@pytest.fixture(scope="module", autouse=True)
def _small_files() -> Iterator[None]:
    """Files of a few rows get summaries too."""
    with limited(summary_share=50.0):
        yield


def loaded(directory: Path, spark: SparkSession) -> Project:
    """Return a project after three updates, a file each."""
    project = Project(directory, spark, {"a": stream(layout={"grid": [3, 1]})}, {"retain": "30d"})
    for hour, keys in enumerate(BATCHES):
        project.land(f"{hour}.csv", csv(*(row(key, hour + 0.5, hour + 4) for key in keys)))
        project.update(hour + 1)
    return project


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Return that project, of which tests take copies."""
    return loaded(tmp_path_factory.mktemp("made") / "project", spark)


@pytest.fixture
def project(made: Project, tmp_path: Path) -> Project:
    """Return a copy of the project for one test."""
    return made.copy(tmp_path / "project")


def data_files(project: Project) -> list[Path]:
    """Return the data files of table ``a`` at the newest epoch."""
    state = project.epoch.table("a")
    assert state is not None
    return sorted(project.root / state.path / name for name in replay(project.root / state.path, state.version).files)


def counted(file: Path) -> KeySummary:
    """Return the expected summary of a file."""
    keys = pq.read_table(file, columns=["k"])["k"].to_pylist()
    return KeySummary(len(keys), dict(Counter((key,) for key in keys)))


def probed(project: Project, key: str) -> tuple[int, list[Any]]:
    """Return how many files a reader's first probe of a key opens, and the keys of the rows."""
    with Reader.open(project.root) as reader:
        answer = reader.probe("a", [key])
        rows = [record[0] for record in answer.all()]
        return answer.explain.plan.files_read, rows


@pytest.mark.parametrize("rows", [0, 20_000], ids=["Spark", "driver"])
def test_both_writers_make_exact_summaries(tmp_path: Path, spark: SparkSession, rows: int) -> None:
    """Whichever writer writes a data file, its summary counts each of its keys, and a check counts them again."""
    with limited(driver_rows=rows):
        project = loaded(tmp_path / "project", spark)
    files = data_files(project)
    assert len(files) == 3
    for file in files:
        assert read_summary(str(file), 5) == counted(file)
    assert check(project.root).findings == ()


def test_a_first_probe_opens_the_files_that_have_the_key(project: Project) -> None:
    """Without summaries it opens the files that the bounds leave, and finds the same rows."""
    few = {key: probed(project, key) for key in "abcdez"}
    assert [files for files, _ in few.values()] == [2, 1, 1, 1, 1, 0]
    for file in data_files(project):
        summary_path(file).unlink()
    bounds = {key: probed(project, key) for key in "abcdez"}
    assert bounds["b"][0] == 2
    assert {key: rows for key, (_, rows) in few.items()} == {key: rows for key, (_, rows) in bounds.items()}


def test_a_first_probe_of_files_whose_counts_do_not_fit_opens_the_ones_with_the_key(project: Project) -> None:
    """The filter is enough: the counts after it are not read."""
    for file in data_files(project):
        content = summary_path(file).read_bytes()
        counts = counts_of(content)
        summary_path(file).write_bytes(content[: len(content) - len(counts)] + bytes(len(counts)))
    assert [probed(project, key)[0] for key in "abcdez"] == [2, 1, 1, 1, 1, 0]


def test_counts_by_key_need_no_file(project: Project) -> None:
    """For a while, numbers of live rows come from summaries; without summaries files are read, with the same result."""
    count_all = "SELECT count(*) AS n FROM a"
    queries = ("SELECT k, count(*) AS n FROM a GROUP BY k", f"{count_all} WHERE k = 'b'", count_all)
    file_counts = []
    for _ in range(2):
        with Reader.open(project.root) as reader:
            for query in queries:
                answer = reader.sql(query, within=60_000_000)
                plain = sorted(reader.sql(query).all())
                assert [(*row[:-3], row[-2]) for row in answer.all()] == plain
                assert all(row[-3] == row[-2] == row[-1] for row in answer.all())
                assert answer.within is not None
                assert answer.within.exact
                file_counts.append((answer.within.files, answer.within.files_read))
        for file in data_files(project):
            summary_path(file).unlink(missing_ok=True)
    assert file_counts == [(3, 0), (1, 0), (3, 0), (3, 3), (3, 3), (3, 0)]


def test_explain_tells_the_size_of_a_join_by_key(project: Project) -> None:
    """It is exact if all keys are listed and all rows are live; it is omitted for other columns, or without summaries."""
    joined = "SELECT l.k FROM a l JOIN a r ON l.k = "
    project.views = {name: {"sql": joined + key, "search_key": "k"} for name, key in (("pairs", "r.k"), ("upper", "upper(r.k)"))}
    project.declare()
    with Warehouse.open(project.directory) as warehouse:
        (order,) = warehouse.explain("pairs").joins
        (other,) = warehouse.explain("upper").joins
        assert "  51 pairs of live rows with equal keys, by key summaries" in view_report(warehouse.explain("pairs")).lines
        state = project.epoch.table("a")
        assert state is not None
        node = judged_views(warehouse.catalog)[0].view("pairs").nodes[-1]  # type: ignore[union-attr]
        record = ViewRecord("pairs", f"{joined}r.k", node, "drop")
        with Reader.open(project.root) as reader:
            assert list(join_notes(reader, replace(state, view=record))) == [
                "its join has 51 pairs of live rows with equal keys, by key summaries",
                "a budget of a tenth of the rows that it joins would make 4% of them, the densest keys first",
            ]
    keys = Counter("".join(BATCHES))
    assert order.figures.pairs == (51, 51) == (sum(count**2 for count in keys.values()),) * 2
    assert other.figures.pairs is None
    for file in data_files(project):
        summary_path(file).unlink()
    with Warehouse.open(project.directory) as warehouse:
        (order,) = warehouse.explain("pairs").joins
    assert order.figures.pairs is None


def test_a_damaged_or_strange_summary_changes_no_answer(project: Project) -> None:
    """Changed bytes are ignored; so is a summary with another number of rows."""
    first, second, third = data_files(project)
    content = summary_path(first).read_bytes()
    summary_path(first).write_bytes(content[:-1])
    summary_path(second).write_bytes(b"")
    summary_path(third).unlink()
    assert [(key, len(probed(project, key)[1])) for key in "abcde"] == [("a", 5), ("b", 2), ("c", 3), ("d", 3), ("e", 2)]


def test_a_check_finds_a_wrong_summary_and_repair_removes_it(project: Project) -> None:
    """A summary without a key of its file would hide rows: it is a fault, and no answer needs it."""
    first, second, _ = data_files(project)
    summary_path(second).write_bytes(summary_path(first).read_bytes())
    findings = check(project.root).findings
    assert [(finding.code, finding.repair) for finding in findings] == [("summary", "repair")]
    assert findings[0].subject == summary_path(second).relative_to(project.root).as_posix()
    project.updater().repair()
    assert not summary_path(second).exists()
    assert check(project.root).findings == ()


def test_a_vacuum_keeps_the_summaries_of_files_and_removes_others(project: Project) -> None:
    """A summary beside no file of an epoch is a leftover."""
    summaries = [summary_path(file) for file in data_files(project)]
    stray = summary_path(summaries[0].with_name("gone.parquet"))
    stray.write_bytes(b"")
    assert [finding.code for finding in check(project.root).findings] == ["left_over"]
    project.clock = LATER + 10**12
    project.updater().vacuum()
    assert not stray.exists()
    assert all(path.exists() for path in summaries)


def test_what_expires_takes_its_summaries_along(project: Project) -> None:
    """No summary outlives its file, and none is missing after updates that seal and drop files."""
    project.warehouse["retain"] = "0s"
    project.declare()
    for hour in range(4, 8):
        project.land(f"{hour}.csv", csv(*(row(key, hour - 0.5, hour + 3) for key in "xxyy")))
        project.update(hour)
    beside = {data_file_of(path): path for path in (project.root / "tables").rglob("*.keys")}
    assert set(data_files(project)) == {file for file in beside if file is not None}
    assert check(project.root).findings == ()


def test_files_that_come_back_have_their_summaries(project: Project) -> None:
    """A rollback gives files more names; a summary depends on the bytes, so it comes along."""
    project.updater().rollback(0)
    (file,) = data_files(project)
    assert read_summary(str(file), 5) == counted(file)
    assert check(project.root).findings == ()


def test_a_backup_takes_them_along(project: Project, tmp_path: Path) -> None:
    """The restored warehouse probes as fast."""
    back_up(project.root, project.directory / "warehouse.toml", tmp_path / "backup", now=LATER)
    names = {path.name for path in (tmp_path / "backup").rglob("*.keys")}
    assert names == {summary_path(file).name for file in data_files(project)}


def test_an_erased_key_is_in_no_summary(project: Project) -> None:
    """Summaries of files with the key are deleted with them, new files' summaries lack it, and the proof checks."""
    project.updater().erase("a", ["a"])
    for file in data_files(project):
        summary = read_summary(str(file), pq.read_metadata(file).num_rows)
        assert summary == counted(file)
        assert ("a",) not in summary.counts
    assert check(project.root).findings == ()


def test_the_proof_of_an_erasure_reads_summaries(project: Project) -> None:
    """A summary that still has the key, though compressed, is a trace."""
    first, _, third = data_files(project)
    state = project.epoch.table("a")
    assert state is not None
    keys = erased_keys([column for column in state.declaration.columns if column.name == "k"], ["d"])
    named = {state.path: {file.relative_to(project.root / state.path).as_posix() for file in (first, third)}}
    traces = {trace.path for trace in prove(project.root, {"a"}, keys, named).traces}
    assert summary_path(third).relative_to(project.root).as_posix() in traces
    assert summary_path(first).relative_to(project.root).as_posix() not in traces


@pytest.mark.parametrize("beside", ["no file", "another file"])
def test_a_filter_that_is_left_over_shows_a_key(project: Project, beside: str) -> None:
    """Also without counts; a filter that has the key by chance is no trace if the file's own keys set its bits."""
    first, _, third = data_files(project)
    content = summary_path(third).read_bytes()
    left = third.with_name("gone.parquet") if beside == "no file" else first
    summary_path(left).write_bytes(content[: len(content) - len(counts_of(content))])
    state = project.epoch.table("a")
    assert state is not None
    columns = [column for column in state.declaration.columns if column.name == "k"]
    named = {state.path: {file.relative_to(project.root / state.path).as_posix() for file in data_files(project)}}
    traces = {key: prove(project.root, {"a"}, erased_keys(columns, [key]), named).traces for key in "dz"}
    assert summary_path(left).relative_to(project.root).as_posix() in {trace.path for trace in traces["d"]}
    assert traces["z"] == ()


def test_what_is_left_over_of_an_erased_key_goes_with_it(project: Project) -> None:
    """An erasure removes summaries beside no file, and its proof finds none; an unreadable summary proves nothing."""
    third = data_files(project)[2]
    content = summary_path(third).read_bytes()
    stray, torn = (summary_path(third.with_name(f"{name}.parquet")) for name in ("gone", "torn"))
    stray.write_bytes(content[: len(content) - len(counts_of(content))])
    torn.write_bytes(content[:-1])
    receipt = project.updater().erase("a", ["d"])[1]
    assert receipt is not None
    assert receipt.proof.traces == ()
    assert not stray.exists()
    assert not torn.exists()
    torn.write_bytes(content[:-1])
    state = project.epoch.table("a")
    assert state is not None
    keys = erased_keys([column for column in state.declaration.columns if column.name == "k"], ["d"])
    assert [trace.found for trace in prove(project.root, {"a"}, keys, {}).traces] == ["bytes that cannot be read"]


def test_a_summary_takes_at_most_three_percent(tmp_path: Path, spark: SparkSession) -> None:
    """If not all keys fit, the summary lists the most frequent keys, and one number for the others."""
    project = Project(tmp_path / "project", spark)
    keys = [f"key-{number * 7919 % 1_000_003:06d}" for number in range(4000) for _ in range(9 if number < 5 else 2)]
    project.land("1.csv", csv(*(row(key, 0.5, 4) for key in keys)))
    with limited(summary_share=0.03):
        project.update(1)
    (file,) = data_files(project)
    assert summary_path(file).stat().st_size <= 0.03 * file.stat().st_size
    summary = read_summary(str(file), len(keys))
    assert summary is not None
    assert summary.rest > 0
    assert {key for key, count in summary.counts.items() if count == 9} == {(key,) for key in keys[:45]}


def test_a_file_of_an_older_epoch_shows_no_key_by_chance(project: Project) -> None:
    """Its filter may have the bits of a missing key; the file itself, though the newest epoch does not name it, decides."""
    older = data_files(project)[0].with_name("older.parquet")
    pq.write_table(pa.table({"k": sorted(f"key-{number}" for number in range(400) for _ in "12")}), older)
    write_summary(older, ["k"])
    content = summary_path(older).read_bytes()
    summary_path(older).write_bytes(content[: len(content) - len(counts_of(content))])
    bloom_filter = read_filter(str(older), 800) or b""
    absent = next(key for key in map(str, range(100_000)) if holds(bloom_filter, hash_of((key,)), bits_of(hash_of((key,)))))
    state = project.epoch.table("a")
    assert state is not None
    keys = erased_keys([column for column in state.declaration.columns if column.name == "k"], [absent])
    assert prove(project.root, {"a"}, keys, {}).traces == ()
    assert prove(project.root, {"other"}, keys, {}).traces == ()
    older.unlink()
    assert [trace.found for trace in prove(project.root, {"a"}, keys, {}).traces] == [FILTER_SHOWS]


def test_an_erasure_removes_a_damaged_summary_beside_a_file_that_stays(project: Project) -> None:
    """A power loss may leave one: it shows nothing, and no answer needs it. A foreign file in the root is none."""
    (project.root / "server.keys").write_text("of another program\n")
    damaged = summary_path(data_files(project)[0])
    damaged.write_bytes(bytes(damaged.stat().st_size))
    receipt = project.updater().erase("a", ["d"])[1]
    assert receipt is not None
    assert receipt.proof.traces == ()
    assert not damaged.exists()
    assert (project.root / "server.keys").exists()
