"""The reading commands over a small warehouse that was written without Spark."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from pyarrow import ipc, parquet

from tests.cli.conftest import Place
from tests.serving.house import House, build, declare
from warehouse import Warehouse
from warehouse.cli.main import COMMANDS
from warehouse.errors import EpochVacuumedError, UsageError
from warehouse.time import format_instant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cli.conftest import Ended

NOBODY = 65534


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, House]:
    """Build the warehouse once."""
    directory = tmp_path_factory.mktemp("project")
    return declare(directory), build(directory / "data")


@pytest.fixture
def project(built: tuple[Path, House], invoke: Callable[..., Ended]) -> Place:
    """Return the project with this test's way to run commands."""
    return Place(*built, invoke)


def test_probe_prints_the_rows_of_a_key_in_order(project: Place) -> None:
    """The rows are those of the model, the window time is told on stderr."""
    ended = project.run("probe", "names", "a")
    shown = list(csv.reader(io.StringIO(ended.out, newline="")))
    expected = project.house["names"].probed(lambda key: key == ("a",), 4)
    assert shown[0] == list(project.house["names"].names)
    assert [int(row[1]) for row in shown[1:]] == [row[1] for row in expected]
    assert ended.err.startswith(f"{len(expected)} row")
    assert "as of window time 2013-01-01T04:00:00Z (epoch 2)" in ended.err


def test_the_newest_epoch_is_answered(project: Place) -> None:
    """With `--isolation latest` also how long ago it was committed; an epoch of the past is another wish."""
    for command in (("sql", "SELECT count(*) FROM names"), ("scan", "names")):
        ended = project.run(*command, "--isolation", "latest")
        assert sorted(ended.out.splitlines()) == sorted(project.run(*command).out.splitlines())
        assert re.search(r"\(epoch 2\)\ncommitted \d+d(\d+h)? ago$", ended.err.strip())
        past = ("--isolation", "latest", "--as-of", "2013-01-01T04:00:00Z")
        refused = project.invoke("-C", str(project.directory), *command, *past)
        assert refused.code == UsageError.exit_code
        assert "leave one of them out" in refused.err


def test_an_answer_within_a_time(project: Place) -> None:
    """Numbers have their bounds beside them, how much is known stands below, and other queries end with exit code 2."""
    query = "SELECT name, count(*) AS n, sum(value) AS s FROM names GROUP BY name"
    ended = project.run("sql", query, "--within", "10m", "-o", "json")
    assert "exact: everything was read in time" in ended.err
    rows = project.rows("sql", query, "--within", "10m")
    assert list(rows[0]) == ["name", "n", "n_low", "n_high", "s", "s_low", "s_high"]
    assert all(row["n_low"] == row["n"] == row["n_high"] for row in rows)
    assert project.rows("probe", "names", "a", "--within", "10m") == project.rows("probe", "names", "a")
    assert project.fail("sql", "SELECT max(value) FROM names", "--within", "1s") == (2, "query")
    assert project.fail("sql", "SELECT count(*) FROM names", "--within", "0s") == (2, "usage")


def test_keys_come_in_many_ways(project: Place) -> None:
    """Arguments, --key, lines of a file, ranges and the null key select what the model selects."""
    names = project.house["names"]

    def expected(wanted: Callable[[tuple[Any, ...]], bool]) -> list[int]:
        return [row[1] for row in names.probed(wanted, 4)]

    def found(*arguments: str, text: str | None = None) -> list[int]:
        return [row["value"] for row in project.rows("probe", "names", *arguments, text=text)]

    assert found("007") == expected(lambda key: key == ("007",))
    assert found("") == expected(lambda key: key == ("",))
    assert found("a", "b") == expected(lambda key: key[0] in ("a", "b"))
    assert found("--key", "name=it's") == expected(lambda key: key == ("it's",))
    assert found("--keys-from", "-", text='a\n["b"]\n') == expected(lambda key: key[0] in ("a", "b"))
    assert found("--keys-from", "-", text="") == []
    assert found("--null") == expected(lambda key: key == (None,))
    assert found("--from", "a", "--to", "b") == expected(lambda key: key[0] is not None and "a" <= key[0] < "b")
    assert found("--to", "7") == expected(lambda key: key[0] is not None and key[0] < "7")
    assert found("--", "--null") == []


def test_probe_shows_what_is_asked_for(project: Place) -> None:
    """Columns, system columns, limits and times change what is shown."""
    (row,) = project.rows("probe", "names", "a", "--columns", "value,_exp", "--limit", "1")
    assert list(row) == ["value", "_exp"]
    whole = project.rows("probe", "names", "a", "--system-columns")[0]
    assert list(whole)[-6:] == ["_ts", "_exp", "_load_slot", "_exp_slot", "sub_index", "exp_block"]
    earlier = project.run("probe", "names", "a", "--as-of", "2013-01-01T03:30:00Z")
    assert "(epoch 1)" in earlier.err
    later = project.run("probe", "names", "a", "--now", "2013-01-01T06:00:00Z", "-o", "jsonl")
    model = project.house["names"].probed(lambda key: key == ("a",), 4, tau=1_357_020_000_000_000)
    assert len(later.out.splitlines()) == len(model)
    assert "live at 2013-01-01T06:00:00Z" in later.err


def test_explain_goes_to_stderr(project: Place) -> None:
    """The explanation comes beside the rows, not among them."""
    ended = project.run("probe", "names", "a", "--explain", "-o", "csv")
    assert ended.out == project.run("probe", "names", "a").out
    for fact in ("files considered: ", "files read: ", "rows: ", "milliseconds: ", "sql: SELECT"):
        assert fact in ended.err


def test_rows_that_never_expire_have_a_null_expiration(project: Place) -> None:
    """What is a far instant inside is null outside."""
    shown = project.rows("scan", "names", "--columns", "_exp")
    assert None in [row["_exp"] for row in shown]
    assert not any("9999" in row["_exp"] for row in shown if row["_exp"])


def test_scan_prints_live_rows(project: Place, tmp_path: Path) -> None:
    """All live rows, or those of a condition, in every format the same."""
    live = project.house["names"].live(4)
    assert len(project.rows("scan", "names")) == len(live)
    chosen = project.rows("scan", "names", "--where", "value >= 500 and _exp is null", "--columns", "value")
    assert len(chosen) == sum(row.values[1] >= 500 and row.shown()[1] is None for row in live)
    file = tmp_path / "names.parquet"
    assert project.run("scan", "names", "--output-file", str(file)).out == ""
    table = parquet.read_table(file)
    assert table.num_rows == len(live)
    assert table.schema.metadata[b"stream_wh.window_time"] == b"2013-01-01T04:00:00Z"
    arrow = tmp_path / "names.arrow"
    project.run("scan", "names", "--output-file", str(arrow))
    assert ipc.open_stream(arrow.read_bytes()).read_all().num_rows == len(live)
    assert project.run("scan", "nothing", "-o", "json").json() == []
    assert project.run("scan", "nothing").out == "k,v\r\n"


def test_sql_reads_all_tables(project: Place, tmp_path: Path) -> None:
    """A query comes as an argument, from a file or from standard input."""
    query = "select count(*) as n from names where name = 'a'"
    expected = [{"n": len(project.house["names"].probed(lambda key: key == ("a",), 4))}]
    file = tmp_path / "query.sql"
    file.write_text(query)
    assert project.rows("sql", query) == expected
    assert project.rows("sql", "-f", str(file)) == expected
    assert project.rows("sql", "-f", "-", text=query) == expected
    assert project.rows("sql", "select 1.50::decimal(4,2) as d, 'nan'::double as x") == [{"d": "1.50", "x": None}]


def test_metadata_is_rows_too(project: Place) -> None:
    """tables, describe, files, history, status and rejected print rows in every format."""
    assert [row["table"] for row in project.rows("tables")] == list(project.house.tables)
    described = {(row["of"], row["name"]): row["value"] for row in project.rows("describe", "names")}
    assert described["column", "weight"] == "double"
    assert described["table", "search_key"] == "name"
    assert described["layout", "technique"] == "norebuild"
    for row in project.rows("files", "names"):
        assert Path(row["path"]).stat().st_size == row["bytes"]
        assert row["filter"] == "_exp > TIMESTAMP '2013-01-01T04:00:00Z'"
    assert [row["number"] for row in project.rows("history")] == [2, 1, 0]
    assert [row["number"] for row in project.rows("history", "--limit", "1")] == [2]
    assert project.rows("history")[0]["window_time"] == format_instant(project.house.epochs[-1].window_time)
    standing = {row["table"]: row for row in project.rows("status")}
    assert standing["names"]["live_rows"] == len(project.house["names"].live(4))
    assert standing["names"]["rejected_rows"] == 3
    assert [row["sub_index"] for row in project.rows("status", "-v")] == [1]
    assert [row["reason"] for row in project.rows("rejected", "names", "--limit", "2")] == ["null_key"] * 2
    assert project.run("rejected", "names", "--limit", "2", "-o", "table").out.startswith("3 rejected rows: 3 null_key\n\n")
    assert project.run("rejected", "names", "-o", "csv").err.startswith("3 rejected rows: 3 null_key\n")
    brief = project.run("history", "-o", "table").out.splitlines()
    names = ("epoch", "cause", "window_time", "committed", "inserted", "expired", "rejected", "results", "took")
    assert tuple(brief[0].split()) == names
    assert max(map(len, brief)) <= 100
    for command in (
        ["tables"],
        ["describe", "names"],
        ["files", "names"],
        ["history"],
        ["status"],
        ["rejected", "names"],
    ):
        for chosen in ("table", "json", "csv", "parquet", "arrow"):
            file = project.directory / f"out.{chosen}"
            project.run(*command, "-o", chosen, "--output-file", str(file))
            assert file.stat().st_size
            file.unlink()


def test_every_command_is_a_method(project: Place, tmp_path: Path) -> None:
    """What a command shows, a program asks a `Warehouse` for; only what speaks of the machine alone is no method."""
    assert [name for name in COMMANDS if not hasattr(Warehouse, name)] == ["demo", "doctor"]
    with Warehouse.open(project.directory) as warehouse:
        assert list(warehouse.tables()) == [row["table"] for row in project.rows("tables")]
        assert {row.table: row.live_rows for row in warehouse.status()} == {
            row["table"]: row["live_rows"] for row in project.rows("status")
        }
        assert [column.name for column in warehouse.describe("names").columns] == [
            row["name"] for row in project.rows("describe", "names") if row["of"] == "column"
        ]
        assert [file.path for file in warehouse.files("names").files] == [row["path"] for row in project.rows("files", "names")]
        assert [epoch.number for epoch in warehouse.history()] == [2, 1, 0]
        assert [epoch.number for epoch in warehouse.history(1)] == [2]
        assert [row["reason"] for row in warehouse.rejected("names", limit=2).arrow().to_pylist()] == ["null_key"] * 2
        assert warehouse.validate() == ("no [streams.NAME] is declared, so nothing will be loaded",)
    with pytest.raises(UsageError, match="closed"):
        warehouse.history()
    assert Warehouse.init(tmp_path / "new", example="sessions")[0] == tmp_path / "new" / "warehouse.toml"


def test_errors_have_the_documented_exit_codes(project: Place, tmp_path: Path) -> None:
    """2 for names, keys, conditions and queries that cannot be, 1 for a time that is not kept."""
    assert project.fail("probe", "nmaes", "a") == (2, "unknown_name")
    assert project.fail("probe", "days", "yesterday") == (2, "usage")
    assert project.fail("probe", "names", "a", "--columns", "nmae") == (2, "unknown_name")
    assert project.fail("probe", "names") == (2, "usage")
    assert project.fail("probe", "names", "a", "--null") == (2, "usage")
    assert project.fail("scan", "names", "--where", "value +")[0] == 2
    assert project.fail("scan", "names", "--now", "2013-01-01T00:00:00Z") == (2, "usage")
    assert project.fail("sql", "drop table names") == (2, "query")
    assert project.fail("sql", "select * from read_csv('/etc/passwd')") == (2, "query")
    assert project.fail("scan", "names", "--as-of", "2012-01-01") == (1, "no_epoch")
    assert project.fail("probe", "names", "--keys-from", str(tmp_path / "none")) == (1, "system")
    assert project.invoke("-C", str(declare(tmp_path)), "scan", "names").code == 1


def test_changes_tell_what_came_and_where_to_go_on(project: Place) -> None:
    """A consumer reads from its cursor, an epoch number, and is told the next one."""
    ended = project.run("changes", "names", "--since", "1", "-o", "jsonl")
    rows = [msgspec.json.decode(line) for line in ended.out.splitlines()]
    assert {row["_change_epoch"] for row in rows} == {2}
    assert {row["_change_time"] for row in rows} == {"2013-01-01T04:00:00Z"}
    model = project.house["names"].rows
    before, now = project.house.epochs[1].window_time, project.house.epochs[2].window_time
    wanted = {
        "insert": sorted(row.values[1] for row in model if row.load == 4 and row.exp > now),
        "expire": sorted(row.values[1] for row in model if row.load < 4 and before < row.exp <= now),
    }
    assert {kind: sorted(row["value"] for row in rows if row["_change_type"] == kind) for kind in wanted} == wanted
    assert "go on with --since 2" in ended.err
    assert project.rows("changes", "names", "--since", "2") == []
    assert "go on" not in project.run("changes", "names", "--since", "0", "--limit", "1").err
    assert project.fail("changes", "names", "--since", "7") == (2, "usage")
    assert project.fail("changes", "nmaes", "--since", "0") == (2, "unknown_name")


def test_a_changed_declaration_is_refused(built: tuple[Path, House], invoke: Callable[..., Ended]) -> None:
    """Reading with another anchor than the tables' would give wrong rows: exit code 2."""
    directory, _ = built
    other = declare(directory / "other", "../data", warehouse={"anchor": "2013-01-01T01:00:00Z"})
    assert invoke("-C", str(other), "scan", "names", "-o", "json").error()["code"] == "changed_declaration"
    shutil.rmtree(other)


def test_an_epoch_vacuumed_before_the_first_row_is_read_anew(project: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that vanish before anything was printed cost one more attempt; afterwards the error is transient."""
    from warehouse.serving import Answer  # noqa: PLC0415 - one test looks inside

    original, failures = Answer.rows, [EpochVacuumedError("gone"), None]

    def rows(self: Answer, size: int = 10) -> Iterator[list[tuple[Any, ...]]]:
        if failures and (failure := failures.pop(0)):
            raise failure
        return original(self, size)

    monkeypatch.setattr(Answer, "rows", rows)
    assert len(project.rows("scan", "names")) == len(project.house["names"].live(4))
    failures[:] = [EpochVacuumedError("gone"), EpochVacuumedError("gone")]
    assert project.fail("scan", "names") == (3, "epoch_vacuumed")


def test_the_real_entry_point_reads(built: tuple[Path, House], stream_wh: Callable[..., Ended]) -> None:
    """A process prints rows on stdout and the window time on stderr, and ends with 0."""
    ended = stream_wh("-C", str(built[0]), "probe", "names", "007", "-o", "json")
    assert ended.code == 0
    assert ended.json()
    assert ended.err.count("\n") == 1


def test_a_reader_that_stops_early_ends_the_command_silently(built: tuple[Path, House], environment: dict[str, str]) -> None:
    """`| head` gets its lines and sees no error."""
    query = "select range, repeat('x', 100) as x from range(200000)"
    process = subprocess.Popen(
        [sys.executable, "-m", "warehouse.cli", "-C", str(built[0]), "sql", query],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"range,x\r\n"
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    assert process.wait(30) == 0


def test_csv_to_a_probe_imports_nothing_that_is_slow(built: tuple[Path, House], environment: dict[str, str]) -> None:
    """Reading starts neither pyspark nor pyarrow, rich, pydantic or sqlglot."""
    code = "import sys; from warehouse.cli.main import run; run(sys.argv[1:]); print(*sys.modules)"
    # the epochs of this warehouse carry no digest, so that its declarations are checked with pydantic
    process = subprocess.run(
        [sys.executable, "-c", code, "-C", str(built[0]), "probe", "names", "a"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert not set(process.stdout.splitlines()[-1].split()) & {"rich", "pyspark", "pyarrow", "pandas", "numpy"}


@pytest.mark.parametrize(
    ("table", "groups"),
    [
        ("names", "name"),
        ("names", "value, weight"),
        ("amounts", "amount, even"),
        ("days", "day, n % 2 = 0"),
        ("moments", "moment, moment::TIMESTAMP"),
    ],
)
def test_an_answer_within_a_time_loads_no_pandas(
    built: tuple[Path, House], environment: dict[str, str], table: str, groups: str
) -> None:
    """Where it is installed, loading it takes longer than a dashboard waits; whatever the type of the groups is."""
    code = "import sys; from warehouse.cli.main import run; run(sys.argv[1:]); print(*sys.modules)"
    numbers = ", sum(value), avg(weight), median(value)" if groups == "name" else ""
    query = f"SELECT {groups}, count(*){numbers} FROM {table} GROUP BY {groups}"
    process = subprocess.run(
        [sys.executable, "-c", code, "-C", str(built[0]), "sql", query, "--within", "20s"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    loaded = process.stdout.splitlines()[-1].split()
    assert "warehouse.serving.timed_aggregates" in loaded
    assert not {"pandas", "pyspark"} & set(loaded)


@pytest.fixture
def readable(built: tuple[Path, House]) -> Iterator[Path]:
    """Return a copy of the project that everybody may read and nobody write."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        directory.chmod(0o755)
        shutil.copytree(built[0], directory / "project")
        for path in (directory / "project").rglob("*"):
            path.chmod(0o555 if path.is_dir() else 0o444)
        (directory / "project").chmod(0o555)
        yield directory / "project"
        for path in (directory / "project", *(directory / "project").rglob("*")):
            path.chmod(0o755)


def test_reading_needs_no_write_permission(readable: Path, environment: dict[str, str]) -> None:
    """A user who may only read gets every answer, and nothing is written."""
    commands = (
        ["probe", "names", "a"],
        ["scan", "names", "--where", "value > 3"],
        ["sql", "select * from names"],
        ["status"],
        ["files", "names"],
        ["history"],
        ["rejected", "names"],
    )
    # the first round imports everything: another user may not be able to read this Python's files
    program = (
        "import json, os, sys\n"
        "from warehouse.cli.main import run\n"
        "commands = [['-C', sys.argv[1], *each] for each in json.loads(sys.argv[2])]\n"
        "codes = [run(each) for each in commands]\n"
        f"if os.geteuid() == 0: os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})\n"
        "assert not os.access(sys.argv[1], os.W_OK)\n"
        "sys.exit(max(codes + [run(each) for each in commands]))\n"
    )
    before = sorted(readable.rglob("*"))
    process = subprocess.run(
        [sys.executable, "-c", program, str(readable), msgspec.json.encode(commands).decode()],
        env=environment,
        capture_output=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert sorted(readable.rglob("*")) == before
